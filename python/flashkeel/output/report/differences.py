"""How runs differ: in their percentiles, with intervals, and in their configuration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from flashkeel import comparison, percentiles, settings
from flashkeel.comparison import FEW, Comparison
from flashkeel.output import units
from flashkeel.output.comparison_tables import verdict
from flashkeel.output.report.draw import Drawing
from flashkeel.run import Run

_MOST_FACTOR = 8.0
"""What the little pictures of intervals reach to, either way."""


_MIDDLE = 70


def compared(base: Run, others: Sequence[Run], latency_class: str) -> str:
    """Return each other run against the base, percentile by percentile."""
    parts = []
    every: list[Comparison] = []
    for other in others:
        found = [it for it in comparison.compare(base, other) if it.latency_class == latency_class]
        if found:
            parts.append(_table(base, other, found))
            every += found
    if not parts:
        return "<p>There is nothing to compare here.</p>"
    return "".join(parts) + (
        f"<p>Each interval is the 95 % interval of the difference; the bar shows it as a factor, "
        f"from ⅛ to 8. <b class='few'>*</b> fewer than {FEW} samples beyond in one of them: "
        f"no verdict. {comparison.covers(every)}</p>"
    )


def _table(base: Run, other: Run, found: Sequence[Comparison]) -> str:
    rows = "".join(_row(it) for it in found)
    heads = ("", base.name, other.name, "difference", "95 % interval", "as a factor", "it is")
    head = "".join(f'<th scope="col">{escape(word)}</th>' for word in heads)
    title = f"{other.name} against {base.name}"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(title, quote=True)}">'
        f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(it: Comparison) -> str:
    bounds = units.MISSING
    if it.interval_ns is not None:
        bounds = units.interval(*it.interval_ns, units.signed_duration)
    mark = "" if it.fewest_beyond >= FEW else f"<b class='few'> *{it.fewest_beyond}</b>"
    cells = (
        units.duration(it.a_ns),
        units.duration(it.b_ns),
        units.signed_duration(it.difference_ns),
        bounds,
        _bar(it),
        verdict(it),
    )
    body = "".join(f"<td>{cell}</td>" for cell in cells)
    name = percentiles.label(it.percentile)
    return f'<tr class="{it.verdict}"><th scope="row">{name}{mark}</th>{body}</tr>'


def _bar(it: Comparison) -> str:
    """Return the interval as a bar between an eighth and eight times the base."""
    if it.interval_ns is None or not it.a_ns:
        return ""
    low, high = (_place((it.a_ns + ns) / it.a_ns) for ns in it.interval_ns)
    drawing = Drawing(2 * _MIDDLE, 14)
    drawing.rule(2, 7, 2 * _MIDDLE - 2, 7)
    drawing.rule(_MIDDLE, 0, _MIDDLE, 14, "cursor")
    drawing.box(low, 3, max(high - low, 3), 8, "var(--bar)")
    first, last = ((it.a_ns + ns) / it.a_ns for ns in it.interval_ns)
    return drawing.svg(f"{units.significant(first)} to {units.significant(last)} times")


def _place(factor: float) -> float:
    bounded = min(max(factor, 1 / _MOST_FACTOR), _MOST_FACTOR)
    return _MIDDLE + (_MIDDLE - 2) * math.log(bounded) / math.log(_MOST_FACTOR)


def configuration(runs: Sequence[Run]) -> str:
    """Return the keys in which the runs' resolved configurations differ."""
    rows = []
    for key, values in settings.differing(runs).items():
        cells = "".join(
            f"<td{' class=changed' if value != values[0] else ''}>{_value(value)}</td>"
            for value in values
        )
        rows.append(f'<tr><th scope="row"><code>{escape(key)}</code></th>{cells}</tr>')
    if not rows:
        return "<p>No key differs between these runs.</p>"
    head = "".join(f'<th scope="col">{escape(run.name)}</th>' for run in runs)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Configuration">'
        f'<table class="keys"><thead><tr><th scope="col">key</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _value(text: str | None) -> str:
    return units.MISSING if text is None else f"<code>{escape(text)}</code>"
