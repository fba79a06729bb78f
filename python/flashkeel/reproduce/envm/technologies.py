"""Figures 3.16 to 3.18: how much ENVM each technology of flash needs, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING

from flashkeel.experiment import Experiment
from flashkeel.prices import Prices
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.envm.hierarchy import (
    OPTANE_WRITES_PER_DAY,
    Setting,
    conditions,
    measure,
    runs_of,
    shrink,
)
from flashkeel.reproduce.session import Session, basis, kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TECHNOLOGIES = ("slc", "mlc", "tlc", "qlc", "plc")
PROCESSES = ("3xnm", "2xnm", "1xnm")
_YEARS = 5
_SHARE_OF_CYCLES = 0.2
"""Of a drive's cycles times its capacity, what it is rated for: so are QLC with 110 and TLC
with 252.5 GB a day over five years, beside 1,000 and 3,000 cycles."""
_SIZES_GB = (8.0, 16.0, 32.0, 64.0, 120.0, 200.0)
_TERABYTE_GB = 1000.0
_CHOSEN = "follows from the cycles chosen"

_CLAIMS = (
    Claim(
        "bits",
        "SLC needs the least ENVM, PLC the most",
        "none: what a drive may be written falls with each bit by the cycles chosen, so that the "
        "need cannot",
        None,
        "GB",
    ),
    Claim(
        "process",
        "1Xnm needs more than 2Xnm and 3Xnm for SLC, TLC, QLC and PLC",
        "none: what a drive may be written by process goes by the cycles chosen, and so does the "
        "need",
        None,
        "GB",
    ),
    Claim(
        "written",
        "what may be written in all falls from SLC to PLC, although capacity grows",
        "none: the dissertation's cycles are not in its text, ours were chosen so that it falls",
        None,
        "TB",
    ),
    Claim(
        "cost",
        "MLC with its ENVM is cheaper than any other technology with its own",
        "none: of 1 TB of SSD and the ENVM that it needs by its rating, in 3Xnm, it compares our "
        "prices",
        None,
        "",
    ),
    Claim(
        "absorbed",
        "an ENVM that is large enough absorbs what QLC may not be written",
        "policy III keeps 110 GB a day with an ENVM of at most the workload's footprint",
        None,
        "GB",
    ),
)


def _measure(session: Session) -> Outcome:
    sizes = _SIZES_GB[1::2] if session.quick else _SIZES_GB
    shapes = {
        (policy, gb): Setting(policy, envm_gb=gb) for policy in ("III", "III, late") for gb in sizes
    }
    # A curve over sizes, read off straight lines: seeds change little in it.
    days = measure(session, [Setting("base"), *shapes.values()], seeds=1)
    base_gb = days[Setting("base")].ssd_gb
    curves = {
        policy: [(gb, days[shapes[policy, gb]].ssd_gb) for gb in sizes]
        for policy in ("III", "III, late")
    }
    ratings = {
        (technology, process): _rating(technology, process)
        for technology in TECHNOLOGIES
        for process in PROCESSES
    }
    absorbing = {
        key: absorbing_gb(base_gb, curves["III, late"], rating) for key, rating in ratings.items()
    }
    enduring = {key: enduring_gb(base_gb, rating) for key, rating in ratings.items()}
    prices = Prices.load()
    costs = {t: _cost(prices, t, enduring[t, PROCESSES[0]]) for t in TECHNOLOGIES}
    known = {t: cost for t, cost in costs.items() if cost is not None}
    late = dict(curves["III, late"])
    both = min(gb for _, gb in curves["III"])
    findings = {
        "bits": Finding(
            {t.upper(): _shown(absorbing[t, "1xnm"]) for t in TECHNOLOGIES},
            None,
            f"{_CHOSEN}; in 1Xnm, no number where no ENVM up to the footprint is enough; by its "
            f"rating alone {_words({t: enduring[t, '1xnm'] for t in TECHNOLOGIES})} GB",
        ),
        "process": Finding(
            {
                f"{t.upper()} {process}": enduring[t, process]
                for t in ("slc", "tlc", "qlc", "plc")
                for process in PROCESSES
            },
            None,
            f"{_CHOSEN}; base writes {base_gb:.0f} GB, within the rating of SLC in every "
            "process, which needs none",
        ),
        "written": Finding(
            {t.upper(): _written_tb(t, PROCESSES[0]) for t in TECHNOLOGIES},
            None,
            f"{_CHOSEN}; in TB over five years, 3Xnm",
            basis="device",
        ),
        "cost": Finding(
            {t.upper(): costs[t] for t in TECHNOLOGIES},
            None,
            f"{_CHOSEN}, and on prices, in {prices.currency} of {prices.date}"
            + ("" if len(known) == len(costs) else "; prices are missing"),
        ),
        "absorbed": Finding(
            {f"{gb:g} GB": written for gb, written in late.items()},
            min(late.values()) <= ratings["qlc", PROCESSES[0]],
            "written to the SSD, where it is written back only for room; with the "
            f"opportunistic writeback {both:.0f} at least, with whatever ENVM",
        ),
    }
    return Outcome(
        findings,
        basis(runs_of(days)),
        f"{conditions(shrink(session), days)}; ratings of a fifth of cycles times capacity in "
        f"{_YEARS} years; the need is the smallest ENVM with which policy III, writing back only "
        "for room, keeps the SSD's rating on a busy day, none if base does; by rating: what is "
        "above the SSD's rating, over what 1 GB of Optane may be written a day",
        partial(_draw, absorbing, enduring, costs, prices, kind(runs_of(days))),
    )


@cache
def _written_tb(technology: str, process: str) -> float:
    """Return what may be written to a preset in all, in TB."""
    experiment = Experiment("", "preset").set("device.preset", f"{technology}-{process}")
    experiment = experiment.set("workload.requests", 1)
    experiment = experiment.set("workload.source", {"policy": "profile", "name": "systor-low"})
    (plan,) = experiment.plans()
    device = plan["config"]["device"]
    capacity = float(device["logical_capacity"].removesuffix("GiB")) * 2**30
    return float(_SHARE_OF_CYCLES * device["wear"]["rated_cycles"] * capacity / 1e12)


def _rating(technology: str, process: str) -> float:
    return _written_tb(technology, process) * 1e3 / (365 * _YEARS)


def absorbing_gb(base_gb: float, curve: Sequence[tuple[float, float]], rating: float) -> float:
    """Return the ENVM in GB with which the SSD's writes fall to its rating.

    `curve` has sizes and what is written to the SSD with each; between two of them it is
    straight. 0 where memory alone is enough, infinite where no size is.
    """
    if base_gb <= rating:
        return 0.0
    points = [(0.0, base_gb), *curve]
    for (smaller, more), (larger, less) in pairwise(points):
        if less <= rating:
            return smaller + (larger - smaller) * max(0.0, more - rating) / max(more - less, 1e-9)
    return math.inf


def enduring_gb(base_gb: float, rating: float) -> float:
    """Return the ENVM in GB that may be written what is above the SSD's rating."""
    return max(0.0, base_gb - rating) / OPTANE_WRITES_PER_DAY


