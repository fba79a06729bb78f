"""Pictures of whole distributions: all latencies, and what owns them above each percentile."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from flashkeel._core import InputError
from flashkeel.explanation import Explanation, told_apart
from flashkeel.output import units
from flashkeel.output.plots import (
    CAUSE_COLOURS,
    OTHER_COLOUR,
    OTHERS,
    SMALLEST_SHARE,
    class_of_each,
    latencies,
    named,
    of_run,
    words_of,
    workload_kind,
)
from flashkeel.run import LATENCY_CLASSES, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flashkeel.result import Result

_BLAMED_ABOVE = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999)


def cdf(result: Result, latency_class: str | None = None) -> Figure:
    """Return the cumulative distribution of the latency of a class, a line for each run.

    Below it is the part that is slower, on a logarithmic axis, on which the tail is seen.
    Without `latency_class` it is the first run's main one, and of a run that has none of these
    its own.
    """
    from matplotlib.figure import Figure

    drawn = _chosen(result, latency_class)
    runs, classes = [run for run, _ in drawn], [one for _, one in drawn]
    figure = Figure(figsize=(8, 8), layout="constrained")
    axes, tail = figure.subplots(2, 1, sharex=True)
    # Of lines on each other the first one is the widest, so that all are seen.
    wider = min(1.5, 6 / len(runs))
    distributions = [run.distribution(one) for run, one in drawn]
    whose = [units.requests(one) if len(set(classes)) > 1 else "samples" for one in classes]
    counts = [
        f"{units.count(run.samples(one))} {words}"
        for (run, one), words in zip(drawn, whose, strict=True)
    ]
    called = named(runs, distributions, counts)
    for index, (run, found, label) in enumerate(zip(runs, distributions, called, strict=True)):
        samples = sum(count for _, count in found)
        shares = [100 * total / samples for total in accumulate(count for _, count in found)]
        line = of_run(result.runs.index(run)) | {"linewidth": 1.2 + wider * (len(runs) - 1 - index)}
        # From 0 on, so that one value alone is a line, too.
        times, shares = [found[0][0], *(ns for ns, _ in found)], [0.0, *shares]
        axes.step(times, shares, where="post", **line, label=label)
        # None is slower than the last.
        slower = [100 - share for share in shares[:-1]]
        tail.step(times, [*slower, slower[-1]], where="post", **line)
    axes.set_xscale("log")
    latencies(axes.xaxis)
    tail.set_xlabel("latency")
    tail.set_yscale("log")
    tail.set_ylabel("slower (%)")
    tail.yaxis.set_major_formatter(lambda share, _: f"{share:g}")
    tail.grid(alpha=0.3)
    axes.set_ylabel(f"{words_of(classes)} at most as slow (%)")
    axes.set_ylim(0, 100)
    axes.grid(alpha=0.3)
    if axes.get_lines():
        axes.legend(loc="lower right", frameon=False)
    figure.suptitle(f"{result.title} ({workload_kind(result.runs)})")
    return figure


def blame(result: Result, latency_class: str | None = None) -> Figure:
    """Return, for each run, which causes own the latency above each percentile.

    Without `latency_class` it is the first run's main one, and of a run that has none of these
    its own.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    drawn = _chosen(result, latency_class)
    classes = [one for _, one in drawn]
    figure = Figure(figsize=(9, 2.5 * len(drawn) + 1.2), layout="constrained")
    # Each has counts of its own below its bars.
    rows = figure.subplots(len(drawn), 1, squeeze=False)
    seen: set[str] = set()
    has_others = False
    for (run, one), (axes,) in zip(drawn, rows, strict=True):
        large, others = _shares(axes, run, one)
        seen |= large
        has_others |= others
        whose = f": {units.requests(one)}" if len(set(classes)) > 1 else ""
        axes.set_title(f"{units.name(run.name)}{whose}", fontsize="medium", loc="left")
    order = [cause for cause in CAUSE_COLOURS if cause in seen]
    order += sorted(seen.difference(order))
    legend = {units.cause(it): Patch(color=CAUSE_COLOURS.get(it, OTHER_COLOUR)) for it in order}
    if has_others:
        legend[OTHERS] = Patch(color=OTHER_COLOUR)
    figure.legend(
        list(legend.values()),
        list(legend),
        loc="outside lower center",
        ncols=5,
        frameon=False,
        fontsize="small",
    )
    figure.suptitle(
        f"{result.title}: what owns the latency of {words_of(classes)} "
        f"({workload_kind(result.runs)})"
    )
    return figure


def _chosen(result: Result, latency_class: str | None) -> list[tuple[Run, str]]:
    """Return the runs to draw and which class of each; InputError where no run has any of it."""
    classes = class_of_each(result.runs, latency_class, LATENCY_CLASSES)
    found = [(run, one) for run, one in zip(result.runs, classes, strict=True) if run.samples(one)]
    if not found:
        raise InputError(f"{result.title}: no run has {units.requests(classes[0])}")
    return found


def _shares(axes: Axes, run: Run, latency_class: str) -> tuple[set[str], bool]:
    """Draw a stacked bar for each percentile.

    Return the causes large enough to be named, and whether there are others.
    """
    found = told_apart(run.explain(percentile, latency_class) for percentile in _BLAMED_ABOVE)
    named = {s.cause for e in found for s in e.shares if s.share >= SMALLEST_SHARE}
    order = [cause for cause in CAUSE_COLOURS if cause in named]
    order += sorted(named.difference(order))
    places = range(len(found))
    base = [0.0] * len(found)
    for cause in order:
        part = [sum(s.share for s in e.shares if s.cause == cause) * 100 for e in found]
        axes.bar(places, part, bottom=base, color=CAUSE_COLOURS.get(cause, OTHER_COLOUR), width=0.8)
        base = [start + height for start, height in zip(base, part, strict=True)]
    rest = [max(0.0, 100 - start) if e.count else 0.0 for start, e in zip(base, found, strict=True)]
    axes.bar(places, rest, bottom=base, color=OTHER_COLOUR, width=0.8)
    axes.set_xticks(
        places,
        [f"{_beyond(e)}\n{units.count(e.count)}" for e in found],
        fontsize="small",
    )
    axes.set_ylabel("share (%)")
    axes.set_ylim(0, 100)
    return named, any(height > 0.001 for height in rest)


def _beyond(explanation: Explanation) -> str:
    return f"above {explanation.reached}" if explanation.above else "all"
