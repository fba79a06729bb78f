"""``flashkeel probe``."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from pathlib import Path

import click

from flashkeel.cli.common import DESTROY, Number, Seed, console, echo, saved_after, split_assignment
from flashkeel.output import files, probe_plots, probe_tables
from flashkeel.output.progress import Bars
from flashkeel.ssdcheck import Diagnosis, Drive

_FILES = ("model.json", "evidence.json", probe_plots.FILE)

FORMAT = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
SETS = click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Set a key of the device or stack."
)
NO_CACHE = click.option(
    "--no-cache", is_flag=True, help="Neither use nor keep steady states on disk."
)


@click.command()
@click.argument("target", metavar="sim:PRESET|FILE.toml|DRIVE|nbd://...")
@SETS
@click.option("--seed", type=Seed(), default=1, show_default=True, metavar="N", help="Seed.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Save the device model, the evidence and a picture there.",
)
@DESTROY
@click.option(
    "--limit",
    type=Number(min=1, max=1e9),
    metavar="SECONDS",
    help="Time of the drive; what is not found by then is not determined.",
)
@NO_CACHE
@FORMAT
def probe(
    target: str,
    sets: tuple[str, ...],
    seed: int,
    out: Path | None,
    destroy: bool,
    limit: float | None,
    no_cache: bool,
    form: str,
) -> None:
    """Diagnose a drive from outside.

    Found are its volumes, its write buffer and the thresholds at which it flushes and collects. A
    real drive is overwritten: that takes --destroy. It is a block device, a file of 16 MiB or more
    that is no text, or an export of a network block device server, nbd://HOST:PORT/EXPORT or
    nbd+unix:///EXPORT?socket=PATH.
    """
    drive = find_drive(target, sets, destroy)
    within = None if limit is None else timedelta(seconds=limit)
    if out is not None:
        # Before a drive is overwritten.
        click.get_current_context().with_resource(files.folder(out))
    with Bars([target]) as bars:
        found = drive.probe(seed, not no_cache, partial(bars.update, 0), within)
    if out is None:
        _print(found, form)
        return
    with saved_after(lambda: _save(found, out)):
        _print(found, form)
    if form == "table":
        for name in _FILES:
            echo(f"Saved: {out / name}")


def _print(found: Diagnosis, form: str) -> None:
    if form == "json":
        echo(found.to_json())
        return
    screen = console()
    for table in probe_tables.diagnosis(found):
        screen.print(table)


def _save(found: Diagnosis, out: Path) -> None:
    model, evidence, picture = (out / name for name in _FILES)
    files.write(model, found.to_json() + "\n")
    files.write(evidence, json.dumps(found.evidence) + "\n")
    probe_plots.save(found, picture)


def find_drive(target: str, sets: tuple[str, ...], destroy: bool) -> Drive:
    """Return the drive that is meant, and say what of its document is not used."""
    drive = Drive.find(target, [split_assignment(text, "--set") for text in sets], destroy)
    if drive.unused:
        unused = ", ".join(drive.unused)
        echo(f"note: {target}: not used, as it says nothing of the drive: {unused}", err=True)
    return drive
