"""Each mechanism of the keel left out once."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from flashkeel.output import units
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, few
from flashkeel.reproduce.intervals import UNTOLD, above, exact, percentile, ratio
from flashkeel.reproduce.keel.cost import FEWEST_ERASES, erases
from flashkeel.reproduce.keel.systems import (
    CONDITIONS,
    READS,
    SHAPES,
    USUAL,
    WRITES,
    case,
    name,
)
from flashkeel.reproduce.session import Case, Session, amount, basis
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
        "times what they are with it, on some shape under `mixed`, `bursts` or `write-heavy`; the "
        "95 % interval of a percentile's ratio lies above the bound, with ten samples beyond it "
        f"in both runs, and erases are {FEWEST_ERASES} in both",
        None,
        "times",
    )


def _measure(session: Session) -> Outcome:
    pairs = list(product(SHAPES, _WORKLOADS))
    cases = [case(session, *pair) for pair in pairs]
    cases += [
        _named(case(session, *pair, **keys), left_out)
        for pair in pairs
        for left_out, (_, keys) in _LEFT_OUT.items()
    ]
    runs = session.run([_shorter(each) for each in cases])
    return Outcome(
        {left_out: _judge(runs, left_out) for left_out in _LEFT_OUT},
        basis(runs),
        f"{CONDITIONS}; chips suspend up to {USUAL} times; {amount(runs.values())}",
    )


def _named(case: Case, left_out: str) -> Case:
    return Case(f"{case.name} without {left_out}", case.keys)


def _shorter(case: Case) -> Case:
    """Return a case that needs no six nines."""
    return Case(case.name, case.keys, (READS, _AT[READS]), least_seeds=2)


def _judge(runs: Mapping[str, Run], left_out: str) -> Finding:
    measured: dict[str, float] = {}
    is_worse: dict[str, bool | None] = {}
    rows = []
    for pair in product(SHAPES, _WORKLOADS):
        whole = runs[name(*pair)]
        without = runs[f"{name(*pair)} without {left_out}"]
        where = " ".join(pair)
        for latency_class, at in _AT.items():
            place = f"{where}, {_WORDS[latency_class]} p{at:g}"
            found = ratio(*(percentile(run, latency_class, at) for run in (without, whole)))
            measured[place] = found.value
            is_few = any(few(run, latency_class, at) for run in (without, whole))
            is_worse[place] = None if is_few else above(found, exact(_WORSE))
        place = f"{where}, erases"
        measured[place] = erases(without) / max(erases(whole), 1)
        is_few = min(run.data["erases"] for run in (without, whole)) < FEWEST_ERASES
        is_worse[place] = None if is_few else measured[place] > _WORSE
        rows.append(f"{where} {_row(without)} against {_row(whole)}")
    worse = [place for place, found in is_worse.items() if found]
    open_ = [place for place, found in is_worse.items() if found is None]
    parts = [
        f"worse without it: {', '.join(worse)}" if worse else "",
        f"{UNTOLD}, or too few samples: {', '.join(open_)}" if open_ and not worse else "",
        f"p99.99 of small reads, p99.9 of writes, erases: {'; '.join(rows)}",
    ]
    holds = True if worse else None if open_ else False
    return Finding(measured, holds, "; ".join(filter(None, parts)))


def _row(run: Run) -> str:
    tails = [units.duration(run.percentile(c, at)) for c, at in _AT.items()]
    return f"{', '.join(tails)}, {erases(run):.0f}"


STUDY = Study(
    "keel/ablation",
    "Each mechanism left out once",
    tuple(_claim(left_out) for left_out in _LEFT_OUT),
    _measure,
)
