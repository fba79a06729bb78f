"""The tables of ``plan tier``, and what they come to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table

from flashkeel import padding
from flashkeel.candidates import Bounds, Measured, Outcome
from flashkeel.comparison import FEW
from flashkeel.first_state import LEAST_WAF
from flashkeel.hierarchy import BASE, DAY_NS, Answer, Plan
from flashkeel.media import YEAR_DAYS
from flashkeel.output import units
from flashkeel.steadiness import MOST_FREE

_SHORT_NS = 60e9
"""What was recorded in less has no course by the minute, and is a burst or a pause."""
_BEHIND = 1.05
"""Rows that take so many times as long as the traffic have fallen behind."""

MISSED = "!"
"""Stands beside what is beyond a bound."""


def latencies(answer: Answer, bounds: Bounds, drive: str) -> Table:
    """Return what is bought and how long its tails are, a row for each policy and size."""
    at = answer.plan.percentile
    table = _table(
        "policy", "NVM", right=("to buy", *_cost_name(answer, bounds), f"read {at}", f"write {at}")
    )
    for one in answer.of(drive):
        excess = one.excess(bounds)
        table.add_row(
            one.choice.policy,
            _held(one),
            _marked(_bought(one, bounds), "NVM" in excess),
            *_cost(answer, one, bounds),
            _marked(_interval(one, "read_ns"), not {"read", "failed"}.isdisjoint(excess)),
            _marked(_interval(one, "write_ns"), not {"write", "failed"}.isdisjoint(excess)),
        )
    return table


def writes(answer: Answer, bounds: Bounds, drive: str) -> Table:
    """Return what is at risk and what is written, a row for each policy and size."""
    table = _table(
        "policy",
        "NVM",
        right=("at risk", "to SSD", "to NVM", "WAF", "SSD years", "NVM years"),
    )
    for one in answer.of(drive):
        excess = one.excess(bounds)
        table.add_row(
            one.choice.policy,
            _held(one),
            _marked(units.size(one.mean("risk_bytes")), "risk" in excess),
            _giga(one, "ssd_bytes_per_day"),
            _giga(one, "nvm_bytes_per_day") if one.nvm_bytes else units.MISSING,
            _waf(one),
            _marked(_years(one, "ssd_years"), "SSD" in excess),
            _years(one, "nvm_years") if one.nvm_bytes else units.MISSING,
        )
    return table


def policies(answer: Answer, bounds: Bounds) -> Table:
    """Return what each policy comes to before each drive: the least that keeps the bounds."""
    at = answer.plan.percentile
    table = _table(
        "drive",
        "policy",
        right=("NVM to buy", *_cost_name(answer, bounds), f"read {at}", f"write {at}"),
        last="misses",
    )
    for drive in answer.plan.drives:
        for policy in answer.plan.policies:
            among = answer.of(drive.preset, policy)
            kept = [one for one in among if not one.excess(bounds)]
            least = min(kept, key=lambda one: one.bought_bytes(bounds), default=None)
            one = answer.cheapest(bounds, among) or least or answer.nearest(bounds, among)
            table.add_row(
                drive.preset,
                policy,
                _bought(one, bounds),
                *_cost(answer, one, bounds),
                units.duration(one.mean("read_ns")),
                units.duration(one.mean("write_ns")),
                ", ".join(one.excess(bounds)) or "nothing",
            )
    return table


def frontier(answer: Answer, bounds: Bounds) -> Table:
    """Return what nothing is both cheaper and quicker than."""
    at = answer.plan.percentile
    table = _table(
        "drive",
        "policy",
        right=("NVM to buy", *_cost_name(answer, bounds), f"read {at}, over seeds"),
    )
    for one in answer.frontier(bounds):
        table.add_row(
            one.choice.drive,
            one.choice.policy,
            _bought(one, bounds),
            *_cost(answer, one, bounds),
            _interval(one, "read_ns"),
        )
    return table


def verdicts(answer: Answer, bounds: Bounds) -> list[str]:
    """Return in a sentence each which NVM is the smallest and the cheapest that will do."""
    smallest, cheapest = answer.smallest(bounds), answer.cheapest(bounds)
    if smallest is None:
        nearest = answer.nearest(bounds)
        missed = ", ".join(
            f"{name} {units.significant(times, 2)} times"
            if math.isfinite(times)
            else "requests that failed"
            if name == "failed"
            else f"{name} {units.size(nearest.mean('risk_bytes'))} of 0 B"
            for name, times in nearest.excess(bounds).items()
        )
        return [
            "Nothing that was tried keeps the bounds under every seed.",
            f"Nearest: {_named(answer, nearest, bounds)}; beyond its bound: {missed}.",
        ]
    found = [f"Smallest NVM: {_named(answer, smallest, bounds)}."]
    if cheapest is not None:
        found.append(f"Cheapest: {_named(answer, cheapest, bounds)}.")
    return found


def warnings(answer: Answer, bounds: Bounds) -> list[str]:
    """Return what whoever reads the tables has to know."""
    plan = answer.plan
    times = YEAR_DAYS * DAY_NS / answer.duration_ns
    found = [
        f"Days and years are {units.duration(answer.duration_ns)} of traffic over and over; "
        f"a year is {units.count(times)} times as long."
    ]
    if answer.duration_ns < _SHORT_NS:
        found.append("From so short a time no year follows: only latencies tell.")
    behind = max(one.behind for outcome in answer.outcomes for one in outcome.measured)
    if behind >= _BEHIND:
        found.append(
            f"Some rows fall behind and take up to {units.significant(behind)} times as long as "
            "the traffic: their latencies say how long the traffic is, and not what the drive does."
        )
    failed = max(one.failed for outcome in answer.outcomes for one in outcome.measured)
    if failed:
        found.append(
            f"In some rows requests failed, up to {units.count(failed)}: they are in no latency, "
            "so that such a row keeps no bound."
        )
    found += _wear(answer)
    presets = dict.fromkeys(medium.preset for medium in (*plan.drives, plan.nvm))
    unpriced = [preset for preset in presets if plan.prices.of(preset, 1.0) is None]
    if unpriced:
        found.append(
            f"No price is known for {', '.join(unpriced)}, so that what has it is shown without "
            "costs; --prices FILE takes the place of the table."
        )
    if answer.has_costs(bounds):
        found.append(f"Costs are in {plan.prices.currency}, with prices of {plan.prices.date}.")
    fewest = min(one.beyond for outcome in answer.outcomes for one in outcome.measured)
    if fewest < FEW:
        found.append(
            f"A tail is a guess where fewer than {FEW} requests lie beyond it; in some rows "
            f"{fewest} do{'es' if fewest == 1 else ''}."
        )
    notes = [note for outcome in answer.outcomes for note in outcome.notes]
    if any("never filled" in note for note in notes):
        found.append(
            "In some rows memory or NVM never filled, so that more of it changes nothing there; "
            "what it holds at the end may never have been written to the SSD."
        )
    others = [note for note in dict.fromkeys(notes) if "never filled" not in note]
    return found + [f"{note[:1].upper()}{note[1:]}." for note in others]


def _wear(answer: Answer) -> Iterator[str]:
    """Give what SSD years rest on, of drives whose cycles they come from."""
    drives = [one.preset for one in answer.plan.drives if one.writes_per_day is None]
    rows = [one for drive in drives for outcome in answer.of(drive) for one in outcome.measured]
    worn = [one for one in rows if (one.waf or 0.0) >= LEAST_WAF]
    most = max((one.padded for one in worn), default=1.0)
    if most >= padding.LEAST:
        yield (
            "In some rows the drive's write buffer does not wait until flash pages are full: up to "
            f"{units.significant(most)} times as much is programmed for writes as is written, and "
            "SSD years are about as many times fewer. `plan lifetime` takes pages to be full."
        )
    if young := [one.turned_over for one in worn if one.turned_over < 1]:
        ends = dict.fromkeys(units.share(pick(young)) for pick in (min, max))
        yield (
            "The drive's model was written at random everywhere before, and what is programmed for "
            f"writes is {' to '.join(ends)} of it in some rows: WAF, and SSD years with it, are "
            f"that state's more than the traffic's. {_longer(answer.plan, min(young))}."
        )
    yield from _free(worn)


def _longer(plan: Plan, share: float) -> str:
    """Return which options have so small a share of a model written as a whole."""
    times, options = math.ceil(1 / share), ""
    if plan.requests is not None:
        options += f"--requests {times * plan.requests} "
    if plan.source["policy"] == "trace":
        options += f"--set repeat={times * int(plan.source.get('repeat', 1))} "
    return f"With {options}as much is programmed as it holds"


def _free(worn: Sequence[Measured]) -> Iterator[str]:
    shares = [one.from_free for one in worn if one.from_free is not None]
    if (most := max(shares, default=0.0)) > MOST_FREE:
        yield (
            f"In some rows WAF is lower than it stays: up to {units.share(most)} of what was "
            "programmed went into blocks that were free before."
        )
    if (least := min(shares, default=0.0)) < -MOST_FREE:
        yield (
            f"In some rows WAF is higher than it stays: up to {units.share(-least)} more was "
            "erased than programmed."
        )


def _table(*left: str, right: tuple[str, ...], last: str | None = None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    if last is not None:
        table.add_column(last)
    return table


def _named(answer: Answer, one: Outcome, bounds: Bounds) -> str:
    choice = one.choice
    cost = "".join(f", {cost} {answer.plan.prices.currency}" for cost in _cost(answer, one, bounds))
    if choice.policy == BASE:
        return f"none, with memory alone before {choice.drive}{cost}"
    bought = _bought(one, bounds)
    held = _held(one)
    room = "" if bought == held else f" ({held} for data, the rest for wear)"
    return f"{bought}{room} under {choice.policy} before {choice.drive}{cost}"


def _cost_name(answer: Answer, bounds: Bounds) -> tuple[str, ...]:
    return ("cost",) if answer.has_costs(bounds) else ()


def _cost(answer: Answer, one: Outcome, bounds: Bounds) -> tuple[str, ...]:
    if not answer.has_costs(bounds):
        return ()
    cost = one.cost(bounds)
    return (units.MISSING if cost is None else f"{cost:.2f}",)


def _held(one: Outcome) -> str:
    return units.size(one.nvm_bytes) if one.nvm_bytes else units.MISSING


def _bought(one: Outcome, bounds: Bounds) -> str:
    bought = one.bought_bytes(bounds)
    return units.size(bought) if bought else units.MISSING


def _interval(one: Outcome, name: str) -> str:
    found = one.interval(name)
    if found is None:
        return units.MISSING
    low, high = (units.duration(end) for end in found)
    return low if low == high else units.interval(*found)


def _marked(text: str, is_missed: bool) -> str:
    return f"{text} {MISSED}" if is_missed else text


def _giga(one: Outcome, name: str) -> str:
    value = one.mean(name)
    return units.MISSING if value is None else units.significant(value / 1e9, 2)


def _waf(one: Outcome) -> str:
    waf = one.mean("waf")
    return units.MISSING if waf is None else units.significant(waf)


def _years(one: Outcome, name: str) -> str:
    found = one.interval(name)
    return "endless" if found is None else units.significant(found[0], 2)
