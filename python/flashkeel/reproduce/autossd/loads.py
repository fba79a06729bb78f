"""Loads for the share controller: profiles at some speed, and bursts near saturation."""

from __future__ import annotations

from typing import Any

from flashkeel.reproduce.profiles import source
from flashkeel.reproduce.session import Session

PROFILES = {"msn-befs x4": 4.0, "msn-befs x12": 12.0, "dtrs x4": 4.0, "rad-as": 1.0}
"""Profiles and their intensities, from light to near what the device can do."""
BURSTS = "bursts"
BURST_REQUESTS = 2_600_000
"""Of the demonstration's workload at 38,000 requests a second: 140 s."""


def workload(session: Session, load: str, requests: int) -> dict[str, Any]:
    """Return the workload's keys: `requests` of a profile, `msn-befs x4`, or bursts."""
    if load == BURSTS:
        return {
            "workload.requests": min(requests, BURST_REQUESTS) if session.quick else BURST_REQUESTS,
            "workload.source": {
                "policy": "synthetic",
                "read_fraction": 0.7,
                "block_sizes": ["4KiB/60", "16KiB/30", "64KiB/10"],
                "pattern": "zipf",
                "arrivals": {"policy": "bursts", "iops": 38_000, "on": "1s", "off": "1s"},
            },
        }
    profile, _, speed = load.partition(" x")
    return {
        "workload.requests": requests,
        "workload.source": source(session, profile, float(speed or 1)),
    }
