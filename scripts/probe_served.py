"""Probe the seven drives of SSDcheck's Table I as they are served, in real time.

    scripts/probe_served.py [--drives ssd-a,ssd-d] [--seed N] [--tries N]

Each is served at a socket and probed there as a drive of which nothing is known. What is found
has to be what the drive is made of. The server knows by how much its answers were late: a probe
during which the machine kept it from its times is made again, not believed. Ends with a failure
where a diagnosis is wrong; where the machine was too busy every time, that is said. Server and
probe take real-time priority where they may (root, or RLIMIT_RTPRIO), and need a processor each.

Without --drives it is one of them, another in each round of `make soak`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashkeel.reproduce.ssdcheck import table1
from flashkeel.reproduce.ssdcheck.drives import DRIVES

if TYPE_CHECKING:
    from collections.abc import Iterator

SPOILED_NS = 100_000
"""99.9 % of the answers may be this late, as no drive of the seven is told apart by less."""

REAL_TIME = 50
"""In the middle: above whoever has none, below the kernel's own."""

LONGEST_S = 180
"""What is not found of a drive by then is not found."""

FLASHKEEL = (sys.executable, "-m", "flashkeel")


@contextmanager
def served(drive: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Serve a preset at a socket."""
    # Where this runs in the background of a shell, interrupts are ignored.
    command = ["env", "--default-signal=INT"]
    command += [*FLASHKEEL, "serve", "nbd", f"sim:{drive}", "--listen", f"unix:{path}"]
    with subprocess.Popen(
        [*command, "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        said = server.stderr.readline()
        if not said.startswith("Serving"):
            sys.exit(f"probe_served: {drive}: {said}{server.stderr.read()}")
        try:
            yield server
        finally:
            server.kill()


def probed(drive: str, seed: int, folder: Path) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Return what a probe of a served drive finds, what the server says, and the seconds taken."""
    path = folder / "nbd"
    uri = f"nbd+unix:///flashkeel?socket={path}"
    with served(drive, path) as server:
        began = time.monotonic()
        command = [*FLASHKEEL, "probe", uri, "--destroy", "--limit", str(LONGEST_S)]
        command += ["--seed", str(seed), "--format", "json"]
        probe = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        took_s = time.monotonic() - began
        if probe.returncode != 0:
            sys.exit(f"probe_served: {drive}: the probe ended with status {probe.returncode}")
        server.send_signal(signal.SIGINT)
        said, _ = server.communicate(timeout=60)
    return json.loads(probe.stdout), json.loads(said), took_s


def is_wrong(drive: str, seed: int, tries: int) -> bool:
    """Print what is found of a drive, and return whether that is not what it is made of."""
    for _ in range(tries):
        with tempfile.TemporaryDirectory() as folder:
            model, server, took_s = probed(drive, seed, Path(folder))
        late_ns = server["late"]["p99_9_ns"]
        found, is_right, reason = table1.judged(drive, model)
        said = f"{drive}: {found}; {took_s:.0f} s; {'right' if is_right else 'wrong'}"
        said = "; ".join([said, *([reason] if reason else [])])
        said += f"; answers up to {late_ns / 1e3:.0f} us late (p99.9)"
        if late_ns <= SPOILED_NS:
            print(said, flush=True)
            return not is_right
        print(f"{said}: not believed, the machine was busy", flush=True)
    print(f"{drive}: not judged, the machine was too busy in {tries} tries", flush=True)
    return False


def main() -> None:
    """Probe the drives in turn."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    turn = int(os.environ.get("FLASHKEEL_SOAK_ROUND", "0"))
    parser.add_argument("--drives", default=DRIVES[turn % len(DRIVES)])
    parser.add_argument("--seed", type=int, default=1 + turn // len(DRIVES))
    parser.add_argument("--tries", type=int, default=3, help="probes of a drive, at most")
    given = parser.parse_args()
    drives = given.drives.split(",")
    if unknown := set(drives) - set(DRIVES):
        parser.error(f"unknown drives {', '.join(sorted(unknown))}: {', '.join(DRIVES)}")
    try:
        # Inherited by the server and the probe.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REAL_TIME))
    except PermissionError:
        print("without real-time priority, which takes root or RLIMIT_RTPRIO", flush=True)
    wrong = [drive for drive in drives if is_wrong(drive, given.seed, given.tries)]
    sys.exit(f"probe_served: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
