"""Reads of mirrors: prediction, copies kept apart and hedging, against hedging alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flashkeel.comparison import FEW
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, too_few
from flashkeel.reproduce.intervals import Estimate, median
from flashkeel.reproduce.session import Case, Session
from flashkeel.run import Run

PERCENTILES = (99.0, 99.9, 99.99)
_SEEDS = 32
_REQUESTS = 300_000
"""Of them 210,000 reads, 21 beyond the farthest percentile with each seed."""
_LOADS: Mapping[str, tuple[int, ...]] = {
    "ssd-a": (1000, 2000, 3000, 5000),
    "ssd-b": (1000, 2000, 3000, 5000),
    "ssd-c": (1000, 2000, 3000, 5000),
    "ssd-d": (1000, 2000, 3000, 5000),
    "ssd-e": (500, 1000),
    "ssd-f": (200, 500),
    "ssd-g": (200, 500),
}
"""Requests a second that the pairs keep up with."""
_WAYS: Mapping[str, Mapping[str, Any]] = {
    "hedged": {"hedge": {"policy": "percentile", "extra": 0.011}},
    "ours": {"hedge": {"policy": "percentile", "extra": 0.01}, "read": "staggered"},
}
"""Ours may ask less: what it saves before the measurement it may use in it."""


def _claim(percentile: float) -> Claim:
    return Claim(
        f"p{percentile:g}",
        f"reads have a shorter p{percentile:g} than with hedged reads alone, whose delay follows "
        "the load, at no more extra load",
        "on every pair at every load the median over seeds of the ratio is below 1, and so is its "
        "95 % interval",
        None,
        "times",
    )


_LOAD = Claim(
    "load",
    "that takes no more extra load than hedging alone",
    "on every pair at every load reads that are asked twice, and twice what is written again, are "
    "at most as many as the reads that are asked twice with hedging alone",
    None,
    "%",
)


def _measure(session: Session) -> Outcome:
    cells = {f"{drive}, {iops}/s": (drive, iops) for drive in _LOADS for iops in _LOADS[drive]}
    cases = [
        Case(f"{way} {cell}", _keys(drive, iops, _WAYS[way]))
        for cell, (drive, iops) in cells.items()
        for way in _WAYS
    ]
    seeds = session.seeds(1 if session.quick else _SEEDS)
    by_seed = [replace(session, seed=seed, quick=True).run(cases) for seed in seeds]
    findings = {
        f"p{percentile:g}": _shorter(cells, by_seed, percentile) for percentile in PERCENTILES
    }
    return Outcome(
        {**findings, "load": _load(cells, by_seed)},
        "synthetic",
        f"{len(cells)} cells: mirrors of two drives of a preset, 4 KiB at random places and "
        f"Poisson times, 70 % reads, {_REQUESTS:,} requests with each of {len(seeds)} seeds",
    )


def _keys(drive: str, iops: int, way: Mapping[str, Any]) -> Mapping[str, Any]:
    devices = [{"ssd": {"preset": drive}}, {"ssd": {"preset": drive}}]
    return {
        "stack.depth": 64,
        "stack.devices": [{"mirror": {"devices": devices, **way}}],
        "workload.requests": _REQUESTS,
        "workload.warm_up": "4s",
        "workload.source": {
            "policy": "synthetic",
            "read_fraction": 0.7,
            "block_sizes": ["4KiB/100"],
            "arrivals": {"policy": "poisson", "iops": iops},
        },
    }


def _shorter(cells: Mapping[str, Any], by_seed: list[dict[str, Run]], percentile: float) -> Finding:
    ratios: dict[str, Estimate] = {}
    fewest: dict[str, int] = {}
    for cell in cells:
        pairs = [[runs[f"{way} {cell}"] for way in _WAYS] for runs in by_seed]
        tails = [[float(run.percentile("read", percentile) or 0) for run in pair] for pair in pairs]
        ratios[cell] = median([ours / hedged for hedged, ours in tails])
        fewest[cell] = min(run.beyond("read", percentile) for pair in pairs for run in pair)
    measured = {cell: ratio.value for cell, ratio in ratios.items()}
    if min(fewest.values()) >= FEW:
        few = ""
    elif max(fewest.values()) < FEW:
        return Finding(measured, None, too_few(max(fewest.values())))
    else:
        few = f"too few beyond: {', '.join(cell for cell in cells if fewest[cell] < FEW)}; "
    judged = {cell: ratio for cell, ratio in ratios.items() if fewest[cell] >= FEW}
    longer = [cell for cell, ratio in judged.items() if ratio.low > 1]
    open_ = [cell for cell, ratio in judged.items() if ratio.low <= 1 <= ratio.high]
    words = [f"{cell} {ratio.value:.2f} ({ratio})" for cell, ratio in ratios.items()]
    told = f"{few}longer: {', '.join(longer) or 'none'}; open: {', '.join(open_) or 'none'}"
    verdict = False if longer else None if open_ or few else True
    return Finding(measured, verdict, f"{told}; {', '.join(words)}")


def _load(cells: Mapping[str, Any], by_seed: list[dict[str, Run]]) -> Finding:
    shares: dict[str, float] = {}
    above, few = [], []
    for cell in cells:
        extras = [_extra([runs[f"{way} {cell}"] for runs in by_seed]) for way in _WAYS]
        (asked, _), _ = extras
        hedged, ours = (extra / max(1, reads) for extra, reads in extras)
        shares |= {f"hedged, {cell}": 100 * hedged, f"ours, {cell}": 100 * ours}
        if ours > hedged:
            above.append(cell)
        elif asked < FEW:
            few.append(cell)
    if above:
        return Finding(shares, False, f"more: {', '.join(above)}")
    if few:
        # What asks nothing twice is no more than nothing.
        reason = f"with hedging alone fewer than {FEW} reads are asked twice: {', '.join(few)}"
        return Finding(shares, None, reason)
    return Finding(shares, True)


def _extra(runs: list[Run]) -> tuple[float, int]:
    """Return what was asked for or written beside what the host did, in pages, and its reads."""
    reports = [run.data["stack"]["mirrors"]["0"] for run in runs]
    extra: int = sum(each["hedged_bytes"] + 2 * each["rewritten_bytes"] for each in reports)
    return extra / 4096, sum(each["reads"] for each in reports)


STUDY = Study(
    "plmc/hedging",
    "Copies chosen by prediction and kept apart, with hedged reads, against hedged reads alone",
    (*map(_claim, PERCENTILES), _LOAD),
    _measure,
)
"""The latency monitor of the dissertation's section 6.0.1, taken further."""
