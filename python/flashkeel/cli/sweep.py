"""``flashkeel sweep``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click

from flashkeel._core import InputError
from flashkeel.cli.common import console, echo, settings
from flashkeel.execution import Progress
from flashkeel.output import files, sweep_tables, tables
from flashkeel.output.progress import Bars
from flashkeel.sweep import design as designs
from flashkeel.sweep import outcome, running


@click.command()
@click.argument("sweep", metavar="SWEEP.toml|NAME")
@click.option(
    "-o",
    "--out",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="Keep runs, tables and picture there.",
)
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Set a key in every point.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    metavar="K",
    help="Run with K consecutive seeds, and pool them.",
)
@click.option(
    "--executor",
    type=click.Choice(["local", "dask"]),
    default="local",
    show_default=True,
    help="Threads here, or Dask's workers.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, metavar="N", help="Runs at a time, or workers."
)
@click.option("--scheduler", metavar="ADDRESS", help="Dask's scheduler, instead of a cluster here.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def sweep(
    sweep: str,
    directory: Path,
    sets: tuple[str, ...],
    seeds: int,
    executor: Literal["local", "dask"],
    jobs: int,
    scheduler: str | None,
    form: str,
) -> None:
    """Run an experiment over many values of its keys.

    SWEEP is a TOML file, or built in and called by its name. What has been
    run before is not run again, and what was run when the sweep is
    interrupted is kept: the same command goes on from there.
    """
    if scheduler is not None and executor != "dask":
        raise click.UsageError("--scheduler is Dask's: say --executor dask")
    design = designs.read(sweep)
    design.given.update(settings(sets))
    outcome.refuse_unknown_columns(design)
    _refuse_others(directory)
    store = running.Store(directory)
    points = running.points(design, seeds)
    has_real = any(point.is_real for point in points)
    if has_real and executor == "dask":
        raise InputError("--executor dask: a real drive is in it, and is measured from here alone")
    work = running.work(points, store)
    wanted, total = work.wanted, work.done + len(work.wanted)
    if work.alike and form == "table":
        whole = f"{work.alike} of {total + work.alike} runs are equal to others, and not run twice"
        echo(f"{whole}; what they differ in makes no difference, or is set in all", err=True)
    if work.done and form == "table":
        echo(f"{work.done} of {total} runs are there already", err=True)
    click.get_current_context().with_resource(files.folder(directory))
    further = "measures real drives anew" if has_real else "goes on from there"
    try:
        with Bars([design.title]) as bars:
            progress = _in_one(bars, len(wanted))
            running.run(wanted, store, executor, jobs, scheduler, progress)
    except (KeyboardInterrupt, SystemExit, InputError, RuntimeError, OSError) as end:
        done = running.finished(points, store)
        kept = "no point was finished"
        if done:
            outcome.save(design, done, directory)
            kept = (
                f"{len(done)} of {len(points)} points are kept in {directory}; "
                f"the same command {further}"
            )
        if isinstance(end, KeyboardInterrupt):
            raise KeyboardInterrupt(f"interrupted: {kept}") from None
        # A batch queue's end of it, say, or a run that fails, which is told after this.
        what = "interrupted: " if isinstance(end, SystemExit) else ""
        echo(f"flashkeel: {what}{kept}", err=True)
        raise
    done = running.finished(points, store)
    if missing := len(points) - len(done):
        raise RuntimeError(
            f"{directory}: {missing} of {len(points)} points are missing, though all were run: "
            "the files of their runs are gone"
        )
    _print(design, done, form)
    try:
        written = outcome.save(design, done, directory)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted: all points are kept in {directory}, without all of their tables and "
            f"picture; the same command {further}"
        ) from None
    if form == "table":
        for path in written:
            echo(f"Wrote {path}")


def _in_one(bars: Bars, runs: int) -> Progress:
    """Return what shows all runs as one bar: a sweep may have more than a terminal has lines."""
    fractions = [0.0] * runs

    def progress(index: int, phase: str, fraction: float) -> None:
        fractions[index] = fraction if phase in ("replay", "done") else 0.0
        done = sum(it == 1.0 for it in fractions)
        bars.update(0, f"{done} of {runs} runs", sum(fractions) / runs)

    return progress


def _refuse_others(directory: Path) -> None:
    ours = (running.RUNS, *outcome.FILES)
    if directory.exists() and (others := files.others(directory, ours)):
        raise InputError(f"{directory}: holds other files, such as {others[0]!r}")


def _print(design: designs.Design, done: Sequence[running.Done], form: str) -> None:
    rows = outcome.rows(design, done)
    if form == "json":
        echo(json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False))
        return
    screen = console()
    runs = [it.run for it in done]
    screen.print(
        sweep_tables.sweep(design.title, design.keys, runs, rows, max(tables.PAGE, screen.width))
    )
