"""How large a write buffer has to be for the bursts of a workload.

What a burst brings above what the flash takes meanwhile has to fit, else writes wait for
flash. So the workload is run with buffers of several sizes: twice or half the device's own
until one size keeps the tail of writes and the other does not, and then between the two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flashkeel import cache, failures
from flashkeel._core import InputError
from flashkeel.arrow import TableFiles
from flashkeel.comparison import FEW, rests_on
from flashkeel.execution import Task, execute
from flashkeel.experiment import Experiment, pool, refuse_pipes
from flashkeel.explanation import Share
from flashkeel.quantities import in_bytes
from flashkeel.run import Run
from flashkeel.seeds import consecutive

MOST_SHARE = 1 / 4
"""Of all that is written: where more would have to fit, no burst has ended."""
_PAGE = 4096
_KEY = "buffer.size"
"""What is named where a device is refused for it."""
_UNBUFFERED = "none"
"""The kind of buffer whose size is no matter to writes."""
_WITHOUT_ROOM = ("invalid", "lost")
"""How requests fail that a buffer of no size would have taken."""
_STEPS_BETWEEN = 3
"""Halvings of the logarithm between two sizes, one twice the other: within 9 %."""

Progress = Callable[[str, float], None]
"""Called with what is being done and the fraction done."""


@dataclass(frozen=True)
class Goal:
    """What a buffer is large enough for."""

    percentile: str
    """Of writes, as ``p99.9``."""
    write_ns: float
    """The longest that it may be."""

    def is_kept(self, run: Run) -> bool:
        """Whether a run keeps it."""
        found = run.percentile("write", self.percentile)
        return found is not None and found <= self.write_ns


@dataclass(frozen=True)
class Tried:
    """A size, and what came of it."""

    size_bytes: int
    run: Run


@dataclass(frozen=True)
class Answer:
    """What was found for one run of an experiment."""

    name: str
    configured_bytes: int
    tried: Sequence[Tried]
    """By size."""
    smallest: Tried | None
    """The smallest that keeps the goal; None where more than :data:`MOST_SHARE` of all that is
    written would have to fit (the load is not sustained, or is a single burst), or where what
    happens is the same with ever more."""
    has_few: bool
    """Whether the percentile rests on fewer than ten writes, with the buffer as configured."""
    owner: Share | None
    """What owns most of the tail with the largest buffer; None where one is large enough."""

    @property
    def is_enough(self) -> bool:
        """Whether the buffer as configured keeps the goal."""
        return self.smallest is not None and self.smallest.size_bytes <= self.configured_bytes


def plan(
    experiment: Experiment,
    goal: Goal,
    seed: int | None = None,
    seeds: int = 1,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[Answer]:
    """Return the smallest buffer of each run of an experiment, in whole pages of 4 KiB.

    Each size is run with as many consecutive seeds, pooled, `jobs` at a time. InputError
    where an experiment is no single simulated drive, buffers nothing, or writes nothing.
    """
    plans = experiment.plans(seed)
    refuse_pipes(plans)
    answers = []
    for index, one in enumerate(plans):
        config = one["config"]
        if config.get("stack") is not None:
            raise InputError(
                f"{one['name']}: a buffer is planned for one drive, and this is a stack; "
                "describe the drive that is meant under [device]"
            )
        if config["device"]["buffer"]["kind"]["policy"] == _UNBUFFERED:
            raise InputError(
                f'{one["name"]}: device.buffer.kind is "{_UNBUFFERED}": writes are acknowledged '
                "when they are in flash, whatever fits into the buffer; give another kind, "
                'such as "back"'
            )

        def report(fraction: float, one: Any = one, index: int = index) -> None:  # noqa: ANN401
            if progress is not None:
                progress(one["name"], (index + fraction) / len(plans))

        answers.append(_Search(one, goal, seeds, jobs, report).answer())
    return answers


class _Search:
    """The sizes tried for one run."""

    def __init__(
        self,
        plan: dict[str, Any],
        goal: Goal,
        seeds: int,
        jobs: int,
        report: Callable[[float], None],
    ) -> None:
        self._plan = plan
        self._goal = goal
        self._seeds = consecutive(plan["config"]["seed"], seeds)
        self._jobs = jobs
        self._report = report
        self._tried: dict[int, Run] = {}

    def answer(self) -> Answer:
        """Search."""
        configured = in_bytes(self._plan["config"]["device"]["buffer"]["size"])
        first = self._run(configured)
        if not first.samples("write"):
            name = self._plan["name"]
            if first.data["workload"]["writes"]:
                raise InputError(f"{name}: all writes come in the warm-up, of which nothing counts")
            raise InputError(f"{name}: nothing is written, so no buffer is needed")
        enough = self._doubled(configured)
        if enough is not None:
            enough = self._between(*self._halved(enough))
        return Answer(
            self._plan["name"],
            configured,
            [Tried(size, self._tried[size]) for size in sorted(self._tried)],
            None if enough is None else Tried(enough, self._tried[enough]),
            rests_on(first, "write", self._goal.percentile) < FEW,
            self._owner() if enough is None else None,
        )

    def _owner(self) -> Share:
        largest = self._tried[max(self._tried)]
        return largest.explain(self._goal.percentile, "write").shares[0]

    def _doubled(self, size: int) -> int | None:
        """Return the first size that is enough; None where too much would have to fit."""
        before = None
        while not self._keeps(size):
            run = self._run(size)
            most = _whole(MOST_SHARE * run.data["write"]["bytes"] / len(run.seeds))
            if size >= most or run.data["digest"] == before:
                # In the latter case the same happens, however much fits.
                return None
            before, size = run.data["digest"], min(2 * size, most)
        return size

    def _halved(self, enough: int) -> tuple[int | None, int]:
        """Return the largest half that is too little, if any is, and its double."""
        while True:
            half = _whole(enough / 2)
            try:
                if half == enough or not self._keeps(half):
                    return (None if half == enough else half), enough
            except InputError as error:
                if _KEY not in str(error):
                    raise
                # Less than the device needs, to fill a flash page or for a window.
                return None, enough
            enough = half

    def _between(self, little: int | None, enough: int) -> int:
        if little is None:
            return enough
        for _ in range(_STEPS_BETWEEN):
            middle = _whole((little * enough) ** 0.5)
            if middle in (little, enough):
                break
            if self._keeps(middle):
                enough = middle
            else:
                little = middle
        return enough

    def _keeps(self, size: int) -> bool:
        return self._goal.is_kept(self._run(size))

    def _run(self, size: int) -> Run:
        if size not in self._tried:
            # Each size tried is half of what is left, more or less.
            self._report(1 - 0.8 ** len(self._tried))
            self._tried[size] = self._measured(size)
        return self._tried[size]

    def _measured(self, size: int) -> Run:
        config = self._plan["config"]
        buffer = config["device"]["buffer"] | {"size": f"{size}B"}
        text = json.dumps(
            self._plan | {"config": config | {"device": config["device"] | {"buffer": buffer}}}
        )
        directory = str(cache.directory())
        tasks = [
            Task(index, self._plan["name"], text, seed, directory)
            for index, seed in enumerate(self._seeds)
        ]
        run = Run(pool(execute(tasks, self._jobs, None, None)), TableFiles.none())
        if refused := {how: n for how, n in failures.of(run).items() if how not in _WITHOUT_ROOM}:
            raise InputError(
                f"{self._plan['name']}: {sum(refused.values()):,} of {run.data['requests']:,} "
                f"requests failed ({', '.join(refused)}); they are in no percentile, so no size "
                "can be told to be enough"
            )
        return run


def _whole(size: float) -> int:
    return max(1, round(size / _PAGE)) * _PAGE
