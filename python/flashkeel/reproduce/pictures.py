"""Parts of pictures that several figures draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from flashkeel import units
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


def log_durations(axis: Axis) -> None:
    """Label a logarithmic axis in ns with durations."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda ns, _: units.duration(ns))
    axis.set_minor_formatter(NullFormatter())


def tails(axes: Axes, runs: Mapping[str, Run], latency_class: str) -> None:
    """Draw the share of requests above a response time, from one in ten on, a curve a run."""
    for name, run in runs.items():
        points = run.curve(latency_class, 90.0)
        times = [ns for _, ns in points]
        above = [1 - percentile / 100 for percentile, _ in points]
        axes.plot(times, above, marker="o", markersize=3, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.invert_yaxis()
    axes.set_xlabel("response time")
    log_durations(axes.xaxis)
    axes.tick_params(axis="x", labelrotation=45)
    axes.set_ylabel(f"share of {latency_class.replace('_', ' ')}s above")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