def _cost(prices: Prices, technology: str, envm_gb: float) -> float | None:
    ssd = prices.of(technology, _TERABYTE_GB * 1e9)
    envm = prices.of("optane", envm_gb * 1e9)
    return None if ssd is None or envm is None else ssd + envm


def _shown(gb: float) -> float | None:
    return gb if math.isfinite(gb) else None


def _words(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name.upper()} {value:.0f}" for name, value in values.items())


def _draw(
    absorbing: Mapping[tuple[str, str], float],
    enduring: Mapping[tuple[str, str], float],
    costs: Mapping[str, float | None],
    prices: Prices,
    kind: str,
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    size, rated, cost = figure.subplots(1, 3)
    width = 0.25
    for index, process in enumerate(PROCESSES):
        places = [place + (index - 1) * width for place in range(len(TECHNOLOGIES))]
        finite = [min(absorbing[t, process], _SIZES_GB[-1]) for t in TECHNOLOGIES]
        bars = size.bar(places, finite, width, label=process.replace("xnm", "Xnm"))
        for bar, technology in zip(bars, TECHNOLOGIES, strict=True):
            if math.isinf(absorbing[technology, process]):
                bar.set_hatch("//")
        rated.bar(places, [enduring[t, process] for t in TECHNOLOGIES], width)
    shown = [costs[t] or 0.0 for t in TECHNOLOGIES]
    cost.bar(range(len(TECHNOLOGIES)), shown, 0.6, color="tab:gray")
    size.set_ylabel("ENVM that absorbs (GB; hatched: more)")
    rated.set_ylabel("ENVM that endures (GB)")
    cost.set_ylabel(f"1 TB and ENVM, 3Xnm ({prices.currency}, {prices.date})")
    size.legend(frameon=False)
    for axes in (size, rated, cost):
        axes.set_xticks(range(len(TECHNOLOGIES)), [t.upper() for t in TECHNOLOGIES])
        axes.grid(alpha=0.3, axis="y")
    figure.suptitle(f"ENVM need by technology on a busy day ({kind})")
    return figure


STUDY = Study("envm/technologies", "ENVM need and cost by technology", _CLAIMS, _measure)
