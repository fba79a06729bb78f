"""Time series and request logs: Arrow tables in Parquet files."""

from __future__ import annotations

import io
import math
import os
import shutil
import signal
import tempfile
import threading
import weakref
from collections.abc import Mapping
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from flashkeel._core import InputError

if TYPE_CHECKING:
    import numpy as np
    from arro3.core import ChunkedArray
    from arro3.core import Table as ArrowTable
    from arro3.core.types import ArrowStreamExportable

_SHOWN_ROWS = 10
_BATCH_ROWS = 1 << 16
"""Rows read at a time."""

KINDS = ("series", "requests", "chips")

_HINTS = {
    "requests": "; set measure.log_requests = true",
    "chips": '; set measure.chip_log = { from = "20s" }, a time within the run',
}


def _array(np: Any, column: ChunkedArray) -> Any:  # noqa: ANN401
    """Return a column as an array; a number that is not there is none, as NumPy has it."""
    from arro3.core import DataType

    if DataType.is_numeric(column.type) and len(column) and not column.null_count:
        # Copied as a whole: number by number it takes forty times as long.
        numbers = column.to_numpy()
        if not DataType.is_unsigned_integer(column.type):
            return numbers
        # Signed, so that differences may be below 0.
        signed = numbers.astype(np.int64)
        return numbers if (signed < 0).any() else signed
    values = list(column.to_pylist())
    if values and isinstance(values[0], list):
        lists = np.empty(len(values), dtype=object)
        lists[:] = values
        return lists
    if None in values and all(it is None or isinstance(it, (int, float)) for it in values):
        return np.array([math.nan if it is None else it for it in values], dtype=float)
    return np.asarray(values)


class Table(dict[str, "np.ndarray[Any, Any]"]):
    """A table: its columns by name as NumPy arrays, and all of it as an Arrow table.

    pandas, polars and DuckDB take it as it is, ``pandas.DataFrame(run.series())``, any Arrow
    library by the capsule protocol, ``pyarrow.table(run.series())``. What else an Arrow table has,
    such as ``num_rows``, ``column`` and ``schema``, is that of :attr:`arrow`.
    """

    def __init__(self, arrow: ArrowTable) -> None:
        import numpy as np

        self.arrow = arrow
        columns = zip(arrow.column_names, arrow.columns, strict=True)
        super().__init__({name: _array(np, column) for name, column in columns})

    def __reduce__(self) -> tuple[Any, ...]:
        from arro3.io import write_ipc_stream

        # An Arrow table goes nowhere by itself; columns may have been changed, or come to it.
        written = io.BytesIO()
        write_ipc_stream(self.arrow, written)
        return _read_table, (written.getvalue(),), None, None, iter(self.items())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.arrow, name)

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.arrow.num_rows)

    def __repr__(self) -> str:
        return f"<Table: {len(self):,} rows of {', '.join(self)}>"

    def _repr_html_(self) -> str:
        shown = range(min(len(self), _SHOWN_ROWS))
        head = "".join(f"<th>{escape(name)}</th>" for name in self)
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{escape(str(column[row]))}</td>" for column in self.values())
            + "</tr>"
            for row in shown
        )
        return f"<table><tr>{head}</tr>{rows}</table><p>{len(self):,} rows</p>"


class TableFiles:
    """A directory with one Parquet file per kind of table, run and seed.

    Files rather than objects, because a request log may be larger than memory.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._is_temporary = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to another process, or into a copy, with files that are deleted here."""
        if not self._is_temporary:
            return TableFiles, (self.directory,)
        found = self.directory.glob("*/*.parquet")
        held = {str(path.relative_to(self.directory)): path.read_bytes() for path in found}
        return TableFiles.temporary, (held,)

    @staticmethod
    def temporary(held: Mapping[str, bytes] = MappingProxyType({})) -> TableFiles:
        """Return a set of files, empty but for `held`, that is deleted when no longer used."""
        directory = Path(tempfile.mkdtemp(prefix="flashkeel-"))
        files = TableFiles(directory)
        files._is_temporary = True
        weakref.finalize(files, _remove, directory, os.getpid())
        for name, content in held.items():
            path = directory / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        return files

    @staticmethod
    def none() -> TableFiles:
        """Return the files of runs whose tables were not written."""
        return TableFiles(Path(os.devnull))

    def path(self, kind: str, run: str, seed: int) -> Path:
        """Return the file's path; any run name gives a valid one of its own."""
        return self.directory / kind / f"{quote(run, safe=' ')}.seed{seed}.parquet"

    def write(self, kind: str, run: str, seed: int, table: ArrowStreamExportable | bytes) -> None:
        """Write a table given as anything with ``__arrow_c_stream__``, or as a Parquet file."""
        path = self.path(kind, run, seed)
        path.parent.mkdir(exist_ok=True)
        if isinstance(table, bytes):
            _write(path, table)
        else:
            write_table(path, table)

    def read(self, kind: str, run: str, seed: int) -> Table:
        """Read a table; InputError where the run has none."""
        from arro3.io import read_parquet

        path = self.path(kind, run, seed)
        if not path.exists():
            hint = _HINTS.get(kind, "")
            raise InputError(f"run {run!r} has no table of {kind} for seed {seed}{hint}")
        try:
            _refuse_torn(path)
            return Table(read_parquet(path, batch_size=_BATCH_ROWS).read_all())
        except BaseException as error:
            # The library says most of what is wrong with a file by a panic, which is no Exception.
            if isinstance(error, Exception) or type(error).__name__ == "PanicException":
                words = f"{path}: it is damaged, or no table of flashkeel: {error}"
                raise InputError(words) from error
            raise

    def copy_to(self, directory: Path) -> None:
        """Copy all files to another directory."""
        for kind in KINDS:
            if (self.directory / kind).is_dir():
                shutil.copytree(self.directory / kind, directory / kind)


def write_table(path: Path, table: ArrowStreamExportable) -> None:
    """Write a table as Parquet; OSError names `path`."""
    from arro3.io import write_parquet

    # Into memory first: where a disk is full the library panics. The table takes far more.
    written = io.BytesIO()
    write_parquet(table, written, compression="zstd(1)")
    _write(path, written.getbuffer())


def _write(path: Path, content: bytes | memoryview) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _refuse_torn(path: Path) -> None:
    """Raise ValueError for what is not all of a Parquet file, as most damaged ones are."""
    mark, size = b"PAR1", path.stat().st_size
    with path.open("rb") as file:
        first = file.read(4)
        file.seek(max(0, size - 8))
        last = file.read(8)
    footer = int.from_bytes(last[:4], "little")
    if first != mark or last[4:] != mark or footer + 12 > size:
        raise ValueError("its beginning and end are not those of a Parquet file")


def _read_table(written: bytes) -> Table:
    from arro3.io import read_ipc_stream

    return Table(read_ipc_stream(io.BytesIO(written)).read_all())


def _remove(directory: Path, owner: int) -> None:
    """Remove a directory without being interrupted, which a finalizer could tell nobody."""
    if os.getpid() != owner:
        # A process that was forked off has files of its parent's.
        return
    if threading.current_thread() is not threading.main_thread():
        shutil.rmtree(directory, ignore_errors=True)
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
