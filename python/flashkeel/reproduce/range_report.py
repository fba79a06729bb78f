"""What came of claims over a quantity: sentence, table, JSON and picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flashkeel.output import units
from flashkeel.reproduce import pictures
from flashkeel.reproduce.claims import Finding, Swept, Value, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {True: "#009E73", False: "#D55E00", None: "#999999"}
_WORDS = {True: "holds", False: "does not", None: "open"}


def to_object(swept: Swept) -> dict[str, Any]:
    """Return one range as JSON has it."""
    quantity = swept.quantity
    return {
        "quantity": quantity.name,
        "unit": quantity.unit,
        "nearest": quantity.nearest,
        "paper": quantity.paper,
        "holds_at": swept.where(True),
        "fails_at": swept.where(False),
        "open_at": swept.where(None),
        "points": [
            {
                "value": value,
                "holds": found.holds,
                "measured": found.measured,
                "ci95": found.interval,
                "reason": found.reason,
            }
            for value, found in swept.findings.items()
        ],
    }


def sentence(swept: Swept) -> str:
    """Return where a claim holds, where not, and where the work's own figures lie."""
    quantity = swept.quantity
    parts = [
        f"{words} at {', '.join(f'{value:g}' for value in swept.where(holds))}"
        for holds, words in _WORDS.items()
        if swept.where(holds)
    ]
    unit = f" ({quantity.unit.strip()})" if quantity.unit else ""
    return f"{quantity.name}{unit}: {'; '.join(parts)}; the paper: {quantity.paper}"


def rows(swept: Swept, unit: str) -> list[tuple[str, str, str]]:
    """Return value, verdict and what was measured, for a table; the nearest value is marked."""
    quantity = swept.quantity
    return [
        (
            f"{value:g}{quantity.unit}{' *' if value == quantity.nearest else ''}",
            _WORDS[found.holds],
            ", ".join(
                f"{name} {units.significant(number)} {unit}".rstrip()
                for name, number in _numbers(found).items()
            ),
        )
        for value, found in swept.findings.items()
    ]


def draw(swept: Swept, verdict: Verdict) -> Figure:
    """Draw what was measured over a quantity, on the colour of what came of it at each value."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    quantity = swept.quantity
    names = [f"{value:g}" for value in swept.findings]
    for at, (value, found) in enumerate(swept.findings.items()):
        axes.axvspan(at - 0.5, at + 0.5, color=_COLOURS[found.holds], alpha=0.15, linewidth=0)
        if value == quantity.nearest:
            axes.axvline(at, color="black", linewidth=0.8, linestyle=":")
    _draw_lines(axes, [_numbers(found) for found in swept.findings.values()])
    axes.set_xticks(range(len(names)), names)
    axes.set_xlabel(f"{quantity.name}{quantity.unit and f' ({quantity.unit.strip()})'}")
    unit = verdict.claim.unit
    axes.set_ylabel(f"measured ({unit})" if unit else "measured")
    axes.set_title(verdict.id)
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    colours = "green: holds; red: does not; grey: open; dotted: nearest to the work's text"
    figure.supxlabel(colours, fontsize=8)
    return figure


def _draw_lines(axes: Axes, points: Sequence[Mapping[str, float]]) -> None:
    lines = dict.fromkeys(name for point in points for name in point)
    values = [value for point in points for value in point.values()]
    if values and min(values) > 0 and max(values) > 20 * min(values):
        axes.set_yscale("log")
        pictures.log_numbers(axes.yaxis)
    for name in lines:
        known = [(at, point[name]) for at, point in enumerate(points) if name in point]
        axes.plot(*zip(*known, strict=True), marker="o", markersize=3, label=name)


def _numbers(found: Finding) -> dict[str, float]:
    """Return the measured numbers of a finding by name."""
    measured: Value = found.measured
    match measured:
        case int() | float():
            return {"measured": float(measured)}
        case Mapping():
            return {name: value for name, value in measured.items() if value is not None}
    return {}
