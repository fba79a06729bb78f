"""Recorded traces cut into windows, each replayed by itself.

Another seed changes nothing of what a trace asks for, so that seeds are no samples of it.
Parts of it are: each begins with the device in its steady state, and knows nothing of the
others.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flashkeel import _core

WINDOWS = 6
"""Parts of a trace; fewer would leave an interval wide, more too few requests in each."""


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
