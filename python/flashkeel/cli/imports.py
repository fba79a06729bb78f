"""``flashkeel import``."""

from __future__ import annotations

from pathlib import Path

import click

from flashkeel.cli.common import echo, print_notes
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


def _give(imported: Imported, out: Path | None, sources: list[Path]) -> None:
    # What is wrong with it is better known now than at its first run.
    if out is None:
        imported.experiment("-").plans()
        echo(imported.to_toml(), nl=False)
        return
    read = list(files.paths_in(imported.table))
    files.refuse_overwriting(out, [*sources, *read])
    files.move_paths(imported.table, out.parent)
    print_notes(imported.notes)
    imported.experiment(str(out)).plans()
    files.write(out, imported.to_toml())
