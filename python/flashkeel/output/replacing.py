"""Directories that take the place of others in one step."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from flashkeel.output import files

_PREFIX = ".flashkeel-"
_NEW, _OLD = "new", "old"
"""Where a directory is written, and where what it replaces waits."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
"""Of Linux's ``renameat2``."""
_SYNCED_AT_ONCE = 16
"""Files: a disk commits many as fast as one."""


@contextmanager
def whole(directory: Path) -> Iterator[Path]:
    """Give an empty directory, which becomes `directory` once all is written and on disk.

    Whenever the process or the power ends, `directory` is what it was or the new one. Only where
    the system cannot exchange two directories is there a moment without either; what is left
    then, :func:`left` finds. `directory` is one without links; its parent is there.
    """
    made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=directory.parent))
    holder = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
    with suppress(OSError):
        # Before it has a name under which others look for it. What cannot be held is not swept.
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    staging = made.rename(made.with_name(f"{made.name}.{directory.name}"))
    try:
        new = staging / _NEW
        new.mkdir()
        yield new
        _sync_all(new)
        _put(new, directory, staging / _OLD)
        _sync_folder(directory.parent)
        for abandoned in _abandoned(directory):
            shutil.rmtree(abandoned, ignore_errors=True)
    finally:
        shutil.rmtree(staging)
        os.close(holder)


def left(directory: Path) -> list[Path]:
    """Return what processes that were killed have left, of all that was to become `directory`.

    That is what they wrote, and what they would have removed.
    """
    held = (staging / kind for staging in _abandoned(directory) for kind in (_NEW, _OLD))
    return [path for path in held if path.is_dir()]


def _abandoned(directory: Path) -> list[Path]:
    pattern = f"{_PREFIX}{'?' * 8}.{glob.escape(directory.name)}"
    return [path for path in sorted(directory.parent.glob(pattern)) if _is_left(path)]


def _is_left(staging: Path) -> bool:
    with files.taken_over(staging) as is_left:
        return is_left


def _put(new: Path, directory: Path, old: Path) -> None:
    if not directory.exists():
        new.rename(directory)
        return
    if _exchange(new, directory):
        return
    try:
        directory.rename(old)
        new.rename(directory)
    except BaseException:
        # Else what was there before would go with what was to take its place.
        if old.exists() and not directory.exists():
            old.rename(directory)
        raise


def _exchange(one: Path, other: Path) -> bool:
    """Let two directories change places in one step; False where nothing was done.

    Many file systems of networks cannot, nor old kernels. Where it fails for another reason,
    renaming does, too, and says why.
    """
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except AttributeError:
        return False
    names = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other))
    return bool(renameat2(*names, _RENAME_EXCHANGE) == 0)


def _sync_all(directory: Path) -> None:
    """Wait until a directory is on disk: else a loss of power may leave names of empty files."""
    inside = list(directory.rglob("*"))
    with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
        list(pool.map(_sync, (path for path in inside if path.is_file())))
    for path in (*(path for path in inside if path.is_dir()), directory):
        _sync_folder(path)


def _sync_folder(path: Path) -> None:
    try:
        _sync(path)
    except OSError as error:
        # Some file systems have nothing to do for a folder, and say so.
        if error.errno != errno.EINVAL:
            raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
