"""Execution of runs, here or in several processes, with the same results."""

from __future__ import annotations

import json
import multiprocessing
import queue
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashkeel import _core
from flashkeel.arrow import KINDS, TableFiles

if TYPE_CHECKING:
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Event

Progress = Callable[[int, str, float], None]
"""Called with the index of a task, what it is doing and the fraction done."""

_POLL_S = 0.1


@dataclass(frozen=True)
class Task:
    """One run with one seed."""

    index: int
    name: str
    plan: str
    seed: int
    cache_dir: str | None


def execute(
    tasks: Sequence[Task],
    jobs: int,
    files: TableFiles,
    progress: Progress | None,
    finished: Callable[[int, dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Run all tasks, at most `jobs` at a time, and return their run objects in order.

    `finished` is called with the index and the run object of each as soon as there is one.
    """
    if jobs == 1 or len(tasks) <= 1:
        found = []
        for task in tasks:
            found.append(_execute(task, files, progress))
            if finished is not None:
                finished(task.index, found[-1])
        return found
    context = multiprocessing.get_context("spawn")
    reports: Queue[tuple[int, str, float]] = context.Queue()
    cancelled = context.Event()
    with ProcessPoolExecutor(
        min(jobs, len(tasks)), context, _start_worker, (reports, cancelled)
    ) as pool:
        try:
            # Workers begin with interrupts blocked, so that none hits one before it has begun.
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                futures = [pool.submit(_execute_in_worker, task, files.directory) for task in tasks]
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            pending = set(futures)
            while pending:
                done, pending = wait(pending, _POLL_S, FIRST_COMPLETED)
                _forward(reports, progress)
                for future in done:
                    run = future.result()
                    if finished is not None:
                        finished(tasks[futures.index(future)].index, run)
        except BaseException:
            cancelled.set()
            # Workers that are still starting need what they share with this process.
            pool.shutdown(cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _execute(task: Task, files: TableFiles, progress: Progress | None) -> dict[str, Any]:
    def report(phase: str, fraction: float) -> None:
        if progress is not None:
            progress(task.index, phase, fraction)

    outcome = _core.run(task.plan, task.seed, task.cache_dir, report)
    report("done", 1.0)
    tables = (outcome.series(), outcome.requests(), outcome.chips())
    for kind, table in zip(KINDS, tables, strict=True):
        if table is not None:
            files.write(kind, task.name, task.seed, table)
    data: dict[str, Any] = json.loads(outcome.json())
    return data


def _forward(reports: Queue[tuple[int, str, float]], progress: Progress | None) -> None:
    while True:
        try:
            report = reports.get_nowait()
        except queue.Empty:
            return
        if progress is not None:
            progress(*report)


class _Worker:
    """What a worker process got from its parent."""

    reports: Queue[tuple[int, str, float]]
    cancelled: Event


def _start_worker(reports: Queue[tuple[int, str, float]], cancelled: Event) -> None:
    # Ctrl-C reaches the whole process group; the parent passes it on as `cancelled`.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A worker's last progress report must not keep it from ending.
    reports.cancel_join_thread()
    _Worker.reports = reports
    _Worker.cancelled = cancelled


def _execute_in_worker(task: Task, directory: Path) -> dict[str, Any]:
    def progress(index: int, phase: str, fraction: float) -> None:
        if _Worker.cancelled.is_set():
            raise KeyboardInterrupt
        _Worker.reports.put((index, phase, fraction))

    return _execute(task, TableFiles(directory), progress)
