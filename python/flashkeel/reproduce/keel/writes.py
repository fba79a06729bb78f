"""Writes against a device that never collects, where the drive sustains the load."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from flashkeel.comparison import FEW
from flashkeel.output import units
from flashkeel.reproduce import pictures
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.intervals import at_most, every, exact, percentile, ratio
from flashkeel.reproduce.keel.systems import (
    CONDITIONS,
    GREEDY,
    KEEL,
    NOGC,
    SHAPES,
    USUAL,
    WORKLOADS,
    WRITES,
    case,
    gap,
    is_sustained,
    name,
)
from flashkeel.reproduce.session import Session, amount, basis
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AT = 99.9
_MOST = 2.0


def _claim(shape: str) -> Claim:
    return Claim(
        shape,
        f"on {shape}, writes are not held up by collection where the drive sustains the load",
        f"p99.9 of writes at most {_MOST:g} times NoGC's in every workload that plain greedy "
        "collection completes as fast as it comes (it takes at most 1 % longer than NoGC)",
        _MOST,
        "times",
    )


def _measure(session: Session) -> Outcome:
    keys = list(product(SHAPES, WORKLOADS, (KEEL, NOGC, GREEDY)))
    runs = session.run([case(session, *key) for key in keys])
    return Outcome(
        {shape: _judge(runs, shape) for shape in SHAPES},
        basis(runs),
        f"{CONDITIONS}; chips suspend up to {USUAL} times; {amount(runs.values())}",
        partial(_draw, runs),
    )


def _judge(runs: Mapping[str, Run], shape: str) -> Finding:
    measured, verdicts, reasons, beyond = {}, [], [], []
    for workload in WORKLOADS:
        keel, nogc, greedy = (runs[name(shape, workload, s)] for s in (KEEL, NOGC, GREEDY))
        value = ratio(*(percentile(run, WRITES, _AT) for run in (keel, nogc)))
        times = ", ".join(
            f"{label} {units.duration(run.percentile(WRITES, _AT))}"
            for label, run in (("keel", keel), ("NoGC", nogc), ("greedy", greedy))
        )
        measured[workload] = value.value
        if not is_sustained(runs, shape, workload):
            beyond.append(f"{workload} ({times})")
            continue
        # None lies beyond where the longest wait is that of many: for the controller.
        enough = keel.samples(WRITES) * (1 - _AT / 100) >= FEW
        verdict = at_most(value, exact(_MOST)) if enough else None
        verdicts.append(verdict)
        if verdict is not True:
            reasons.append(f"{workload}: {times}; {gap(keel, nogc, WRITES, _AT)}")
    if beyond:
        reasons.append(f"not sustained, so not judged: {', '.join(beyond)}")
    return Finding(measured, every(verdicts) if verdicts else None, "; ".join(reasons))


def _draw(runs: Mapping[str, Run]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7), layout="constrained")
    grid = figure.subplots(len(SHAPES), len(WORKLOADS), squeeze=False)
    for axes, (shape, workload) in zip(grid.flat, product(SHAPES, WORKLOADS), strict=True):
        systems = {s: runs[name(shape, workload, s)] for s in (KEEL, NOGC, GREEDY)}
        pictures.tails(axes, systems, WRITES)
        axes.set_title(f"{shape}, {workload}")
        axes.get_legend().remove()
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle("Response time of writes (synthetic)")
    return figure


STUDY = Study(
    "keel/writes",
    "Writes against a device that never collects",
    tuple(_claim(shape) for shape in SHAPES),
    _measure,
)
