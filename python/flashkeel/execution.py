"""Execution of runs, one after the other or several at a time, with the same results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flashkeel import _core
from flashkeel._core import InputError
from flashkeel.arrow import KINDS, TableFiles

Progress = Callable[[int, str, float], None]
"""Called with the index of a task, what it is doing and the fraction done."""


@dataclass(frozen=True)
class Task:
    """One run with one seed."""

    index: int
    name: str
    plan: str
    seed: int
    cache_dir: str | None
    place: str = ""
    """What its errors begin with, where they have to say whose they are."""


def execute(
    tasks: Sequence[Task],
    jobs: int,
    files: TableFiles | None,
    progress: Progress | None,
    finished: Callable[[int, dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Run all tasks, at most `jobs` at a time, and return their run objects in order.

    Their tables are written to `files`, and nowhere where that is None.
    `finished` is called with the index and the run object of each as soon as there is one.
    """
    if jobs == 1 or len(tasks) <= 1:
        found = []
        for task in tasks:
            found.append(run(task, files, progress))
            if finished is not None:
                finished(task.index, found[-1])
        return found
    from flashkeel import workers

    return workers.execute(tasks, jobs, files, progress, finished)


@contextmanager
def placed(task: Task) -> Iterator[None]:
    """Let errors of a task's run begin with its place."""
    try:
        yield
    except (InputError, RuntimeError) as error:
        if not task.place:
            raise
        raise type(error)(f"{task.place}: {error}") from error


def run(task: Task, files: TableFiles | None, progress: Progress | None) -> dict[str, Any]:
    """Run a task here and return its run object."""

    def report(phase: str, fraction: float) -> None:
        if progress is not None:
            progress(task.index, phase, fraction)

    with placed(task):
        outcome = _core.run(task.plan, task.seed, task.cache_dir, report)
    report("done", 1.0)
    if files is not None:
        tables = (outcome.series(), outcome.requests(), outcome.chips())
        for kind, table in zip(KINDS, tables, strict=True):
            if table is not None:
                files.write(kind, task.name, task.seed, table)
    data: dict[str, Any] = json.loads(outcome.json())
    return data
