"""Pictures of lifetimes: wear and delays over the years."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flashkeel.output import units
from flashkeel.output.files import refuse_unwritable, whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flashkeel.lifetime import Estimate

_FREE, _HELD, _LIMIT = "#D55E00", "#0072B2", "#4d4d4d"
"""Okabe and Ito's colours, which people with colour blindness can tell apart."""


def check(path: Path) -> None:
    """Refuse a file that a picture could not be written to, before the time is spent."""
    from matplotlib.backend_bases import FigureCanvasBase

    from flashkeel._core import InputError

    kinds = FigureCanvasBase.get_supported_filetypes()
    kind = path.suffix.removeprefix(".")
    if kind.lower() not in kinds:
        raise InputError(f"{path}: a picture cannot be written as {kind!r}; use .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {str(path.parent)!r}")
    refuse_unwritable(path)


def save(free: Estimate, held: Estimate, path: Path) -> None:
    """Write the picture to a file that was checked; its kind follows the file's name."""
    with whole(path) as place:
        wear(free, held).savefig(place, dpi=130)


def wear(free: Estimate, held: Estimate) -> Figure:
    """Return the course of wear over the years, and where there are any the throttle's delays."""
    from matplotlib.figure import Figure

    has_delays = any(
        moment["delay_mean_ns"]
        for estimate in (free, held)
        for life in estimate.lives
        for moment in life["course"]
    )
    figure = Figure(figsize=(8, 6 if has_delays else 4.2), layout="constrained")
    heights = (2, 1) if has_delays else (1,)
    rows = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    top = rows[0]
    kind = "synthetic" if any(life["is_synthetic"] for life in held.lives) else "recorded"
    figure.suptitle(f"Wear over the years ({kind} demand)")
    shown = [(free, _FREE, "unthrottled")]
    if held is not free:
        shown.append((held, _HELD, held.plan.guard))
    for estimate, colour, name in shown:
        for index, life in enumerate(estimate.lives):
            years = [0.0, *(moment["years"] for moment in life["course"])]
            worn = [0.0, *(100 * moment["wear"] for moment in life["course"])]
            label = name if index == 0 else None
            top.plot(years, worn, color=colour, alpha=0.7, linewidth=1.2, label=label)
            if has_delays:
                delays = [moment["delay_mean_ns"] for moment in life["course"]]
                rows[1].plot(years[1:], delays, color=colour, alpha=0.7, linewidth=1.2)
    top.axhline(100, color=_LIMIT, linewidth=0.8)
    for axes in rows:
        axes.axvline(held.plan.target_years, color=_LIMIT, linewidth=0.8, linestyle=":")
        axes.grid(alpha=0.3)
    top.set_ylabel("mean wear (% of rated cycles)")
    top.legend(frameon=False)
    if has_delays:
        rows[1].set_ylabel("mean delay of a page")
        rows[1].yaxis.set_major_formatter(lambda ns, _: units.duration(ns))
    rows[-1].set_xlabel("years (dotted: required)")
    return figure
