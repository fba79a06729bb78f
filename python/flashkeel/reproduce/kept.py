"""Runs that are kept on disk, so that a reproduction that was broken off goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from flashkeel import cache
from flashkeel.arrow import TableFiles
from flashkeel.output import files

LIMIT_BYTES = 1 << 30
"""Some two thousand runs."""


class Answers:
    """A folder of what was computed, each by a text that names all it follows from."""

    def __init__(self, directory: Path) -> None:
        """Take the cache directory."""
        self._folder = directory / "runs"

    def find(self, key: str) -> Any | None:  # noqa: ANN401
        """Return what is kept of `key`; None where nothing is, or it is damaged."""
        path = self._path(key)
        data = files.unpacked(path)
        if data is not None:
            with suppress(OSError):
                path.touch()
        return data

    def keep(self, key: str, data: Any) -> None:  # noqa: ANN401
        """Keep what JSON can hold; where the disk does not take it, it is computed again."""
        path = self._path(key)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            files.pack(path, data)
            _trim(self._folder, LIMIT_BYTES)

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(json.dumps([cache.simulator(), key]).encode()).hexdigest()[:32]
        return self._folder / f"{name}.json.gz"


class Kept:
    """A folder of runs, each by its settings, its seed and the simulator that made it."""

    def __init__(self, directory: Path, tables: TableFiles) -> None:
        """Take the folder, and where the tables of this session's runs lie."""
        self._folder = directory / "runs"
        self._tables = tables

    def find(self, plan: Mapping[str, Any], seed: int) -> dict[str, Any] | None:
        """Return the run object if it is there; its tables are then at hand too."""
        path = self._path(plan, seed)
        data: dict[str, Any] | None = files.unpacked(path)
        if data is None:
            return None
        try:
            for kind in _kinds(plan):
                target = self._tables.path(kind, plan["name"], seed)
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(_table(path, kind), target)
                _table(path, kind).touch()
            path.touch()
        except OSError:
            # Half of it is not there: it is made anew.
            return None
        return data

    def keep(self, plan: Mapping[str, Any], seed: int, data: Mapping[str, Any]) -> None:
        """Keep a run and its tables; the run object last, as it says that all is there.

        Where the disk does not take it, it is run again another time.
        """
        path = self._path(plan, seed)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            for kind in _kinds(plan):
                with files.whole(_table(path, kind)) as place:
                    shutil.copyfile(self._tables.path(kind, plan["name"], seed), place)
            files.pack(path, data)
            _trim(self._folder, LIMIT_BYTES)

    def _path(self, plan: Mapping[str, Any], seed: int) -> Path:
        traces = [[path, *_state(path)] for path in files.paths_in(plan["config"])]
        text = json.dumps([cache.simulator(), plan["config"], seed, traces], sort_keys=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self._folder / f"{name}.json.gz"


def _kinds(plan: Mapping[str, Any]) -> list[str]:
    """Return the kinds of tables that a run of a plan has."""
    measured = plan["config"].get("measure", {})
    logs = {"requests": "log_requests", "chips": "chip_log"}
    return ["series", *(kind for kind, key in logs.items() if measured.get(key))]


def _table(path: Path, kind: str) -> Path:
    return path.with_suffix(".parquet" if kind == "series" else f".{kind}.parquet")


def _trim(folder: Path, limit_bytes: int) -> None:
    """Delete the files unused for longest until the rest fits the limit."""
    found = [(path.stat(), path) for path in folder.iterdir()]
    total = sum(state.st_size for state, _ in found)
    for state, path in sorted(found, key=lambda each: each[0].st_mtime_ns):
        if total <= limit_bytes:
            return
        path.unlink(missing_ok=True)
        total -= state.st_size


def _state(path: str) -> tuple[int, int]:
    """Return what differs once a file is another."""
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return found.st_size, found.st_mtime_ns
