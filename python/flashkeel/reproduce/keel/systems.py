"""Shapes of flash, workloads, and the systems that are compared on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flashkeel.output import units
from flashkeel.reproduce.claims import owner
from flashkeel.reproduce.session import Case, Session
from flashkeel.run import Run

READS, WRITES = "small_read", "write"
LIMITS = (0, 8, 1000)
"""How often the chips suspend an operation."""
USUAL = 8
"""What presets without a word about it do."""
SIX = 99.9999
FIVE = 99.999
KEEL, NOGC, GREEDY = "keel", "nogc", "greedy"

SYSTEMS: Mapping[str, Mapping[str, Any]] = {
    KEEL: {},
    NOGC: {"device.gc.movement": "none"},
    GREEDY: {
        "device.scheduler": "fifo",
        "device.gc.victim": "greedy",
        "device.gc.movement": "queued",
        "device.gc.rotation": "none",
        "device.gc.invocation": "task",
        "device.gc.erasing": "at-once",
    },
}
"""What each differs in from the preset `keel`. Flash, logical capacity, write buffer,
suspension, configured thresholds of collection and allocation are the same, and so are the
requests."""


@dataclass(frozen=True)
class Shape:
    """A preset with fewer and smaller blocks, so that it fills soon."""

    name: str
    keys: Mapping[str, Any]
    pages_s: int
    """Pages of 4 KiB that its chips program in a second, all planes together."""

    def source(self, workload: str) -> dict[str, Any]:
        """Return a workload at a rate that goes by what the chips can program."""
        share, settings = WORKLOADS[workload]
        iops = round(share * self.pages_s)
        arrivals = settings["arrivals"] | {"iops": iops}
        return {"policy": "synthetic", **settings, "arrivals": arrivals}


SHAPES = {
    shape.name: shape
    for shape in (
        Shape(
            "ttflash",
            {
                "device.geometry.blocks_per_plane": 256,
                "device.buffer.size": "4MiB",
                "device.gc.start_below": 328,
                "device.gc.stop_above": 410,
                "device.gc.force_below": 164,
            },
            pages_s=80_000,
        ),
        Shape(
            "autossd",
            {
                "device.geometry.blocks_per_plane": 256,
                "device.geometry.pages_per_block": 64,
                "device.gc.start_below": 64,
                "device.gc.stop_above": 96,
            },
            pages_s=256_000,
        ),
        Shape(
            "tlc-modern",
            {"device.geometry.blocks_per_plane": 160, "device.geometry.pages_per_block": 144},
            pages_s=258_000,
        ),
    )
}

_POISSON = {"policy": "poisson"}
_BURSTS = {"policy": "bursts", "on": "100ms", "off": "500ms"}
READ_MOSTLY = ("mixed", "hot-cold", "bursts")
WORKLOADS: Mapping[str, tuple[float, Mapping[str, Any]]] = {
    "mixed": (
        0.075,
        {"read_fraction": 0.7, "block_sizes": ["4KiB/80", "16KiB/20"], "arrivals": _POISSON},
    ),
    "hot-cold": (
        0.145,
        {
            "read_fraction": 0.7,
            "block_sizes": ["4KiB"],
            "pattern": "hot-cold",
            "arrivals": _POISSON,
        },
    ),
    "bursts": (0.4, {"read_fraction": 0.7, "block_sizes": ["4KiB"], "arrivals": _BURSTS}),
    "write-heavy": (0.17, {"read_fraction": 0.3, "block_sizes": ["4KiB"], "arrivals": _POISSON}),
    "write-bursts": (0.7, {"read_fraction": 0.3, "block_sizes": ["4KiB"], "arrivals": _BURSTS}),
}
"""Requests a second (in a burst), over the pages of 4 KiB that the chips program in one; and
what they are. The write-heavy ones write 12 % of that all the time, and half of it in bursts."""

CONDITIONS = (
    "shapes `ttflash` (64 chips of a plane), `autossd` (16 chips of two) and `tlc-modern` (8 chips "
    "of four) with 1/16, 1/32 and 1/44 of their flash, full as the presets say; five synthetic "
    "workloads whose rates go by what the chips can program"
)

_REQUESTS, _QUICK_REQUESTS = 2_000_000, 60_000
_SUSTAINED = 1.01


def case(
    session: Session,
    shape: str,
    workload: str,
    system: str = KEEL,
    limit: int = USUAL,
    **keys: Any,  # noqa: ANN401
) -> Case:
    """Return one run: reads are judged to six nines where most requests are reads.

    `keys` are changes of the device, with two underscores for each full stop.
    """
    chosen = SHAPES[shape]
    device = {f"device.{key.replace('__', '.')}": value for key, value in keys.items()}
    return Case(
        name(shape, workload, system, limit),
        {
            "device.preset": [shape, "keel"],
            **chosen.keys,
            "device.suspension.limit": limit,
            **SYSTEMS[system],
            **device,
            # Runs of several seeds differ in their requests, not in their steady state.
            "device.precondition.seed": 1,
            "workload.warm_up": "1s",
            "workload.requests": _QUICK_REQUESTS if session.quick else _REQUESTS,
            "workload.source": chosen.source(workload),
        },
        (READS, SIX if workload in READ_MOSTLY else FIVE),
        most_seeds=9,
        least_seeds=2,
    )


def name(shape: str, workload: str, system: str = KEEL, limit: int = USUAL) -> str:
    """Return the name of a run."""
    return f"{shape} {workload} {system} {limit}"


def is_sustained(runs: Mapping[str, Run], shape: str, workload: str) -> bool:
    """Return whether plain greedy collection completes a workload as fast as it comes."""
    greedy, nogc = (
        runs[name(shape, workload, s)].data["simulated_s"]
        / len(runs[name(shape, workload, s)].seeds)
        for s in (GREEDY, NOGC)
    )
    return bool(greedy <= _SUSTAINED * nogc)


def gap(run: Run, other: Run, latency_class: str, percentile: float) -> str:
    """Return who owns what `run` has above a percentile and `other` has not, in words."""
    a, b = (each.explain(percentile, latency_class) for each in (run, other))
    before = {share.cause: share.mean_ns for share in b.shares}
    more = {s.cause: s.mean_ns - before.get(s.cause, 0.0) for s in a.shares}
    more = {cause: ns for cause, ns in more.items() if ns > 0}
    total = sum(more.values())
    if not total:
        return owner(run, latency_class, percentile)
    largest = sorted(more.items(), key=lambda item: -item[1])[:3]
    parts = [f"{units.cause(cause)} {units.share(ns / total)}" for cause, ns in largest]
    return f"what is more above p{percentile:g}: {', '.join(parts)}"
