"""Measure what a profile of what runs often is worth: ``make bench-profiled``.

The extension of `.venv`, built without one, and that of a wheel built with one take turns on
workloads that the profile was not made from. The times are those of the simulations alone; of
each the least of some rounds counts, as who shares the machine only ever slows it down.
Written to ``target/bench_profiled.json``.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_commands import SMALL
from flashkeel import _core
from profile_guided import ROOT, NoProfileError, build, train, unpack

ROUNDS = 5
FIGURES = ROOT / "target" / "bench_profiled.json"

LOOP = """\
[workload]
requests = 2000000
pacing = { policy = "closed", depth = 64 }
source = { policy = "synthetic", read_fraction = FRACTION }
"""

TIER = """\
[[stack.devices]]
tier.preset = "PRESET"
tier.upper.dram = { capacity = "64MiB" }
tier.lower.tier.upper.nvm = { capacity = "144MiB" }
tier.lower.tier.lower.ssd = {}
"""


def loop(fraction: float) -> str:
    """Return a workload of single pages of which some are read."""
    return LOOP.replace("FRACTION", str(fraction))


EXPERIMENTS = {
    "random_write": SMALL + loop(0.0),
    "random_read": SMALL + loop(1.0),
    "mixed_sizes": "demo",
    "oc_tier": SMALL + loop(0.9) + TIER.replace("PRESET", "oc"),
    "nlcwip_tier": SMALL + loop(0.9) + TIER.replace("PRESET", "nlcwip"),
}
"""By name; `demo` is the demonstration, of 20 s."""


def seconds(name: str, folder: Path, package: Path | None) -> float:
    """Run an experiment with the package in a folder, or else our own; return its time."""
    environment = os.environ | {"FLASHKEEL_CACHE": str(folder / "cache")}
    if package is not None:
        environment["PYTHONPATH"] = str(package)
    command = [sys.executable, "-m", "flashkeel", "run", "--format", "json"]
    if EXPERIMENTS[name] == "demo":
        command += ["demo", "--set", "workload.duration=20s"]
    else:
        document = folder / f"{name}.toml"
        document.write_text(EXPERIMENTS[name])
        command.append(str(document))
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return sum(float(run["wall_s"]) for run in json.loads(done.stdout)["runs"])


def main() -> None:
    """Build, measure, print, write."""
    try:
        profile = train()
    except NoProfileError as error:
        sys.exit(f"bench-profiled: {error}")
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        package = unpack(build(folder, profile), folder / "package")
        for name in EXPERIMENTS:
            rounds = [[seconds(name, folder, it) for it in (None, package)] for _ in range(ROUNDS)]
            plain, profiled = (min(times) for times in zip(*rounds, strict=True))
            figures[name] = {"s": plain, "profiled_s": profiled, "times_as_fast": plain / profiled}
            print(
                f"{name:>16} {plain:6.2f} s ({_core.BUILD}), {profiled:6.2f} s profile-guided: "
                f"{plain / profiled:.2f} times as fast"
            )
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"written to {FIGURES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
