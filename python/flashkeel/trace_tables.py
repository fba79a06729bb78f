"""Traces in Parquet files: one row a request, in the columns of `COLUMNS`."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flashkeel import _core
from flashkeel._core import InputError

COLUMNS = ("time_ns", "operation", "offset", "bytes", "device")
"""Times in ns; `R`, `W` or `T` (trim); offset and length in bytes; a device's name or number."""

_NEEDED = COLUMNS[:4]
_DESCRIPTION = "time=1,unit=ns,op=2,offset=3,length=4,separator=comma"
_ROWS = 65_536


def is_parquet(name: str) -> bool:
    """Say whether a file of this name is one of Parquet."""
    return Path(name).suffix == ".parquet"


@contextmanager
def readable(source: str, options: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give a path and options by which the core reads `source`.

    A Parquet file is handed over as lines through a pipe; any other as it is.
    """
    if not is_parquet(source):
        yield source, options
        return
    from arro3.io import read_parquet, write_csv

    _check(source)
    try:
        table = read_parquet(source)
    except Exception as error:
        raise InputError(f"{source}: no Parquet file: {error}") from error
    names = list(table.schema.names)
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise InputError(
            f"{source}: has no column {missing[0]}; a trace has {', '.join(COLUMNS)}, and this has "
            f"{', '.join(names)}"
        )
    kept = [name for name in COLUMNS if name in names]
    description = _DESCRIPTION + (",device=5" if "device" in kept else "")
    with tempfile.TemporaryDirectory(prefix="flashkeel-") as folder:
        path = Path(folder) / Path(source).with_suffix(".csv").name
        if "device" in kept:
            # Devices are laid out one after the other, which reads a trace twice.
            write_csv(table.read_all().select(kept), path)
            yield str(path), {"columns": description} | options
            return
        os.mkfifo(path)
        batches = (batch.select(kept) for batch in table)
        thread = threading.Thread(target=_pour, args=(batches, path), daemon=True)
        thread.start()
        yield str(path), {"columns": description} | options


def _check(source: str) -> None:
    """Refuse what does not begin and end as a Parquet file does, with a footer in it."""
    try:
        with Path(source).open("rb") as file:
            begin = file.read(4)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 8))
            end = file.read()
    except OSError as error:
        raise InputError(f"{source}: cannot read it: {error.strerror}") from error
    footer = int.from_bytes(end[:4], "little")
    if begin != b"PAR1" or end[4:] != b"PAR1" or not 0 < footer <= size - 12:
        raise InputError(f"{source}: no Parquet file, or one that is cut off")


def _pour(batches: Iterator[Any], path: Path) -> None:
    """Write batches as lines to a pipe; whoever reads it may stop early."""
    from arro3.io import write_csv

    try:
        with path.open("wb") as pipe:
            for batch in batches:
                write_csv(batch, pipe, header=False)
    except BrokenPipeError:
        pass


def write(
    path: str, options: dict[str, Any], target: Path, progress: Callable[[str, float], object]
) -> str:
    """Write a trace as Parquet, and return what the core says of it."""
    from arro3.core import DataType, Field, Schema
    from arro3.io import read_csv, write_parquet

    with tempfile.TemporaryDirectory(prefix="flashkeel-") as folder:
        # Named like the target: that is where a synthetic trace says that it is one.
        lines = Path(folder) / target.with_suffix(".csv").name
        written = _core.trace_convert(path, json.dumps(options), str(lines), "columns", progress)
        types = (DataType.uint64(), DataType.utf8(), DataType.uint64(), DataType.uint64())
        schema = Schema([Field(name, of) for name, of in zip(_NEEDED, types, strict=True)])
        beside = target.with_name(target.name + ".partial")
        try:
            write_parquet(
                read_csv(lines, schema, has_header=True, batch_size=_ROWS),
                beside,
                compression="zstd(1)",
            )
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    return written
