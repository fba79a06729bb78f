"""Probe the seven drives of SSDcheck's Table I as they are served, in real time.

    scripts/probe_served.py [--drives ssd-a,ssd-d] [--seed N] [--tries N]

Each is served at a socket and probed there as a drive of which nothing is known. What is found
has to be what the drive is made of. Where one answer is left open and nothing is wrong, as after
a late answer among few that count, it is asked again. The server knows by how much its answers
were late: a probe during which the machine kept it from its times is made again, not believed.
That is judged from where on single requests tell something: of the fill, and of the 128 reads at
a time by whose throughput volumes are found, many end at once, and wait for each other at the
server. Ends with a failure where a diagnosis is wrong, and where it leaves something open or the
machine was too busy every time. Server and probe take real-time priority where they may (root, or
RLIMIT_RTPRIO), and need a processor each; processors that have nothing to do are kept awake, where
that may be asked for.

Without --drives it is all of them, in each round of `make soak` with another seed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashkeel.reproduce.ssdcheck import table1
from flashkeel.reproduce.ssdcheck.drives import DRIVES
from flashkeel.serving.control import ask
from flashkeel.ssdcheck import Drive

if TYPE_CHECKING:
    from collections.abc import Iterator

SPOILED_NS = 100_000
"""99.9 % of the answers may be this late, as no drive of the seven is told apart by less."""

SPOILED = 1e-3

SINGLY = 0.2
"""From this part of a probe on it goes by what single requests take."""

REAL_TIME = 50
"""In the middle: above whoever has none, below the kernel's own."""

AWAKE = Path("/dev/cpu_dma_latency")
"""As long as it is open and 0 has been written there, processors do not sleep (the kernel's "PM
Quality Of Service Interface"): to wake one takes long where it is virtual."""

LONGEST_S = 180
"""What is not found of a drive by then is not found."""

FLASHKEEL = (sys.executable, "-m", "flashkeel")


@contextmanager
def served(drive: str, folder: Path) -> Iterator[None]:
    """Serve a preset at the socket `nbd` in a folder, which can be asked at `control`."""
    # Where this runs in the background of a shell, interrupts are ignored.
    command = ["env", "--default-signal=INT"]
    command += [*FLASHKEEL, "serve", "nbd", f"sim:{drive}", "--listen", f"unix:{folder / 'nbd'}"]
    command += ["--control", f"unix:{folder / 'control'}"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        said = server.stderr.readline()
        if not said.startswith("Serving"):
            sys.exit(f"probe_served: {drive}: {said}{server.stderr.read()}")
        try:
            yield
        finally:
            server.kill()


def answers(control: Path) -> tuple[int, int]:
    """Return how many answers a server has sent, and how many of them too late."""
    state = ask(control, "state")
    counts = state["late"]["counts"]
    return sum(counts), sum(counts[bisect_right(state["bounds_ns"], SPOILED_NS) :])


def probed(drive: str, seed: int, folder: Path) -> tuple[dict[str, Any], float, float]:
    """Return what a probe of a served drive finds, the part of answers too late, the seconds."""
    before = (0, 0)

    def watch(_phase: str, fraction: float) -> None:
        nonlocal before
        if before == (0, 0) and fraction >= SINGLY:
            before = answers(folder / "control")

    with served(drive, folder):
        began = time.monotonic()
        found = Drive.find(f"nbd+unix:///flashkeel?socket={folder / 'nbd'}", [], True)
        model = found.probe(seed, progress=watch, limit=timedelta(seconds=LONGEST_S)).model
        took_s = time.monotonic() - began
        sent, late = (
            now - then for now, then in zip(answers(folder / "control"), before, strict=True)
        )
    return model, late / max(sent, 1), took_s


def is_open(drive: str, model: dict[str, Any]) -> bool:
    """Return whether all is right but that volumes of collection or who waits is undetermined."""
    bits, buffer = model["gc_volume_bits"], model["write_buffer"]
    known = {"undetermined": [], "gc_volume_bits": model["volume_bits"] if bits is None else bits}
    kinds = ("back", "fore") if buffer["type"] == "unknown" else (buffer["type"],)
    return bool(model["undetermined"]) and any(
        table1.judged(drive, model | known | {"write_buffer": buffer | {"type": kind}})[1]
        for kind in kinds
    )


def is_right(drive: str, seed: int, tries: int) -> bool:
    """Print what is found of a drive, and return whether it is believed and what it is made of."""
    for _ in range(tries):
        with tempfile.TemporaryDirectory() as folder:
            model, late, took_s = probed(drive, seed, Path(folder))
        found, fits, reason = table1.judged(drive, model)
        verdict = "right" if fits else "left open" if is_open(drive, model) else "wrong"
        said = f"{drive}: {found}; {took_s:.0f} s; {verdict}"
        said = "; ".join([said, *([reason] if reason else [])])
        said += f"; {late:.3%} of the answers over {SPOILED_NS / 1e3:.0f} us late"
        if late > SPOILED:
            print(f"{said}: not believed, the machine was busy", flush=True)
            continue
        print(said, flush=True)
        if verdict != "left open":
            return fits
    print(f"{drive}: busy or left open in {tries} tries", flush=True)
    return False


@contextmanager
def undisturbed() -> Iterator[None]:
    """Take real-time priority, inherited by the server, and keep processors awake, if allowed."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REAL_TIME))
    except PermissionError:
        print("without real-time priority, which takes root or RLIMIT_RTPRIO", flush=True)
    try:
        awake = AWAKE.open("wb", buffering=0)
    except OSError:
        print(f"with processors that sleep: {AWAKE} cannot be written", flush=True)
        yield
        return
    with awake:
        awake.write(bytes(4))
        yield


def main() -> None:
    """Probe the drives in turn."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    turn = int(os.environ.get("FLASHKEEL_SOAK_ROUND", "0"))
    parser.add_argument("--drives", default=",".join(DRIVES))
    parser.add_argument("--seed", type=int, default=1 + turn)
    parser.add_argument("--tries", type=int, default=5, help="probes of a drive, at most")
    given = parser.parse_args()
    drives = given.drives.split(",")
    if unknown := set(drives) - set(DRIVES):
        parser.error(f"unknown drives {', '.join(sorted(unknown))}: {', '.join(DRIVES)}")
    with undisturbed():
        wrong = [drive for drive in drives if not is_right(drive, given.seed, given.tries)]
    sys.exit(f"probe_served: not found as it is: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
