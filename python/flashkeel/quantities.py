"""Sizes, rates and shapes as documents write them."""

from collections.abc import Mapping
from math import prod
from typing import Any

from flashkeel._core import LOGICAL_PAGE_BYTES

SIZES = {
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "B": 1,
}
"""Units of sizes, in bytes; those that end others behind them."""
_TIMES = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3,
    "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "s": 1.0,
}  # fmt: skip
"""Units of times, in s; those that end others behind them."""
_PLANES = ("channels", "chips_per_channel", "planes_per_chip")


def in_bytes(text: str) -> int:
    """Return the bytes of a size, ``16KiB`` or ``1.5GB``; ValueError where it is none."""
    for unit, scale in SIZES.items():
        if text.endswith(unit):
            number = text.removesuffix(unit)
            # Whole numbers may be larger than those that have decimals are exact.
            return int(number) * scale if number.isdecimal() else int(float(number) * scale)
    return int(text)


def in_seconds(text: str) -> float:
    """Return the seconds of a time, ``50us`` or ``1.5h``; ValueError where it is none."""
    for unit, scale in _TIMES.items():
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * scale
    raise ValueError(f"{text!r} is no time")


def bytes_per_second(text: str) -> int:
    """Return the bytes a second of a rate, ``400MB/s``."""
    return in_bytes(text.removesuffix("/s"))


def planes(geometry: Mapping[str, Any]) -> int:
    """Return the planes of a device."""
    return prod(int(geometry[key]) for key in _PLANES)


def flash_bytes(geometry: Mapping[str, Any]) -> int:
    """Return the bytes of a device's flash, what is not for the host included."""
    pages = planes(geometry) * geometry["blocks_per_plane"] * geometry["pages_per_block"]
    return int(pages) * in_bytes(geometry["page_size"])


def bytes_programmed_at_once(geometry: Mapping[str, Any]) -> int:
    """Return the bytes of a page, or of one of each plane of a chip, as devices program them."""
    pages = geometry["planes_per_chip"] if geometry["multi_plane"] else 1
    return int(pages) * in_bytes(geometry["page_size"])


def wearing_amplification(run: Mapping[str, Any], geometry: Mapping[str, Any]) -> float | None:
    """Return by how much more the cycles of blocks are used up than the host writes.

    The write amplification of a run without the folds of an SLC cache, which leave a block's
    cycles as they are. None where the host wrote nothing.
    """
    waf, device = run.get("waf"), run["device"]
    if not waf:
        return None
    folded = device["flash_operations"]["fold"] * bytes_programmed_at_once(geometry)
    return float(waf * (1 - folded / device["programmed_bytes"]))


def padded(device: Mapping[str, Any], geometry: Mapping[str, Any]) -> float | None:
    """Return how many times as much is programmed for what the host writes as it writes.

    It is above 1 where flash pages are programmed before they are full. `device` is what a drive
    has counted. None where nothing was programmed.
    """
    programmed = device["flash_operations"]["host_write"] * bytes_programmed_at_once(geometry)
    merged = device["coalesced_pages"] * LOGICAL_PAGE_BYTES
    written = device["host_bytes_written"] - merged
    # What the buffer still holds has been written, and not programmed.
    return max(1.0, programmed / written) if programmed and written > 0 else None


def bytes_erased_at_once(geometry: Mapping[str, Any]) -> int:
    """Return the bytes of a block, or of one of each plane of a chip, as devices erase them."""
    return int(geometry["pages_per_block"]) * bytes_programmed_at_once(geometry)


def logical_bytes(device: Mapping[str, Any]) -> int:
    """Return the bytes of a device that are for the host."""
    capacity = str(device["logical_capacity"])
    if capacity.endswith("%"):
        return int(flash_bytes(device["geometry"]) * float(capacity.removesuffix("%")) / 100)
    return in_bytes(capacity)
