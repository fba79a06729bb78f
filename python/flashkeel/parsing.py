"""TOML and JSON that others have written: whatever is wrong with it is a ``ValueError``."""

from __future__ import annotations

import json
import tomllib
from functools import partial
from typing import TYPE_CHECKING, Any

from flashkeel._core import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


LONGEST_DOCUMENT = 16 << 20
"""Bytes that no document has, but drives and traces have."""
LONGEST_RESULT = 1 << 30
"""Bytes that none has of those that are written here."""
_HEAD = 4096
"""Characters by which text is told from what is none."""


def read_document(path: Path, longest: int = LONGEST_DOCUMENT) -> str:
    """Return the text of a document; ``InputError`` where it is no text, or not below `longest`.

    A device may be endless, so that no more than that is read. What marks the order of its bytes
    is no part of a text.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_HEAD)
            if "\0" in text:
                raise InputError(f"{path}: not a text file: it has null characters")
            text += file.read(longest - len(text))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text file: {error.reason}") from error
    if len(text) == longest:
        raise InputError(f"{path}: longer than any document")
    return text


def parse_toml(text: str) -> dict[str, Any]:
    """Return what a TOML document says; ``ValueError`` in words where it is none."""
    found: dict[str, Any] = _parsed(tomllib.loads, text)
    return found


def parse_json(text: str | bytes, of_object: Callable[[dict[str, Any]], Any] | None = None) -> Any:  # noqa: ANN401
    """Return what a JSON document says; ``ValueError`` in words where it is none.

    `of_object` makes of each object what stands for it.
    """
    return _parsed(partial(json.loads, object_hook=of_object), text)


def _parsed(loads: Callable[[Any], Any], text: str | bytes) -> Any:  # noqa: ANN401
    try:
        return loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except ValueError as error:
        # Python's own words for a number that is too long are for who calls it.
        if isinstance(error, (json.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError)):
            raise
        raise ValueError("a number in it has too many digits") from None
