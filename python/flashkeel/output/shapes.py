"""Which kind of value each key of a result holds, so that a damaged document is told by its key."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_MOST_SHOWN = 40
"""Characters of a wrong value that are shown."""


@dataclass(frozen=True)
class Kind:
    """Values of one kind: what they are called, and what holds of them."""

    words: str
    holds: Callable[[Any], bool]
    or_none: bool = False

    def optional(self) -> Kind:
        """Return the kind that may be missing as ``null``, too."""
        return Kind(self.words, self.holds, or_none=True)


@dataclass(frozen=True)
class Each:
    """An object with any keys, or a list, that holds one shape throughout."""

    shape: Shape
    of: type = dict


Shape = Kind | Each | Mapping[str, "Shape"]


def _is_whole(value: Any) -> bool:  # noqa: ANN401
    # Sums of ns are the largest there are.
    return type(value) is int and 0 <= value < 1 << 96


def _is_number(value: Any) -> bool:  # noqa: ANN401
    return type(value) in (int, float) and math.isfinite(value)


def _is_pair(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, list) and len(value) == 2 and all(map(_is_whole, value))


def _is_interval(value: Any) -> bool:  # noqa: ANN401
    return value == [None, None] or _is_pair(value)


def _are_pairs(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, list) and all(map(_is_pair, value))


TEXT = Kind("a text", lambda value: isinstance(value, str))
TRUTH = Kind("true or false", lambda value: isinstance(value, bool))
WHOLE = Kind("a whole number of at least 0", _is_whole)
NUMBER = Kind("a number", _is_number)
_INTERVAL = Kind("two whole numbers", _is_interval)
_COUNTS = Kind("pairs of whole numbers", _are_pairs)

_OF_SEEDS: dict[str, Shape] = {
    "count": Each(WHOLE, list),
    "bytes": Each(WHOLE, list),
    "iops": Each(NUMBER, list),
    "mean_ns": Each(NUMBER.optional(), list),
    "beyond": Each(Each(WHOLE, list)),
    "at_or_beyond": Each(Each(WHOLE, list)),
}
_DISTRIBUTION: dict[str, Shape] = {
    "count": WHOLE,
    "iops": NUMBER,
    "bytes": WHOLE,
    "mean_ns": NUMBER.optional(),
    "max_ns": WHOLE.optional(),
    "percentile": Each(WHOLE.optional()),
    "beyond": Each(WHOLE),
    "ci95": Each(_INTERVAL),
    "ci95_bounded": Each(TRUTH),
    "by_seed": _OF_SEEDS,
}
_OF_A_SIZE: dict[str, Shape] = {"operation": TEXT, "max_bytes": WHOLE.optional()}
_DETAIL: dict[str, Shape] = {
    "measured_ns": WHOLE,
    "histograms": Each(
        _OF_A_SIZE | {"bytes": WHOLE, "sum_ns": WHOLE, "max_ns": WHOLE, "counts": _COUNTS}, list
    ),
    "blame": Each(
        {
            "group": TEXT,
            "from_ns": WHOLE,
            "count": WHOLE,
            "ns": Each(WHOLE),
            "requests": Each(WHOLE),
        },
        list,
    ),
}
_PART: dict[str, Shape] = {
    "name": TEXT,
    "digest": TEXT,
    "requests": WHOLE,
    "invalid_requests": WHOLE,
    "lost_requests": WHOLE,
    "simulated_s": NUMBER,
    "last_arrival_s": NUMBER,
    "last_completion_s": NUMBER,
    "gc_blocked": WHOLE,
    "gc_blocked_fraction": NUMBER.optional(),
    **dict.fromkeys(("read", "write", "small_read", "trim", "flush"), _DISTRIBUTION),
    "by_size": Each(_OF_A_SIZE | _DISTRIBUTION, list),
    "blame_ns": Each(WHOLE),
    "histogram_precision": NUMBER,
    "requests_not_logged": WHOLE,
    "detail": _DETAIL,
}
_HOST_BYTES = ("read", "written", "trimmed", "zeroed")
_DEVICE: dict[str, Shape] = {
    **{f"host_bytes_{what}": WHOLE for what in _HOST_BYTES},
    **dict.fromkeys(("programmed_bytes", "unmapped_pages_read", "padding_pages", "erases"), WHOLE),
    "flash_operations": Each(WHOLE),
    "waf": NUMBER.optional(),
}
_GEOMETRY: dict[str, Shape] = dict.fromkeys(
    ("channels", "chips_per_channel", "planes_per_chip", "blocks_per_plane", "pages_per_block"),
    WHOLE,
)
_POLICY: dict[str, Shape] = {"policy": TEXT}
_WORKLOAD: dict[str, Shape] = {
    "warm_up": TEXT,
    "source": _POLICY | {"arrivals": _POLICY, "pattern": _POLICY},
    "pacing": _POLICY,
}
_CONFIG: dict[str, Shape] = {
    "device": {
        "geometry": _GEOMETRY | {"page_size": TEXT, "multi_plane": TRUTH},
        "logical_capacity": TEXT,
        "precondition": {"pattern": TEXT, "fill": NUMBER},
        "gc": {"movement": _POLICY},
        "slc_cache": _POLICY,
        "redundancy": _POLICY,
        "timing": {"channel_rate": TEXT},
    },
    "workload": _WORKLOAD,
    "stack": {"tenants": Each({"name": TEXT, "workload": _WORKLOAD}, list)},
}
_RUN: dict[str, Shape] = _PART | {
    "seed": WHOLE,
    "seeds": Each(WHOLE, list),
    "wall_s": NUMBER,
    "waf": NUMBER.optional(),
    "erases": WHOLE,
    "basis": TEXT,
    "notes": Each(TEXT, list),
    "version": TEXT,
    "preset": TEXT.optional(),
    "limits": {"capacity_bytes": WHOLE},
    "device": _DEVICE,
    "workload": Each(WHOLE),
    "by_seed": {"waf": Each(NUMBER.optional(), list), "erases": Each(WHOLE, list)},
    "tenants": Each(_PART, list),
    "config": _CONFIG,
}
RESULT: Shape = {
    "version": TEXT,
    "experiment": TEXT.optional(),
    "title": TEXT.optional(),
    "identity": TEXT,
    "runs": Each(_RUN, list),
}
"""The document of a result, of its configuration what is looked at.

