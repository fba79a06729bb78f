"""The pictures of a result, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from flashkeel._core import InputError
from flashkeel.output import distribution_plots, plots, time_plots

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
