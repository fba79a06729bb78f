"""Drawings in SVG, whose colours follow the page's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby

from flashkeel.output.plots import FINE_STEPS

COLOURS = 7
"""Colours of runs, as the style sheet has them; further runs take them again."""
_TURNS = ("", " again", " thrice", " more")
"""How lines of a colour are told apart, as the style sheet has it: by their dashes."""


def colour(index: int) -> str:
    """Return the colour of the run at `index`."""
    return f"var(--r{index % COLOURS})"


def stroke(index: int) -> str:
    """Return the class of the line of the run at `index`: dashed where its colour was taken."""
    return f"line{turn(index)}"


def turn(index: int) -> str:
    """Return the class that tells the run at `index` from others of its colour."""
    return _TURNS[index // COLOURS % len(_TURNS)]


@dataclass(frozen=True)
class Scale:
    """Places values of an axis between two places in the drawing."""

    low: float
    high: float
    first: float
    last: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        low, high, value = (
            math.log10(v) if self.is_log else v for v in (self.low, self.high, value)
        )
        share = (value - low) / ((high - low) or 1.0)
        return round(self.first + share * (self.last - self.first), 1)

    def ticks(self) -> list[float]:
        """Return round values along the axis, few enough to be labelled."""
        if self.is_log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            values = self._within(
                step * 10.0**decade
                for decade in decades
                for step in ((1, 2, 5) if len(decades) <= 4 else (1,))
            )
            if len(values) >= 2:
                return values
            # Within a factor of a few there need be no two of these.
            values = [step * 10.0**decade for decade in decades for step in FINE_STEPS]
        else:
            raw = (self.high - self.low) / 7 or 1.0
            power = 10.0 ** math.floor(math.log10(raw))
            step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw)
            count = math.floor(self.high / step) - math.ceil(self.low / step) + 1
            values = [(math.ceil(self.low / step) + n) * step for n in range(count)]
        return self._within(values)

    def _within(self, values: Iterable[float]) -> list[float]:
        return [value for value in values if self.low * 0.999 <= value <= self.high * 1.001]


def latencies(values: Iterable[float], bottom: float, top: float) -> Scale:
    """Return a logarithmic scale of all `values`, at least a factor of two high."""
    known = [max(value, 1.0) for value in values] or [1.0]
    low, high = min(known), max(known)
    if high < 2 * low:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(2), middle * math.sqrt(2)
    return Scale(low / 1.05, high * 1.05, bottom, top, is_log=True)


@dataclass
class Drawing:
    """An SVG picture that is made piece by piece."""

    width: int
    height: int
    parts: list[str] = field(default_factory=list)

    def line(
        self, points: Sequence[tuple[float, float] | None], stroke: str, kind: str = "line"
    ) -> None:
        """Draw a line, with a gap where there is no point."""
        for is_there, group in groupby(points, key=lambda point: point is not None):
            places = [f"{point[0]:g},{point[1]:g}" for point in group if point is not None]
            if is_there:
                # A single point is a line as long as it is wide.
                name = kind
                if len(places) == 1:
                    places, name = places * 2, f"{kind} alone"
                self.parts.append(
                    f'<polyline class="{name}" points="{" ".join(places)}" stroke="{stroke}"/>'
                )

    def area(self, points: Sequence[tuple[float, float]], fill: str) -> None:
        """Fill a polygon faintly."""
        places = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(f'<polygon class="band" points="{places}" fill="{fill}"/>')

    def dot(self, x: float, y: float, stroke: str, is_open: bool, says: str) -> None:
        """Draw a mark that says something where it is pointed at."""
        fill = "var(--paper)" if is_open else stroke
        self.parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="3.5" stroke="{stroke}" fill="{fill}">'
            f"<title>{escape(says)}</title></circle>"
        )

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, says: str = ""
    ) -> None:
        """Fill a rectangle."""
        title = f"<title>{escape(says)}</title>" if says else ""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{max(width, 0):.4g}" height="{height:g}" '
            f'fill="{fill}">{title}</rect>'
        )

    def text(self, x: float, y: float, words: str, anchor: str = "start") -> None:
        """Write words."""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def rule(self, x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> None:
        """Draw a straight line of the grid."""
        self.parts.append(f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>')

    def axis_y(
        self, scale: Scale, left: float, right: float, words: Callable[[float], str]
    ) -> None:
        """Draw the grid of a vertical axis, and its labels."""
        for value in scale.ticks():
            self.rule(left, scale(value), right, scale(value))
            self.text(left - 6, scale(value) + 4, words(value), "end")

    def svg(self, label: str, more: str = "") -> str:
        """Return the drawing, which is called `label` where it cannot be seen."""
        return (
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(label, quote=True)}"{more}>{"".join(self.parts)}</svg>'
        )
