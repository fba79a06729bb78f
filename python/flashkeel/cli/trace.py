"""``flashkeel trace``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from flashkeel import _core, foreign
from flashkeel._core import InputError
from flashkeel.cli.common import Number, Seed, console, echo, source_settings
from flashkeel.cli.finding import find
from flashkeel.output import files, listing, tables
from flashkeel.output.progress import Bars

_SETTINGS = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of the trace, such as format=msr or reorder=10ms.",
)

_FORMAT = click.option(
    "--to", "form", metavar="FORMAT", help="Format to write; else as TARGET ends, or msr."
)
_TARGET = click.argument("target", metavar="TARGET")

_TEXTS = (".csv", ".log", ".txt")
"""Ends of names of traces that are text."""
_MOST_DEVICES = 20
"""Devices of a trace that are shown."""


@click.group()
def trace() -> None:
    """Look at traces, convert, cut, scale, merge and generate them."""


@trace.command()
@click.argument("file")
@_SETTINGS
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def info(file: str, sets: tuple[str, ...], form: str) -> None:
    """Say what a trace holds, or what is wrong with it first."""
    with Bars([file]) as bars, foreign.named(file):
        options = json.dumps(source_settings(sets))
        found = json.loads(_core.trace_info(file, options, partial(bars.update, 0)))
    if form == "json":
        echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    console().print(tables.trace_terms(file, found.pop("basis"), found.pop("terms")))
    found["devices"] = sorted(found["devices"], key=lambda it: (-it["requests"], it["name"]))
    if len(found["devices"]) > _MOST_DEVICES:
        count, shown = len(found["devices"]), found["devices"][:_MOST_DEVICES]
        # In its place, under a name that says what is left out.
        name = f"busiest {_MOST_DEVICES} of {count:,} devices"
        found = {
            name if k == "devices" else k: shown if k == "devices" else v for k, v in found.items()
        }
    for line in listing.lines(found):
        echo(line)


@trace.command()
@click.argument("source")
@_TARGET
@_FORMAT
@_SETTINGS
def convert(source: str, target: str, form: str | None, sets: tuple[str, ...]) -> None:
    """Write a trace in another format.

    With gzip where TARGET ends in .gz, as Parquet where it ends in .parquet; to
    standard output where it is `-`.
    """
    _write(source, target, form, source_settings(sets))


@trace.command(name="slice")
@click.argument("source")
@_TARGET
@click.option("--from", "begin", metavar="TIME", default="0s", help="Beginning, such as 10min.")
@click.option("--until", "end", metavar="TIME", help="End, not included; else the trace's.")
@click.option("--device", metavar="NAME", help="Only the requests of this device.")
@_FORMAT
@_SETTINGS
def slice_(
    source: str,
    target: str,
    begin: str,
    end: str | None,
    device: str | None,
    form: str | None,
    sets: tuple[str, ...],
) -> None:
    """Write a part of a trace, in recorded time from its first request."""
    for option, time in (("--from", begin), ("--until", end)):
        if time is not None and time.startswith("-"):
            raise click.UsageError(f"{option} {time}: a trace begins at 0s")
    window = {"from": begin} | ({"to": end} if end else {})
    chosen = source_settings(sets) | {"window": window} | ({"device": device} if device else {})
    _write(source, target, form, chosen)


@trace.command()
@click.argument("source")
@_TARGET
@click.option("--intensity", type=Number(1e-6, 1e6), metavar="X", help="How many times as fast.")
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="How many times over.")
@_FORMAT
@_SETTINGS
def scale(
    source: str,
    target: str,
    intensity: float | None,
    repeat: int | None,
    form: str | None,
    sets: tuple[str, ...],
) -> None:
    """Write a trace faster, slower or several times over."""
    asked = {"intensity": intensity, "repeat": repeat}
    given = {key: value for key, value in asked.items() if value is not None}
    if not given:
        raise click.UsageError("say how: --intensity X or --repeat N")
    _write(source, target, form, source_settings(sets) | given)


@trace.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("-o", "--out", "target", required=True, metavar="FILE", help="File to write.")
@click.option(
    "--times",
    type=click.Choice(["together", "recorded"]),
    default="together",
    show_default=True,
    help="All begin together, or as their clocks say, which are then one.",
)
@click.option(
    "--addresses",
    type=click.Choice(["separate", "merge"]),
    default="separate",
    show_default=True,
    help="One behind the other, or on the same addresses.",
)
@_FORMAT
@_SETTINGS
def merge(
    sources: tuple[str, ...],
    target: str,
    times: str,
    addresses: str,
    form: str | None,
    sets: tuple[str, ...],
) -> None:
    """Write several traces as one, by time."""
    with Bars([target]) as bars, _may_go(target):
        progress = partial(bars.update, 0)
        chosen = json.dumps(source_settings(sets))
        _print_written(
            _core.trace_merge(
                list(sources), chosen, times, addresses, target, _form(form, target), progress
            ),
            target,
        )


@trace.command()
@click.argument("name", metavar="PROFILE|EXPERIMENT.toml|NAME|TRACE")
@click.option("-o", "--out", "target", required=True, metavar="FILE", help="File to write.")
@click.option("--format", "form", metavar="FORMAT", help="Format to write.")
@click.option("--run", "run_name", metavar="NAME", help="Run whose workload it is; else the first.")
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Set a key over the experiment's."
)
@click.option("--seed", type=Seed(), metavar="N", help="Seed.")
@click.option(
    "--requests", type=click.IntRange(min=1), metavar="N", help="Requests made like a trace's."
)
def synth(
    name: str,
    target: str,
    form: str | None,
    run_name: str | None,
    sets: tuple[str, ...],
    seed: int | None,
    requests: int | None,
) -> None:
    """Write a trace like another, a profile or an experiment.

    With gzip where FILE ends in .gz. `flashkeel list profiles` names the
    profiles; `--set workload.requests=N` or `workload.duration=TIME` cuts one.
    Of a trace, its mix, sizes, gaps, sequentiality and places are measured, and
    as many requests are made like them; `--set` then takes keys of the trace.
    """
    if form is None and not _is_parquet(target):
        raise click.UsageError("--format says what to write; a file called .parquet needs none")
    form = _form(form, target)
    profiles = json.loads(_core.list_names("profiles"))
    if name not in profiles and _is_trace(name):
        with Bars([name]) as bars, _may_go(target):
            written = _core.trace_like(
                name,
                json.dumps(source_settings(sets)),
                target,
                form,
                seed or 0,
                requests,
                partial(bars.update, 0),
            )
        _print_written(written, target)
        return
    if requests is not None:
        raise click.UsageError("--requests is for traces; --set workload.requests=N for others")
    chosen = find(name, sets)
    with Bars([name]) as bars, _may_go(target):
        progress = partial(bars.update, 0)
        plans = chosen.plans(seed, progress)
        config = next((plan["config"] for plan in plans if run_name in (None, plan["name"])), None)
        if config is None:
            known = ", ".join(plan["name"] for plan in plans)
            raise InputError(f"--run {run_name}: no such run; the experiment has {known}")
        files.refuse_overwriting(Path(target), [name, *files.paths_in(config)])
        written = _core.trace_synth(json.dumps(config), target, form, config["seed"], progress)
    _print_written(written, target)


def _is_trace(name: str) -> bool:
    """Say whether `name` is a file or a pipe, and none of TOML."""
    known = json.loads(_core.list_names("experiments"))
    if name in known or Path(name).suffix in (".toml", ".fio"):
        return False
    return name == "-" or (Path(name).exists() and not Path(name).is_dir())


def _is_parquet(target: str) -> bool:
    return Path(target.removesuffix(".gz")).suffix == ".parquet"


def _form(given: str | None, target: str) -> str:
    """Return the format to write: the one given, or what the name of the target says.

    InputError where the two contradict each other: a text that is called a Parquet file, or a
    Parquet file that is called a text.
    """
    suffix = Path(target.removesuffix(".gz")).suffix
    is_parquet = _is_parquet(target)
    if given is not None and (is_parquet if given != "parquet" else suffix in _TEXTS):
        raise InputError(f"{target}: its name is not that of a trace as {given}; choose another")
    return given or ("parquet" if is_parquet else "msr")


def _write(source: str, target: str, form: str | None, chosen: dict[str, Any]) -> None:
    """Write `source` to `target`."""
    with Bars([source]) as bars, _may_go(target), foreign.named(source):
        progress = partial(bars.update, 0)
        written = _core.trace_convert(
            source, json.dumps(chosen), target, _form(form, target), progress
        )
    _print_written(written, target)


@contextmanager
def _may_go(target: str) -> Iterator[None]:
    """Take it for no error of the trace's where whoever read standard output has seen enough."""
    try:
        yield
    except RuntimeError as error:
        if target == "-" and str(error).endswith("Broken pipe"):
            raise BrokenPipeError from error
        raise


def _print_written(done: str, target: str) -> None:
    found = json.loads(done)
    counts = {key: value for key, value in found.pop("counts").items() if value}
    for line in listing.lines(found | {"input": counts}):
        # Standard output is the trace's, where it is written there.
        echo(line, err=target == "-")
