"""Figures 5 and 10: the four systems under eight traces, at two intensities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import geometric_mean
from typing import TYPE_CHECKING

from flashkeel.output import units
from flashkeel.reproduce import intervals, pictures
from flashkeel.reproduce.autossd.device import CAP, SYSTEMS, capped, described, described_cap
from flashkeel.reproduce.autossd.systems import (
    CLASS,
    PROFILES,
    SIX_NINES,
    compared,
    described_small,
    length,
    small,
)
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Quantity, Range, beyond_twice, few
from flashkeel.reproduce.intervals import Estimate
from flashkeel.reproduce.session import Session, basis, kind
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Runs = Mapping[tuple[str, str], Run]

_METRICS: dict[str, float | None] = {
    "average": None,
    "p99.9": 99.9,
    "p99.99": 99.99,
    "p99.9999": SIX_NINES,
}
_DRAWN = ("average", "p99.9", "p99.9999")
_MEASURED_AGAINST = "rain"
_OURS = "autossd"
_BURSTY = {"rad-as", "lm-tbe"}
_FEWEST = 5
"""Traces with samples enough that a claim about all of them needs."""
_RANGE_PROFILES = ("dap-ds", "dtrs", "lm-tbe", "msn-cfs", "msn-befs")
"""Those of which a short run has small reads enough for p99.99."""


@dataclass(frozen=True)
class Reductions:
    """What the paper prints of one metric, in percent against rain."""

    metric: str
    mean: float
    best: float
    best_trace: str


def claims(printed: tuple[Reductions, ...]) -> tuple[Claim, ...]:
    """Return two claims a metric: over all traces, and the best of them."""
    found = []
    for row in printed:
        found += [
            Claim(
                f"{row.metric}-mean",
                f"against rain the {_words(row.metric)} falls by {row.mean} % over the traces",
                "the mean of the reductions is at least half of the paper's",
                row.mean,
                "%",
            ),
            Claim(
                f"{row.metric}-best",
                f"at most it falls by {row.best} %, under {row.best_trace}",
                "the largest reduction is at least half of the paper's",
                row.best,
                "%",
            ),
        ]
    return (*found, _VANILLA)


_VANILLA = Claim(
    "vanilla",
    "without coordination vanilla suffers most in the long tail",
    "vanilla's p99.9999 is above that of each other system, on the mean of the traces (geometric)",
    None,
    "times",
)

BURSTY = Claim(
    "bursty",
    "the gains at six nines are largest under bursty traces, RAD-AS and LM-TBE",
    "one of the two has the largest reduction of p99.9999, and both are among the first four",
    None,
    "%",
)


def measure(session: Session, printed: tuple[Reductions, ...], intensity: float) -> Outcome:
    """Run and judge everything but the claim about bursts."""
    runs = compared(session, intensity, capped())
    named = {f"{p} {s}": run for (p, s), run in runs.items()}
    findings: dict[str, Finding] = {}
    for row in printed:
        findings.update(_judge(row, runs))
    findings["vanilla"] = _vanilla(runs)
    if intensity == 1.0:
        findings["bursty"] = _bursty(runs)
    rate = "at the recorded times" if intensity == 1.0 else f"{intensity:g} times as fast"
    return Outcome(
        findings,
        basis(named),
        f"{described(session)}; {length(session)}, {rate}; reads up to 64 KiB; "
        f"{described_cap()}; rain's stripes are scrubbed whole",
        partial(_draw, runs, f"{kind(named)} traces, {rate}"),
    )


def caps(printed: tuple[Reductions, ...], intensity: float) -> Range:
    """Return what is swept: how many blocks every system may empty at once."""
    return Range(
        Quantity(
            "cap",
            (16, 64, 256),
            CAP,
            "none is set (§5.2); which systems it was none for is not said",
            " blocks",
        ),
        ("p99.9-mean", "vanilla"),
        partial(_measure_capped, printed, intensity),
    )


def _measure_capped(
    printed: tuple[Reductions, ...], intensity: float, session: Session, cap: float
) -> Outcome:
    keys = capped(round(cap))
    cases = [small(session, p, s, intensity, keys) for p in _RANGE_PROFILES for s in SYSTEMS]
    found = session.run(cases)
    runs = {(p, s): found[f"{p} {s}"] for p in _RANGE_PROFILES for s in SYSTEMS}
    row = next(row for row in printed if row.metric == "p99.9")
    findings = _judge(row, runs)
    return Outcome(
        {"p99.9-mean": findings["p99.9-mean"], "vanilla": _vanilla(runs, "p99.99")},
        basis(found),
        f"{described_small(session)}, {', '.join(_RANGE_PROFILES)}, {intensity:g} times as fast; "
        "the long tail is p99.99 in place of p99.9999",
    )


def _words(metric: str) -> str:
    return metric if metric == "average" else f"{metric} of small reads"


def _value(run: Run, metric: str) -> float:
    percentile = _METRICS[metric]
    value = run.mean(CLASS) if percentile is None else run.percentile(CLASS, percentile)
    if value is None:
        raise RuntimeError(f"{run!r} has no small reads")
    return float(value)


def _judged(runs: Runs, metric: str) -> list[str]:
    """Return the traces with samples enough for a metric under every system."""
    percentile = _METRICS[metric]
    if percentile is None:
        return _profiles(runs)
    return [
        profile
        for profile in _profiles(runs)
        if not any(few(runs[profile, system], CLASS, percentile) for system in SYSTEMS)
    ]


def _estimate(run: Run, metric: str) -> Estimate:
    """Return a percentile in ms with its interval."""
    percentile = _METRICS[metric]
    assert percentile is not None
    return intervals.percentile(run, CLASS, percentile)


def _reductions(runs: Runs, metric: str, profiles: Sequence[str]) -> dict[str, Estimate]:
    found = {}
    for profile in profiles:
        theirs, ours = (runs[profile, system] for system in (_MEASURED_AGAINST, _OURS))
        if _METRICS[metric] is None:
            # The same requests: what they do to both says nothing of the difference.
            kept = intervals.response_ratio(ours, theirs, CLASS).times(100)
            found[profile] = Estimate(100 - kept.value, 100 - kept.high, 100 - kept.low)
        else:
            found[profile] = intervals.reduction(_estimate(theirs, metric), _estimate(ours, metric))
    return found


def _verdict(holds: bool | None, judged: Sequence[str]) -> bool | None:
    return holds if len(judged) >= _FEWEST else None


def _untold(holds: bool | None, judged: Sequence[str]) -> str:
    """Return what to say of a verdict that samples enough do not allow."""
    return intervals.UNTOLD if holds is None and len(judged) >= _FEWEST else ""


def _profiles(runs: Runs) -> list[str]:
    return list(dict.fromkeys(profile for profile, _ in runs))


def _left_out(runs: Runs, judged: Sequence[str]) -> str:
    missing = [profile for profile in _profiles(runs) if profile not in judged]
    return f"too few samples: {', '.join(missing)}" if missing else ""


def _judge(row: Reductions, runs: Runs) -> dict[str, Finding]:
    judged = _judged(runs, row.metric)
    shown = _reductions(runs, row.metric, _profiles(runs))
    found = {profile: shown[profile] for profile in judged} or shown
    mean, best = intervals.mean(list(found.values())), max(found, key=found.__getitem__)
    each = ", ".join(f"{profile} {value.value:.1f}" for profile, value in shown.items())
    findings = {}
    for name, ours, paper, said in (
        ("mean", mean, row.mean, f"reductions in %: {each}"),
        ("best", found[best], row.best, f"under {best}"),
    ):
        holds = intervals.at_most(intervals.exact(paper / 2), ours)
        owners = _owners(runs, row.metric, judged, _OURS) if name == "mean" else ""
        beyond = beyond_twice(ours.value, paper) if holds else ""
        reasons = [_untold(holds, judged), beyond, said, owners, _left_out(runs, judged)]
        findings[f"{row.metric}-{name}"] = Finding(
            ours.value,
            _verdict(holds, judged),
            "; ".join(filter(None, reasons)),
            ours.interval,
        )
    return findings


def _owners(runs: Runs, metric: str, profiles: Sequence[str], other: str) -> str:
    """Return what owns most of the reads above a percentile, and under how many of the traces.

    Of rain, and of the other system; nothing of an average.
    """
    percentile = _METRICS[metric]
    if percentile is None or not profiles:
        return ""
    found = []
    for system in (_MEASURED_AGAINST, other):
        largest = Counter(
            runs[profile, system].explain(percentile, CLASS).shares[0].cause for profile in profiles
        )
        each = ", ".join(f"{units.cause(cause)} ({n})" for cause, n in largest.most_common())
        found.append(f"{system}: {each}")
    return f"what the reads above it wait for most, and under how many traces: {'; '.join(found)}"


def _vanilla(runs: Runs, metric: str = "p99.9999") -> Finding:
    judged = _judged(runs, metric)
    shown = judged or _profiles(runs)
    ratios = {system: _ratio(runs, system, _MEASURED_AGAINST, shown, metric) for system in SYSTEMS}
    holds = intervals.every(
        intervals.above(_ratio(runs, "vanilla", system, shown, metric), intervals.exact(1))
        for system in SYSTEMS
        if system != "vanilla"
    )
    each = [
        f"{p} {_ratio(runs, 'vanilla', _MEASURED_AGAINST, [p], metric).value:.2f}" for p in judged
    ]
    reasons = [
        _untold(holds, judged),
        intervals.words({s: ratios[s] for s in SYSTEMS if s != _MEASURED_AGAINST}, ""),
        f"vanilla against rain: {', '.join(each)}" if each else "",
        _owners(runs, metric, judged, "vanilla"),
        _left_out(runs, judged),
    ]
    return Finding(
        {system: ratio.value for system, ratio in ratios.items()},
        _verdict(holds, judged),
        "; ".join(filter(None, reasons)),
    )


def _ratio(runs: Runs, system: str, other: str, profiles: Sequence[str], metric: str) -> Estimate:
    """Return a system's tail against another's, on the geometric mean of traces."""
    return intervals.geometric_mean(
        [
            intervals.ratio(*(_estimate(runs[p, s], metric) for s in (system, other)))
            for p in profiles
        ]
    )


def _bursty(runs: Runs) -> Finding:
    judged = _judged(runs, "p99.9999")
    enough = set(judged) >= _BURSTY
    # All are shown where there is no verdict.
    reductions = _reductions(runs, "p99.9999", judged if enough else PROFILES)
    order = sorted(reductions, key=lambda profile: reductions[profile].value, reverse=True)
    holds = _gain_most(reductions) if enough else None
    reasons = [
        intervals.OVERLAP if enough and holds is None else "",
        intervals.words({p: reductions[p] for p in order}, "%"),
        _left_out(runs, judged),
    ]
    return Finding(
        {p: reductions[p].value for p in order},
        _verdict(holds, judged),
        "; ".join(filter(None, reasons)),
    )


def _gain_most(reductions: Mapping[str, Estimate]) -> bool | None:
    """Return whether a bursty trace gains most, and both are among the first four."""
    others = [each for profile, each in reductions.items() if profile not in _BURSTY]
    bursty = [reductions[profile] for profile in _BURSTY]

    def is_before(one: Estimate, most: int) -> bool | None:
        """Whether `one` gains more than all of the others but so many."""
        behind = [intervals.above(one, other) for other in others]
        if behind.count(False) > most:
            return False
        return True if len(behind) - behind.count(True) <= most else None

    # Where both are among the first four, at most two others are.
    first = [is_before(one, 0) for one in bursty]
    is_first = True if True in first else None if None in first else False
    return intervals.every([is_first, *(is_before(one, 2) for one in bursty)])


def _draw(runs: Runs, what: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    names = [*PROFILES, "geo. mean"]
    for axes, metric in zip(figure.subplots(3, 1, sharex=True), _DRAWN, strict=True):
        judged = _judged(runs, metric)
        for index, system in enumerate(SYSTEMS):
            ratios = [
                _value(runs[p, system], metric) / _value(runs[p, _MEASURED_AGAINST], metric)
                for p in PROFILES
            ]
            places = [at + (index - 1.5) * 0.2 for at in range(len(names))]
            bars = axes.bar(places, [*ratios, geometric_mean(ratios)], width=0.2, label=system)
            for bar, name in zip(bars, names, strict=True):
                if name not in judged and len(judged) < len(PROFILES):
                    bar.set_alpha(0.4)
        axes.axhline(1, color="black", linewidth=0.6)
        axes.set_yscale("log")
        pictures.log_numbers(axes.yaxis)
        axes.set_ylabel(f"{metric} / rain's")
        axes.grid(axis="y", alpha=0.3)
    axes.set_xticks(range(len(names)), names)
    first = figure.axes[0]
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=4, loc="outside lower center")
    first.set_title(f"Small reads under {what}; pale: too few samples")
    return figure
