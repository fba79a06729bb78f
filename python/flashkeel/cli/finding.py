"""The experiment that is named on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flashkeel._core import InputError
from flashkeel.cli.common import echo
from flashkeel.experiment import Experiment
from flashkeel.parsing import parse_toml

if TYPE_CHECKING:
    from flashkeel.imports import Imported


def find(name: str) -> Experiment:
    """Return the experiment called `name` or in that file, which may be a fio job file."""
    path = Path(name)
    if path.suffix != ".fio":
        found = Experiment.find(name)
        if path.suffix != ".toml" and path.is_file():
            _refuse_other_kinds(path, found.document)
        return found
    from flashkeel.imports import read_fio

    imported = read_fio(Path(name))
    print_notes(imported)
    return imported.experiment(name)


def _refuse_other_kinds(path: Path, text: str) -> None:
    """Raise InputError that says what a file is, if it is no experiment."""
    try:
        parse_toml(text)
    except ValueError as error:
        from flashkeel.imports import read_fio

        try:
            read_fio(path)
        except InputError:
            hint = 'a trace is replayed by an experiment with workload.source.path = "…"'
        else:
            hint = "it is a fio job file, which runs where its name ends in .fio"
        raise InputError(f"{path}: no experiment: not TOML ({error}); {hint}") from None


def print_notes(imported: Imported) -> None:
    """Say what of a document has no equal here."""
    for note in imported.notes:
        echo(f"note: {note}", err=True)
