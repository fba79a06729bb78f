"""Write bursts: when rotation must yield, and what semi-preemptive GC does without idle time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from flashkeel.output import units
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, few, too_few
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.reproduce.ttflash.systems import ALL, CLASS, DEVICE, NOGC, SYSTEMS
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Runs = Mapping[tuple[str, int], Run]

_PREEMPTIVE = "semi-preemptive"
_SYSTEMS = (ALL, _PREEMPTIVE, NOGC)
_RATES = (10, 20, 25, 30, 35, 40, 55, 70)
"""MB/s of writes."""
_SHOWN = 55
_QUICK_RATES = (10, 25, 40, 55, 70)
_READS_PER_S = 2000
_WRITE_BYTES = 4096
_AT = 99.9

_GROWS = Claim(
    "grows",
    "under a write burst (55 MB/s shown) rotation has to be switched off, and the tail grows",
    "at 55 MB/s blocks are collected out of turn, and p99.9 of reads is at least five times "
    "that at 10 MB/s",
    None,
    "ms",
)
_RATE = Claim(
    "rate",
    "rotation is on up to some rate of writes, and off at 55 MB/s",
    "in the sweep no block is collected out of turn at 10 MB/s; the lowest rate at which one is "
    "lies within a factor of two of the paper's",
    _SHOWN,
    "MB/s",
    is_of_all=True,
)
_SPACE = Claim(
    "space",
    "rotation yields so that there are always free pages",
    "at 55 MB/s no write waits for a free block",
    0.0,
    "writes",
    is_of_absence=True,
)
_BACKLOG = Claim(
    "backlog",
    "without idle time semi-preemptive GC builds a backlog, then latency spikes",
    "at the highest rate its p99.9 is at least twenty times that at 10 MB/s",
    None,
    "ms",
)
_STABLER = Claim(
    "stabler",
    "ttFlash is stabler than semi-preemptive GC",
    "at the highest rate p99.9 of all is at most half of semi-preemptive's",
    None,
    "ms",
)


def _measure(session: Session) -> Outcome:
    rates = _QUICK_RATES if session.quick else _RATES
    found = session.run([_case(session, system, rate) for system in _SYSTEMS for rate in rates])
    runs = {(system, rate): found[f"{system} {rate}"] for system in _SYSTEMS for rate in rates}
    tail = {key: float(run.percentile(CLASS, _AT) or 0) for key, run in runs.items()}
    sparse = [run.beyond(CLASS, _AT) for run in runs.values() if few(run, CLASS, _AT)]
    missing = too_few(min(sparse)) if sparse else ""
    low, high = rates[0], rates[-1]
    out_of_turn = {rate: _count(runs[ALL, rate], "collections_out_of_turn") for rate in rates}
    yields = next((rate for rate in rates if out_of_turn[rate] > 0), None)
    stalls = _count(runs[ALL, _SHOWN], "free_block_stalls")
    losses = [r for r in rates if tail[_PREEMPTIVE, r] < tail[ALL, r]]
    stabler = tail[ALL, high] <= tail[_PREEMPTIVE, high] / 2
    grows = out_of_turn[_SHOWN] > 0 and tail[ALL, _SHOWN] >= 5 * tail[ALL, low]
    return Outcome(
        {
            "grows": Finding(
                _tails(tail, ALL, rates),
                None if sparse else grows,
                missing or f"{out_of_turn[_SHOWN]:,} blocks out of turn at {_SHOWN} MB/s",
            ),
            "rate": Finding(
                yields,
                yields is not None and out_of_turn[low] == 0 and _SHOWN / 2 <= yields <= _SHOWN * 2,
                "blocks out of turn: "
                + ", ".join(f"{count:,} at {rate} MB/s" for rate, count in out_of_turn.items()),
            ),
            "space": Finding(stalls, stalls == 0),
            "backlog": Finding(
                _tails(tail, _PREEMPTIVE, rates),
                None if sparse else tail[_PREEMPTIVE, high] >= 20 * tail[_PREEMPTIVE, low],
                missing,
            ),
            "stabler": Finding(
                {
                    f"{system}, {high} MB/s": tail[system, high] / 1e6
                    for system in (ALL, _PREEMPTIVE)
                },
                None if sparse else stabler,
                missing or _lost(losses),
            ),
        },
        basis(found),
        f"{DEVICE}; {_READS_PER_S:,} reads of 4 KiB a second beside random writes of 4 KiB, "
        "Poisson, from its steady state on",
        partial(_draw, tail, rates, yields),
    )


def _case(session: Session, system: str, mb_per_s: int) -> Case:
    writes_per_s = mb_per_s * 1e6 / _WRITE_BYTES
    iops = _READS_PER_S + writes_per_s
    return Case(
        f"{system} {mb_per_s}",
        SYSTEMS[system]
        | {
            "workload.warm_up": "5s",
            "workload.duration": "25s" if session.quick else "65s",
            "workload.source": {
                "policy": "synthetic",
                "read_fraction": _READS_PER_S / iops,
                "arrivals": {"policy": "poisson", "iops": iops},
            },
        },
        judged=(CLASS, _AT),
    )


def _count(run: Run, counter: str) -> int:
    return int(run.data["device"][counter])


def _tails(
    tail: Mapping[tuple[str, int], float], system: str, rates: tuple[int, ...]
) -> dict[str, float | None]:
    return {f"p99.9 at {rate} MB/s": tail[system, rate] / 1e6 for rate in rates}


def _lost(rates: list[int]) -> str:
    if not rates:
        return ""
    listed = ", ".join(map(str, rates))
    return f"at {listed} MB/s semi-preemptive has the lower p99.9"


def _draw(
    tail: Mapping[tuple[str, int], float], rates: tuple[int, ...], yields: int | None
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for system in _SYSTEMS:
        axes.plot(rates, [tail[system, rate] for rate in rates], marker="o", label=system)
    if yields is not None:
        axes.axvline(yields, color="black", linewidth=0.8, linestyle=":")
        axes.annotate(" rotation yields", (yields, axes.get_ylim()[1] / 2), fontsize=8)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda ns, _: units.duration(ns))
    axes.set_xlabel("random writes of 4 KiB (MB/s, synthetic)")
    axes.set_ylabel("p99.9 of reads")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure


STUDY = Study(
    "ttflash/burst",
    "Write bursts, and no idle time",
    (_GROWS, _RATE, _SPACE, _BACKLOG, _STABLER),
    _measure,
    is_cut_short=True,
)
