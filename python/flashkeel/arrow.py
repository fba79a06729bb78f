"""Time series and request logs: Arrow tables in Parquet files."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from flashkeel._core import InputError

if TYPE_CHECKING:
    from arro3.core import Table
    from arro3.core.types import ArrowStreamExportable

KINDS = ("series", "requests", "chips")

_HINTS = {
    "requests": "; set measure.log_requests = true",
    "chips": '; set measure.chip_log = { from = "20s" }, a time within the run',
}


class TableFiles:
    """A directory with one Parquet file per kind of table, run and seed.

    Files rather than objects, because runs may come from other processes and a
    request log may be larger than memory.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @staticmethod
    def temporary() -> TableFiles:
        """Return an empty set of files that is deleted when it is no longer used."""
        directory = Path(tempfile.mkdtemp(prefix="flashkeel-"))
        files = TableFiles(directory)
        weakref.finalize(files, shutil.rmtree, directory, ignore_errors=True)
        return files

    def path(self, kind: str, run: str, seed: int) -> Path:
        """Return the file's path; any run name gives a valid one of its own."""
        return self.directory / kind / f"{quote(run, safe=' ')}.seed{seed}.parquet"

    def write(self, kind: str, run: str, seed: int, table: ArrowStreamExportable) -> None:
        """Write a table given as anything with ``__arrow_c_stream__``."""
        from arro3.io import write_parquet

        path = self.path(kind, run, seed)
        path.parent.mkdir(exist_ok=True)
        write_parquet(table, path, compression="zstd(1)")

    def read(self, kind: str, run: str, seed: int) -> Table:
        """Read a table; InputError where the run has none."""
        from arro3.io import read_parquet

        path = self.path(kind, run, seed)
        if not path.exists():
            hint = _HINTS.get(kind, "")
            raise InputError(f"run {run!r} has no table of {kind} for seed {seed}{hint}")
        return read_parquet(path).read_all()

    def copy_to(self, directory: Path) -> None:
        """Copy all files to another directory."""
        for kind in KINDS:
            if (self.directory / kind).is_dir():
                shutil.copytree(self.directory / kind, directory / kind)
