"""Execution of runs in several processes."""

from __future__ import annotations

import multiprocessing
import queue
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashkeel import execution
from flashkeel.arrow import TableFiles
from flashkeel.execution import Progress, Task

if TYPE_CHECKING:
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Event

_POLL_S = 0.1


def execute(
    tasks: Sequence[Task],
    jobs: int,
    files: TableFiles,
    progress: Progress | None,
    finished: Callable[[int, dict[str, Any]], None] | None,
) -> list[dict[str, Any]]:
    """Run all tasks, at most `jobs` at a time, as :func:`flashkeel.execution.execute` does."""
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

    return execution.run(task, TableFiles(directory), progress)
