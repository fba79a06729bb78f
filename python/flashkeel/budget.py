"""A tail budget: what the parts of a request's way may each take of its latency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flashkeel._core import InputError
from flashkeel.explanation import Explanation

PARTS: dict[str, tuple[str, ...]] = {
    "host": ("barrier", "window"),
    "network": ("network_request", "network_response"),
    "queue": (
        "host_queue",
        "scheduler_hold",
        "behind_host_read",
        "behind_host_write",
        "behind_nvm",
        "other_copy",
    ),
}
"""The causes of each part but the device's, which has the others.

The parts are those of Roy's dissertation, section 4.3.1: dispatch and completion on the
host, transit, waiting in queues, and access to the device.
"""

DEVICE = "device"
_NAMES = (*PARTS, DEVICE)


@dataclass(frozen=True)
class Spent:
    """What a part has taken in the mean of the requests that are explained."""

    part: str
    budget_ns: float
    spent_ns: float

    @property
    def is_broken(self) -> bool:
        """Whether it has taken more than it may."""
        return self.spent_ns > self.budget_ns


def check(budget: Mapping[str, float]) -> None:
    """Raise InputError unless `budget` has each part and no other."""
    for name in budget:
        if name not in _NAMES:
            raise InputError(f"no part {name!r} of a request's way; they are {', '.join(_NAMES)}")
    missing = [name for name in _NAMES if name not in budget]
    if missing:
        raise InputError(f"the budget lacks {', '.join(missing)}; each part has one, if only 0us")


def spent(found: Explanation, budget: Mapping[str, float]) -> list[Spent]:
    """Return what each part has taken, beside its `budget` in ns.

    Every part has to have one; the sum is the budget of the whole.
    """
    check(budget)
    of_cause = {cause: part for part, causes in PARTS.items() for cause in causes}
    totals = dict.fromkeys(_NAMES, 0.0)
    for share in found.shares:
        totals[of_cause.get(share.cause, DEVICE)] += share.mean_ns
    return [Spent(name, budget[name], totals[name]) for name in _NAMES]
