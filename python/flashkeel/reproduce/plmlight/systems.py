"""The pair of drives, the workloads, and the highest intensity that the pair sustains."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from flashkeel import _core
from flashkeel.reproduce.session import Case, Session
from flashkeel.reproduce.ttflash.systems import flat
from flashkeel.run import Run

HIGH, MEDIUM, LOW = "high", "medium", "low"
CLASSES = (HIGH, MEDIUM, LOW)
BASELINE, EQUAL, PRIORITISED = "baseline", "equal", "prioritised"
ONE_DRIVE = "one drive"
"""The baseline as its text has it, "on SSD" (section 5.4.5): half of what PLMlight is made of."""
SYSTEMS = (BASELINE, EQUAL, PRIORITISED)
"""Those that sustain what claims are judged at."""
PLAIN = (BASELINE, ONE_DRIVE)
"""Those that know no classes."""
_UNSHARED = "unshared"
"""PLMlight with counts that never end, which tells how much comes in a window."""

_SIZES_KIB = (4, 8, 16, 32, 64, 80, 96, 128)
_LARGE_ABOVE_KIB = 64


@dataclass(frozen=True)
class Workload:
    """One of section 5.4.1; sizes between 4 and 128 KiB are ours."""

    read_fraction: float
    sizes_kib: tuple[int, ...]
    kb_per_ms: float
    """What the three hosts ask for in a window of 1 ms (table 5.1)."""

    @property
    def full_iops(self) -> float:
        """Requests a second at the dissertation's intensity."""
        mean_bytes = 1024 * sum(self.sizes_kib) / len(self.sizes_kib)
        return self.kb_per_ms * 1e6 / mean_bytes


WORKLOADS: Mapping[str, Workload] = {
    "I": Workload(0.3, (4,), 421.6 + 424.7 + 426.3),
    "II": Workload(0.7, (4,), 383 + 397.2 + 396),
    "III": Workload(0.3, _SIZES_KIB, 1161.6 + 1163.2 + 1160.4),
    "IV": Workload(0.7, _SIZES_KIB, 1117.3 + 1131.1 + 1132.6),
}


@dataclass(frozen=True)
class State:
    """What the drives have gone through."""

    what: str
    keys: Mapping[str, Any]
    seconds: float
    """How long a run is at least, also in the search."""


STATES: Mapping[str, State] = {
    # Collection stalls writes now and then.
    "collecting": State("filled at random, so that they collect garbage all the time", {}, 5.0),
    "fresh": State(
        "with four times the flash, filled once, so that there is nothing to collect",
        {
            "device.geometry.blocks_per_plane": 2048,
            "device.precondition.pattern": "sequential",
        },
        1.0,
    ),
}
"""In which state the dissertation's drives were it does not say."""

_COUNTS, _BASE = 0.8, 0.75
"""Counts and what of them is granted beforehand, of the mean of a window (section 5.4.5)."""
_GRANTED = {
    EQUAL: dict.fromkeys(CLASSES, 1 / 3),
    PRIORITISED: {HIGH: 0.5, MEDIUM: 0.3, LOW: 0.2},
}
_WINDOW_MS = 1.0

_KEEPS_UP = 0.98
"""Part of what is asked for, and of what the NVM takes, that has to be done within a run."""
_SLOWEST_NS = 20_000_000
"""p99 of reads and writes that no more than that may take: otherwise they queue up."""
_HEADROOM = 0.9
"""Part of the highest intensity so found at which claims are judged; at the edge itself
queues are as long as the run."""
_LEAST = 1 / 64
"""Part of the full intensity at which the search begins; any pair sustains that."""
_STEP = 1.05
"""How exact it is."""
_QUICK_PERCENT: Mapping[str, Mapping[str, float]] = {
    "collecting": {"I": 7.5, "II": 11, "III": 5.5, "IV": 15},
    "fresh": {"I": 45, "II": 80, "III": 30, "IV": 60},
}
"""Of the full intensity, a little below what the search finds: the search takes most of the time
of a study, so that a quick run does without."""

SEEDS = 3
_REQUESTS = {"I": 50_000, "II": 180_000, "III": 60_000, "IV": 60_000}
"""Requests of a run at least: three seeds leave ten reads of each host beyond what is judged."""
_QUICK = 0.1
"""Part of that in a quick run."""
_WARM_UP_S = 0.5
_OVERLOAD_S, _QUICK_OVERLOAD_S = 0.2, 0.05
"""How long a run beyond what is sustained lasts, without a warm-up."""

