"""Result directories: result.json, tables and pictures, written in one step."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from flashkeel._core import InputError
from flashkeel.arrow import KINDS, TableFiles
from flashkeel.output import files, plots, replacing, shapes, units
from flashkeel.parsing import LONGEST_RESULT, parse_json, read_document
from flashkeel.result import SCHEMA, Result

RESULT = "result.json"
_DAMAGED = "damaged, or of another version of flashkeel"
_RUN_BYTES = 1 << 20
"""What a run takes at least: pictures and result.json apart, its time series."""
_REQUEST_BYTES = 8
"""What a logged request takes at least."""
_NUMBER = (int, float)
_DISTRIBUTION = {"count": int, "bytes": int, "iops": _NUMBER, "percentile": dict, "beyond": dict}
_OF_A_RUN = {
    "name": str,
    "seed": int,
    "digest": str,
    "basis": str,
    "requests": int,
    "simulated_s": _NUMBER,
    "read": _DISTRIBUTION,
    "write": _DISTRIBUTION,
    "small_read": _DISTRIBUTION,
    "blame_ns": dict,
    "limits": {"capacity_bytes": int},
    "notes": list,
    "workload": dict,
    "device": dict,
    "config": {"workload": {"source": {"policy": str}, "pacing": {"policy": str}}},
}
"""What the object of a run has at least, and of which kind; the rest is looked for where used.

