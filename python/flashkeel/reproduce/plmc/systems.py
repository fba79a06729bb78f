"""The drive, the data sets, and who shares its windows how."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from flashkeel import _core
from flashkeel.output import units
from flashkeel.reproduce.claims import reduction
from flashkeel.reproduce.session import Case, Session
from flashkeel.reproduce.ttflash.systems import flat

HIGH, MEDIUM, LOW = "high", "medium", "low"
CLASSES = (HIGH, MEDIUM, LOW)

OWN = "DS1"
_WINDOW_READS = (420, 0.78 * 420, 0.71 * 420)
"""Of it: mean reads of 4 KiB in a deterministic window by class (table 4.3)."""
SHIFTED = "DS4"
"""The same with the medium and the low class delayed by 200 and 400 ms."""

CONFIGURATIONS: dict[str, tuple[float, int]] = {
    "1": (1.2, 100),
    "2": (1.4, 100),
    "3": (2.0, 400),
    "4": (2.5, 400),
}
"""Counts as a multiple of the mean need, and the window in ms (table 4.4)."""

BARE, ALONE = "bare", "alone"
"""Every host on the drive without windows, and the high class without the others."""
UNSHARED, ALONE_IN_WINDOWS = "unshared", "alone, in windows"
"""The same on the drive with windows: each ends when its counts are used up, by whomever."""
SHARED = {
    "CoD strict": {"demand": "smoothed", "allocation": "strict-priority"},
    "HoD strict": {"demand": "exact", "allocation": "strict-priority"},
    "CoD ratio": {"demand": "smoothed", "allocation": "fixed-ratio"},
    "HoD ratio": {"demand": "exact", "allocation": "fixed-ratio"},
}
"""Who says what is needed, and who gets what is left."""
TOPPED_UP = "CoD strict, topped up"
_WAYS: dict[str, dict[str, Any]] = SHARED | {TOPPED_UP: SHARED["CoD strict"] | {"top_ups": True}}

COPIES, IN_TURN = "two drives", "two drives, windows in turn"
"""The same data on two drives that know no windows, and on two whose windows hold nobody."""
IN_TURN_SHARED = {f"two drives, {name}": SHARED[name] for name in ("CoD strict", "HoD strict")}
"""Reads beyond their counts go at once to the copy that does its background work."""
_PAIR: dict[str, Any] = {"devices": [{"ssd": {}}, {"ssd": {}}]}
_PAIR_IN_TURN = _PAIR | {"read": "window", "windows": {"policy": "alternate", "rest": "70ms"}}
"""A window is what the other copy takes for its background work: some 100 ms with this rest."""

_DOCUMENT = tomllib.loads(_core.show("plmc"))
_READS = _DOCUMENT["workload"]["source"]["read_fraction"]
_SHARE = "stack.devices.0.coordinator.share"
_DELAYS = {HIGH: 0, MEDIUM: 200, LOW: 400}
_ARBITRATED: dict[str, Any] = {
    "stack.scheduler": "weighted-round-robin",
    # As many as the queues let into the drive: with all of them in it there is nothing to choose.
    "stack.depth": 32,
}
"""By class, as MQSim's queues do where nobody coordinates."""
_PLENTY = 60_000
"""Counts that never hold a host back."""

DEVICE = "a drive of 16 GiB of our choice (flashkeel show plmc)"
LOAD = (
    "synthetic reads of 4 KiB whose rate swings (lognormal, spread 0.5, correlated over 200 ms), "
    "a write for every three reads"
)


@dataclass(frozen=True)
class Tails:
    """The 99.99th percentile of reads within each window, over the windows of a run."""

    windows: int
    p50: float
    p99: float
    p99_9: float
    p99_99: float

    def beyond(self, percentile: float) -> int:
        """Return how many windows lie beyond a percentile."""
        return self.windows - math.ceil(self.windows * percentile / 100)


@dataclass(frozen=True)
class Reads:
    """All reads of a class in a run, in whichever window they came, as their host saw them."""

    in_windows: float
    """Share of them that came in deterministic windows: those that tails are of."""
    p99: float
    p99_9: float
    p99_99: float


@dataclass(frozen=True)
class Shares:
    """What a run has shown, by class: its coordinator's counts, and what the hosts saw."""

    windows: int
    tails: Mapping[str, Tails]
    hosts: Mapping[str, Mapping[str, Any]]
    reads: Mapping[str, Reads]


SEEDS = 3
WINDOWS, QUICK_WINDOWS = 3_000, 400
"""Windows of 100 ms in a run, enough for twenty beyond the 99th percentile; a quarter of 400 ms."""


@dataclass(frozen=True)
class Situation:
    """How evenly hosts read, and for how long."""

    spread: float | None = None
    """Of the logarithm of the rate; that of the document if none."""
    windows: int = WINDOWS


def shared(
    session: Session,
    name: str,
    data_set: str = OWN,
    configuration: str = "2",
    situation: Situation = Situation(),
) -> list[Shares]:
    """Run one way of sharing one data set; a result for each seed."""
    case = _case(session, name, data_set, configuration, situation)
    seeds = session.seeds(1 if session.quick else SEEDS)
    return [_shares(replace(session, seed=seed).run([case])[case.name].data) for seed in seeds]


