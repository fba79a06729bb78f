"""The drive, the data sets, and who shares its windows how."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from flashkeel import _core
from flashkeel.comparison import FEW
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
SHARED = {
    "CoD strict": {"demand": "smoothed", "allocation": "strict-priority"},
    "HoD strict": {"demand": "exact", "allocation": "strict-priority"},
    "CoD ratio": {"demand": "smoothed", "allocation": "fixed-ratio"},
    "HoD ratio": {"demand": "exact", "allocation": "fixed-ratio"},
}
"""Who says what is needed, and who gets what is left."""
TOPPED_UP = "CoD strict, topped up"
_WAYS: dict[str, dict[str, Any]] = SHARED | {TOPPED_UP: SHARED["CoD strict"] | {"top_ups": True}}

_DOCUMENT = tomllib.loads(_core.show("plmc"))
_READS = _DOCUMENT["workload"]["source"]["read_fraction"]
_SHARE = "stack.devices.0.coordinator.share"
_DELAYS = {HIGH: 0, MEDIUM: 200, LOW: 400}

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
class Shares:
    """What the coordinator of a run has counted, by class."""

    windows: int
    tails: Mapping[str, Tails]
    hosts: Mapping[str, Mapping[str, Any]]


SEEDS = 3
WINDOWS, QUICK_WINDOWS = 12_000, 400
"""Windows of 100 ms in a run, enough for ten beyond the 99.9th percentile; a quarter of 400 ms."""


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
    hosts = CLASSES[:1] if name == ALONE else CLASSES
    windows = QUICK_WINDOWS if session.quick else situation.windows
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
    share: dict[str, Any] = {"window": f"{window_ms}ms"}
    if name in _WAYS:
        share |= {
            "count": int(factor * sum(_WINDOW_READS) * window_ms / 100),
            "rest": f"{window_ms // 5}ms",
            "minimum": dict.fromkeys(CLASSES, 0.1),
            **_WAYS[name],
        }
    else:
        keys = {key: value for key, value in keys.items() if not key.startswith("device.window")}
    keys["stack.devices"] = [{"coordinator": {"device": {"ssd": {}}, "share": share}}]
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
    return Shares(report["windows"], tails, hosts)


def middle(runs: list[Shares], host: str, key: str) -> float:
    """Return the median over seeds of a percentile of a class's tails."""
    return float(median(getattr(run.tails[host], key) for run in runs))


def is_judged(runs: list[Shares], percentile: float) -> bool:
    """Return whether ten windows lie beyond a percentile in every run."""
    return all(tails.beyond(percentile) >= FEW for run in runs for tails in run.tails.values())
