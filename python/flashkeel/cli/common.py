"""What several commands share: tables on standard output, runs named on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from flashkeel.output import storage
from flashkeel.run import Run

_PIPE_WIDTH = 160


def console() -> Console:
    """Return a console on standard output; without colour and folding in a pipe."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)


def split_assignment(text: str, option: str) -> tuple[str, str]:
    """Return the two sides of ``KEY=VALUE``."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise click.UsageError(f"{option} {text}: write KEY=VALUE")
    return key.strip(), value.strip()


def load_runs(target: str) -> list[Run]:
    """Load ``RESULT`` or one of its runs, ``RESULT:RUN``."""
    path, colon, name = target.rpartition(":")
    if colon and not Path(target).exists():
        return [storage.load(path)[name]]
    return storage.load(target).runs
