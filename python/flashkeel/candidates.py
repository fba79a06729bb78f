"""What comes of a drive with memory and NVM before it, and which bounds it keeps."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flashkeel._core import LOGICAL_PAGE_BYTES


@dataclass(frozen=True)
class Bounds:
    """What a configuration has to keep; None for what does not matter."""

    read_ns: float | None = None
    """Latency of reads at the plan's percentile."""
    write_ns: float | None = None
    years: float | None = None
    """How long both media have to last."""
    risk_bytes: float | None = None
    """What a power cut may take on average."""


@dataclass(frozen=True)
class Choice:
    """A drive under a policy, with so much NVM."""

    drive: str
    policy: str
    size: str | None
    """Of the NVM, as it was asked for; None without one."""


@dataclass(frozen=True)
class Measured:
    """What came of a choice under one seed."""

    read_ns: float | None
    """At the plan's percentile; None where nothing is read."""
    write_ns: float | None
    beyond: int
    """Requests that the tail rests on, of reads or writes those that are fewer."""
    read_mean_ns: float | None
    write_mean_ns: float | None
    read_by_size_ns: Mapping[int | None, float]
    risk_bytes: float
    ssd_bytes_per_day: float
    nvm_bytes_per_day: float
    ssd_years: float | None
    """None where nothing is written."""
    nvm_years: float | None
    """Of so much NVM as holds data."""
    waf: float | None
    """Bytes programmed for each that is written to the drive, by which its cycles are used up: the
    folds of an SLC cache are not in it. None where nothing is written."""
    padded: float
    """Of that what flash pages come to that are programmed before they are full, in times."""
    turned_over: float
    """What was programmed for writes, as a share of the drive's model, which was all written."""
    from_free: float | None
    """Share of what was programmed that went into blocks that were free before."""
    failed: int
    """Requests that failed, which are in no latency."""
    behind: float
    """How many times as long as the traffic it took: above 1 where it fell behind."""


@dataclass(frozen=True)
class Outcome:
    """A choice, what it costs, and what came of it under each seed."""

    choice: Choice
    nvm_bytes: int
    """What holds data; what has to be bought may be more."""
    drive_bytes: int
    drive_cost: float | None
    """None where a price is not known."""
    nvm_price: float | None
    """For 10⁹ bytes."""
    measured: Sequence[Measured]
    notes: Sequence[str] = field(default_factory=tuple)

    def mean(self, name: str) -> float | None:
        """Return the mean over seeds; None where there is none."""
        values = self._values(name)
        return statistics.fmean(values) if values else None

    def interval(self, name: str) -> tuple[float, float] | None:
        """Return the least and the most over seeds."""
        values = self._values(name)
        return (min(values), max(values)) if values else None

    def bought_bytes(self, bounds: Bounds) -> int:
        """Return how large an NVM lasts as long as is asked: wear goes over all of it."""
        shortest = self.interval("nvm_years")
        if shortest is None or not bounds.years:
            return self.nvm_bytes
        times = max(1.0, bounds.years / shortest[0])
        return math.ceil(self.nvm_bytes * times / LOGICAL_PAGE_BYTES) * LOGICAL_PAGE_BYTES

    def cost(self, bounds: Bounds) -> float | None:
        """Return the price of the drive and of the NVM that is bought; None if not known."""
        bought = self.bought_bytes(bounds)
        if self.drive_cost is None or (bought and self.nvm_price is None):
            return None
        return self.drive_cost + (self.nvm_price or 0.0) * bought / 1e9

    def excess(self, bounds: Bounds) -> dict[str, float]:
        """Return the bounds that are not kept under every seed, and by how many times.

        They are called read, write, risk, SSD (it does not last), NVM (it would have to be
        larger than the drive) and failed (requests did). Where nothing may be at risk, and where
        requests failed, it is exceeded any number of times.
        """
        shortest = self.interval("ssd_years")
        lasting = None if shortest is None else -shortest[0]
        worst = {
            "read": (_most(self.interval("read_ns")), bounds.read_ns),
            "write": (_most(self.interval("write_ns")), bounds.write_ns),
            "risk": (_most(self.interval("risk_bytes")), bounds.risk_bytes),
            "NVM": (float(self.bought_bytes(bounds)), float(self.drive_bytes)),
        }
        found = {
            name: math.inf if name == "risk" and not bound else value / max(bound, 1.0)
            for name, (value, bound) in worst.items()
            if bound is not None and value is not None and value > bound
        }
        if bounds.years and lasting is not None and -lasting < bounds.years:
            found["SSD"] = bounds.years / -lasting
        if any(one.failed for one in self.measured):
            found["failed"] = math.inf
        return found

    def tail_ns(self) -> float:
        """Return the tail of reads, or of writes where nothing is read."""
        read, write = self.mean("read_ns"), self.mean("write_ns")
        return next((tail for tail in (read, write) if tail is not None), math.inf)

    def _values(self, name: str) -> list[float]:
        return [value for one in self.measured if (value := getattr(one, name)) is not None]


def _most(interval: tuple[float, float] | None) -> float | None:
    return None if interval is None else interval[1]
