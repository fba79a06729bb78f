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
        # 16 stripes, where the others empty 16 blocks: the paper does not limit how
        # many chips of a stripe collect at a time (§5.2).
        "device.gc.concurrent_victims": 16 * 16,
    },
    "qosfc": {"device.scheduler": "fair"},
    "autossd": {"device.scheduler": "debit"},
}
"""Names of §5.2 and what sets each apart."""

CAPS = "rain may empty 256 blocks at once, the others 16"
"""How many blocks they may empty at once, in words."""

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


def described(session: Session) -> str:
    """Return what :func:`device` is, in words."""
    part = f"1/{_QUICK_PARTS} of " if session.quick else ""
    return f"{part}the device of Table 1"
