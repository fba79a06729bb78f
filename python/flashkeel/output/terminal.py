"""Standard streams that cannot show every character: plain ones take their places."""

from __future__ import annotations

import codecs
import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

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


OUTPUT = "standard output"
"""What an error calls it, as the name of its file."""


class _Output(io.FileIO):
    """Standard output; where it takes no more, the error says that it is."""

    def write(self, data: Buffer, /) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, OUTPUT) from None


def prepare() -> None:
    """Let the standard streams show what they can of what is written to them.

    No character makes them fail; a full disk does, by name.
    """
    if sys.stderr is None:
        # Nobody is to see what goes wrong.
        sys.stderr = io.TextIOWrapper(io.FileIO(os.devnull, "wb"), "utf-8")
    plain = sys.stdout
    buffer = getattr(plain, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    if type(raw) is io.FileIO:
        named = _Output(raw.fileno(), "wb", closefd=False)
        sys.stdout = io.TextIOWrapper(
            # Nothing is between where Python was asked not to buffer.
            named if raw is buffer else io.BufferedWriter(named),
            plain.encoding,
            line_buffering=bool(plain.line_buffering),
            write_through=raw is buffer,
        )
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
