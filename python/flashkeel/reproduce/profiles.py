"""Requests of a named trace: recorded where the user has it, else synthetic."""

from __future__ import annotations

from typing import Any

from flashkeel._core import InputError
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
        if files:
            return {
                "policy": "trace",
                "path": str(files[0].absolute()),
                "fold": "wrap",
                "devices": "separate",
                "intensity": intensity,
            }
    return {"policy": "profile", "name": profile, "intensity": intensity}
