"""The pictures of a result, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from flashkeel._core import InputError
from flashkeel.output import distribution_plots, plots, time_plots, units
from flashkeel.run import LATENCY_CLASSES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flashkeel.result import Result

KINDS: Mapping[str, Callable[..., Figure]] = {
    "tails": plots.tails,
    "cdf": distribution_plots.cdf,
    "blame": distribution_plots.blame,
    "series": time_plots.series,
    "heat": time_plots.heat,
    "windows": time_plots.windows,
}
"""What can be drawn."""


def notes(result: Result, kind: str, latency_class: str | None = None) -> Iterator[str]:
    """Give what a picture shows of runs that have no class in common, and what it leaves out."""
    if kind not in ("cdf", "blame", "series"):
        return
    of = time_plots.TIMED if kind == "series" else LATENCY_CLASSES
    classes = plots.class_of_each(result.runs, latency_class, of)
    shown: dict[str, list[str]] = {}
    without: list[str] = []
    for run, one in zip(result.runs, classes, strict=True):
        (shown.setdefault(one, []) if one in of and run.samples(one) else without).append(run.name)
    if len(shown) > 1:
        whose = "; ".join(f"{units.requests(one)} of {', '.join(it)}" for one, it in shown.items())
        yield f"shown are {whose}. --class shows one class of all"
    if without:
        words = "reads or writes" if kind == "series" else "requests"
        if latency_class is not None:
            words = units.requests(latency_class)
        left = "their latency is not shown" if kind == "series" else "left out"
        yield f"no {words} in {', '.join(without)}: {left}"


def draw(result: Result, kind: str, **options: Any) -> Figure:  # noqa: ANN401
    """Draw `kind`; InputError where there is no such picture, or it takes no such option."""
    if kind not in KINDS:
        raise InputError(f"no picture {kind!r}; the pictures are {', '.join(KINDS)}")
    _, *taken = inspect.signature(KINDS[kind]).parameters
    for name in options:
        if name not in taken:
            what = f"takes {' and '.join(taken)}" if taken else "takes no options"
            raise InputError(f"the picture {kind!r} {what}, not {name}")
    return KINDS[kind](result, **options)
