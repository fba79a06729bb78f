"""Measure whole commands, as their users wait for them.

Each figure is the least of some rounds, as who shares the machine only ever slows a command
down. What is compared takes turns within a round, and the ratio is that of the least. Speeds
are by the processor's time, which others change less than the clock's, but where several
processors are the point. The figures are added to ``target/bench.json``. Nothing here fails
where it is slow.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from flashkeel._core import BUILD

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "target" / "bench.json"
ROUNDS = 3
TRACE_REQUESTS = 10_000_000
SEEDS = 8

SMALL = """\
[device]
logical_capacity = "380MiB"
map_cache = "all"
geometry = { blocks_per_plane = 16, pages_per_block = 64 }
gc = { start_below = 40, stop_above = 60 }
"""
"""A small device, whose steady state takes no time."""

WRITES = """\
[workload]
source.policy = "synthetic"
source.read_fraction = 0.0
source.arrivals = { policy = "constant", iops = 30000 }
"""
"""At a rate that all of the devices here sustain."""

MIXED = WRITES.replace("0.0", "0.5")
"""Half of them reads."""

LARGE = """\
[device]
map_cache = "all"
"""
"""The device of AutoSSD: 200 GiB."""

TEBIBYTE = """\
[device]
logical_capacity = "800GiB"
map_cache = "all"
geometry = { blocks_per_plane = 4096 }
"""
"""The same with 1 TiB of flash."""


@dataclass
class Taken:
    """What a command took."""

    wall_s: float
    cpu_s: float
    memory_mib: float


class Bench:
    """Commands in a folder of their own, with a cache of their own."""

    def __init__(self, folder: Path) -> None:
        """Measure in `folder`, which is empty."""
        self.folder = folder
        self.environment = os.environ | {"FLASHKEEL_CACHE": str(folder / "cache")}
        self.figures: dict[str, dict[str, object]] = {}

    def document(self, name: str, *parts: str) -> str:
        """Write an experiment; return the name of its file."""
        (self.folder / name).write_text("".join(parts))
        return name

    def take(self, *arguments: str) -> Taken:
        """Carry out a command of flashkeel."""
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "flashkeel", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"flashkeel {' '.join(arguments)}: status {process.returncode}")
        return Taken(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)

    def least(self, *commands: Sequence[str], rounds: int = ROUNDS) -> list[Taken]:
        """Carry out commands in turn; return of each the least that it took."""
        taken = [[self.take(*command) for command in commands] for _ in range(rounds)]
        return [
            Taken(
                min(it.wall_s for it in each),
                min(it.cpu_s for it in each),
                min(it.memory_mib for it in each),
            )
            for each in zip(*taken, strict=True)
        ]

    def note(self, name: str, value: float, unit: str, about: str = "") -> None:
        """Print a figure, and keep it."""
        self.figures[name] = {"value": value, "unit": unit, "limit_ratio": None}
        print(f"{name:>40} {value:8.2f} {unit:<8} {about}".rstrip())


def run(document: str, *options: str) -> list[str]:
    """Return the command that runs an experiment and prints as little as one can."""
    return ["run", document, "--format", "json", *options]


def start(bench: Bench) -> None:
    """Measure how long a command takes of which the simulation takes nothing."""
    one = bench.document(
        "one.toml", SMALL, 'precondition = { pattern = "none" }\n', WRITES, "requests = 1\n"
    )
    (taken,) = bench.least(run(one), rounds=3 * ROUNDS)
    bench.note("command_s", taken.wall_s, "s", "from its start to its end, with one request")
    bench.note("command_cpu_s", taken.cpu_s, "s")


def restoring(bench: Bench) -> None:
    """Measure how long a device of 200 GiB takes to be restored."""
    steady = bench.document("steady.toml", LARGE, WRITES, "requests = 1\n")
    fresh = bench.document(
        "fresh.toml", LARGE, 'precondition = { pattern = "none" }\n', WRITES, "requests = 1\n"
    )
    bench.take(*run(steady))
    restored, without = bench.least(run(steady), run(fresh))
    seconds = restored.cpu_s - without.cpu_s
    bench.note("restoring_200gib_s", seconds, "s", "more than a fresh device takes")
    bench.note("restored_200gib_mib", restored.memory_mib, "MiB", "of the whole command")


def tebibyte(bench: Bench) -> None:
    """Measure how long 1 TiB of flash takes to be preconditioned and to be written to."""
    document = bench.document("tebibyte.toml", TEBIBYTE, WRITES, "requests = 1000000\n")
    taken = bench.take(*run(document, "--no-cache"))
    bench.note("tebibyte_cpu_s", taken.cpu_s, "s", "preconditioned, and a million writes")
    bench.note("tebibyte_mib", taken.memory_mib, "MiB")


def replaying(bench: Bench) -> None:
    """Measure a recorded trace beside the generator that made it."""
    requests = f"requests = {TRACE_REQUESTS}\n"
    generated = bench.document("generated.toml", SMALL, MIXED, requests)
    bench.take(*run(generated, "--set", "workload.requests=1"))
    for name in ("msr", "parquet"):
        # A name that says so, where the format cannot.
        file = f"synthetic.{name}"
        bench.take("trace", "synth", generated, "-o", file, "--format", name)
        source = f'[workload]\nsource = {{ policy = "trace", path = "{file}" }}\n'
        replayed = bench.document(f"{name}.toml", SMALL, source)
        ours, theirs = bench.least(run(replayed), run(generated), rounds=2)
        ratio = theirs.cpu_s / ours.cpu_s
        bench.note(f"{name}_trace_to_generator", ratio, "", "the whole command's speed")
        (bench.folder / file).unlink()


def logging(bench: Bench) -> None:
    """Measure a run that logs its requests beside one that does not."""
    document = bench.document("logged.toml", SMALL, MIXED, "requests = 2000000\n")
    bench.take(*run(document))
    with_log = run(document, "--set", "measure.log_requests=true")
    logged, without = bench.least(with_log, run(document))
    bench.note("logged_to_unlogged", without.cpu_s / logged.cpu_s, "", "the command's speed")


def jobs(bench: Bench) -> None:
    """Measure two jobs beside one."""
    document = bench.document("seeds.toml", SMALL, WRITES, "requests = 1000000\n")
    seeds = ("--seeds", str(SEEDS))
    bench.take(*run(document, *seeds))
    one, two = bench.least(run(document, *seeds), run(document, *seeds, "--jobs", "2"))
    about = f"{SEEDS} seeds, cached states, {os.cpu_count()} processors"
    bench.note("two_jobs_to_one", one.wall_s / two.wall_s, "", about)


PARTS: dict[str, Callable[[Bench], None]] = {
    "start": start,
    "restoring": restoring,
    "tebibyte": tebibyte,
    "replaying": replaying,
    "logging": logging,
    "jobs": jobs,
}


def main(chosen: Sequence[str]) -> None:
    """Measure what is chosen, or everything; print; write."""
    known = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    print(f"{'build':>40} {BUILD}")
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        bench.figures["commands_build"] = {"value": BUILD, "unit": "", "limit_ratio": None}
        for part in chosen or PARTS:
            PARTS[part](bench)
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.write_text(json.dumps(known | bench.figures, indent=2) + "\n")
    print(f"written to {FIGURES.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
