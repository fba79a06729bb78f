"""A run with figures that are known."""

from pathlib import Path

import pytest
from flashkeel import Run
from flashkeel.arrow import TableFiles
from flashkeel.percentiles import key

PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99, 99.9999)
COUNTERS = (
    "not_io", "bad_lines", "other_device", "outside_window", "zero_length", "trims_dropped",
    "aligned", "folded", "clipped", "reordered",
)  # fmt: skip


@pytest.fixture
def known_run():
    """Make a run of 200,000 small reads, each percentile ten times the one before."""

    def make(name="run", **changes):
        reads = {
            "count": 200_000,
            "iops": 20_000.0,
            "bytes": 200_000 * 4096,
            "mean_ns": 1_500.0,
            "max_ns": 10**9,
            "percentile": {key(p): 10 ** (index + 2) for index, p in enumerate(PERCENTILES)},
            "beyond": {key(p): int(200_000 * (1 - p / 100)) for p in PERCENTILES},
            "ci95": {key(p): [90, 110] for p in PERCENTILES},
            "ci95_bounded": {key(p): p < 99.99 for p in PERCENTILES},
        }
        data = {
            "name": name,
            "seed": 1,
            "digest": name,
            "requests": 200_000,
            "simulated_s": 10.0,
            "wall_s": 0.5,
            "waf": None,
            "erases": 12,
            "invalid_requests": 0,
            "lost_requests": 0,
            "gc_blocked_fraction": 0.0123,
            "small_read": reads,
            "read": reads,
            "basis": "trace",
            "config": {"workload": {"source": {"policy": "trace"}}},
            "notes": [],
            "workload": dict.fromkeys(COUNTERS, 0),
        }
        return Run(data | changes, TableFiles(Path()))

    return make
