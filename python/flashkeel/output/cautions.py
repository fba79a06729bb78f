"""What has to be known of runs whose figures say less than they seem to, in a line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flashkeel import overload
from flashkeel.output import units
from flashkeel.overload import Overload
from flashkeel.run import Run


def of(runs: Sequence[Run]) -> Iterator[str]:
    """Give a sentence for each caution of each run."""
    for run in runs:
        for one in overload.found(run):
            name = run.name if one.name == run.name else f"{run.name}: {one.name}"
            yield f"{name}: {overloaded(one)}"


def overloaded(one: Overload) -> str:
    """Return that requests come faster than they are served."""
    return (
        f"requests come faster than they are served: {units.rate(one.asked)} a second come, "
        f"{units.rate(one.served)} are served; latencies say how long the run was"
    )
