"""``flashkeel import``."""

from __future__ import annotations

import tomllib
from pathlib import Path

import click

from flashkeel._core import InputError
from flashkeel.cli.common import echo
from flashkeel.experiment import Experiment
from flashkeel.imports import Imported, read_fio, read_mqsim
from flashkeel.output import files

_OUT = click.option(
    "-o",
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write.",
)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(name="import")
def import_() -> None:
    """Turn documents of other tools into experiments."""


@import_.command()
@click.argument("file", type=_FILE)
@_OUT
def fio(file: Path, out: Path | None) -> None:
    """Turn a fio job file into an experiment.

    `flashkeel run FILE.fio` runs one as it is.
    """
    _give(read_fio(file), out, [file])


@import_.command()
@click.argument("config", type=_FILE, metavar="SSDCONFIG.xml")
@click.argument("workload", type=_FILE, metavar="[WORKLOAD.xml]", required=False)
@click.option(
    "--scenario", type=int, default=1, metavar="N", show_default=True, help="Of the workload."
)
@_OUT
def mqsim(config: Path, workload: Path | None, scenario: int, out: Path | None) -> None:
    """Turn MQSim's configuration and workload into an experiment."""
    _give(read_mqsim(config, workload, scenario), out, [config, *([workload] if workload else [])])


def find(name: str) -> Experiment:
    """Return the experiment called `name` or in that file, which may be a fio job file."""
    path = Path(name)
    if path.suffix != ".fio":
        found = Experiment.find(name)
        if path.suffix != ".toml" and path.is_file():
            _refuse_other_kinds(path, found.document)
        return found
    imported = read_fio(Path(name))
    _print_notes(imported)
    return imported.experiment(name)


def _refuse_other_kinds(path: Path, text: str) -> None:
    """Raise InputError that says what a file is, if it is no experiment."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        try:
            read_fio(path)
        except InputError:
            hint = 'a trace is replayed by an experiment with workload.source.path = "…"'
        else:
            hint = "it is a fio job file, which runs where its name ends in .fio"
        raise InputError(f"{path}: no experiment: not TOML ({error}); {hint}") from None


def _print_notes(imported: Imported) -> None:
    for note in imported.notes:
        echo(f"note: {note}", err=True)


def _give(imported: Imported, out: Path | None, sources: list[Path]) -> None:
    if out is None:
        echo(imported.to_toml(), nl=False)
        return
    read = list(files.paths_in(imported.table))
    files.refuse_overwriting(out, [*sources, *read])
    files.move_paths(imported.table, out.parent)
    _print_notes(imported)
    # What is wrong with it is better known now than at its first run.
    imported.experiment(str(out)).plans()
    files.write(out, imported.to_toml())
