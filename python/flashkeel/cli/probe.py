"""``flashkeel probe`` and ``flashkeel predict``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click

from flashkeel.cli.common import Seed, console, echo, split_assignment
from flashkeel.output import files, probe_plots, probe_tables
from flashkeel.output.progress import Bars
from flashkeel.seeds import consecutive
from flashkeel.ssdcheck import WORKLOADS, Diagnosis, Drive

_FORMAT = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
_SETS = click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Set a key of the device or stack."
)
_SEED = click.option("--seed", type=Seed(), default=1, show_default=True, metavar="N", help="Seed.")
_NO_CACHE = click.option(
    "--no-cache", is_flag=True, help="Neither use nor keep steady states on disk."
)


@click.command()
@click.argument("target", metavar="sim:PRESET|FILE.toml")
@_SETS
@_SEED
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Save the device model, the evidence and a picture there.",
)
@_NO_CACHE
@_FORMAT
def probe(
    target: str, sets: tuple[str, ...], seed: int, out: Path | None, no_cache: bool, form: str
) -> None:
    """Diagnose a drive from outside.

    Found are its volumes, its write buffer and the thresholds at which it flushes and collects.
    """
    drive = Drive.find(target, _assignments(sets))
    with Bars([target]) as bars:
        found = drive.probe(seed, not no_cache, partial(bars.update, 0))
    saved: list[Path] = []
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        saved = [out / "model.json", out / "evidence.json", out / probe_plots.FILE]
        files.write(saved[0], found.to_json() + "\n")
        files.write(saved[1], json.dumps(found.evidence) + "\n")
        probe_plots.save(found, saved[2])
    if form == "json":
        echo(found.to_json())
        return
    screen = console()
    for table in probe_tables.diagnosis(found):
        screen.print(table)
    for path in saved:
        echo(f"Saved: {path}")


@click.command()
@click.argument("target", metavar="sim:PRESET|FILE.toml")
@click.option(
    "--model",
    "model_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Device model, as probe --out saves it; else another specimen is probed.",
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="PROFILE|EXPERIMENT.toml",
    help="Workload; several, or else the paper's seven.",
)
@click.option(
    "--requests",
    type=click.IntRange(min=1),
    default=200_000,
    show_default=True,
    metavar="N",
    help="Requests of each profile.",
)
@_SETS
@_SEED
@_NO_CACHE
@_FORMAT
def predict(
    target: str,
    model_file: Path | None,
    workloads: tuple[str, ...],
    requests: int,
    sets: tuple[str, ...],
    seed: int,
    no_cache: bool,
    form: str,
) -> None:
    """Predict every request to a drive, and say how good that was."""
    drive = Drive.find(target, _assignments(sets))
    chosen = workloads or WORKLOADS
    with Bars(["model", *chosen]) as bars:
        if model_file is not None:
            model = Diagnosis.from_file(model_file)
        else:
            # The model must not know the very drive that it predicts.
            _, other = consecutive(seed, 2)
            model = drive.probe(other, not no_cache, partial(bars.update, 0))
        found = [
            drive.predict(model, name, requests, seed, not no_cache, partial(bars.update, index))
            for index, name in enumerate(chosen, 1)
        ]
    if form == "json":
        echo(json.dumps({"target": target, "seed": seed, "workloads": found}, indent=2))
    else:
        console().print(probe_tables.predictions(target, found))


def _assignments(sets: tuple[str, ...]) -> list[tuple[str, str]]:
    return [split_assignment(text, "--set") for text in sets]
