"""Run what takes longer than the tests, each round with other cases: ``make soak TIME=10m``."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROUND = "FLASHKEEL_SOAK_ROUND"
"""The environment variable from which tests take the number of the round, 0 without it."""

CARGO_TEST = ("cargo", "test", "--quiet", "--workspace")
LONG = (
    (
        *CARGO_TEST,
        *(
            part
            for test in (
                "reference",
                "faults",
                "power_cut",
                "laws",
                "fuzz",
                "tier_cuts",
                "restarts",
            )
            for part in ("--test", test)
        ),
    ),
    (*CARGO_TEST, "--", "--ignored"),
    (sys.executable, "scripts/torture.py", "--rounds", "2000"),
    *(
        (sys.executable, "scripts/torture.py", "--rounds", "200", "--drive", drive)
        for drive in ("stack", "stripes", "mirror", "any", "nvm", "tier", "journal")
    ),
    (sys.executable, "scripts/probe_served.py"),
)
"""Devices under faults, power cuts and laws, and mutated traces; then all too long for a test;
then servers that are killed, and one that is probed."""

SECONDS = {"s": 1, "m": 60, "h": 3600}


def seconds(text: str) -> int:
    """Return a time such as ``90s``, ``10m`` or ``8h`` in seconds."""
    found = re.fullmatch(r"([1-9]\d*)([smh])", text)
    if found is None:
        sys.exit(f"soak: TIME={text}: write a time such as 90s, 10m or 8h")
    return int(found[1]) * SECONDS[found[2]]


def passes(command: tuple[str, ...], turn: int, deadline: float) -> bool:
    """Run a command to its end or to the deadline, and return whether it reached its end.

    A failure ends the program.
    """
    # A session of its own, so that the tests end with cargo.
    with subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {ROUND: str(turn)}, start_new_session=True
    ) as running:
        try:
            status = running.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGTERM)
            return False
        except KeyboardInterrupt:
            os.killpg(running.pid, signal.SIGTERM)
            raise
    if status != 0:
        # What it has started and left behind, such as a server.
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGTERM)
        sys.exit(f"soak: failed in round {turn}; again: {ROUND}={turn} {' '.join(command)}")
    return True


def main(length: str) -> None:
    """Run rounds for a time."""
    limit = seconds(length)
    subprocess.run([*CARGO_TEST, "--no-run"], cwd=ROOT, check=True)
    deadline = time.monotonic() + limit
    turn = 0
    while all(passes(command, turn, deadline) for command in LONG):
        turn += 1
    print(f"soak: nothing has failed in {length}, {turn} whole rounds and part of one")


if __name__ == "__main__":
    main(*sys.argv[1:])
