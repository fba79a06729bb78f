"""What is not needed before a command begins is not imported by then."""

import subprocess
import sys

import pytest

HEAVY = ("arro3", "asyncio", "distributed", "matplotlib", "multiprocessing", "numpy", "rich")
"""Packages that take long to import, and that some commands need after a while or not at all."""

OURS = ("imports", "lifetime", "output.tables", "reproduce", "serving", "ssdcheck", "sweep")
"""Modules of the package that belong to other commands, or come last."""

RUN = """
import sys
from flashkeel import _core
from flashkeel.cli import main

def note(*_):
    print(*sys.modules)
    sys.exit(0)

_core.run = note
main()
"""

ANY = """
import atexit, sys
from flashkeel.cli import main

atexit.register(lambda: print(*sys.modules))
main()
"""


def imported(program, *arguments):
    """Return the modules that are there at the end, or where a simulation would begin."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (RUN, ("run", "demo")),
        (ANY, ("--version",)),
        (ANY, ("list", "presets")),
        (ANY, ("show", "demo")),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, tuple) else "",
)
def test_a_command_begins_without_what_it_does_not_need_yet(program, arguments):
    there = imported(program, *arguments)
    unneeded = (*HEAVY, *(f"flashkeel.{name}" for name in OURS))
    found = {it for it in there if it.startswith(tuple(f"{name}." for name in unneeded))}
    assert "flashkeel.cli" in there
    assert not found | there.intersection(unneeded)
