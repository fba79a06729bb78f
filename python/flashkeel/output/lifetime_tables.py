"""The table of lifetimes, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from flashkeel.lifetime import MOST_YEARS
from flashkeel.media import YEAR_DAYS
from flashkeel.output import units

if TYPE_CHECKING:
    from flashkeel.lifetime import Estimate
    from flashkeel.padding import Padding


UNKNOWN_PADDING = (
    "Flash pages are taken to be full. Where a write buffer does not wait for that, small writes "
    "far apart take more of them, and wear the drive faster: how much is told of a --drive."
)
"""What there is to say of padding where the write buffer is not known."""


def lives(free: Estimate, held: Estimate) -> Table:
    """Return a column for the life without a throttle, and one for `held` where it is another."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("")
    columns = [("unthrottled", free)] + ([] if held is free else [(held.plan.guard, held)])
    for name, _ in columns:
        table.add_column(name, justify="right")
    for label, value in _ROWS if free.plan.resample else _ROWS[1:]:
        table.add_row(label, *(value(estimate) for _, estimate in columns))
    return table


def verdict(free: Estimate, held: Estimate) -> str:
    """Return in one sentence whether the drive lasts as long as required."""
    target = units.years(held.plan.target_years)
    if free.meets_target():
        return f"The drive lasts {target} without a throttle."
    if held.meets_target():
        return f"The drive lasts {target} only if writes are held back."
    return f"The drive does not last {target}."


def warnings(free: Estimate, held: Estimate) -> list[str]:
    """Return what the numbers hide, a sentence each."""
    found = (_recording(held), _draws(free), _first(held), _rating(held), _rounding(held))
    return [each for each in found if each is not None]


def padding(found: Padding | None, held: Estimate) -> list[str]:
    """Return in a sentence what a write buffer that does not wait comes to, where it does."""
    if found is None:
        return []
    begins = (
        "Flash pages are taken to be full, but the drive's buffer waits only "
        f"{units.duration(found.timeout_ns)} for {units.size(found.page_bytes)} to fill one: "
    )
    if found.requests is None:
        most = units.significant(found.most, 2)
        ends = f"small writes further apart take up to {most} times the pages, and wear it faster"
        tells = "; --trace tells"
    else:
        most = units.significant(found.most)
        ends = (
            f"replayed on it, the first {found.requests:,} requests recorded take "
            f"{most} times the pages, and wear it about as fast"
        )
        tells = ""
    shortest = (held.years["p5"] or MOST_YEARS) / found.most
    target = held.plan.target_years
    doubt = (
        f". Whether it then lasts {units.years(target)} is not told"
        if held.meets_target() and shortest < target
        else ""
    )
    return [f"{begins}{ends}{tells}{doubt}."]


def _recording(estimate: Estimate) -> str | None:
    """Return on how much of a recording the answer rests; None without one."""
    span = estimate.recorded_ns
    if span is None:
        return None
    years = estimate.plan.target_years
    times = units.count(years * YEAR_DAYS * 86_400e9 / max(span, 1))
    are = "is" if years == 1 else "are"
    return (
        f"{units.duration(span)} were recorded, and {units.years(years)} {are} {times} times as "
        "long. "
        "What the recording does not show, such as other hours and days, is not in the answer."
    )


def _draws(estimate: Estimate) -> str | None:
    """Return how far traffic drawn from a recording lies apart, where that decides."""
    drawn = estimate.drawn_per_day
    if drawn is None or drawn[1] <= _FAR_APART * drawn[0]:
        return None
    least, most = (units.significant(each / 1e9) for each in drawn)
    return (
        f"Its days or hours, drawn anew with each seed but the first, have {least} to {most} GB of "
        "writes a day: a few of them decide, and a longer recording would tell more."
    )


def _first(estimate: Estimate) -> str | None:
    """Return that blocks wear out before the mean one, where the target lies between, or long."""
    first, median = estimate.first_worn_years, estimate.years["median"]
    if estimate.meets_target() or median is None:
        soon = _SOON * estimate.plan.target_years
    else:
        soon = _LONG_BEFORE * median
    if first is None or first >= soon:
        return None
    levelling = estimate.plan.drive.get("wear_levelling")
    remedy = "" if levelling else "; with --wear-levelling blocks change places"
    return (
        f"The lifetime is that of the mean block, and the first is worn out after {_years(first)} "
        f"years{remedy}."
    )


