"""What of blocked requests and of further erases is the size of requests: the range of claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flashkeel.comparison import FEW
from flashkeel.reproduce.claims import Finding, Outcome, Quantity, Range
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.reproduce.ttflash.systems import ALL, BASE, DEVICE, SYSTEMS
from flashkeel.run import Run

PLANE = "plane-blocking"
_KIB = (4, 8, 16, 32, 64)
_READS, _MB_PER_S = 0.79, 29.0
"""Share of reads of LMBE, and what it asks for in the mean."""
_WRITTEN_MB_PER_S = 12.0
"""Less than half of what rotation keeps up with."""
_SECONDS = 60


def _run(
    session: Session, systems: Sequence[str], kib: float, read_fraction: float, mb_per_s: float
) -> dict[str, Run]:
    source: dict[str, Any] = {
        "policy": "synthetic",
        "read_fraction": read_fraction,
        "block_sizes": [f"{round(kib)}KiB"],
        "arrivals": {"policy": "poisson", "iops": mb_per_s * 1e6 / (kib * 1024)},
    }
    return session.run(
        [
            Case(
                system,
                SYSTEMS[system]
                | {
                    "workload.warm_up": "5s",
                    "workload.duration": f"{_SECONDS // 4 if session.quick else _SECONDS}s",
                    "workload.source": source,
                },
            )
            for system in systems
        ]
    )


def _measure_blocked(session: Session, kib: float) -> Outcome:
    runs = _run(session, (BASE, PLANE), kib, _READS, _MB_PER_S)
    share = {system: 100 * run.data["gc_blocked_fraction"] for system, run in runs.items()}
    return Outcome(
        {
            "base": _judge(runs, BASE, share[BASE], 1, 14),
            "plane-blocking": _judge(runs, PLANE, share[PLANE], 1.5, 6),
        },
        basis(runs),
        f"{DEVICE}; LMBE's {_MB_PER_S:g} MB/s and share of reads in requests of this size alone, "
        "at random places; the rule of one trace",
    )


def _judge(runs: Mapping[str, Run], system: str, share: float, low: float, high: float) -> Finding:
    blocked = runs[system].data["gc_blocked"]
    if blocked < FEW:
        return Finding(share, None, f"{blocked} requests are blocked, {FEW} are needed")
    return Finding(share, low <= share <= high, f"{blocked:,} requests are blocked")


def _measure_written(session: Session, kib: float) -> Outcome:
    runs = _run(session, (BASE, ALL), kib, 0.0, _WRITTEN_MB_PER_S)
    base, ours = (runs[system].data["erases"] for system in (BASE, ALL))
    words = f"{ours:,} erases against {base:,}"
    if base < FEWEST_ERASES:
        found = Finding(None, None, f"{words}; {FEWEST_ERASES} are needed")
        return Outcome(dict.fromkeys(("erases", "erases-random"), found), basis(runs), "")
    extra = 100 * (ours / base - 1)
    return Outcome(
        {
            "erases": Finding(extra, 10 <= extra <= 30, words),
            "erases-random": Finding(extra, extra >= 40, words),
        },
        basis(runs),
        f"{DEVICE}; writes of this size alone at random places, {_WRITTEN_MB_PER_S:g} MB/s; the "
        "rule of one trace",
    )


FEWEST_ERASES = 200
"""Of base, that shares of erases are judged with."""

BLOCKED = Range(
    Quantity(
        "request size",
        _KIB,
        64,
        "LMBE's are not given, nor whether requests or pages are counted; those of its relative "
        "LM-TBE are 53 KB for reads and 62 KB for writes",
        " KiB",
    ),
    ("base", "plane-blocking"),
    _measure_blocked,
)
WRITTEN = Range(
    Quantity(
        "size of writes",
        _KIB,
        8,
        "not given; what takes 15 to 18 % more is not said to be random, what takes 53 % is",
        " KiB",
    ),
    ("erases", "erases-random"),
    _measure_written,
)
