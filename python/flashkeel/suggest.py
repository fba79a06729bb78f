"""Suggestions for misspelt names, said as the core says them."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean "x"?`` of the name next to `name`, or nothing where none is near."""
    # Only for errors, and not at the start of every command.
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 1)
    return f'; did you mean "{near[0]}"?' if near else ""