def _case(
    session: Session, name: str, data_set: str, configuration: str, situation: Situation
) -> Case:
    factor, window_ms = CONFIGURATIONS[configuration]
    hosts = CLASSES[:1] if name in (ALONE, ALONE_IN_WINDOWS) else CLASSES
    windows = QUICK_WINDOWS if session.quick else situation.windows
    count = int(factor * sum(_WINDOW_READS) * window_ms / 100)
    device = flat(_DOCUMENT["device"], "device") | {"device.precondition.seed": 1}
    keys: dict[str, Any] = {
        **device,
        "stack.depth": _DOCUMENT["stack"]["depth"],
        "workload.warm_up": "2s",
        # With a fifth between windows for background work.
        "workload.duration": f"{int(windows * 1.2 / 10)}s",
        "stack.tenants": [
            {
                "name": host,
                "priority": host,
                "workload": {"source": _source(host, mean, data_set, situation)},
            }
            for host, mean in zip(hosts, _WINDOW_READS, strict=False)
        ],
    }
    window: dict[str, Any] = {"window": f"{window_ms}ms"}
    rest = {"rest": f"{window_ms // 5}ms"}
    counts = {"count": count, "minimum": dict.fromkeys(CLASSES, 0.1)}
    on: dict[str, Any] = {"ssd": {}}
    if name in _WAYS:
        share = window | rest | counts | _WAYS[name]
    elif name in IN_TURN_SHARED:
        on, share = {"mirror": _PAIR_IN_TURN}, counts | IN_TURN_SHARED[name]
    else:
        keys |= _ARBITRATED
        share = window
        if name in (UNSHARED, ALONE_IN_WINDOWS):
            share = window | rest | {"count": _PLENTY, "minimum": dict.fromkeys(hosts, 1 / 3)}
            keys["device.window.reads_typical"] = count
        elif name == IN_TURN:
            on = {"mirror": _PAIR_IN_TURN}
        else:
            on = {"mirror": _PAIR | {"read": "shortest-queue"}} if name == COPIES else on
            keys = {k: value for k, value in keys.items() if not k.startswith("device.window")}
    keys["stack.devices"] = [{"coordinator": {"device": on, "share": share}}]
    spread = "" if situation.spread is None else f" spread {situation.spread:g}"
    return Case(f"{data_set} {name} configuration {configuration}{spread}", keys)


def _source(host: str, mean: float, data_set: str, situation: Situation) -> dict[str, Any]:
    source = dict(_DOCUMENT["workload"]["source"])
    delay = _DELAYS[host] if data_set == SHIFTED else 0
    # Means are of 100 ms; a write comes with every few reads.
    iops = mean * 10 / _READS
    arrivals = source["arrivals"] | {"iops": iops, "delay": f"{delay}ms"}
    if situation.spread is not None:
        arrivals["spread"] = situation.spread
    return source | {"arrivals": arrivals}


def _shares(data: Mapping[str, Any]) -> Shares:
    report = data["stack"]["coordinators"]["0"]
    hosts = {host["class"]: host for host in report["hosts"]}
    tails = {
        name: Tails(
            host["windows"],
            *(host[f"tail_{key}_ns"] for key in ("p50", "p99", "p99_9", "p99_99")),
        )
        for name, host in hosts.items()
    }
    reads = {
        tenant["name"]: _reads(tenant["read"], hosts[tenant["name"]]["asked"])
        for tenant in data["tenants"]
    }
    return Shares(report["windows"], tails, hosts, reads)


def _reads(distribution: Mapping[str, Any], asked: int) -> Reads:
    at = (float(distribution["percentile"][key]) for key in _ALL_READS_AT)
    # A window at the edge of the measurement counts whole.
    return Reads(min(1.0, asked / distribution["count"]), *at)


_ALL_READS_AT = ("99.000000", "99.900000", "99.990000")

JUDGED, AT = "p99", 99.0
"""Of the percentiles over windows, the farthest that enough of them lie beyond."""


def middle(runs: list[Shares], host: str, key: str) -> float:
    """Return the median over seeds of a percentile of a class's tails."""
    return float(median(getattr(run.tails[host], key) for run in runs))


def of_all(runs: list[Shares], host: str, key: str) -> float:
    """Return the median over seeds of a percentile of all reads of a class, or of their share."""
    return float(median(getattr(run.reads[host], key) for run in runs))


def gains(base: list[Shares], ours: list[Shares]) -> dict[str, float]:
    """Return by how many percent each class's tails within windows are shorter than the base's."""
    return {
        host: reduction(middle(base, host, JUDGED), middle(ours, host, JUDGED))
        for host in ours[0].tails
    }


def gains_of_all(base: list[Shares], ours: list[Shares]) -> dict[str, float]:
    """Return the same of the 99.99th percentile of all reads, whenever they came."""
    return {
        f"{host}, all reads": reduction(of_all(base, host, "p99_99"), of_all(ours, host, "p99_99"))
        for host in ours[0].reads
    }


def all_reads(runs: Mapping[str, list[Shares]]) -> str:
    """Return the percentiles of all reads by system and class, in whichever window they came."""
    each = (
        f"{name} "
        + ", ".join(
            "/".join(units.duration(of_all(r, host, key)) for key in ("p99", "p99_9", "p99_99"))
            for host in r[0].reads
        )
        for name, r in runs.items()
    )
    return f"p99/p99.9/p99.99 of all reads, by class: {'; '.join(each)}"


def in_windows(runs: Mapping[str, list[Shares]]) -> str:
    """Return which share of all reads the tails are of, by system."""
    shares = {
        name: [of_all(r, host, "in_windows") for host in r[0].reads] for name, r in runs.items()
    }
    each = (f"{name} {units.share(sum(of) / len(of))}" for name, of in shares.items())
    return f"reads that came in windows, which alone the tails are of: {', '.join(each)}"


def fewest(runs: list[Shares]) -> int:
    """Return the fewest windows of any class and run that lie beyond what is judged."""
    return min(tails.beyond(AT) for run in runs for tails in run.tails.values())
