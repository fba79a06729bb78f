"""Short names of a sweep's values that are too long to be shown: arrays and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_LONGEST = 24
"""Characters of an array or a table, as JSON, that are shown."""


def name(key: str) -> str:
    """Return what a key is called where there is little room: its last part."""
    return key.rpartition(".")[2]


def long_keys(keys: Iterable[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys of which a value is too long to be shown."""
    return [key for key in keys if any(_is_long(row[key]) for row in rows)]


def shortened(keys: Iterable[str], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows whose long values are called after the key and the first point that has them."""
    found = [dict(row) for row in rows]
    for key in long_keys(keys, rows):
        first: dict[str, int] = {}
        for row in found:
            if _is_long(row[key]):
                row[key] = f"{name(key)} {first.setdefault(row[key], row['point'])}"
    return found


def meaning(key: str) -> str:
    """Return what the short names of a key's values stand for."""
    return f"{name(key)} N: what point N of sweep.csv has"


def _is_long(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, str) and value[:1] in ("[", "{") and len(value) > _LONGEST
