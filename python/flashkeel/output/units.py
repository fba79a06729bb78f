"""Human units for tables and pictures. Results themselves stay in ns and bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from flashkeel import percentiles

if TYPE_CHECKING:
    from flashkeel.explanation import Explanation

MISSING = "–"

_LONGEST_NAME = 40
"""Characters of a run's name that pictures have room for."""

_DURATIONS = ((3600e9, "h"), (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_COUNTS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def significant(value: float, digits: int = 3) -> str:
    """Return `value` with `digits` significant digits and no exponent."""
    if value == 0 or not math.isfinite(value):
        # Nothing has no sign.
        return f"{value + 0.0:g}"
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:.{decimals}f}"


def duration(ns: float | None) -> str:
    """Return a time in ns as ``1.23 ms``; ``None`` is a dash."""
    if ns is None:
        return MISSING
    for scale, unit in _DURATIONS:
        # 999.6 µs would print as 1000 µs.
        if abs(ns) >= scale * 0.9995:
            return f"{significant(ns / scale)} {unit}"
    return f"{significant(ns)} ns"


def signed_duration(ns: float | None) -> str:
    """Return a difference of times in ns as ``+1.23 ms``."""
    if ns is None:
        return MISSING
    return f"{'+' if ns > 0 else ''}{duration(ns)}"


def clock(end_s: float) -> tuple[float, str]:
    """Return what to count times up to `end_s` in: its seconds, and its name."""
    return (3600.0, "h") if abs(end_s) >= 7200 else (1.0, "s")


def moment(time_s: float) -> str:
    """Return a time in s since the beginning, as ``12.5 s`` or ``2.878 h``."""
    scale, unit = clock(time_s)
    return f"{_four_digits(time_s / scale)} {unit}"


def span(start_s: float, end_s: float) -> str:
    """Return from when to when, in s since the beginning, as ``0 to 12.5 s``."""
    scale, unit = clock(end_s)
    return f"{_four_digits(start_s / scale)} to {_four_digits(end_s / scale)} {unit}"


def _four_digits(value: float) -> str:
    return f"{float(f'{value:.4g}'):,.12g}"


def interval(low: float, high: float, of: Callable[[float], str] = duration) -> str:
    """Return two values as `of` writes them, with their unit once where they share it."""
    first, last = of(low), of(high)
    number, _, unit = first.rpartition(" ")
    return f"{number if last.endswith(f' {unit}') else first} … {last}"


def count(value: float | None) -> str:
    """Return a count as ``1.23 M``; below 10,000 it is exact."""
    if value is None:
        return MISSING
    if not math.isfinite(value):
        return f"{value:g}"
    if abs(value) < 10_000:
        return f"{value:,.0f}"
    # As it is shown: 999,999 is 1.00 M.
    shown = abs(float(f"{value:.3g}"))
    scale, unit = next((s, u) for s, u in _COUNTS if shown >= s)
    return f"{significant(value / scale)} {unit}"


def rate(value: float | None) -> str:
    """Return a number a second, or a mean, as `count` does, with three digits below 100."""
    if value is None:
        return MISSING
    return significant(value) if abs(value) < 99.95 else count(value)


def tick(value: float) -> str:
    """Return a round number on an axis as `count` does, with the decimals it has."""
    return f"{value:,.6g}" if abs(value) < 10_000 else count(value)


def size(byte_count: float | None) -> str:
    """Return a size in bytes as ``1.23 GiB``."""
    if byte_count is None:
        return MISSING
    for scale, unit in _SIZES:
        if abs(byte_count) >= scale:
            return f"{significant(byte_count / scale)} {unit}"
    return f"{byte_count:g} B"


def share(fraction: float | None) -> str:
    """Return a fraction as ``12.3 %``."""
    return MISSING if fraction is None else f"{significant(fraction * 100)} %"


def ratio(value: float | None) -> str:
    """Return a ratio such as write amplification as ``1.234``."""
    return MISSING if value is None else f"{value:.3f}"


def years(number: float) -> str:
    """Return a number of years as ``5 years``, or ``1 year``."""
    return f"{number:g} {'year' if number == 1 else 'years'}"


def requests(latency_class: str, number: int = 0) -> str:
    """Return a class of requests as words, of one of them or many: ``small reads``."""
    words = latency_class.replace("_", " ")
    if number == 1:
        return words
    return f"{words}es" if words.endswith("sh") else f"{words}s"


def threshold(found: Explanation) -> str:
    """Return the smallest latency explained, and why it is not that of the percentile asked for."""
    words = duration(found.threshold_ns)
    if found.is_as_asked:
        return words
    return f"{words}; nothing nearer to {percentiles.label(found.above)} can be told apart"


def name(text: str, among: int = 1) -> str:
    """Return a name as pictures have room for it: of a long one its beginning and its end.

    `among` so many the room is shared.
    """
    room = _LONGEST_NAME // among
    return text if len(text) <= room else f"{text[: room // 2]}…{text[1 - room // 2 :]}"


def cause(label: str) -> str:
    """Return a cause of the blame ledger as words: ``behind gc read``."""
    return label.replace("_", " ").replace("gc ", "GC ")
