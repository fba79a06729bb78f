"""What the keel costs: capacity and erases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from flashkeel.quantities import flash_bytes
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.keel.systems import (
    CONDITIONS,
    GREEDY,
    KEEL,
    NOGC,
    SHAPES,
    USUAL,
    WORKLOADS,
    case,
    is_sustained,
    name,
)
from flashkeel.reproduce.session import Session, amount, basis
from flashkeel.run import Run

_CAPACITY = Claim(
    "capacity",
    "the keel spends at most an eighth of the flash",
    "on every shape at most 12.5 % of the flash is not for the host",
    12.5,
    "%",
)
_MOST_ERASES = 1.05
_ERASES = Claim(
    "erases",
    "the keel erases as little as plain greedy collection",
    "in every workload that it sustains, on every shape, at most 1.05 times the erases of greedy "
    "collection through queues, first come first served, on the same flash with the same logical "
    "capacity (so the same eighth is spare), under the same requests; where it falls behind, what "
    "is kept free for the host and what is moved are not the same",
    _MOST_ERASES,
    "times",
)
FEWEST_ERASES = 100
"""Erases of either; of fewer a twentieth is chance."""


def _measure(session: Session) -> Outcome:
    keys = list(product(SHAPES, WORKLOADS, (KEEL, NOGC, GREEDY)))
    runs = session.run([case(session, *key) for key in keys])
    spent = {shape: 100 * _spent(runs[name(shape, "mixed")].data) for shape in SHAPES}
    ratios: dict[str, float] = {}
    beyond: list[str] = []
    for shape, workload in product(SHAPES, WORKLOADS):
        keel, greedy = (runs[name(shape, workload, s)] for s in (KEEL, GREEDY))
        if min(keel.data["erases"], greedy.data["erases"]) >= FEWEST_ERASES:
            ratios[f"{shape} {workload}"] = erases(keel) / erases(greedy)
            if not is_sustained(runs, shape, workload):
                beyond.append(f"{shape} {workload}")
    judged = {key: value for key, value in ratios.items() if key not in beyond}
    over = {key: value for key, value in judged.items() if value > _MOST_ERASES}
    return Outcome(
        {
            "capacity": Finding(
                spent,
                all(value <= 12.5 for value in spent.values()),
            ),
            "erases": Finding(
                ratios,
                None if session.quick or not judged else not over,
                _words(over, beyond) if ratios else f"fewer than {FEWEST_ERASES} erases",
            ),
        },
        basis(runs),
        f"{CONDITIONS}; chips suspend up to {USUAL} times; {amount(runs.values())}",
    )


def erases(run: Run) -> float:
    """Return the erases of a run for each of its seeds."""
    return float(run.data["erases"]) / len(run.seeds)


def _words(over: Mapping[str, float], beyond: Sequence[str]) -> str:
    parts = []
    if over:
        parts.append(f"more: {', '.join(f'{key} {value:.3g}' for key, value in over.items())}")
    if beyond:
        parts.append(f"not sustained by greedy collection, so not judged: {', '.join(beyond)}")
    return "; ".join(parts)


def _spent(data: Mapping[str, Any]) -> float:
    """Return the share of a run's flash that is not for the host."""
    flash = flash_bytes(data["config"]["device"]["geometry"])
    return 1 - float(data["limits"]["capacity_bytes"]) / flash


STUDY = Study("keel/cost", "What the keel costs", (_CAPACITY, _ERASES), _measure)
