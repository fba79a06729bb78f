"""Values as TOML writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from flashkeel._core import InputError


def value(it: Any) -> str:  # noqa: ANN401
    """Return a value as TOML; InputError where it has no equal there.

    Paths are strings, and what NumPy has is what it is in Python.
    """
    match it:
        case bool():
            return str(it).lower()
        case int():
            return str(int(it))
        case float():
            return repr(float(it))
        case str():
            # JSON leaves one control character as it is that TOML does not.
            return json.dumps(it, ensure_ascii=False).replace("\x7f", "\\u007f")
        case PurePath():
            return value(str(it))
        case Mapping():
            return "{ " + ", ".join(f"{value(str(k))} = {value(v)}" for k, v in it.items()) + " }"
        case Sequence() if not isinstance(it, (bytes, bytearray)):
            return "[" + ", ".join(map(value, it)) + "]"
    if callable(plain := getattr(it, "tolist", None)):
        return value(plain())
    raise InputError(f"{it!r} has no TOML equal")
