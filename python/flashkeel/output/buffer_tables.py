"""What ``flashkeel plan buffer`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from flashkeel.buffers import MOST_SHARE
from flashkeel.output import units
from flashkeel.output.plots import workload_kind

if TYPE_CHECKING:
    from flashkeel.buffers import Answer, Goal

_OWN = ("controller", "host_link")
"""Causes of a write's latency that it meets whatever others do."""


def tried(answer: Answer, goal: Goal) -> Table:
    """Return one row a size that was tried."""
    at = goal.percentile
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for column in ("write buffer", f"{at} of writes", "beyond", f"{at} of small reads", "kept"):
        table.add_column(column, justify="right")
    for one in answer.tried:
        mark = " *" if one.size_bytes == answer.configured_bytes else ""
        table.add_row(
            f"{units.size(one.size_bytes)}{mark}",
            units.duration(one.run.percentile("write", at)),
            units.count(one.run.beyond("write", at)),
            units.duration(one.run.percentile("small_read", at)),
            "yes" if goal.is_kept(one.run) else "no",
        )
    return table


def title(answer: Answer) -> str:
    """Return what stands above the table."""
    kind = workload_kind([one.run for one in answer.tried])
    return f"{answer.name} ({kind}; *: as the drive has it)"


def verdict(answer: Answer, goal: Goal) -> str:
    """Return the answer as a sentence."""
    kept = f"{goal.percentile} of writes at most {units.duration(goal.write_ns)}"
    if answer.smallest is None:
        return f"{answer.name}: no buffer {_why_none(answer, goal, kept)}"
    return (
        f"{answer.name}: {units.size(answer.smallest.size_bytes)} keep {kept}; the drive has "
        f"{units.size(answer.configured_bytes)}."
    )


def _why_none(answer: Answer, goal: Goal, kept: str) -> str:
    found = {one.run.percentile("write", goal.percentile) for one in answer.tried[-2:]}
    is_alike = len(found) == 1
    owner = answer.owner
    assert owner is not None, "no size is enough"
    owned = (
        f"{units.share(owner.share)} of what the slowest writes take with the largest of these is "
        f"`{owner.cause}`"
    )
    stays = f"it stays {units.duration(found.pop())} with the largest of these"
    if is_alike and owner.cause in _OWN:
        return (
            f"keeps {kept}: {stays}, so the bound is below what the drive takes for a write, "
            "however much it buffers."
        )
    if owner.cause == "throttle":
        return f"keeps {kept}: `device.throttle` holds writes back before they get there; {owned}."
    if is_alike and len(answer.tried) > 1:
        return f"keeps {kept}: {stays}, however much it buffers; {owned}."
    return (
        f"of up to {units.share(MOST_SHARE)} of all that is written keeps {kept}: the drive does "
        f"not sustain the load, or it is a single burst; {owned}."
    )


def notes(answers: Sequence[Answer], goal: Goal) -> list[str]:
    """Return what to know of the answers."""
    few = [answer.name for answer in answers if answer.has_few]
    if not few:
        return []
    return [
        f"{', '.join(few)}: fewer than ten writes lie beyond {goal.percentile}; more seeds, or "
        "more requests, tell"
    ]
