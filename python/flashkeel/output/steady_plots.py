"""The convergence plot: a variable round by round, and the window that is steady."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flashkeel import steadiness
from flashkeel.output import units
from flashkeel.output.plots import RUN_COLOURS, which_seed, workload_kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flashkeel.run import Run
    from flashkeel.steadiness import Steadiness, Window

_NAMES = {
    "lat": "mean latency",
    "iops": "IOPS",
    "bw": "bytes a second",
    "waf": "write amplification",
}


def convergence(runs: Sequence[Run], found: Sequence[Steadiness]) -> Figure:
    """Return a plot a run: its rounds, and average, range and fitted line of one window.

    That is the first window that is steady, or the last one, where none is.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.8 + 2.6 * len(runs)), layout="constrained")
    rows = figure.subplots(len(runs), 1, sharex=True, squeeze=False)[:, 0]
    scale, unit = units.clock(max((it.points[-1].end_s for it in found if it.points), default=0))
    for index, (axes, run, one) in enumerate(zip(rows, runs, found, strict=True)):
        colour = RUN_COLOURS[index % len(RUN_COLOURS)]
        middles = [(point.start_s + point.end_s) / 2 / scale for point in one.points]
        axes.plot(middles, [point.value for point in one.points], "o-", color=colour, ms=4)
        window = one.reached or one.last
        if window is not None:
            _window(axes, window, scale)
        title = f"{units.name(run.name)}: {_said(one)} ({workload_kind([run])})"
        axes.set_title(title, loc="left", size="medium")
        axes.set_ylabel(_NAMES[one.variable])
        # From nought on, and as far up as Matplotlib would go without that.
        axes.set_ylim(0, axes.get_ylim()[1])
        if one.variable == "lat":
            axes.yaxis.set_major_formatter(lambda ns, _: units.duration(ns))
        else:
            axes.yaxis.set_major_formatter(lambda value, _: units.tick(value))
        axes.grid(alpha=0.3)
    shaded = "shaded: 20 % around the average of the window, dashed: its line"
    rows[-1].set_xlabel(f"time ({unit}); {shaded}{which_seed(runs)}")
    return figure


def _said(one: Steadiness) -> str:
    if one.reached is None:
        return "not steady"
    start = f"steady from {units.moment(one.reached.points[0].start_s)} on"
    return f"{start}, and left that state later" if one.is_left else start


def _window(axes: Axes, window: Window, scale: float) -> None:
    start, end = window.points[0].start_s, window.points[-1].end_s
    ends = [start / scale, end / scale]
    half = window.average * steadiness.MOST_RANGE / 2
    axes.fill_between(
        ends, window.average - half, window.average + half, color="#999999", alpha=0.25
    )
    axes.plot(ends, [window.average] * 2, color="#555555", linewidth=1)
    middle = (start + end) / 2
    rise = window.slope_share_per_s * window.average
    line = [window.average + rise * (at - middle) for at in (start, end)]
    axes.plot(ends, line, color="#555555", linewidth=1, linestyle="--")
