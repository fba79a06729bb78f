"""Where the runs of a sweep are worked on: threads here, or Dask's workers anywhere."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from flashkeel import _core, cache, execution
from flashkeel._core import InputError
from flashkeel.execution import Progress, Task

Finished = Callable[[int, dict[str, Any]], None]
"""Called with the index of a task and its run, as soon as there is one."""


def local(tasks: Sequence[Task], jobs: int, finished: Finished, progress: Progress | None) -> None:
    """Run the tasks on this machine, `jobs` at a time."""
    # Series are not kept: of a sweep they would be thousands of files.
    execution.execute(tasks, jobs, None, progress, finished)


def dask(
    tasks: Sequence[Task],
    jobs: int,
    finished: Finished,
    progress: Progress | None,
    scheduler: str | None = None,
) -> None:
    """Run the tasks on Dask's workers: those of `scheduler`, or of a cluster of `jobs` here."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise InputError(
            "--executor dask: Dask is not installed; pip install 'flashkeel[dask]'"
        ) from error
    place: Any = scheduler or distributed.LocalCluster(
        n_workers=jobs, threads_per_worker=1, scheduler_kwargs={"dashboard": False}
    )
    try:
        with distributed.Client(place) as client:
            # A worker's own steady states are in its own cache directory.
            futures = {
                client.submit(_on_worker, task.plan, task.seed, cache.simulator(), pure=False): task
                for task in tasks
            }
            try:
                for future in distributed.as_completed(futures):
                    task = futures[future]
                    with execution.placed(task):
                        run = future.result()
                    finished(task.index, json.loads(run))
                    if progress is not None:
                        progress(task.index, "done", 1.0)
            except BaseException:
                client.cancel(list(futures))
                raise
    finally:
        if not scheduler:
            place.close()


def _on_worker(plan: str, seed: int, simulator: str) -> str:
    """Run one task where this is called; RuntimeError where another build is installed."""
    if cache.simulator() != simulator:
        raise RuntimeError(
            f"a worker has another build of flashkeel {_core.version()} than the sweep was begun "
            "with, whose results may differ: install the same one"
        )
    return _core.run(plan, seed, str(cache.directory()), lambda *_: None).json()
