"""Files that are no trace and no log of requests, told by their first lines, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flashkeel._core import InputError

_HEAD_BYTES = 4096
_UNKNOWN = ("no known trace format", "no known log of latencies", "no column ")
"""What errors say of a file that is not understood."""
_LATENCY_LOG = re.compile(r"\d+, *\d+, *[012], *\d+((, *\d+)*)")
_IOSTAT = re.compile(r"^Device:?\s.*(r/s|tps)\b", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_][\w /.()%-]*")


@contextmanager
def named(path: str | Path) -> Iterator[None]:
    """Let the error of a file that is not understood say what it is, where that is known."""
    try:
        yield
    except InputError as error:
        if not any(words in str(error) for words in _UNKNOWN):
            raise
        if (kind := _kind(Path(path))) is not None:
            raise InputError(f"{path}: {kind}") from None
        if names := _columns(Path(path)):
            words = str(error).partition("; known are")[0]
            raise InputError(
                f"{words}; its columns are {', '.join(names)}; known are operation, offset or "
                "lba, bytes or sectors, submitted_ns or time_ns, latency_ns or completed_ns (or in "
                '_us, _ms, _s); of a trace, columns = "time=1,unit=us,offset=3,length=4,op=2" '
                "says which is which"
            ) from None
        raise


def _head(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES).decode(errors="replace")


def _kind(path: Path) -> str | None:
    """Return what a file is and what to do instead; None where it is none of these."""
    head = _head(path)
    if head.lstrip().startswith("{") and '"fio version"' in head:
        return (
            "a summary of fio (--output-format=json), which has no requests; for predict --log "
            "let the job write write_lat_log with log_offset=1, for a trace write_iolog"
        )
    if _IOSTAT.search(head):
        return (
            "a report of iostat, which has means and no requests; record a trace with "
            "blktrace, or let fio write write_lat_log with log_offset=1"
        )
    if found := _LATENCY_LOG.fullmatch(head.partition("\n")[0].strip()):
        if "," not in found[1]:
            return "a latency log of fio without offsets; let the job set log_offset=1"
        return (
            "a latency log of fio (write_lat_log): predict --log takes it; as a trace it takes "
            'columns = "time=1,unit=ms,op=3,read=0,write=1,length=4,offset=5"'
        )
    return None


def _columns(path: Path) -> list[str]:
    """Return the names in a file's first line, if all in it are names."""
    line = _head(path).partition("\n")[0].strip()
    names = [name.strip().strip('"') for name in re.split(r"[,;\t]", line)]
    return names if len(names) > 1 and all(map(_NAME.fullmatch, names)) else []
