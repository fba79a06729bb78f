"""Figure 4.7: how much of the counts is used, and how much of the need is not covered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.plmc.systems import (
    CLASSES,
    CONFIGURATIONS,
    DEVICE,
    LOAD,
    LOW,
    SHARED,
    Shares,
    shared,
)
from flashkeel.reproduce.session import Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TENTHS = ("p10", "p50", "p90")
_USED = "utilisation_percent"

_EXACT_USED = Claim(
    "hod-used",
    "with exact counts all that is given is used",
    "a tenth, half and nine tenths of the windows use 99 % at least, in every class "
    "that is given any, strict and ratio",
    100.0,
    "%",
)
_EXACT_COVERED = Claim(
    "hod-covered",
    "and the share of requests that is not covered is near zero",
    "its median over windows is at most 1 % in every class, strict and ratio",
    0.0,
    "%",
)
_EXPECTED_USED = Claim(
    "cod-used",
    "with expected counts half of the windows use all of it, a tenth less",
    "the median is 97 % at least and the 10th percentile below it, in every class, strict",
    100.0,
    "%",
)
_LOW_USED = Claim(
    "low-uses-most",
    "the low class uses a little more of its counts than the others",
    "its 10th percentile is the highest of all classes, strict and ratio, with expected counts; "
    "unknown where the seeds disagree",
    None,
    "%",
)
_EXPECTED_COVERED = Claim(
    "cod-covered",
    "the median of what is not covered is small, its 90th percentile is not",
    "the median is at most 10 % and the 90th percentile above it, in the high class, strict",
    None,
    "%",
)


def _measure(session: Session) -> Outcome:
    runs = {name: shared(session, name) for name in SHARED}
    by_configuration = {
        configuration: shared(session, "CoD strict", configuration=configuration)
        for configuration in (("2",) if session.quick else CONFIGURATIONS)
    }
    seeds = len(runs["CoD strict"])
    used = {name: _tenths(r, _USED) for name, r in runs.items()}
    short = {name: _tenths(r, "deficiency_percent") for name, r in runs.items()}
    exact = [name for name in SHARED if name.startswith("HoD")]
    expected = [name for name in SHARED if name.startswith("CoD")]
    cod = used["CoD strict"]
    missing = short["CoD strict"]["high"]
    of_high = {
        name: _tenths(r, "deficiency_percent")["high"] for name, r in by_configuration.items()
    }
    configurations = "not covered in the high class, median and 90th percentile: " + "; ".join(
        f"configuration {name} {tenths[1]:g} and {tenths[2]:g} %"
        for name, tenths in of_high.items()
    )
    findings = {
        "hod-used": Finding(
            _flat({name: used[name] for name in exact}, 0),
            all(tenth >= 99 for name in exact for host in CLASSES for tenth in used[name][host]),
        ),
        "hod-covered": Finding(
            _flat({name: short[name] for name in exact}, 1),
            all(short[name][host][1] <= 1 for name in exact for host in CLASSES),
        ),
        "cod-used": Finding(
            {f"{host} {key}": cod[host][i] for host in CLASSES for i, key in enumerate(_TENTHS)},
            all(cod[host][1] >= 97 and cod[host][0] < cod[host][1] for host in CLASSES),
        ),
        "low-uses-most": Finding(
            _flat({name: used[name] for name in expected}, 0),
            *_by_seed([_is_low_most([runs[name][at] for name in expected]) for at in range(seeds)]),
        ),
        "cod-covered": Finding(
            dict(zip(_TENTHS, missing, strict=True)),
            missing[1] <= 10 and missing[2] > missing[1],
            configurations,
        ),
    }
    return Outcome(
        findings,
        "synthetic",
        f"{DEVICE}, data set 1, configuration 2; {LOAD}; medians of {len(runs['CoD strict'])} "
        f"seeds of {min(run.windows for r in runs.values() for run in r)} windows at least",
        partial(_draw, used, short),
    )


def _is_low_most(runs: Sequence[Shares]) -> bool:
    return all(
        run.hosts[LOW][_USED][0] >= max(run.hosts[host][_USED][0] for host in CLASSES)
        for run in runs
    )


def _by_seed(verdicts: Sequence[bool]) -> tuple[bool | None, str]:
    """Return the verdict on whole percents, of which one turns it: none where seeds disagree."""
    words = f"with {sum(verdicts)} of {len(verdicts)} seeds"
    if len(verdicts) == 1:
        return None, f"{words}: one seed does not tell by whole percents"
    return (verdicts[0] if len(set(verdicts)) == 1 else None), words


def _tenths(runs: list[Shares], key: str) -> dict[str, tuple[float, ...]]:
    """Return the 10th, 50th and 90th percentile by class, medians over seeds."""
    return {
        host: tuple(median(run.hosts[host][key][i] for run in runs) for i in range(len(_TENTHS)))
        for host in CLASSES
    }


def _flat(
    tenths: Mapping[str, Mapping[str, tuple[float, ...]]], index: int
) -> dict[str, float | None]:
    return {f"{name} {host}": tenths[name][host][index] for name in tenths for host in CLASSES}


def _draw(
    used: Mapping[str, Mapping[str, tuple[float, ...]]],
    short: Mapping[str, Mapping[str, tuple[float, ...]]],
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = (
        (used, 0, "used of the counts, 10th percentile"),
        (short, 2, "not covered, 90th percentile"),
    )
    for axis, (values, index, title) in zip(figure.subplots(1, 2), panels, strict=True):
        for place, name in enumerate(values):
            heights = [values[name][host][index] for host in CLASSES]
            axis.bar(
                [x + 0.2 * (place - 1.5) for x in range(len(CLASSES))], heights, 0.2, label=name
            )
        axis.set_xticks(range(len(CLASSES)), CLASSES)
        axis.set_ylabel("%")
        axis.set_title(title)
        axis.grid(axis="y", alpha=0.3)
    axis.legend(frameon=False)
    return figure


STUDY = Study(
    "plmc/counts",
    "Counts that are used, and needs that are not covered",
    (_EXACT_USED, _EXACT_COVERED, _EXPECTED_USED, _LOW_USED, _EXPECTED_COVERED),
    _measure,
    is_cut_short=True,
)
