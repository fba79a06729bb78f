"""``flashkeel trace``."""

from __future__ import annotations

import difflib
import json
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import click

from flashkeel import _core
from flashkeel._core import InputError
from flashkeel.cli.common import Seed, console, split_assignment
from flashkeel.experiment import Experiment
from flashkeel.output import listing, tables
from flashkeel.output.progress import Bars

_SETTINGS = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of the trace, such as format=msr or reorder=10ms.",
)


@click.group()
def trace() -> None:
    """Look at traces, convert and generate them."""


@trace.command()
@click.argument("file")
@_SETTINGS
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def info(file: str, sets: tuple[str, ...], form: str) -> None:
    """Say what a trace holds, or what is wrong with it first."""
    with Bars([file]) as bars:
        found = json.loads(_core.trace_info(file, _settings(sets), partial(bars.update, 0)))
    if form == "json":
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    console().print(tables.trace_terms(file, found.pop("basis"), found.pop("terms")))
    for line in listing.lines(found):
        click.echo(line)


@trace.command()
@click.argument("source")
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--to", "form", required=True, metavar="FORMAT", help="Format to write.")
@_SETTINGS
def convert(source: str, target: Path, form: str, sets: tuple[str, ...]) -> None:
    """Write a trace in another format; with gzip where TARGET ends in .gz."""
    with Bars([source]) as bars:
        written = _core.trace_convert(
            source, _settings(sets), str(target), form, partial(bars.update, 0)
        )
    _print_written(written)


@trace.command()
@click.argument("name", metavar="PROFILE|EXPERIMENT.toml|NAME")
@click.option(
    "-o",
    "--out",
    "target",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File to write.",
)
@click.option("--format", "form", required=True, metavar="FORMAT", help="Format to write.")
@click.option("--run", "run_name", metavar="NAME", help="Run whose workload it is; else the first.")
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Set a key over the experiment's."
)
@click.option("--seed", type=Seed(), metavar="N", help="Seed.")
def synth(
    name: str,
    target: Path,
    form: str,
    run_name: str | None,
    sets: tuple[str, ...],
    seed: int | None,
) -> None:
    """Write a profile, or the workload an experiment generates, as a trace.

    With gzip where FILE ends in .gz. `flashkeel list profiles` names the
    profiles; `--set workload.requests=N` or `workload.duration=TIME` cuts one.
    """
    profiles = json.loads(_core.list_names("profiles"))
    chosen = Experiment.with_profile(name) if name in profiles else _experiment(name, profiles)
    for text in sets:
        chosen.set(*split_assignment(text, "--set"))
    with Bars([name]) as bars:
        progress = partial(bars.update, 0)
        plans = chosen.plans(seed, progress)
        config = next((plan["config"] for plan in plans if run_name in (None, plan["name"])), None)
        if config is None:
            known = ", ".join(plan["name"] for plan in plans)
            raise InputError(f"--run {run_name}: no such run; the experiment has {known}")
        written = _core.trace_synth(json.dumps(config), str(target), form, config["seed"], progress)
    _print_written(written)


def _experiment(name: str, profiles: list[str]) -> Experiment:
    try:
        return Experiment.find(name)
    except InputError as error:
        if Path(name).suffix:
            raise
        near = difflib.get_close_matches(name, profiles, 1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        message = f"{error}; the profiles are {', '.join(profiles)}{hint}"
        raise InputError(message) from error


def _settings(sets: tuple[str, ...]) -> str:
    """Return ``KEY=VALUE`` texts as a JSON object; values as in ``run --set``."""
    return json.dumps({k: _value(v) for k, v in (split_assignment(s, "--set") for s in sets)})


def _value(text: str) -> Any:  # noqa: ANN401
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _print_written(done: str) -> None:
    found = json.loads(done)
    counts = {key: value for key, value in found.pop("counts").items() if value}
    for line in listing.lines(found | {"input": counts}):
        click.echo(line)