What lacks a key is told where that is needed.
"""


def wrong(found: Any, shape: Shape) -> str | None:  # noqa: ANN401
    """Say which key holds what it must not, and what it would hold; None where all is right."""
    said = _wrong(found, shape)
    return said and said.removeprefix(".")


def _wrong(found: Any, shape: Shape) -> str | None:  # noqa: ANN401
    """Return what `wrong` does, with a dot before each key."""
    if isinstance(shape, Kind):
        is_one = shape.holds(found) or (shape.or_none and found is None)
        return None if is_one else _said(found, shape.words)
    parts: Iterable[tuple[object, Any, Shape]]
    if isinstance(shape, Each) and shape.of is list:
        if not isinstance(found, list):
            return _said(found, "a list")
        parts = ((index, one, shape.shape) for index, one in enumerate(found))
    elif not isinstance(found, dict):
        return _said(found, "an object")
    elif isinstance(shape, Each):
        parts = ((key, one, shape.shape) for key, one in found.items())
    else:
        parts = ((key, found[key], shape[key]) for key in shape if key in found)
    for key, one, its in parts:
        if said := _wrong(one, its):
            return f".{key}{said}"
    return None


def _said(found: Any, words: str) -> str:  # noqa: ANN401
    shown = repr(found)
    if len(shown) > _MOST_SHOWN:
        shown = f"{shown[:_MOST_SHOWN]}…"
    return f" is {shown}, and not {words}"
