"""``flashkeel run``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flashkeel.cli.common import DESTROY, Seed, console, echo, paragraph, saved_after
from flashkeel.cli.finding import find, note_missing_link
from flashkeel.experiment import identity
from flashkeel.output.progress import Bars
from flashkeel.seeds import consecutive

if TYPE_CHECKING:
    from flashkeel.result import Result


@click.command()
@click.argument("experiment", metavar="EXPERIMENT.toml|JOB.fio|TRACE|NAME")
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Set a key over the experiment's."
)
@click.option("--seed", type=Seed(), metavar="N", help="Seed, instead of the experiment's.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    metavar="K",
    help="Run with K consecutive seeds, and pool them.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Runs at a time; the results are the same for any number.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Save results, time series and pictures there.",
)
@click.option("--overwrite", is_flag=True, help="Let --out replace another experiment's result.")
@DESTROY
@click.option("--no-cache", is_flag=True, help="Neither use nor keep steady states on disk.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "fio-json"]),
    default="table",
    show_default=True,
)
def run(
    experiment: str,
    sets: tuple[str, ...],
    seed: int | None,
    seeds: int,
    jobs: int,
    out: Path | None,
    overwrite: bool,
    destroy: bool,
    no_cache: bool,
    form: str,
) -> None:
    """Run an experiment.

    It is a TOML file, a fio job file, or built in and called by its name. A trace, or a
    profile, is replayed on the default device; --set chooses another.
    """
    chosen = find(experiment, sets)
    with Bars([chosen.name]) as bars:
        plans = chosen.plans(seed, partial(bars.update, 0))
    note_missing_link(chosen, plans)
    # Before anything is made for each of them.
    consecutive(0, seeds)
    if out is not None:
        from flashkeel.output import storage

        storage.check(out, identity(plans, seeds), overwrite)
        storage.check_room(out, plans, seeds)
    names = [
        plan["name"] if seeds == 1 else f"{plan['name']} #{i + 1}"
        for plan in plans
        for i in range(seeds)
    ]
    with Bars(names) as bars:
        result = chosen.run(
            seed,
            seeds,
            jobs=jobs,
            use_cache=not no_cache,
            destroy=destroy,
            progress=bars.update,
        )
    if out is None:
        _print(result, form)
        return
    with saved_after(lambda: result.save(out, overwrite)):
        _print(result, form)
    if form == "table":
        from flashkeel.output import plots

        echo(f"Results: {out / storage.RESULT}\nPicture: {out / plots.FILES[0]}")


def _print(result: Result, form: str) -> None:
    if form == "json":
        echo(result.to_json())
    elif form == "fio-json":
        from flashkeel.output import fio_json

        echo(fio_json.render(result))
    else:
        _print_tables(result)


def _print_tables(result: Result) -> None:
    # Imported while nobody waits for the simulation to begin.
    from flashkeel.output import cautions, plots, tables, textplot

    classes = plots.shown_classes(result.runs)
    screen = console()
    screen.print(tables.runs(result.runs))
    screen.print(tables.costs(result.runs))
    for table in (tables.tiers, tables.tenants, tables.windows):
        more = table(result.runs)
        if more is not None:
            screen.print(more)
    for latency_class in classes:
        screen.print(tables.tails(result.runs, latency_class))
        measured = plots.with_samples(result.runs, latency_class)
        explanations = [run.explain(plots.ABOVE, latency_class) for run in measured]
        screen.print(tables.largest_causes(explanations))
        echo(textplot.tails(result.runs, latency_class) + "\n")
    for note in tables.notes(result.runs):
        echo(paragraph(note))
    for caution in cautions.of(result.runs):
        echo(paragraph(f"Note: {caution}"))
