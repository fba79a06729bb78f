"""Figure 9: static shares of garbage collection against the dynamic one, under MSN-BEFS."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from flashkeel.output import units
from flashkeel.reproduce import intervals, pictures, series
from flashkeel.reproduce.autossd.device import described
from flashkeel.reproduce.autossd.systems import CLASS, SIX_NINES, case, length
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, few, owners, too_few
from flashkeel.reproduce.intervals import Estimate
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PROFILE = "msn-befs"
_STATIC = {"20 %": 0.20, "10 %": 0.10, "5 %": 0.05}
_DYNAMIC = "dynamic"

_BETTER = Claim(
    "20-to-10",
    "a share of 10 % is better than one of 20 %",
    "mean and p99.9 of small reads are lower at 10 %",
    None,
)
_COLLAPSE = Claim(
    "5-collapses",
    "5 % is better than 10 % up to a point, and worse in the long tail",
    "p99.9999 at 5 % is above that at 10 %, while the mean is not",
    None,
)
_DYNAMIC_BEST = Claim(
    "dynamic-best",
    "the dynamic share is better than every static one",
    "p99.9 and p99.9999 of the dynamic share are at most 5 % above the best static one's",
    None,
)


def _measure(session: Session) -> Outcome:
    cases = [
        _named(case(session, _PROFILE, "autossd", keys={"device.scheduler.gc_static": share}), name)
        for name, share in _STATIC.items()
    ]
    cases.append(_named(case(session, _PROFILE, "autossd"), _DYNAMIC))
    runs = session.run(cases)
    mean = {name: intervals.exact((run.mean(CLASS) or 0.0) / 1e6) for name, run in runs.items()}
    p3 = {name: intervals.percentile(run, CLASS, 99.9) for name, run in runs.items()}
    p6 = {name: intervals.percentile(run, CLASS, SIX_NINES) for name, run in runs.items()}
    sparse = [run.beyond(CLASS, SIX_NINES) for run in runs.values() if few(run, CLASS, SIX_NINES)]
    better = intervals.every(intervals.above(m["20 %"], m["10 %"]) for m in (mean, p3))
    collapses = intervals.every(
        (intervals.above(p6["5 %"], p6["10 %"]), intervals.at_most(mean["5 %"], mean["10 %"]))
    )
    best = intervals.every(
        intervals.at_most(m[_DYNAMIC], m[name], 1.05) for m in (p3, p6) for name in _STATIC
    )
    return Outcome(
        {
            "20-to-10": Finding(
                _labelled(mean, "mean") | _labelled(p3, "p99.9"),
                better,
                _reason(better, {"p99.9": p3}, _grown(runs["20 %"], runs["10 %"])),
            ),
            "5-collapses": Finding(
                _labelled(mean, "mean") | _labelled(p6, "p99.9999"),
                None if sparse else collapses,
                too_few(min(sparse))
                if sparse
                else _reason(collapses, {"p99.9999": p6}, _waits(runs, SIX_NINES)),
            ),
            "dynamic-best": Finding(
                _labelled(mean, "mean") | _labelled(p3, "p99.9") | _labelled(p6, "p99.9999"),
                None if sparse else best,
                too_few(min(sparse))
                if sparse
                else _reason(best, {"p99.9": p3, "p99.9999": p6}, _waits(runs, 99.9)),
            ),
        },
        basis(runs),
        f"{described(session)}; {length(session, [_PROFILE])}; reads up to 64 KiB",
        partial(_draw, runs),
    )


def _reason(holds: bool | None, tails: Mapping[str, Mapping[str, Estimate]], found: str) -> str:
    """Return the intervals of what was judged, and `found` where it does not hold."""
    told = [f"{at}, {intervals.words(values, 'ms')}" for at, values in tails.items()]
    reasons = [intervals.OVERLAP if holds is None else "", *told, "" if holds else found]
    return "; ".join(filter(None, reasons))


def _waits(runs: Mapping[str, Run], percentile: float) -> str:
    return f"{series.least_free(runs)}; {owners(runs, CLASS, percentile)}"


def _named(one: Case, name: str) -> Case:
    return Case(name, one.keys, one.judged, one.most_seeds)


def _grown(before: Run, after: Run) -> str:
    """Return which cause owns more of the mean small read than before."""
    means = [
        {share.cause: share.mean_ns for share in run.explain(0.0, CLASS).shares}
        for run in (before, after)
    ]
    more = {cause: ns - means[0].get(cause, 0.0) for cause, ns in means[1].items()}
    cause = max(more, key=more.__getitem__)
    grown = units.duration(more[cause])
    return f"a read owes {grown} more to {units.cause(cause)} at 10 %, on average"


def _labelled(values: Mapping[str, Estimate], what: str) -> dict[str, float]:
    return {f"{what}, {name} (ms)": each.value for name, each in values.items()}


def _draw(runs: Mapping[str, Run]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.subplots()
    pictures.tails(axes, runs, CLASS)
    axes.set_title("Static and dynamic shares of GC under MSN-BEFS")
    return figure


STUDY = Study(
    "autossd/fig9",
    "Static shares against the dynamic one",
    (_BETTER, _COLLAPSE, _DYNAMIC_BEST),
    _measure,
)