def _rating(estimate: Estimate) -> str | None:
    """Return what an endurance in the host's bytes leaves no part in the answer."""
    if estimate.plan.drive.get("rated_cycles") is not None:
        return None
    return (
        "The drive's endurance is given in bytes of the host, for traffic like this one: write "
        "amplification, over-provisioning and pattern change the cycles that it means, not the "
        "lifetime; --rated-cycles is for asking about them."
    )


def _rounding(estimate: Estimate) -> str | None:
    """Return how far the lifetime may be off for whole cycles; None where that is little."""
    cycles = estimate.mean("endured", "rated_cycles")
    if estimate.plan.drive.get("rated_cycles") is not None or not cycles:
        return None
    off = 0.5 / cycles
    if off <= _LITTLE:
        return None
    return (
        f"The bytes that the drive endures are rounded to whole cycles of a block, "
        f"{units.count(cycles)}: the lifetime may be off by {units.share(off)} for that."
    )


def _range(estimate: Estimate) -> str:
    # Of lives that nobody has seen the end of there is one bound.
    ends = [_years(estimate.years[key]) for key in ("p5", "p95")]
    return ends[0] if estimate.years["p5"] is None else " to ".join(ends)


def _first_worn(estimate: Estimate) -> str:
    is_told = estimate.mean("blocks", "first_worn_years") is not None
    return _years(estimate.first_worn_years) if is_told else units.MISSING


def _spread(estimate: Estimate) -> str:
    wear = estimate.wear_over_mean()
    if wear is None:
        return units.MISSING
    return " ".join(units.ratio(wear[at]) for at in ("1", "50", "99"))


def _recorded(estimate: Estimate) -> str:
    return _years(estimate.recorded_years)


def _times_longer(estimate: Estimate) -> str:
    asked = estimate.recorded.mean("endured", "demanded_per_day")
    written = estimate.recorded.mean("endured", "written_per_day")
    return units.ratio(asked / written) if asked and written else units.MISSING


def _written(estimate: Estimate) -> str:
    per_day = estimate.recorded.mean("endured", "written_per_day")
    return units.MISSING if per_day is None else units.significant(per_day / 1e9)


def _years(value: float | None) -> str:
    if value is None:
        return f"over {MOST_YEARS:g}"
    return f"{value:.2f}" if value >= 1 or value == 0 else units.significant(value)


def _drive_writes(estimate: Estimate) -> str:
    per_day = estimate.recorded.mean("endured", "drive_writes_per_day")
    return units.MISSING if per_day is None else units.significant(per_day)


def _cycles(estimate: Estimate) -> str:
    cycles = estimate.mean("endured", "rated_cycles")
    return units.MISSING if cycles is None else units.count(cycles)


def _ratio(*path: str) -> Callable[[Estimate], str]:
    return lambda estimate: units.ratio(estimate.mean(*path))


def _response(key: str) -> Callable[[Estimate], str]:
    return lambda estimate: units.duration(estimate.mean("response", key))


def _delay(percentile: float) -> Callable[[Estimate], str]:
    return lambda estimate: units.duration(estimate.delay_ns(percentile))


_SOON = 0.9
"""Share of the target before which a first block must not be worn out for nobody to mention it."""
_LONG_BEFORE = 0.5
"""Share of the lifetime before which it must not be, where the target is missed anyway."""
_LITTLE = 0.01
"""Share of a lifetime by which nobody minds that it is off."""
_FAR_APART = 2.0
"""Times as much in a day as in another, from which traffic drawn from a recording is a lottery."""

_ROWS: Sequence[tuple[str, Callable[[Estimate], str]]] = (
    ("lifetime as recorded (years)", _recorded),
    ("lifetime, median (years)", lambda estimate: _years(estimate.years["median"])),
    ("5 to 95 % of seeds", _range),
    ("first block worn out (years)", _first_worn),
    ("wear of a block over mean, p1 p50 p99", _spread),
    ("most worn block over mean", _ratio("blocks", "max_over_mean")),
    ("rated cycles", _cycles),
    ("write amplification", _ratio("endured", "write_amplification")),
    ("  measured on the model", _ratio("endured", "write_amplification_measured")),
    ("written a day (GB)", _written),
    ("drive writes per day", _drive_writes),
    ("time the traffic takes (times)", _times_longer),
    ("mean response of a page write", _response("mean_ns")),
    ("delay by the throttle, mean", _response("delay_mean_ns")),
    ("  p99", _delay(99)),
    ("  p99.9", _delay(99.9)),
    ("  longest", _response("delay_longest_ns")),
)
"""What each row is called, and its cell for an estimate."""
