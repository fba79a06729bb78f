"""Each mechanism of the keel left out once."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from flashkeel.output import units
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.keel.cost import erases
from flashkeel.reproduce.keel.systems import (
    CONDITIONS,
    NOGC,
    READS,
    SHAPES,
    USUAL,
    WRITES,
    case,
    name,
)
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.run import Run

_LEFT_OUT: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "copyback": (
        "pages are copied back within their chip, one by one",
        {"gc__movement": "plane-blocking"},
    ),
    "inside": ("pages are copied back within their chip", {"gc__movement": "queued"}),
    "side-by-side": (
        "chips collect side by side, and keep room for what they move",
        {"gc__rotation": "none"},
    ),
    "ahead": (
        "collection keeps free what the host is expected to need",
        {"gc__invocation": "task"},
    ),
    "dynamic": ("the host writes to any chip", {"allocation": "striped"}),
    "priority": ("the host goes first", {"scheduler": "fifo"}),
    "pauses": ("erases wait for pauses", {"gc__erasing": "at-once"}),
    "budget": ("suspension is bounded in time, not in number", {"suspension__budget": "0ns"}),
    "spare": ("an eighth of the flash is spare, not a sixteenth", {"logical_capacity": "93.75%"}),
}
"""What a mechanism is, and the device without it."""
_WORKLOADS = ("mixed", "bursts", "write-heavy")
_WORSE = 1.05
_AT = {READS: 99.99, WRITES: 99.9}
_WORDS = {READS: "small reads", WRITES: "writes"}


def _claim(left_out: str) -> Claim:
    return Claim(
        left_out,
        f"it is worth something that {_LEFT_OUT[left_out][0]}",
        f"without it p99.99 of small reads, p99.9 of writes or erases are more than {_WORSE:g} "
        "times what they are with it, on some shape under `mixed`, `bursts` or `write-heavy`",
        None,
        "times",
    )


def _measure(session: Session) -> Outcome:
    pairs = list(product(SHAPES, _WORKLOADS))
    cases = [case(session, *pair) for pair in pairs]
    cases += [case(session, *pair, NOGC) for pair in pairs]
    cases += [
        _named(case(session, *pair, **keys), left_out)
        for pair in pairs
        for left_out, (_, keys) in _LEFT_OUT.items()
    ]
    runs = session.run([_shorter(each) for each in cases])
    return Outcome(
        {left_out: _judge(runs, left_out) for left_out in _LEFT_OUT},
        basis(runs),
        f"{CONDITIONS}; chips suspend up to {USUAL} times",
    )


def _named(case: Case, left_out: str) -> Case:
    return Case(f"{case.name} without {left_out}", case.keys)


def _shorter(case: Case) -> Case:
    """Return a case that needs no six nines."""
    return Case(case.name, case.keys, (READS, _AT[READS]), least_seeds=2)


def _judge(runs: Mapping[str, Run], left_out: str) -> Finding:
    measured: dict[str, float] = {}
    rows = []
    for pair in product(SHAPES, _WORKLOADS):
        whole = runs[name(*pair)]
        without = runs[f"{name(*pair)} without {left_out}"]
        where = " ".join(pair)
        for latency_class, at in _AT.items():
            a, b = (run.percentile(latency_class, at) or 0 for run in (without, whole))
            measured[f"{where}, {_WORDS[latency_class]} p{at:g}"] = a / max(b, 1)
        measured[f"{where}, erases"] = erases(without) / max(erases(whole), 1)
        rows.append(f"{where} {_row(without)} against {_row(whole)}")
    return Finding(
        measured,
        any(value > _WORSE for value in measured.values()),
        f"p99.99 of small reads, p99.9 of writes, erases: {'; '.join(rows)}",
    )


def _row(run: Run) -> str:
    tails = [units.duration(run.percentile(c, at)) for c, at in _AT.items()]
    return f"{', '.join(tails)}, {erases(run):.0f}"


STUDY = Study(
    "keel/ablation",
    "Each mechanism left out once",
    tuple(_claim(left_out) for left_out in _LEFT_OUT),
    _measure,
)
