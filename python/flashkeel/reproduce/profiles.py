"""Requests of a named trace: recorded where the user has it, else synthetic."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flashkeel._core import InputError, list_names
from flashkeel.reproduce import recorded
from flashkeel.reproduce.session import Session


def or_all(session: Session) -> str:
    """Return what to say after how many requests of a trace are run: recorded ones end."""
    return "" if session.traces is None else ", or all of a shorter recorded one"


def source(session: Session, profile: str, intensity: float = 1.0) -> dict[str, Any]:
    """Return the workload source of a profile: its file in ``--traces``, or what imitates it.

    A file is named after the profile, with any extension: ``rad-as.csv.gz``.
    Addresses beyond the device are wrapped into it.
    """
    if session.traces is not None:
        files = sorted(session.traces.glob(f"{profile}.*"))
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise InputError(f"{session.traces}: several files for profile {profile}: {names}")
        session.lookups[profile] = bool(files)
        if files:
            return {
                "policy": "trace",
                "path": str(files[0].absolute()),
                "fold": "wrap",
                "devices": "separate",
                "intensity": intensity,
            }
    return {"policy": "profile", "name": profile, "intensity": intensity}


def refuse_useless(folder: Path) -> None:
    """Raise InputError where no file has the name of a profile or of a recorded trace."""
    known = _known()
    names = sorted(path.name for path in folder.iterdir())
    if any(name in recorded.NAMES or _stem(name) in known for name in names):
        return
    told = f"{folder}: no file is named after a profile, as {known[0]}.csv.gz would be"
    raise InputError(told + (_meant(names, known) or "; flashkeel list profiles names them"))


def generated(session: Session) -> str:
    """Return which profiles had no file in ``--traces``; empty where none was looked for."""
    folder = session.traces
    if folder is None:
        return ""
    if not session.lookups:
        return f"{folder}: nothing of it was replayed: what was run has no recorded requests"
    missing = [name for name in _known() if session.lookups.get(name) is False]
    if not missing:
        return ""
    names = sorted(path.name for path in folder.iterdir() if _stem(path.name) not in _known())
    return (
        f"{folder}: no file NAME.* for {', '.join(missing)}: generated requests instead"
        + _meant(names, missing)
    )


def _known() -> list[str]:
    names: list[str] = json.loads(list_names("profiles"))
    return names


def _stem(name: str) -> str:
    return name.partition(".")[0]


def _meant(names: Sequence[str], wanted: Sequence[str]) -> str:
    """Return what the first file with nearly the name of a profile may be meant for."""
    from difflib import get_close_matches

    for name in names:
        if near := get_close_matches(_stem(name).lower(), wanted, 1):
            return f'; is {name} meant for "{near[0]}"?'
    return ""
