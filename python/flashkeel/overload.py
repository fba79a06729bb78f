"""Whether requests come faster than they are served: latencies then say how long a run was.

That is so of requests that do not wait for others, where the last end much later than they
come. A burst that is served before the end is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flashkeel.run import Run

_LATE = 0.05
"""By how much longer than requests come they may take to end, as a share."""
_WAIT = 0.125
"""What is late at the end only has short latencies in the mean, as a share of how late it is."""
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

    Of results that do not know when the last request came nothing is found.
    """
    config = run.data.get("config", {})
    if not run.tenants:
        return _of(run, config.get("workload", {}))
    described = config.get("stack", {}).get("tenants", [])
    workloads = {it["name"]: it["workload"] for it in described}
    return [
        overload
        for tenant in run.tenants
        for overload in _of(tenant, workloads.get(tenant.name, {}))
    ]


def _of(run: Run, workload: Mapping[str, Any]) -> list[Overload]:
    coming_s = run.data.get("last_arrival_s", 0.0)
    if workload.get("pacing", {}).get("policy") != "open" or not coming_s:
        return []
    served_s, count, seeds = run.data["last_completion_s"], run.data["requests"], len(run.seeds)
    measured = [run.data[it] for it in _CLASSES if run.samples(it)]
    mean_s = max((it["mean_ns"] for it in measured), default=0.0) / 1e9
    late_s = served_s - coming_s
    if late_s <= _LATE * coming_s or mean_s < _WAIT * late_s / seeds:
        return []
    return [Overload(run.name, count / coming_s, count / served_s)]
