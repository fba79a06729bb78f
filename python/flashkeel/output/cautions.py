"""What has to be known of runs whose figures say less than they seem to, in a line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flashkeel import overload, steadiness
from flashkeel.output import units
from flashkeel.overload import Overload
from flashkeel.run import Run


def of(runs: Sequence[Run]) -> Iterator[str]:
    """Give a sentence for each caution of each run."""
    for run in runs:
        for one in overload.found(run):
            name = run.name if one.name == run.name else f"{run.name}: {one.name}"
            yield f"{name}: {overloaded(one)}"
        if steadiness.is_of_the_beginning(run):
            yield f"{run.name}: {_of_the_beginning(steadiness.from_free_blocks(run) or 0.0)}"
    if mixed := [run.name for run in runs if steadiness.mixes_states(run)]:
        yield f"{', '.join(mixed)}: two states are in it, as `flashkeel steady` tells"


def _of_the_beginning(share: float) -> str:
    if share > 0:
        was = f"{units.share(share)} was written to blocks that were free before"
        return f"WAF is lower than it stays: {was}"
    more = f"more blocks are free than before, by {units.share(-share)} of writes"
    return f"WAF is higher than it stays: {more}"


def overloaded(one: Overload) -> str:
    """Return that requests come faster than they are served."""
    return (
        f"requests come faster than they are served: {units.rate(one.asked)} a second come, "
        f"{units.rate(one.served)} are served; latencies say how long the run was"
    )
