"""Schedulers, ways of collecting garbage, and suspension, all with each other: no paper has it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from flashkeel import _core
from flashkeel.output import units
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, few, too_few, with_interval
from flashkeel.reproduce.session import Case, Session, amount, basis
from flashkeel.reproduce.ttflash.systems import ALL, BASE, DEVICE, flat
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEDULERS = ("fifo", "priority", "fair", "debit")
WAYS = (BASE, "semi-preemptive", "plane-blocking", ALL)
SUSPENDS = ("", "-suspend")
CLASS = "small_read"
_FIVE, _SIX = 99.999, 99.9999
_PERCENTILES = (99.9, 99.99, _FIVE, _SIX)
_UNLIMITED = tuple(f"{SCHEDULERS[0]}-{way}{SUSPENDS[1]}" for way in ("plane-blocking", ALL))

_ALL = Claim(
    "all",
    "all of ttFlash helps whatever the scheduler, with and without suspension",
    "under each of the eight p99.999 of small reads is below that of base, semi-preemptive and "
    "plane-blocking",
    None,
    "ms",
)
_SUSPENSION = Claim(
    "suspension",
    "suspension helps whatever the scheduler and the way of collecting",
    "in none of the sixteen pairs p99.999 of small reads with it is above that without by more "
    "than the 95 % intervals leave open",
    None,
    "",
)
_BEST = Claim(
    "best",
    "where an operation is suspended up to eight times, all of ttFlash with suspension is the best "
    "combination at six nines",
    "with the best scheduler of each way, with and without suspension, it has the lowest p99.9999 "
    "of small reads, by more than the 95 % intervals leave open",
    None,
    "ms",
)
_SCHEDULER = Claim(
    "scheduler",
    "once garbage collection is out of the way, the scheduler matters little",
    "with all of ttFlash and suspension, p99.999 of the four schedulers differs by at most 10 %",
    None,
    "ms",
)

_LIMIT = Claim(
    "limit",
    "where copybacks may be suspended as often as reads need it, parity is not needed for the tail",
    "with 1000 suspensions to a move of a block's pages instead of 8, p99.9999 of small reads of "
    "plane-blocking under fifo is at most that of all of ttFlash",
    None,
    "ms",
)
_MANY = 1000
"""About 16 to each page that a move takes along."""


def _measure(session: Session) -> Outcome:
    names = [f"{s}-{way}{on}" for s, way, on in product(SCHEDULERS, WAYS, SUSPENDS)]
    runs = session.run([_case(session, name) for name in names])
    sparse = [run.beyond(CLASS, _FIVE) for run in runs.values() if few(run, CLASS, _FIVE)]
    missing = too_few(min(sparse)) if sparse else ""
    five = {name: _tail(run, _FIVE) for name, run in runs.items()}
    unlimited = session.run([_case(session, name, _MANY) for name in _UNLIMITED])
    better = {
        f"{s}-{way}{on}": five[f"{s}-{way}{on}"]
        for s, way, on in product(SCHEDULERS, WAYS, SUSPENDS)
        if five[f"{s}-{way}{on}"] < five[f"{s}-{ALL}{on}"]
    }
    # Where no way of collecting differs, none is before the other.
    alike = len(set(five.values())) == 1
    hurt = [
        f"{s}-{way}"
        for s, way in product(SCHEDULERS, WAYS)
        if _is_longer(runs[f"{s}-{way}{SUSPENDS[1]}"], runs[f"{s}-{way}"])
    ]
    pairs = len(SCHEDULERS) * len(WAYS)
    last = [five[f"{s}-{ALL}{SUSPENDS[1]}"] for s in SCHEDULERS]
    return Outcome(
        {
            "all": Finding(
                {f"{name}, p99.999": value / 1e6 for name, value in five.items()},
                None if sparse or alike else not better,
                missing
                or "; ".join(
                    filter(
                        None,
                        ["no way differs" if alike else "", _before(list(better)), _rows(runs)],
                    )
                ),
            ),
            "suspension": Finding(
                f"{pairs - len(hurt)} of {pairs}",
                None if sparse else not hurt,
                missing or _hurt(hurt),
            ),
            "best": _best(runs),
            "scheduler": Finding(
                {f"{s}": value / 1e6 for s, value in zip(SCHEDULERS, last, strict=True)},
                None if sparse else max(last) <= 1.1 * min(last),
                missing,
            ),
            "limit": _unlimited(unlimited),
        },
        basis(runs),
        f"{DEVICE}; 6,000 requests a second, 70 % reads, four of five 4 KiB and the others 16 KiB, "
        "Poisson, all over the device, from its steady state on; " + amount(runs.values()),
        partial(_draw, runs),
    )


def _case(session: Session, name: str, limit: int | None = None) -> Case:
    requests = 150_000 if session.quick else 1_800_000
    keys = _combinations()[name] | {"workload.requests": requests}
    if limit is not None:
        keys["device.suspension.limit"] = limit
    return Case(name, keys, (CLASS, _SIX), most_seeds=16)


def _combinations() -> dict[str, dict[str, Any]]:
    document = tomllib.loads(_core.show("composition"))
    common = flat(document["device"], "device") | flat(document["workload"], "workload")
    common["device.precondition.seed"] = 1
    return {run["name"]: common | run["set"] for run in document["runs"]}


def _tail(run: Run, percentile: float) -> float:
    return float(run.percentile(CLASS, percentile) or 0)


def _is_longer(run: Run, other: Run) -> bool:
    bounds = [with_interval(each, CLASS, _FIVE) for each in (run, other)]
    if bounds[0] is None or bounds[1] is None:
        return _tail(run, _FIVE) > _tail(other, _FIVE)
    return bounds[0][1] > bounds[1][2]


def _before(better: list[str]) -> str:
    if not better:
        return ""
    return (
        f"before all of ttFlash at p99.999: {', '.join(better)}; a read whose stripe is being "
        "updated cannot be rebuilt, and waits for programs and erases of its own chip"
    )


def _hurt(hurt: list[str]) -> str:
    if not hurt:
        return ""
    return (
        f"longer with suspension: {', '.join(hurt)}; moves that hold the channel are not suspended"
    )


def _rows(runs: Mapping[str, Run]) -> str:
    """Return percentiles and write amplification of each way, under the first scheduler."""
    rows = []
    for way, on in product(WAYS, SUSPENDS):
        run = runs[f"{SCHEDULERS[0]}-{way}{on}"]
        tails = ", ".join(units.duration(_tail(run, at)) for at in _PERCENTILES)
        rows.append(f"{SCHEDULERS[0]}-{way}{on} {tails}, WAF {run.data['waf']:.2f}")
    return f"p99.9, p99.99, p99.999, p99.9999: {'; '.join(rows)}"


def _best(runs: Mapping[str, Run]) -> Finding:
    best = [
        min((f"{s}-{way}{on}" for s in SCHEDULERS), key=lambda name: _tail(runs[name], _SIX))
        for way, on in product(WAYS, SUSPENDS)
    ]
    first, second, *_ = sorted(best, key=lambda name: _tail(runs[name], _SIX))
    measured = {f"{name}, p99.9999": _tail(runs[name], _SIX) / 1e6 for name in best}
    sparse = [run.beyond(CLASS, _SIX) for run in runs.values() if few(run, CLASS, _SIX)]
    bounds = [with_interval(runs[name], CLASS, _SIX) for name in (first, second)]
    if sparse or bounds[0] is None or bounds[1] is None:
        return Finding(measured, None, too_few(min(sparse, default=0)))
    apart = bounds[0][2] < bounds[1][1]
    wins = first.endswith(f"-{ALL}{SUSPENDS[1]}")
    text = f"{first} [{bounds[0][1] / 1e6:.3g} … {bounds[0][2] / 1e6:.3g} ms] before {second}"
    return Finding(measured, wins and apart, text)


def _unlimited(runs: Mapping[str, Run]) -> Finding:
    tails = {name: _tail(run, _SIX) for name, run in runs.items()}
    sparse = [run.beyond(CLASS, _SIX) for run in runs.values() if few(run, CLASS, _SIX)]
    alone, everything = (tails[name] for name in _UNLIMITED)
    return Finding(
        {f"{name}, p99.9999": value / 1e6 for name, value in tails.items()},
        None if sparse else alone <= everything,
        too_few(min(sparse)) if sparse else "",
    )


def _draw(runs: Mapping[str, Run]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    shades = (("#999999", "#555555"), ("#F5B78E", "#CC4C02"), ("#9ECAE1", "#2171B5"))
    colours = (*shades, ("#A1D99B", "#238B45"))
    for axes, percentile in zip(figure.subplots(1, 2, sharey=True), (99.9, _FIVE), strict=True):
        for index, ((way, pair), which) in enumerate(
            product(zip(WAYS, colours, strict=True), range(2))
        ):
            places = [at + (index - 3.5) * 0.11 for at in range(len(SCHEDULERS))]
            heights = [_tail(runs[f"{s}-{way}{SUSPENDS[which]}"], percentile) for s in SCHEDULERS]
            label = way + (", suspension" if which else "")
            axes.bar(places, heights, width=0.11, color=pair[which], label=label)
        axes.set_xticks(range(len(SCHEDULERS)), list(SCHEDULERS))
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda ns, _: units.duration(ns))
        axes.set_title(f"p{percentile:g} of small reads (synthetic)")
        axes.grid(axis="y", alpha=0.3)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


STUDY = Study(
    "ttflash/composition",
    "Schedulers, garbage collection and suspension together",
    (_ALL, _SUSPENSION, _BEST, _SCHEDULER, _LIMIT),
    _measure,
)
