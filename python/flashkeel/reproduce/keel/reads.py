"""Small reads from three to six nines against a device that never collects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, few
from flashkeel.reproduce.intervals import Estimate, at_most, every, exact, percentile, ratio
from flashkeel.reproduce.keel.systems import (
    CONDITIONS,
    KEEL,
    LIMITS,
    NOGC,
    READ_MOSTLY,
    READS,
    SHAPES,
    SIX,
    WORKLOADS,
    case,
    gap,
    name,
)
from flashkeel.reproduce.session import Case, Session, amount, basis
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PERCENTILES = (99.9, 99.99, 99.999, SIX)
_MOST = 1.2
_SEEDS = 27
_SEEDS_TO_FIVE = 6
"""Of workloads that are judged at six nines, and at five: some thirty samples lie beyond."""


class _Ratio(NamedTuple):
    """One percentile of a workload over NoGC's."""

    workload: str
    at: float
    value: Estimate
    is_known: bool
    """Whether ten samples lie beyond it in both."""


def _claim(shape: str, limit: int) -> Claim:
    chips = f"chips that suspend up to {limit} times" if limit else "chips that cannot suspend"
    return Claim(
        _name(shape, limit),
        f"on {shape} with {chips}, reads do not wait for collection",
        f"p99.9 to p99.9999 of small reads at most {_MOST} times those of NoGC, with the same "
        "suspension and allocation, in every workload; undecided where fewer than ten samples lie "
        "beyond (of the write-heavy workloads up to p99.999), or the 95 % interval of the ratio "
        "contains the bound",
        _MOST,
        "times",
    )


def _name(shape: str, limit: int) -> str:
    return f"{shape}-{limit}"


def _measure(session: Session) -> Outcome:
    keys = list(product(SHAPES, WORKLOADS, (KEEL, NOGC), LIMITS))
    runs = session.run([_case(session, *key) for key in keys])
    found = {
        (shape, limit): _ratios(runs, shape, limit) for shape, limit in product(SHAPES, LIMITS)
    }
    return Outcome(
        {_name(*key): _judge(runs, *key, ratios) for key, ratios in found.items()},
        basis(runs),
        f"{CONDITIONS}; {amount(runs.values())}",
        partial(_draw, found),
    )


def _case(session: Session, shape: str, workload: str, system: str, limit: int) -> Case:
    found = case(session, shape, workload, system, limit)
    # Chips that cannot suspend are far beyond the bound long before six nines.
    if limit == 0:
        return found
    seeds = _SEEDS if workload in READ_MOSTLY else _SEEDS_TO_FIVE
    return replace(found, least_seeds=seeds, most_seeds=seeds)


def _ratios(runs: Mapping[str, Run], shape: str, limit: int) -> list[_Ratio]:
    ratios = []
    for workload, at in product(WORKLOADS, _PERCENTILES):
        pair = [runs[name(shape, workload, system, limit)] for system in (KEEL, NOGC)]
        value = ratio(*(percentile(run, READS, at) for run in pair))
        ratios.append(_Ratio(workload, at, value, not any(few(run, READS, at) for run in pair)))
    return ratios


def _judge(runs: Mapping[str, Run], shape: str, limit: int, ratios: list[_Ratio]) -> Finding:
    known = [each for each in ratios if each.is_known]
    judged = every(at_most(each.value, exact(_MOST)) for each in known)
    unknown = [each for each in ratios if not each.is_known]
    # Of write-heavy workloads nobody waits for six nines.
    wanted = [each for each in unknown if each.workload in READ_MOSTLY or each.at != SIX]
    reasons = []
    if known:
        worst = max(known, key=lambda each: each.value.value)
        keel, nogc = (runs[name(shape, worst.workload, s, limit)] for s in (KEEL, NOGC))
        text = f"largest {worst.workload} p{worst.at:g}, {worst.value.value:.3g} [{worst.value}]"
        reasons.append(f"{text}, {gap(keel, nogc, READS, worst.at)}")
    unsure = [each for each in known if at_most(each.value, exact(_MOST)) is None]
    if unsure and judged is None:
        texts = [f"{u.workload} p{u.at:g}, {u.value.value:.3g} [{u.value}]" for u in unsure]
        reasons.append(f"the interval contains the bound at {', '.join(texts)}")
    if unknown:
        by_percentile = {at: [u.workload for u in unknown if u.at == at] for at in _PERCENTILES}
        parts = [f"p{at:g} of {', '.join(names)}" for at, names in by_percentile.items() if names]
        reasons.append(f"fewer than ten samples beyond {'; '.join(parts)}")
    return Finding(
        {f"{each.workload} p{each.at:g}": each.value.value for each in known},
        False if judged is False else None if wanted or not known else judged,
        "; ".join(reasons),
    )


def _draw(found: Mapping[tuple[str, int], list[_Ratio]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8), layout="constrained")
    grid = figure.subplots(len(SHAPES), len(LIMITS), sharex=True, sharey=True)
    for axes, (shape, limit) in zip(grid.flat, product(SHAPES, LIMITS), strict=True):
        for workload in WORKLOADS:
            points = [r for r in found[shape, limit] if r.workload == workload and r.is_known]
            places = [_PERCENTILES.index(point.at) for point in points]
            axes.plot(places, [point.value.value for point in points], "o-", label=workload)
        axes.axhline(_MOST, color="black", linewidth=0.8, linestyle=":")
        axes.set_yscale("log")
        axes.set_xticks(range(len(_PERCENTILES)), [f"p{at:g}" for at in _PERCENTILES])
        axes.set_title(f"{shape}, suspended {limit} times")
        axes.grid(alpha=0.3)
    figure.suptitle("Small reads of the keel over NoGC's (synthetic; dotted: claimed)")
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    return figure


STUDY = Study(
    "keel/reads",
    "Small reads against a device that never collects",
    tuple(_claim(shape, limit) for shape, limit in product(SHAPES, LIMITS)),
    _measure,
)
