"""Standard streams that cannot show every character: plain ones take their places."""

from __future__ import annotations

import codecs
import sys

_NAME = "flashkeel.plain"
_PLAIN = {
    "–": "-",
    "—": "-",
    "−": "-",
    "…": "...",
    "µ": "u",
    "×": "x",
    "§": "section ",
    "→": "->",
    "≥": ">=",
    "≤": "<=",
    "█": "#",
    "▏": "|",
    "“": '"',
    "”": '"',
    "’": "'",
}


def prepare() -> None:
    """Let the standard streams show what they can of what is written to them, and never fail."""
    codecs.register_error(_NAME, _replace)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_NAME)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in found), error.end
