"""The experiment that is named on the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flashkeel import _core, foreign
from flashkeel._core import InputError
from flashkeel.cli.common import SOURCE, echo, print_notes, settings, split_assignment
from flashkeel.experiment import Experiment, naming_profiles
from flashkeel.parsing import parse_toml, read_document
from flashkeel.suggest import did_you_mean

_OF_READING = ("format", "time_unit", "action", "columns", "times")
"""Keys of a trace that decide whether and how it can be read."""


def find(name: str, sets: tuple[str, ...] = ()) -> Experiment:
    """Return the experiment called `name` or in that file, with `sets` over it.

    The file may be a fio job file. A profile, or a trace, is one on the default device.
    """
    found = _find(name, sets)
    _refuse_sweep(found)
    for text in sets:
        found = found.set(*split_assignment(text, "--set"))
    return found


def _find(name: str, sets: tuple[str, ...]) -> Experiment:
    if name == "-":
        _refuse_keys_alone(sets)
        echo("note: standard input: a trace, replayed on the default device", err=True)
        return Experiment.with_trace(name)
    path = Path(name)
    if path.suffix == ".fio":
        from flashkeel.imports import read_fio

        imported = read_fio(path)
        print_notes(imported.notes)
        return imported.experiment(name)
    if name not in json.loads(_core.list_names("experiments")):
        if name in json.loads(_core.list_names("profiles")):
            _refuse_keys_alone(sets)
            return Experiment.with_profile(name)
        # A pipe can be read only once, and is not looked into.
        if path.suffix != ".toml" and (path.is_file() or name == os.devnull):
            return _in_file(path, sets)
    try:
        return Experiment.find(name)
    except InputError as error:
        raise (error if path.exists() else naming_profiles(name, error)) from None


def _refuse_sweep(found: Experiment) -> None:
    """Raise InputError if a document is a sweep's."""
    try:
        keys = parse_toml(found.document).keys()
    except ValueError:
        # What is wrong with it is told where it is resolved.
        return
    if "experiment" in keys and keys & {"grid", "random"}:
        raise InputError(f"{found.name}: a sweep, which `flashkeel sweep {found.name} -o DIR` runs")


def _in_file(path: Path, sets: tuple[str, ...]) -> Experiment:
    """Return what is in a file whose name does not say it."""
    wrong = ""
    try:
        held = parse_toml(read_document(path))
    except InputError:
        # It is no text, or may be longer than memory, as a trace is.
        pass
    except ValueError as error:
        _refuse_fio(path)
        wrong = f"{path}: no experiment: not TOML ({error})"
    else:
        if not held:
            raise InputError(
                f"{path}: is empty, or holds comments only: no experiment and no trace"
            )
        return Experiment.find(str(path))
    _refuse_keys_alone(sets)
    given = settings(sets)
    options = {key: given[SOURCE + key] for key in _OF_READING if SOURCE + key in given}
    try:
        with foreign.named(path):
            form = _core.trace_format(str(path), json.dumps(options))
    except InputError as error:
        raise InputError(f"{wrong}; no trace: {error}" if wrong else str(error)) from None
    echo(f"note: {path}: a trace ({form}), replayed on the default device", err=True)
    return Experiment.with_trace(path)


def _refuse_keys_alone(sets: tuple[str, ...]) -> None:
    """Raise InputError for a key as `trace`, which knows no experiment, would take it."""
    known = json.loads(_core.schema())["properties"]
    for key in settings(sets):
        if key.partition(".")[0] not in known:
            raise InputError(
                f"--set {key}: unknown key; expected one of {', '.join(known)}, or "
                f"{SOURCE}KEY for one of the trace or profile{did_you_mean(key, known)}"
            )


def _refuse_fio(path: Path) -> None:
    """Raise InputError if a file is a fio job file."""
    from flashkeel.imports import read_fio

    try:
        read_fio(path)
    except InputError:
        return
    hint = "it is a fio job file, which runs where its name ends in .fio"
    raise InputError(f"{path}: no experiment: {hint}")


def note_missing_link(chosen: Experiment, plans: Sequence[Mapping[str, Any]]) -> None:
    """Say where data reach the drive in no time, unless the experiment has chosen its device."""
    table = parse_toml(chosen.document)
    places = [table, table.get("stack", {}), *(run.get("set", {}) for run in table.get("runs", []))]
    named = {part for place in places for key in place for part in key.split(".")}
    if named & {"device", "devices"}:
        return
    if not all(plan["config"].get("device", {}).get("host_link") for plan in plans):
        echo(
            "note: the device has no host_link: data cross the link in no time, unless\n"
            '--set device.host_link="3500MB/s" or another preset says how fast it is',
            err=True,
        )