Of which kind that is say :mod:`flashkeel.output.shapes`.
"""
_DETAIL = {"measured_ns": int, "histograms": list, "blame": list}
_OURS = {RESULT, *plots.FILES, *KINDS}
_TABLE = re.compile(r".+\.seed\d+\.parquet")


def check(directory: Path, identity: str, overwrite: bool) -> None:
    """Raise InputError unless a result of `identity` may be written to `directory`."""
    files.refuse_unwritable(directory)
    if directory.is_file():
        raise InputError(f"{directory}: is a file; a result is a directory")
    if not directory.exists():
        if not overwrite:
            _refuse_losing(directory, identity)
        return
    if directory.resolve() == Path.cwd():
        # It is replaced as a whole, and who stands in it would see nothing of the new one.
        raise InputError(f"{directory}: is the current directory; name one within it")
    if others := _others(directory):
        raise InputError(f"{directory}: holds other files, such as {others[0]!r}")
    if overwrite or not (directory / RESULT).exists():
        return
    if _read(directory / RESULT).get("identity") != identity:
        raise InputError(
            f"{directory}: holds the result of another experiment; "
            "choose another directory or say --overwrite"
        )


def _refuse_losing(directory: Path, identity: str) -> None:
    """Raise InputError for other results that saves at `directory` have left when cut short.

    They go with the next one, so they are refused as if they stood there.
    """
    kept = filter(_is_whole, replacing.left(directory.resolve()))
    if any(_read(each / RESULT).get("identity") != identity for each in kept):
        raise InputError(f"{directory}: {_remains(directory)}, or say --overwrite to lose that")


def _is_whole(directory: Path) -> bool:
    try:
        _read(directory / RESULT)
    except InputError:
        return False
    return True


def _remains(directory: Path) -> str:
    """Say what saves at `directory` have left when cut short; nothing if they have not."""
    left = replacing.left(directory.resolve())
    if not left:
        return ""
    kept = [str(each) for each in left if _is_whole(each)]
    if not kept:
        return f"a save that was cut short has left {left[0]}, which is not whole"
    one = "it" if len(kept) == 1 else "one of them"
    names = " and ".join(kept)
    return f"a save that was cut short has left {names}; move {one} to {directory} to have it back"


def _others(directory: Path) -> list[str]:
    """Return what is in a directory beside a result: all of it, where no result is."""
    ours = _OURS if (directory / RESULT).is_file() else set()
    found = files.others(directory, ours)
    for kind in KINDS:
        if kind in ours and (directory / kind).is_dir():
            names = sorted(os.listdir(directory / kind))
            found += [f"{kind}/{name}" for name in names if not _TABLE.fullmatch(name)]
    return found


def check_room(directory: Path, plans: Sequence[Mapping[str, Any]], seeds: int) -> None:
    """Raise OSError, as a full disk does, where one has no room for what is written to it.

    That is the directory's, and the one of temporary files, where tables wait until then. How
    much it takes is estimated from below: what is measured is not known yet.
    """
    needed = len(plans) * seeds * _RUN_BYTES
    for plan in plans:
        if plan["config"]["measure"]["log_requests"]:
            needed += seeds * (plan["config"]["workload"].get("requests") or 0) * _REQUEST_BYTES
    parent = next(path for path in directory.absolute().parents if path.exists())
    for place, what in ((parent, directory), (Path(tempfile.gettempdir()), "temporary files")):
        free = shutil.disk_usage(place).free
        if free < needed:
            said = (
                f"{units.size(free)} are free in {place}, and a result takes at least "
                f"{units.size(needed)}"
            )
            raise OSError(errno.ENOSPC, said, str(what))


def save(result: Result, directory: Path, overwrite: bool) -> None:
    """Write `result` to `directory`: complete and in one step, or not at all.

    OSError names `directory` where the disk is full. RuntimeError if only its picture could not
    be drawn: what was measured is there then.
    """
    try:
        _save(result, directory, overwrite)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(directory)) from error


def _save(result: Result, directory: Path, overwrite: bool) -> None:
    check(directory, result.document["identity"], overwrite)
    directory = directory.resolve()
    directory.parent.mkdir(parents=True, exist_ok=True)
    undrawn = None
    with replacing.whole(directory) as place:
        result.files.copy_to(place)
        try:
            plots.save(result, place)
        except OSError:
            raise
        except Exception as error:
            # Whatever it is: hours of work may be at stake.
            undrawn = error
        # The last, so that what was cut short has none.
        files.write(place / RESULT, result.to_json(detail=True))
    if undrawn is not None:
        words = f"{directory}: the result is there, but its picture could not be drawn: {undrawn}"
        raise RuntimeError(words) from undrawn


def load(path: str | Path) -> Result:
    """Load a result saved by ``Result.save`` or ``run --out``.

    `path` is the directory or its result.json. InputError where it is neither.
    """
    found = file(path)
    if not found.exists():
        remains = _remains(found.parent if found.name == RESULT else found)
        if remains:
            raise InputError(f"{found}: {os.strerror(errno.ENOENT)}; {remains}")
    return Result(_read(found), TableFiles(found.parent))


def file(path: str | Path) -> Path:
    """Return the file that :func:`load` reads."""
    path = Path(path)
    return path / RESULT if path.is_dir() else path


class Lost(InputError, KeyError):
    """A key that the document of a result lacks, where something is made of it."""

    # A KeyError's own words are its key.
    __str__ = InputError.__str__


class _Kept(dict[str, Any]):
    """An object of a document, which says of what file it is where a key is not there."""

    def __init__(self, file: Path, found: Mapping[str, Any]) -> None:
        super().__init__(found)
        self.file = file

    def __missing__(self, key: str) -> NoReturn:
        raise Lost(f"{self.file}: {_DAMAGED}: it lacks {key!r}")


def _read(file: Path) -> dict[str, Any]:
    try:
        document = parse_json(read_document(file, LONGEST_RESULT), partial(_Kept, file))
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{file}: not a result of flashkeel: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("runs"), list):
        raise InputError(f"{file}: not a result of flashkeel: it has no runs")
    if document.get("schema") != SCHEMA:
        raise InputError(
            f"{file}: schema {document.get('schema')!r}, but this version reads {SCHEMA}"
        )
    if not document["runs"]:
        raise InputError(f"{file}: not a result of flashkeel: it has no runs")
    for number, run in enumerate(document["runs"], 1):
        detail = {"detail": _DETAIL} if isinstance(run, dict) and "detail" in run else {}
        if lost := _lost(run, _OF_A_RUN | detail):
            raise InputError(f"{file}: not a result of flashkeel: run {number} has no {lost}")
    if found := shapes.wrong(document, shapes.RESULT):
        raise InputError(f"{file}: {_DAMAGED}: {found}")
    return document


def _lost(found: Any, needed: Mapping[str, Any], path: str = "") -> str | None:  # noqa: ANN401
    """Return the first key that is not there, or holds another kind of value than it must."""
    for key, kind in needed.items():
        value = found.get(key) if isinstance(found, dict) else None
        if isinstance(kind, dict):
            lost = _lost(value, kind, f"{path}{key}.")
        else:
            is_one = isinstance(value, kind) and not isinstance(value, bool)
            lost = None if is_one else f"{path}{key}"
        if lost:
            return lost
    return None
