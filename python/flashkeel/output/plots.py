"""The picture of a result: the latency tails of reads and of writes, and what owns them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashkeel import percentiles, spread
from flashkeel.comparison import FEW, is_guess
from flashkeel.output import units
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from flashkeel.result import Result

FILES = ("tails.png", "tails.svg")
"""What :func:`save` writes."""

ABOVE = 99.9
"""The percentile above which causes are shown."""

SHOWN = (90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
"""Ticks of the percentile axis."""

FINE_STEPS = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)
"""Steps of a decade of which at least two lie within any factor of two."""

# Okabe and Ito's colours, which people with colour blindness can tell apart.
RUN_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# What tells runs of one colour apart, where there are more of them than colours.
_MARKERS = ("o", "s", "^", "D")
_MOST_INSIDE = 4
"""Runs whose names have room beside their lines."""
_LONGEST_BESIDE = 45
"""Characters of names that have room beside each other below their lines."""
MOST_MARKED = len(RUN_COLOURS) * len(_MARKERS)
"""Runs that :func:`mark_of_run` tells apart."""
_FAR_APART = 10.0
"""Times as long as the shortest bar, from which the longest leaves nothing to be seen of it."""
_STROKES = ("-", "--", "-.", (0, (8, 2, 2, 2, 2, 2)))
CAUSE_COLOURS = {
    "own_flash": "#4d4d4d",
    "controller": "#8c8c8c",
    "host_link": "#bfbfbf",
    "behind_host_read": "#56B4E9",
    "behind_host_write": "#0072B2",
    "behind_gc_read": "#F5B78E",
    "behind_gc_program": "#E8752A",
    "behind_gc_move": "#CC4C02",
    "behind_erase": "#A63603",
    "no_free_block": "#67000D",
    "behind_map": "#7FC97F",
    "nvm": "#2166AC",
    "behind_nvm": "#92C5DE",
    "behind_parity": "#C994C7",
    "behind_scrub": "#9E9AC8",
    "behind_wear_levelling": "#6A51A3",
    "reconstruction": "#DD1C77",
    "suspension": "#7A0177",
    "map_load": "#1B7837",
    "aggregation": "#E6C700",
    "buffer_full": "#B8860B",
    "scheduler_hold": "#9E6EBD",
    "behind_fold": "#80B1D3",
    "throttle": "#00897B",
    "wake_up": "#B3DE69",
    "barrier": "#8073AC",
    "host_queue": "#542788",
    "other_copy": "#D6604D",
    "window": "#B2ABD2",
    "network_request": "#F4A582",
    "network_response": "#FDDBC7",
    "outside": "#8C8C8C",
}
OTHER_COLOUR = "#f0f0f0"
SMALLEST_SHARE = 0.01
OTHERS = f"others, each below {SMALLEST_SHARE:.0%}"


def save(result: Result, directory: Path) -> None:
    """Write the pictures of `result` to `directory`; the same result gives the same bytes."""
    import matplotlib

    figure = tails(result)
    with matplotlib.rc_context({"svg.hashsalt": "flashkeel", "svg.fonttype": "none"}):
        figure.savefig(directory / "tails.png", dpi=150)
        # Everything has its place by now: to find it is half of the work.
        figure.set_layout_engine("none")
        figure.savefig(directory / "tails.svg", metadata={"Date": None})


def tails(result: Result) -> Figure:
    """Return a figure with a row for each class that any run is made of.

    Beside the latency tail of every run that has such requests stand the causes of what is
    above p99.9.
    """
    from matplotlib.figure import Figure

    classes = shown_classes(result.runs)
    named_below = 0.15 * len(result.runs) if len(result.runs) > _MOST_INSIDE else 0.0
    height = (max(4.4, 0.45 * len(result.runs)) + named_below) * len(classes) + 0.8
    figure = Figure(figsize=(12, height), layout="constrained")
    rows = figure.subplots(len(classes), 2, width_ratios=(1.15, 1), squeeze=False)
    figure.suptitle(f"{result.title}: latency ({workload_kind(result.runs)})")
    handles: dict[str, Artist] = {}
    for latency_class, (left, right) in zip(classes, rows, strict=True):
        left.set_title(units.requests(latency_class))
        _tails(left, result.runs, latency_class)
        _causes(right, result.runs, latency_class)
        found, names = right.get_legend_handles_labels()
        handles |= dict(zip(names, found, strict=True))
    # What is too small to be shown by itself comes last.
    labels = sorted(handles, key=lambda label: label == OTHERS)
    figure.legend(
        [handles[label] for label in labels],
        labels,
        loc="outside lower center",
        ncols=6,
        frameon=False,
        fontsize="small",
    )
    return figure


def workload_kind(runs: Sequence[Run]) -> str:
    """Return what to call the input of `runs`, so that no generated one passes for a trace."""
    if all(run.data["basis"] == "clients" for run in runs):
        return "requests of clients, in real time"
    if not any(run.synthetic for run in runs):
        return "recorded trace"
    profiles = {run.profile for run in runs}
    if len(profiles) == 1 and (profile := profiles.pop()):
        return f"synthetic profile {profile}"
    return "synthetic workload"


def which_seed(runs: Sequence[Run]) -> str:
    """Return what to say of a picture of single requests or windows, of which pools have none."""
    most = max(len(run.seeds) for run in runs)
    return f"; the first of {most} seeds" if most > 1 else ""


def shown_classes(runs: Sequence[Run]) -> list[str]:
    """Return the latency classes that the workload of any run is made of, as they first come."""
    measured = [run for run in runs if run.samples(run.main_class())]
    found = (one for run in measured for one in (run.classes() or [run.main_class()]))
    return list(dict.fromkeys(found)) or [runs[0].main_class()]


def class_of_each(runs: Sequence[Run], latency_class: str | None, of: Sequence[str]) -> list[str]:
    """Return the class to draw of each run, of those that a picture has.

    Without `latency_class` it is the first run's main one, and of a run that has none of these
    its own, so that each has something to show.
    """
    first = latency_class or next((one for one in shown_classes(runs) if one in of), of[0])
    return [
        run.main_class() if latency_class is None and not run.samples(first) else first
        for run in runs
    ]


def words_of(classes: Sequence[str]) -> str:
    """Return what requests of these classes are called together: as their one class, if it is."""
    return units.requests(classes[0] if len(set(classes)) == 1 else "request")


def with_samples(runs: Sequence[Run], latency_class: str) -> list[Run]:
    """Return the runs with requests of a class, or all where none has any."""
    return [run for run in runs if run.samples(latency_class)] or list(runs)


def of_run(index: int) -> dict[str, Any]:
    """Return how the line of the run at `index` is drawn: in which colour, and how dashed."""
    turn, place = divmod(index, len(RUN_COLOURS))
    return {"color": RUN_COLOURS[place], "linestyle": _STROKES[turn % len(_STROKES)]}


def mark_of_run(index: int) -> dict[str, Any]:
    """Return how points of the run at `index` are marked: in which colour, and of which shape."""
    turn, place = divmod(index, len(RUN_COLOURS))
    return {"color": RUN_COLOURS[place], "marker": _MARKERS[turn % len(_MARKERS)]}


def names(runs: Sequence[Run], shown: Sequence[object], latency_class: str) -> list[str]:
    """Return what runs are called in a legend, with the earlier one that lies below each.

    `shown` is what is drawn of each: where that is equal, only the last is seen.
    """
    counts = [f"{units.count(run.samples(latency_class))} samples" for run in runs]
    return named(runs, shown, counts)


def named(runs: Sequence[Run], shown: Sequence[object], counts: Sequence[str]) -> list[str]:
    """Return what :func:`names` does, with `counts` behind the names."""
    found = []
    for index, (run, what, count) in enumerate(zip(runs, shown, counts, strict=True)):
        first = shown.index(what)
        equal = [run, runs[first]] if first < index else [run]
        words = " = ".join(units.name(it.name, len(equal)) for it in equal)
        found.append(f"{words} ({count})")
    return found


def draw_tail(
    axes: Axes,
    run: Run,
    latency_class: str,
    place: Callable[[float, int], tuple[float, float]],
    *,
    label: str,
    markersize: float,
    color: str | None = None,
    marker: str = "o",
) -> None:
    """Draw the tail of a run, open and dotted where fewer than FEW samples are beyond.

    `place` returns x and y of a percentile and its latency in ns.
    """
    points = run.curve(latency_class, SHOWN[0])
    placed = [place(percentile, ns) for percentile, ns in points]
    sure = sum(not is_guess(run, latency_class, percentile) for percentile, _ in points)
    x, y = _columns(placed[:sure])
    (line,) = axes.plot(x, y, color=color, marker=marker, markersize=markersize, label=label)
    x, y = _columns(placed[max(0, sure - 1) :])
    (guess,) = axes.plot(x, y, color=line.get_color(), linestyle=":", marker=marker, mfc="white")
    guess.set_markersize(markersize)
    # The two share a point, and that one is sure.
    guess.set_zorder(line.get_zorder() - 0.1)


def latencies(axis: Axis) -> None:
    """Label a logarithmic axis of latencies in ns, once all is drawn."""
    from matplotlib.ticker import LogLocator

    low, high = axis.get_view_interval()
    if high < 2 * low:
        # Latencies that hardly differ should look it.
        middle = (low * high) ** 0.5
        low, high = middle / 2**0.5, middle * 2**0.5
        axis.set_view_interval(low, high, ignore=True)
    steps: Sequence[float] = (1, 2, 5) if high < 1000 * low else (1,)
    if sum(low <= tick <= high for tick in LogLocator(subs=steps).tick_values(low, high)) < 2:
        steps = FINE_STEPS
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(lambda ns, _: units.duration(ns))
    axis.minorticks_off()


def _tails(axes: Axes, runs: Sequence[Run], latency_class: str) -> None:
    curves = [run.curve(latency_class, SHOWN[0]) for run in runs]
    called = names(runs, curves, latency_class)
    for index, (run, points, name) in enumerate(zip(runs, curves, called, strict=True)):
        if not points:
            continue
        how = mark_of_run(index)
        draw_tail(axes, run, latency_class, _place, label=name, markersize=4, **how)
        sure = [p for p, _ in points if not is_guess(run, latency_class, p)]
        bounded = [(p, i) for p in sure if (i := run.interval(latency_class, p)) is not None]
        axes.fill_between(
            [percentiles.nines(p) for p, _ in bounded],
            [i[0] for _, i in bounded],
            [i[1] for _, i in bounded],
            color=how["color"],
            alpha=0.15,
            linewidth=0,
        )
    axes.set_yscale("log")
    latencies(axes.yaxis)
    axes.set_xticks([percentiles.nines(p) for p in SHOWN], [f"{p:g} %" for p in SHOWN])
    says = f"percentile of requests (dotted: fewer than {FEW} samples beyond)"
    if spread.is_missing(runs, latency_class):
        says += f"\nshades: 95 % intervals, which {spread.INDEPENDENT}"
    axes.set_xlabel(says)
    axes.set_ylabel("latency")
    axes.grid(alpha=0.3)
    if axes.get_lines():
        if len(runs) <= _MOST_INSIDE:
            axes.legend(loc="best", frameon=False)
        else:
            # Below the axis and what it says.
            axes.legend(
                loc="upper center",
                bbox_to_anchor=(0.5, -0.21),
                ncols=2 if max(map(len, called)) <= _LONGEST_BESIDE else 1,
                frameon=False,
                fontsize="small",
            )


def _causes(axes: Axes, all_runs: Sequence[Run], latency_class: str) -> None:
    runs = with_samples(all_runs, latency_class)
    found = [run.explain(ABOVE, latency_class) for run in runs]
    means = [{share.cause: share.mean_ns for share in e.shares} for e in found]
    large = {s.cause for e in found for s in e.shares if s.share >= SMALLEST_SHARE}
    order = [cause for cause in CAUSE_COLOURS if cause in large]
    order += sorted(large.difference(order))
    whole = [e.mean_ns or 0.0 for e in found]
    known = [ns for ns in whole if ns > 0] or [1.0]
    # As long as each other where not all could be seen otherwise.
    as_shares = max(known) > _FAR_APART * min(known)
    scale = [100 / ns if as_shares and ns > 0 else 1.0 for ns in whole]
    places = range(len(runs))
    left = [0.0] * len(runs)
    for cause in [*order, None]:
        if cause is None:
            ends = [ns * by for ns, by in zip(whole, scale, strict=True)]
            widths = [end - start for end, start in zip(ends, left, strict=True)]
            label, colour = OTHERS, OTHER_COLOUR
        else:
            widths = [mean.get(cause, 0.0) * by for mean, by in zip(means, scale, strict=True)]
            label, colour = units.cause(cause), CAUSE_COLOURS.get(cause, OTHER_COLOUR)
        axes.barh(places, widths, left=left, color=colour, label=label, height=0.6)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_yticks(
        places,
        [
            f"{units.name(run.name)}\n{units.count(e.count)} request{'' if e.count == 1 else 's'}"
            + ("" if e.is_as_asked else f" above {e.reached}")
            + (f", mean {units.duration(e.mean_ns)}" if as_shares else "")
            for run, e in zip(runs, found, strict=True)
        ],
        fontsize="small",
    )
    axes.invert_yaxis()
    axes.set_xlim(0, 1.05 * max(*left, 1.0))
    axes.locator_params(axis="x", nbins=6)
    what = "share of the latency (%)" if as_shares else "mean latency"
    axes.set_xlabel(f"{what} above {percentiles.label(ABOVE)}, by cause")
    if not as_shares:
        axes.xaxis.set_major_formatter(lambda ns, _: units.duration(ns))


def _place(percentile: float, ns: int) -> tuple[float, float]:
    return percentiles.nines(percentile), ns


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
