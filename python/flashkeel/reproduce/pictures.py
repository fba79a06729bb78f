"""Parts of pictures that several figures draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def tails(axes: Axes, runs: Mapping[str, Run], latency_class: str) -> None:
    """Draw the share of requests above a response time, from one in ten on, a curve a run."""
    for name, run in runs.items():
        points = run.curve(latency_class, 90.0)
        times = [ns / 1e6 for _, ns in points]
        above = [1 - percentile / 100 for percentile, _ in points]
        axes.plot(times, above, marker="o", markersize=3, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.invert_yaxis()
    axes.set_xlabel("response time (ms)")
    axes.set_ylabel(f"share of {latency_class.replace('_', ' ')}s above")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
