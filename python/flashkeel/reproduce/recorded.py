"""Recorded traces cut into windows, each replayed by itself.

Another seed changes nothing of what a trace asks for, so that seeds are no samples of it.
Parts of it are: each begins with the device in its steady state, and knows nothing of the
others.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flashkeel import _core
from flashkeel.reproduce.session import Session

FILES = {"dtrs": "msps_dtrs_slice.ssdsim.gz", "cloudphysics": "cloudphysics_vm.vscsi.gz"}
"""Recorded requests, by short names."""
DEMAND = {"demand": "cloudphysics_write_demand_30min.csv.gz"}
"""Recorded write demands."""
NAMES = frozenset((FILES | DEMAND).values())

WINDOWS = 6
"""Parts of a trace; fewer would leave an interval wide, more too few requests in each."""


def find(session: Session, files: Mapping[str, str]) -> dict[str, Path]:
    """Return those of the files that are in ``--traces``, or in FLASHKEEL_TRACES without it."""
    folder = session.traces or os.environ.get("FLASHKEEL_TRACES")
    paths = {name: Path(folder) / file for name, file in files.items()} if folder else {}
    found = {name: path for name, path in paths.items() if path.is_file()}
    session.lookups.update({files[name]: name in found for name in paths})
    return found


def windows(path: Path, intensity: float = 1.0) -> list[dict[str, Any]]:
    """Return a workload source for each part of a trace, equal in time."""
    span_ns = json.loads(_core.trace_info(str(path), "{}"))["span_ns"]
    edges = [f"{span_ns * at // WINDOWS}ns" for at in range(WINDOWS)]
    bounds = [
        {"from": begin} | ({"to": end} if end else {})
        for begin, end in zip(edges, [*edges[1:], None], strict=True)
    ]
    return [
        {
            "policy": "trace",
            "path": str(path.absolute()),
            "fold": "wrap",
            "intensity": intensity,
            "window": window,
        }
        for window in bounds
    ]
