"""Whether requests come faster than they are served: latencies then say how long a run was.

That is so of requests that do not wait for others, where the last end much later than they
come. A burst that is served before the end is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flashkeel.quantities import in_seconds

if TYPE_CHECKING:
    from flashkeel.run import Run

_LATE = 0.05
"""By how much longer than requests come they may take to end, as a share."""
_WAIT = 0.125
"""What is late at the end only has short latencies in the mean, as a share of how late it is."""
_CERTAIN = 4.0
"""Standard deviations by which chance may make a generator slower than its rate."""
_CLASSES = ("read", "write", "trim", "flush")


@dataclass(frozen=True)
class Overload:
    """A workload that asks for more than it gets, in requests a second."""

    name: str
    """Of the run, or of the tenant in it."""
    asked: float
    served: float


def found(run: Run) -> list[Overload]:
    """Return the workloads of a run that ask for more than they get: its own, or its tenants'.

    How fast a generator's requests come is in its configuration. For others it takes the time
    series, without which nothing is found of them.
    """
    config = run.data.get("config", {})
    if not run.tenants:
        return _of(run, config.get("workload", {}), has_series=run.has("series"))
    described = config.get("stack", {}).get("tenants", [])
    workloads = {it["name"]: it["workload"] for it in described}
    return [
        overload
        for tenant in run.tenants
        for overload in _of(tenant, workloads.get(tenant.name, {}), has_series=False)
    ]


def _of(run: Run, workload: Mapping[str, Any], *, has_series: bool) -> list[Overload]:
    if workload.get("pacing", {}).get("policy") != "open" or not run.data["requests"]:
        return []
    count, seconds = run.data["requests"], run.data["simulated_s"]
    seeds = len(run.seeds)
    coming = _by_rate(workload["source"].get("arrivals", {}), count, seeds)
    if coming is None and has_series:
        coming = _by_series(run, count, seconds)
    if coming is None:
        return []
    asked, coming_s = coming
    measured = [run.data[it] for it in _CLASSES if run.samples(it)]
    longest_s = max((it["max_ns"] for it in measured), default=0) / 1e9
    mean_s = max((it["mean_ns"] for it in measured), default=0.0) / 1e9
    # The time of a tenant is that of all.
    late_s = min(seconds - coming_s, longest_s * seeds)
    if late_s <= _LATE * coming_s or mean_s < _WAIT * late_s / seeds:
        return []
    return [Overload(run.name, asked, count / (coming_s + late_s))]


def _by_rate(arrivals: Mapping[str, Any], count: int, seeds: int) -> tuple[float, float] | None:
    """Return how many requests a generator asks for in a second, and for how long at most.

    None where no rate says that.
    """
    iops = arrivals.get("iops")
    if not iops:
        return None
    even_s = count / iops
    chance_s = _CERTAIN * math.sqrt(count) / iops
    match arrivals["policy"]:
        case "constant":
            return iops, even_s
        case "poisson":
            return iops, even_s + chance_s
        case "bursts":
            on_s, off_s = (in_seconds(arrivals[key]) for key in ("on", "off"))
            # Whole cycles: it may begin with one and end in another.
            cycles = (on_s + off_s) / on_s
            return iops / cycles, (even_s + chance_s) * cycles + seeds * (on_s + off_s)
        case "varying":
            # Of the mean over a time that is long against the persistence.
            variance = math.expm1(arrivals["spread"] ** 2)
            varying_s = math.sqrt(2 * variance * in_seconds(arrivals["persistence"]) * even_s)
            return iops, even_s + chance_s + _CERTAIN * varying_s
    return None


def _by_series(run: Run, count: int, seconds: float) -> tuple[float, float] | None:
    """Return how many requests enter the devices in a second, and for how long at most.

    None where too little is known.
    """
    import numpy as np

    series = run.series()
    inside = [series[name] for name in series if name.endswith("requests_in_device")]
    starts_ns = series["start_ns"]
    if not inside or len(starts_ns) < 3:
        return None
    waiting = np.sum([np.nan_to_num(it.astype(float)) for it in inside], axis=0)
    ended = np.sum([series[name] for name in ("reads", "writes", "trims", "flushes")], axis=0)
    came = np.flatnonzero(ended + np.diff(waiting, prepend=0.0) > 0.5)
    if not len(came):
        return None
    # The end of the run cuts the last window short.
    windows_after = max(0, len(starts_ns) - 2 - int(came[-1]))
    late_s = windows_after * float(starts_ns[1] - starts_ns[0]) / 1e9
    coming_s = seconds - late_s * len(run.seeds)
    return (count / coming_s, coming_s) if coming_s > 0 else None
