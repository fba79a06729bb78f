"""Files that are written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a place beside `path`, which becomes `path` once all is written.

    OSError names `path`, where the disk is full or nothing may be written.
    """
    # Of the same kind, which pictures take from the name.
    beside = path.with_name(f".{path.stem}.partial{path.suffix}")
    try:
        if path.exists() and not path.is_file():
            # A pipe or a device stays what it is.
            yield path
            return
        yield beside
        beside.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        beside.unlink(missing_ok=True)


def write(path: Path, text: str) -> None:
    """Write a text file, whole."""
    with whole(path) as place:
        place.write_text(text, encoding="utf-8")
