"""Execution of several runs at a time, a thread each.

While it simulates, a run has no need of Python, so that runs do not wait for each other.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from flashkeel import execution
from flashkeel.arrow import TableFiles
from flashkeel.execution import Progress, Task

_POLL_S = 0.1

_Reports = queue.SimpleQueue[tuple[int, str, float]]


def execute(
    tasks: Sequence[Task],
    jobs: int,
    files: TableFiles | None,
    progress: Progress | None,
    finished: Callable[[int, dict[str, Any]], None] | None,
) -> list[dict[str, Any]]:
    """Run all tasks, at most `jobs` at a time, as :func:`flashkeel.execution.execute` does.

    `progress` and `finished` are called where this is.
    """
    reports: _Reports = queue.SimpleQueue()
    cancelled = threading.Event()

    def report(index: int, phase: str, fraction: float) -> None:
        if cancelled.is_set():
            raise KeyboardInterrupt
        reports.put((index, phase, fraction))

    handed_over = set()
    with ThreadPoolExecutor(min(jobs, len(tasks))) as pool:
        try:
            futures = [pool.submit(execution.run, task, files, report) for task in tasks]
            pending = set(futures)
            while pending:
                done, pending = wait(pending, _POLL_S, FIRST_COMPLETED)
                _forward(reports, progress)
                # Those that failed last: what others have finished is handed over.
                for future in sorted(done, key=_has_failed):
                    run = future.result()
                    handed_over.add(future)
                    if finished is not None:
                        finished(tasks[futures.index(future)].index, run)
        except BaseException:
            # Interrupts come here only; those who run are told when they report.
            cancelled.set()
            pool.shutdown(cancel_futures=True)
            if finished is not None:
                for index, future in enumerate(futures):
                    if future not in handed_over and not _has_failed(future):
                        finished(tasks[index].index, future.result())
            raise
        return [future.result() for future in futures]


def _has_failed(future: Future[dict[str, Any]]) -> bool:
    """Return whether what has ended did not end well."""
    return future.cancelled() or future.exception() is not None


def _forward(reports: _Reports, progress: Progress | None) -> None:
    while True:
        try:
            report = reports.get_nowait()
        except queue.Empty:
            return
        if progress is not None:
            progress(*report)
