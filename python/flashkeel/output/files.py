"""Files that are written whole or not at all."""

from __future__ import annotations

import fcntl
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from flashkeel._core import InputError, trace_files
from flashkeel.parsing import parse_json

_PATHS = ("path", "model")
"""Keys whose values are files: traces and drives, and what a probe has found of a drive."""
_PARTIAL = re.compile(r"\.flashkeel-\d+-\d+\.partial(\..*)?")


def others(directory: Path, ours: Iterable[str]) -> list[str]:
    """Return the names in a directory that are not `ours`, in order.

    What a killed process has left of a file that it was writing is nobody's.
    """
    names = set(os.listdir(directory)) - set(ours)
    return sorted(name for name in names if not _PARTIAL.fullmatch(name))


def refuse_overwriting(target: Path, sources: Iterable[str | Path]) -> None:
    """Raise InputError where `target` is one of the files that are read, by whatever name."""
    if not target.is_file():
        return
    for file in (file for source in sources for file in map(str, trace_files(str(source)))):
        try:
            read = os.stat(0 if file == "-" else file)
            is_source = os.path.samestat(target.stat(), read)
        except OSError:
            continue
        if is_source:
            raise InputError(f"{target}: it is what is read, {file}; choose another name")


def refuse_unwritable(path: Path) -> None:
    """Raise InputError where no file can be written at `path`, before time is spent on it."""
    folder = next((each for each in path.absolute().parents if each.exists()), path.parent)
    if not folder.is_dir():
        raise InputError(f"{path}: {folder} is not a directory")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path}: cannot write in {folder}")


def paths_in(table: Any) -> Iterator[str]:  # noqa: ANN401
    """Give the files that an experiment reads: what stands under `path` or `model`, wherever."""
    for key, value in table.items() if isinstance(table, dict) else enumerate(table):
        if key in _PATHS and isinstance(value, str):
            yield from map(str, trace_files(value))
        elif isinstance(value, (dict, list)):
            yield from paths_in(value)


def move_paths(table: Any, folder: Path) -> None:  # noqa: ANN401
    """Let the relative paths of an experiment start at `folder`, instead of the current one."""
    for key, value in table.items() if isinstance(table, dict) else enumerate(table):
        if key in _PATHS and isinstance(value, str) and not Path(value).is_absolute():
            table[key] = os.path.relpath(value, folder)
        elif isinstance(value, (dict, list)):
            move_paths(value, folder)


def started_at(folder: Path, value: Any, key: str = "") -> Any:  # noqa: ANN401
    """Return what stands under `key`, its relative paths with `folder` before them."""
    if isinstance(value, dict):
        return {inner: started_at(folder, it, inner) for inner, it in value.items()}
    if isinstance(value, list):
        return [started_at(folder, it) for it in value]
    is_path = isinstance(value, str) and value != "-" and key.rpartition(".")[2] in _PATHS
    return str(folder / value) if is_path else value


@contextmanager
def taken_over(path: Path) -> Iterator[bool]:
    """Say whether whoever wrote at `path` and held it is gone; then nobody else is told so."""
    try:
        holder = os.open(path, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False
    else:
        yield True
    finally:
        os.close(holder)


@cache
def _tidy(folder: Path) -> None:
    """Remove what killed processes have left in a folder, once, as it may hold many files."""
    with suppress(OSError):
        for name in filter(_PARTIAL.fullmatch, os.listdir(folder)):
            with taken_over(folder / name) as is_left:
                if is_left:
                    (folder / name).unlink(missing_ok=True)


def _create_beside(path: Path) -> tuple[Path, int]:
    """Make an empty file of its own in the folder of `path`, of the same kind, and hold it."""
    for number in itertools.count():
        # Of the same kind, which pictures take from the name.
        beside = path.with_name(f".flashkeel-{os.getpid()}-{number}.partial{path.suffix}")
        try:
            holder = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue
        # Whoever tidies may have found it before it was held. What cannot be held is not tidied.
        with suppress(OSError):
            fcntl.flock(holder, fcntl.LOCK_EX)
        if beside.exists():
            return beside, holder
        os.close(holder)
    raise AssertionError


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a place beside `path`, which becomes `path` once all is written.

    OSError names `path`, where the disk is full or nothing may be written.
    """
    beside = holder = None
    try:
        if path.exists() and not path.is_file():
            # A pipe or a device stays what it is.
            yield path
            return
        # A link stays one.
        place = path.resolve()
        _tidy(place.parent)
        beside, holder = _create_beside(place)
        yield beside
        beside.replace(place)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        if beside is not None:
            beside.unlink(missing_ok=True)
        if holder is not None:
            os.close(holder)


@contextmanager
def folder(path: Path) -> Iterator[None]:
    """Make a folder where there is none yet; it goes again if nothing is put into it."""
    made = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with suppress(OSError):
            for each in made:
                each.rmdir()


def write(path: Path, text: str) -> None:
    """Write a text file, whole."""
    with whole(path) as place:
        place.write_text(text, encoding="utf-8")


def pack(path: Path, data: Any) -> None:  # noqa: ANN401
    """Write a file of compressed JSON, whole; the same data give the same bytes."""
    import gzip
    import json

    with whole(path) as place:
        place.write_bytes(gzip.compress(json.dumps(data).encode(), 3, mtime=0))


def unpacked(path: Path) -> Any | None:  # noqa: ANN401
    """Return what a file of compressed JSON holds; None where there is none, or it is damaged."""
    import gzip
    import zlib

    try:
        return parse_json(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError, zlib.error):
        return None
