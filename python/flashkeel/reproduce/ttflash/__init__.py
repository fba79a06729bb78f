"""Tiny-Tail Flash: Near-Perfect Elimination of Garbage Collection Tail Latencies (FAST 2017)."""

from flashkeel.reproduce.ttflash import (
    append_only,
    blocked,
    burst,
    composition,
    cost,
    filebench,
    latency,
    real,
)

STUDIES = (
    blocked.STUDY,
    latency.STUDY,
    cost.STUDY,
    burst.STUDY,
    filebench.STUDY,
    real.STUDY,
    composition.STUDY,
    append_only.STUDY,
)
