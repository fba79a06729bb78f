"""Running a sweep: what was run before is not run again, what was run is kept."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from flashkeel import cache
from flashkeel._core import InputError
from flashkeel.arrow import TableFiles
from flashkeel.execution import Progress, Task
from flashkeel.experiment import has_real, pool, refuse_pipes
from flashkeel.output import files
from flashkeel.run import Run
from flashkeel.seeds import consecutive
from flashkeel.sweep import executors
from flashkeel.sweep.design import Design

RUNS = "runs"
"""The folder of finished runs, in that of the sweep."""

Executor = Literal["local", "dask"]


@dataclass(frozen=True)
class Point:
    """One run of one point of the design, with all its seeds."""

    index: int
    values: Mapping[str, Any]
    plan: Mapping[str, Any]
    seeds: Sequence[int]

    @property
    def place(self) -> str:
        """What errors of its run begin with."""
        return f"{_place(self.index, self.values)}, run {self.plan['name']}"

    @property
    def is_real(self) -> bool:
        """Whether a real drive is in it, which nothing measures twice alike."""
        return has_real(self.plan)


@dataclass(frozen=True)
class Done:
    """A point with what was measured there."""

    point: Point
    run: Run


def points(design: Design, seeds: int) -> list[Point]:
    """Resolve all points; InputError names the first that is wrong, before anything is run."""
    if both := design.set_twice():
        raise InputError(f"{design.name}: {both} is varied, and cannot be set in every point")
    found = []
    for index, values in enumerate(design.points):
        try:
            plans = design.experiment(values).plans()
        except InputError as error:
            raise InputError(f"{design.name}: {_place(index, values)}: {error}") from error
        # The second run would get nothing of it, and the next sweep could not tell it from others.
        refuse_pipes(plans)
        found += [
            Point(index, values, plan, consecutive(plan["config"]["seed"], seeds)) for plan in plans
        ]
    return found


def _place(index: int, values: Mapping[str, Any]) -> str:
    where = ", ".join(f"{key} = {value}" for key, value in values.items())
    return f"point {index + 1} ({where})"


class Store:
    """Finished runs, by what they were made from: the plan, the seed, the simulator itself.

    Those of real drives are made from what nobody has again, and end with the store.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory / RUNS
        # What is read, as it was when its run was planned.
        self._stamps: dict[str, list[str | int]] = {}
        self._real: dict[Path, Mapping[str, Any]] = {}

    def path(self, point: Point, seed: int) -> Path:
        """Return the file of a run."""
        # A run's name, and what is said above pictures of it, change nothing; the seed is told
        # by itself.
        config = {k: it for k, it in point.plan["config"].items() if k not in ("title", "seed")}
        read = [self._stamp(path) for path in files.paths_in(config)]
        text = json.dumps([cache.simulator(), config, seed, read], sort_keys=True)
        return self.directory / f"{hashlib.sha256(text.encode()).hexdigest()}.json.gz"

    def get(self, point: Point, seed: int) -> dict[str, Any] | None:
        """Return a run, if it was finished before; what is damaged is run again."""
        path = self.path(point, seed)
        run: Mapping[str, Any] | None
        run = self._real.get(path) if point.is_real else files.unpacked(path)
        # As a run of this plan: it may have been kept under another title, or as the first seed
        # of another one.
        own = {"name": point.plan["name"], "config": point.plan["config"]}
        return None if run is None else {**run, **own}

    def put(self, point: Point, seed: int, run: Mapping[str, Any]) -> None:
        """Keep a run, whole or not at all.

        RuntimeError where what it reads is no longer what it was.
        """
        if point.is_real:
            self._real[self.path(point, seed)] = run
            return
        for read in files.paths_in(point.plan["config"]):
            if _stamp(read) != self._stamp(read):
                raise RuntimeError(
                    f"{read}: it was changed while the sweep ran; the same command runs anew what "
                    "reads it"
                )
        self.directory.mkdir(parents=True, exist_ok=True)
        files.pack(self.path(point, seed), run)

    def _stamp(self, path: str) -> list[str | int]:
        return self._stamps.setdefault(path, _stamp(path))


def _stamp(path: str) -> list[str | int]:
    try:
        found = os.fstat(0) if path == "-" else Path(path).stat()
    except OSError:
        return [path]
    # What is standard input has no name here that tells one file from another.
    file = [found.st_dev, found.st_ino] if path == "-" else []
    return [path, *file, found.st_size, found.st_mtime_ns]


@dataclass(frozen=True)
class Work:
    """What there is to do."""

    wanted: Sequence[tuple[Point, int]]
    """Points and seeds that were not run yet, equal ones once."""
    done: int
    """Runs that are there."""
    alike: int
    """Runs that are equal to others of the same sweep."""


def work(all_points: Sequence[Point], store: Store) -> Work:
    """Return what was not run yet, and how much was."""
    pairs = [(point, seed) for point in all_points for seed in point.seeds]
    distinct = {store.path(*pair): pair for pair in pairs}
    wanted = [pair for pair in distinct.values() if store.get(*pair) is None]
    return Work(wanted, len(distinct) - len(wanted), len(pairs) - len(distinct))


def run(
    wanted: Sequence[tuple[Point, int]],
    store: Store,
    executor: Executor,
    jobs: int,
    scheduler: str | None,
    progress: Progress | None,
) -> None:
    """Run what is wanted and keep each run as it is finished.

    Where real drives are in it, one run comes after the other, whatever `jobs` says.
    """
    if any(point.is_real for point, _ in wanted):
        jobs = 1
    tasks = [
        Task(
            index,
            point.plan["name"],
            json.dumps(point.plan),
            seed,
            str(cache.directory()),
            point.place,
        )
        for index, (point, seed) in enumerate(wanted)
    ]

    def finished(index: int, data: dict[str, Any]) -> None:
        store.put(*wanted[index], data)

    if executor == "dask":
        executors.dask(tasks, jobs, finished, progress, scheduler)
    else:
        executors.local(tasks, jobs, finished, progress)


def finished(all_points: Sequence[Point], store: Store) -> list[Done]:
    """Return the points of which all seeds were run, pooled."""
    done = []
    for point in all_points:
        runs = [found for seed in point.seeds if (found := store.get(point, seed)) is not None]
        if len(runs) == len(point.seeds):
            done.append(Done(point, Run(pool(runs), TableFiles.none())))
    return done
