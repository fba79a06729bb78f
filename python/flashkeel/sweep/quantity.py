"""Values of a sweep's keys that are quantities, written as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashkeel.output import units
from flashkeel.quantities import bytes_per_second, in_bytes, in_seconds


@dataclass(frozen=True)
class Quantity:
    """What all values of a key are, as numbers."""

    unit: str
    numbers: Mapping[str, float]
    """Of each text."""
    shown: Callable[[float], str]


def of(values: Sequence[Any]) -> Quantity | None:
    """Return what values are that are all sizes, rates, times or percentages; None of others.

    An array of one of these is that one, such as the reads' time of flash with one type of pages.
    """
    if not values or not all(isinstance(value, str) for value in values):
        return None
    texts = {value: alone(value) for value in values}
    # A number without a unit would do for a size, too.
    if all(text[-1:].isalpha() or text.endswith("%") for text in texts.values()):
        for unit, parse, shown in (
            ("bytes", in_bytes, units.size),
            ("s", in_seconds, lambda seconds: units.duration(seconds * 1e9)),
            ("bytes_per_s", _rate, lambda rate: f"{units.size(rate)}/s"),
            ("percent", _percent, lambda percent: f"{percent:g}%"),
        ):
            try:
                return Quantity(unit, {it: float(parse(text)) for it, text in texts.items()}, shown)
            except ValueError:
                continue
    return None


def alone(value: str) -> str:
    """Return the only entry of an array as tables write it, if it is one."""
    found = re.fullmatch(r'\["([^"\\]*)"\]', value)
    return found[1] if found else value


def _rate(text: str) -> float:
    if not text.endswith("/s"):
        raise ValueError(f"{text!r} is no rate")
    return float(bytes_per_second(text))


def _percent(text: str) -> float:
    if not text.endswith("%"):
        raise ValueError(f"{text!r} is no percentage")
    return float(text[:-1])
