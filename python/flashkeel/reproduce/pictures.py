"""Parts of pictures that several figures draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from flashkeel.comparison import FEW
from flashkeel.output import plots, units
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


def log_numbers(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers, where matplotlib would write powers of ten."""
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):
        """Leaves unlabelled what matplotlib would, for want of room."""

        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:g}" if super().__call__(x, pos) else ""

    axis.set_major_formatter(Plain())
    axis.set_minor_formatter(Plain())


def tails(axes: Axes, runs: Mapping[str, Run], latency_class: str) -> None:
    """Draw the share of requests above a response time, from one in ten on, a curve a run.

    Points with too few samples beyond them are open, on a dotted line.
    """
    for name, run in runs.items():
        plots.draw_tail(axes, run, latency_class, _place, label=name, markersize=3)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.invert_yaxis()
    axes.set_xlabel(f"response time\n(open: fewer than {FEW} samples above)")
    log_durations(axes.xaxis)
    axes.tick_params(axis="x", labelrotation=45)
    axes.set_ylabel(f"share of {latency_class.replace('_', ' ')}s above")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def _place(percentile: float, ns: int) -> tuple[float, float]:
    return ns, 1 - percentile / 100