_DOCUMENT = tomllib.loads(_core.show("plmlight"))
DEVICE = (
    "two drives of 16 chips with the figures of a Samsung 970 EVO Plus as far as they are known "
    "(flashkeel show plmlight)"
)


@dataclass(frozen=True)
class Load:
    """What comes in a window at one intensity, in the mean."""

    workload: str
    iops: float
    reads: float
    """4 KiB of reads in a window."""
    writes: float
    """4 KiB of writes in a window."""

    @property
    def window_ms(self) -> float:
        """A window in which as many requests come as in 1 ms at the full intensity."""
        return window_ms(self.workload, self.iops)


def window_ms(workload: str, iops: float) -> float:
    """Return the shortest window at an intensity: 1 ms at the dissertation's own."""
    return _WINDOW_MS * max(1.0, WORKLOADS[workload].full_iops / iops)


def highest(session: Session, state: str, workload: str) -> float:
    """Return the requests a second that one seed sustains, with some headroom.

    That is a part of the highest intensity with which both the plain mirror and PLMlight
    keep up.
    """
    full = WORKLOADS[workload].full_iops
    low, high = math.log(_LEAST), 0.0
    while high - low > math.log(_STEP):
        middle = (low + high) / 2
        if _is_sustained(session, state, workload, full * math.exp(middle)):
            low = middle
        else:
            high = middle
    return full * math.exp(low) * _HEADROOM


def _is_sustained(session: Session, state: str, workload: str, iops: float) -> bool:
    # One after the other: where the first does not, the second need not be run.
    cases = (_search(state, workload, system, iops) for system in (BASELINE, _UNSHARED))
    return all(is_sustained(session.run([case]), iops) for case in cases)


def is_sustained(runs: Mapping[str, Run], iops: float) -> bool:
    """Return whether all keep up, and requests do not queue up for long meanwhile."""
    return all(
        keeps_up(run, iops) >= _KEEPS_UP
        and all((run.percentile(kind, 99) or 0) <= _SLOWEST_NS for kind in ("read", "write"))
        for run in runs.values()
    )


def keeps_up(run: Run, iops: float) -> float:
    """Return which part was done of what was asked for, and of what the NVM took."""
    served = (run.iops("read") + run.iops("write")) / iops
    return min([served, *(_drained(tier) for tier in _parts(run, "tiers"))])


def _drained(tier: Mapping[str, Any]) -> float:
    taken = tier["host_bytes_to_nvm"]
    return float(tier["drained_bytes"] / taken) if taken else 1.0


def sustained(session: Session, state: str, workload: str) -> tuple[Load, dict[str, Run]]:
    """Return the load at which claims are judged, and the runs: all of them sustain it.

    Other seeds may stall where the search did not; then the intensity is lowered. A quick
    run neither searches nor tells what is sustained, for which it is too short: what lies in
    the NVM for a window is much of it.
    """
    full = WORKLOADS[workload].full_iops
    if session.quick:
        found = load(session, state, workload, _QUICK_PERCENT[state][workload] / 100 * full)
        return found, measure(session, state, found)
    iops = highest(session, state, workload)
    least = full * _LEAST * _HEADROOM
    while True:
        found = load(session, state, workload, iops)
        runs = measure(session, state, found)
        if iops <= least or is_sustained(judged_by(runs), iops):
            return found, runs
        iops *= _HEADROOM


def judged_by(runs: Mapping[str, Run]) -> dict[str, Run]:
    """Return the runs that claims are judged by: not that of one drive, which is shown beside."""
    return {system: runs[system] for system in SYSTEMS}


def load(session: Session, state: str, workload: str, iops: float) -> Load:
    """Return what comes in a window."""
    case = _search(state, workload, _UNSHARED, iops, _QUICK if session.quick else 1)
    run = session.run([case])[case.name]
    (coordinator,) = _parts(run, "coordinators")
    reads = sum(host["asked"] for host in coordinator["hosts"]) / coordinator["windows"]
    fraction = WORKLOADS[workload].read_fraction
    return Load(workload, iops, reads, reads * (1 - fraction) / fraction)


