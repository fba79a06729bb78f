"""The paper's device, and the four systems that it compares."""

from __future__ import annotations

from typing import Any

from flashkeel.reproduce.session import Session

SYSTEMS: dict[str, dict[str, Any]] = {
    "vanilla": {"device.scheduler": "fifo"},
    "rain": {
        "device.scheduler": "priority",
        "device.redundancy": "physical",
        "device.read_path": "reconstruct",
    },
    "qosfc": {"device.scheduler": "fair"},
    "autossd": {"device.scheduler": "debit"},
}
"""Names of §5.2 and what sets each apart."""

CAP = 256
"""Blocks that every system may empty at once: of RAIN 16 stripes. The paper sets no cap (§5.2)."""

_QUICK_PARTS = 8


def device(session: Session) -> dict[str, Any]:
    """Return the keys of the device of Table 1; an eighth of its blocks under --quick."""
    return scaled(_QUICK_PARTS if session.quick else 1)


def scaled(parts: int) -> dict[str, Any]:
    """Return the keys of the device with a `parts`-th of its blocks, capacity and map cache.

    Chips, timing and thresholds stay, so that it is the same device, filled sooner.
    """
    return {
        "device.preset": "autossd",
        # Runs of several seeds differ in their requests, not in their steady state.
        "device.precondition.seed": 1,
        "device.geometry.blocks_per_plane": 1024 // parts,
        "device.logical_capacity": f"{200 * 1024 // parts}MiB",
        "device.map_cache": f"{128 * 1024 // parts}KiB",
    }


def capped(blocks: int = CAP) -> dict[str, int]:
    """Return the key of how many blocks may be emptied at once."""
    return {"device.gc.concurrent_victims": blocks}


def described_cap(blocks: int = CAP) -> str:
    """Return the same in words."""
    return f"every system may empty {blocks} blocks at once"


def described(session: Session) -> str:
    """Return what :func:`device` is, in words."""
    part = f"1/{_QUICK_PARTS} of " if session.quick else ""
    return f"{part}the device of Table 1"
