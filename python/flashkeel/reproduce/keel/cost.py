"""What the keel costs: capacity and erases."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from flashkeel.media import size_bytes
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.keel.systems import (
    CONDITIONS,
    GREEDY,
    KEEL,
    SHAPES,
    USUAL,
    WORKLOADS,
    case,
    name,
)
from flashkeel.reproduce.session import Session, basis
from flashkeel.run import Run

_CAPACITY = Claim(
    "capacity",
    "the keel spends at most an eighth of the flash",
    "on every shape at most 12.5 % of the flash is not for the host",
    12.5,
)
_MOST_ERASES = 1.05
_ERASES = Claim(
    "erases",
    "the keel erases as little as plain greedy collection",
    "in every workload on every shape at most 1.05 times the erases of greedy collection through "
    "queues, first come first served, on the same flash with the same logical capacity (so the "
    "same eighth is spare), under the same requests",
    _MOST_ERASES,
)
_FEWEST = 100
"""Erases of either; of fewer a twentieth is chance."""


def _measure(session: Session) -> Outcome:
    keys = list(product(SHAPES, WORKLOADS, (KEEL, GREEDY)))
    runs = session.run([case(session, *key) for key in keys])
    spent = {shape: 100 * _spent(runs[name(shape, "mixed")].data) for shape in SHAPES}
    ratios: dict[str, float] = {}
    for shape, workload in product(SHAPES, WORKLOADS):
        keel, greedy = (runs[name(shape, workload, s)] for s in (KEEL, GREEDY))
        if min(keel.data["erases"], greedy.data["erases"]) >= _FEWEST:
            ratios[f"{shape} {workload}"] = erases(keel) / erases(greedy)
    over = {key: value for key, value in ratios.items() if value > _MOST_ERASES}
    return Outcome(
        {
            "capacity": Finding(
                {f"{shape} (%)": value for shape, value in spent.items()},
                all(value <= 12.5 for value in spent.values()),
            ),
            "erases": Finding(
                ratios,
                None if session.quick or not ratios else not over,
                _more(over) if ratios else f"fewer than {_FEWEST} erases",
            ),
        },
        basis(runs),
        f"{CONDITIONS}; chips suspend up to {USUAL} times",
    )


def erases(run: Run) -> float:
    """Return the erases of a run for each of its seeds."""
    return float(run.data["erases"]) / len(run.seeds)


def _more(over: Mapping[str, float]) -> str:
    return f"more: {', '.join(f'{key} {value:.3g}' for key, value in over.items())}" if over else ""


def _spent(data: Mapping[str, Any]) -> float:
    """Return the share of a run's flash that is not for the host."""
    geometry = data["config"]["device"]["geometry"]
    raw = size_bytes(geometry["page_size"])
    for key in (
        "channels",
        "chips_per_channel",
        "planes_per_chip",
        "blocks_per_plane",
        "pages_per_block",
    ):
        raw *= geometry[key]
    return 1 - float(data["limits"]["capacity_bytes"]) / raw


STUDY = Study("keel/cost", "What the keel costs", (_CAPACITY, _ERASES), _measure)