def full_load(workload: str) -> Load:
    """Return what comes in a window of 1 ms at the dissertation's intensity."""
    kind = WORKLOADS[workload]
    pages = kind.kb_per_ms * 1000 / 4096
    reads = pages * kind.read_fraction
    return Load(workload, kind.full_iops, reads, pages - reads)


def measure(session: Session, state: str, load: Load) -> dict[str, Run]:
    """Run the systems at one intensity, several seeds pooled."""
    seconds = _seconds(state, load.workload, load.iops) * (_QUICK if session.quick else 1)
    cases = {
        system: replace(
            _case(state, load.workload, system, load.iops, seconds, load), least_seeds=SEEDS
        )
        for system in (*SYSTEMS, ONE_DRIVE)
    }
    return _runs(session, cases)


def overload_s(session: Session) -> float:
    """Return for how many seconds the dissertation's intensity is run."""
    return _QUICK_OVERLOAD_S if session.quick else _OVERLOAD_S


def overload(session: Session, state: str, workload: str) -> dict[str, Run]:
    """Run the plain mirror and PLMlight at the dissertation's intensity."""
    full, seconds = full_load(workload), overload_s(session)
    cases = {
        system: _case(state, workload, system, full.iops, seconds, full, warm_up_s=0)
        for system in (BASELINE, PRIORITISED)
    }
    return _runs(session, cases)


def _runs(session: Session, cases: Mapping[str, Case]) -> dict[str, Run]:
    runs = session.run(list(cases.values()))
    return {system: runs[case.name] for system, case in cases.items()}


def _search(state: str, workload: str, system: str, iops: float, part: float = 1) -> Case:
    return _case(state, workload, system, iops, part * _seconds(state, workload, iops))


def _seconds(state: str, workload: str, iops: float) -> float:
    return max(_REQUESTS[workload] / iops, STATES[state].seconds)


def _case(
    state: str,
    workload: str,
    system: str,
    iops: float,
    seconds: float,
    load: Load | None = None,
    warm_up_s: float = _WARM_UP_S,
) -> Case:
    kind = WORKLOADS[workload]
    source = _DOCUMENT["workload"]["source"] | {
        "read_fraction": kind.read_fraction,
        "block_sizes": [f"{size}KiB" for size in kind.sizes_kib],
        "arrivals": {"policy": "poisson", "iops": iops / len(CLASSES)},
    }
    keys = {
        **flat(_DOCUMENT["device"], "device"),
        # Runs of several seeds differ in their requests, not in their steady state.
        "device.precondition.seed": 1,
        **STATES[state].keys,
        "stack.depth": _DOCUMENT["stack"]["depth"],
        "stack.volumes": _DOCUMENT["stack"]["volumes"],
        "stack.tenants": _DOCUMENT["stack"]["tenants"],
        "stack.devices": [_device(system, window_ms(workload, iops), load)],
        "workload.warm_up": f"{warm_up_s * 1000:.0f}ms",
        "workload.requests": int(iops * (warm_up_s + seconds)),
        "workload.source": source,
    }
    return Case(f"{state} {workload} {system} {iops:g}", keys)


def _device(system: str, window: float, load: Load | None) -> dict[str, Any]:
    if system == ONE_DRIVE:
        return {"ssd": {}}
    if system == BASELINE:
        return {"mirror": {"devices": [{"ssd": {}}, {"ssd": {}}], "read": "shortest-queue"}}
    device: dict[str, Any] = deepcopy(_DOCUMENT["stack"]["devices"][0])
    coordinator = device["tier"]["lower"]["coordinator"]
    mirror = coordinator["device"]["mirror"]
    mirror["windows"]["rest"] = f"{window * 1000:.0f}us"
    share = coordinator["share"]
    if load is None:
        share |= {"count": 1_000_000_000, "minimum": dict.fromkeys(CLASSES, 1 / 3)}
        return device
    parts = {host: part * _BASE / _COUNTS for host, part in _GRANTED[system].items()}
    share |= {"count": max(1, round(_COUNTS * load.reads)), "minimum": parts}
    for copy in mirror["devices"]:
        copy["windowed"]["window"]["writes"] = max(
            _SIZES_KIB[-1] // 4, round(_COUNTS * load.writes)
        )
    return device


def _parts(run: Run, kind: str) -> list[Mapping[str, Any]]:
    return list((run.data.get("stack") or {}).get(kind, {}).values())
