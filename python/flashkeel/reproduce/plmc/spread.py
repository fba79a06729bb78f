"""How evenly hosts must read for counts that are expected to bound tails: the range of a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from flashkeel.comparison import FEW
from flashkeel.reproduce.claims import (
    Claim,
    Finding,
    Outcome,
    Quantity,
    Range,
    Study,
    too_few,
)
from flashkeel.reproduce.pictures import log_durations
from flashkeel.reproduce.plmc.systems import (
    BARE,
    CLASSES,
    DEVICE,
    HIGH,
    JUDGED,
    LOAD,
    TOPPED_UP,
    Shares,
    Situation,
    fewest,
    gains,
    gains_of_all,
    in_windows,
    middle,
    shared,
)
from flashkeel.reproduce.session import Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPREADS = (0.1, 0.2, 0.3, 0.5)
"""Of the logarithm of the rate; the last is that of the other studies."""
WAYS = (BARE, "CoD strict", TOPPED_UP, "HoD strict")
_ALL_READS = f"{HIGH}, all reads"

_EXACT = Claim(
    "hod-range",
    "with exact counts (strict) the tails are shorter than the bare drive's",
    "the 99th percentile over windows of the high class is shorter by half at least at every "
    "spread of the rate",
    87.2,
    "%",
    is_of_all=True,
)
_EXPECTED = Claim(
    "cod-range",
    "with expected counts (strict) too",
    "the same at one spread at least, whether hosts may ask for more within a window or not; the "
    "output says at which",
    81.7,
    "%",
)


def _measure(session: Session) -> Outcome:
    spreads = SPREADS[-1:] if session.quick else SPREADS
    runs = {spread: _runs(session, spread, WAYS) for spread in spreads}
    return judged(runs, is_all=not session.quick)


def _runs(session: Session, spread: float, names: Sequence[str]) -> dict[str, list[Shares]]:
    return {name: shared(session, name, situation=Situation(spread)) for name in names}


def judged(runs: Mapping[float, Mapping[str, list[Shares]]], *, is_all: bool) -> Outcome:
    """Judge both claims by runs at some spreads of the rates, or at all of them."""
    least = min(fewest(r) for found in runs.values() for r in found.values())
    is_enough = least >= FEW
    missing = "" if is_enough else f"{too_few(least)}, of the 99th over windows"
    high = {
        name: {at: gains(found[BARE], found[name])[HIGH] for at, found in runs.items()}
        for name in WAYS[1:]
    }
    exact = high["HoD strict"]
    holds_at = [
        f"{name} at {spread:g}"
        for name in _EXPECTED_WAYS
        for spread, gain in high[name].items()
        if gain >= _HALF
    ]
    # One spread alone cannot tell that it holds at none.
    tells = is_enough and (bool(holds_at) or is_all)
    held = f"holds for: {', '.join(holds_at) or 'none'}; {_classes(runs)}"
    of_all_reads = {
        name: {at: gains_of_all(found[BARE], found[name])[_ALL_READS] for at, found in runs.items()}
        for name in WAYS[1:]
    }
    return Outcome(
        {
            "hod-range": Finding(
                {f"spread {spread:g}": gain for spread, gain in exact.items()}
                | {
                    f"spread {spread:g}, all reads": gain
                    for spread, gain in of_all_reads["HoD strict"].items()
                },
                all(gain >= _HALF for gain in exact.values()) if is_enough else None,
                missing,
            ),
            "cod-range": Finding(
                {
                    f"{name} {spread:g}{said}": gain
                    for said, by_name in (("", high), (", all reads", of_all_reads))
                    for name in _EXPECTED_WAYS
                    for spread, gain in by_name[name].items()
                },
                bool(holds_at) if tells else None,
                missing or held,
            ),
        },
        "synthetic",
        f"{DEVICE}, data set 1, configuration 2; {LOAD.replace('spread 0.5', 'spreads as given')}; "
        f"{_fewest(runs)} windows at least; the bare drive in windows of the same length; of all "
        f"reads the 99.99th percentile; {_shares(runs)}",
        partial(_draw, runs),
    )


_HALF = 50.0
_EXPECTED_WAYS = ("CoD strict", TOPPED_UP)
_BY_CLAIM = {"cod": "CoD strict", "cod-topped": TOPPED_UP, "hod": "HoD strict"}


def measure_at(session: Session, spread: float) -> Outcome:
    """Judge expected counts, with and without more within a window, and exact ones at a spread."""
    return judged_at(spread, _runs(session, spread, (BARE, *_BY_CLAIM.values())))


def judged_at(spread: float, found: Mapping[str, list[Shares]]) -> Outcome:
    """Judge each claim by its own system."""
    least = min(map(fewest, found.values()))
    missing = "" if least >= FEW else f"{too_few(least)}, of the 99th over windows"
    findings = {}
    for claim, name in _BY_CLAIM.items():
        gain = gains(found[BARE], found[name])
        holds = gain[HIGH] >= _HALF and min(gain.values()) >= 0
        measured = gain | gains_of_all(found[BARE], found[name])
        findings[claim] = Finding(measured, None if missing else holds, missing)
    return Outcome(
        findings,
        "synthetic",
        f"{DEVICE}, data set 1, configuration 2; {LOAD.replace('spread 0.5', f'spread {spread:g}')}"
        f"; {_fewest({spread: found})} windows at least, the 99th percentile over them; of all "
        f"reads the 99.99th; {in_windows(found)}",
    )


EVENNESS = Range(
    Quantity(
        "spread of the rates",
        SPREADS,
        SPREADS[-1],
        "not given; each class is a part of the traces of Systor '17",
        " (of their logarithm)",
    ),
    tuple(_BY_CLAIM),
    measure_at,
)
"""What is swept for the claims about tails."""


def _classes(runs: Mapping[float, Mapping[str, list[Shares]]]) -> str:
    """Return which spreads leave no class worse off than on the bare drive."""
    texts = []
    for name in WAYS[1:]:
        spared = [
            f"{spread:g}"
            for spread, found in runs.items()
            if min(gains(found[BARE], found[name]).values()) >= 0
        ]
        texts.append(f"{name} {', '.join(spared) or 'none'}")
    return f"spreads at which no class is worse off: {'; '.join(texts)}"


def _fewest(runs: Mapping[float, Mapping[str, list[Shares]]]) -> int:
    return min(run.windows for found in runs.values() for r in found.values() for run in r)


def _shares(runs: Mapping[float, Mapping[str, list[Shares]]]) -> str:
    return "; ".join(f"at {spread:g} {in_windows(found)}" for spread, found in runs.items())


def _draw(runs: Mapping[float, Mapping[str, list[Shares]]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots(1, len(CLASSES), sharey=True)
    for axis, host in zip(axes, CLASSES, strict=True):
        for name in WAYS:
            tails = [middle(found[name], host, JUDGED) for found in runs.values()]
            axis.plot(list(runs), tails, marker="o", label=name)
        axis.set_title(host)
        axis.set_yscale("log")
        axis.set_xlabel("spread of the rate")
        axis.grid(alpha=0.3)
    log_durations(axes[0].yaxis)
    axes[0].set_ylabel("p99 over windows of their tails")
    axes[-1].legend(frameon=False, fontsize="small")
    return figure


STUDY = Study(
    "plmc/spread",
    "How evenly hosts must read for counts to bound their tails",
    (_EXACT, _EXPECTED),
    _measure,
)
"""Not in the dissertation, which has one trace a class."""
