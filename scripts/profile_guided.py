"""Build with a profile of what runs often, so that the compiler makes that fast.

The extension is built once with counters in it; the workloads of ``bench/training``, none of
which ``make bench`` measures, are run with it; and the compiler is told what they counted.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import debian

ROOT = Path(__file__).parent.parent
TRAINING = ROOT / "bench" / "training"
RECORDED = TRAINING / "recorded.toml"
PROFILE = ROOT / "target" / "training.profdata"
NEWER = 6
"""LLVM reads profiles of older versions: how many major versions after rustc's are looked for."""


class NoProfileError(Exception):
    """Why there is no profile."""


def host() -> tuple[str, int]:
    """Return the compiler's target and the major version of its LLVM."""
    said = subprocess.run(["rustc", "-vV"], cwd=ROOT, capture_output=True, text=True, check=True)
    triple = re.search(r"^host: (.+)$", said.stdout, re.MULTILINE)
    llvm = re.search(r"^LLVM version: (\d+)", said.stdout, re.MULTILINE)
    if triple is None or llvm is None:
        raise NoProfileError("rustc does not say of which LLVM it is")
    return triple[1], int(llvm[1])


def profdata(triple: str, llvm: int) -> Path:
    """Return an llvm-profdata that reads what the compiler's LLVM writes.

    Where there is none, root on Debian installs it.
    """
    sysroot = subprocess.run(
        ["rustc", "--print", "sysroot"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    ours = Path(sysroot.stdout.strip()) / "lib" / "rustlib" / triple / "bin" / "llvm-profdata"
    if ours.exists():
        return ours
    package = f"llvm-{llvm}"
    found = _installed(llvm)
    why = debian.install(package) if found is None else ""
    found = found or _installed(llvm)
    if found is None:
        raise NoProfileError(
            f"llvm-profdata of LLVM {llvm} or later is missing, of rustup's component llvm-tools "
            f"or the Debian package {package}: {why}"
        )
    return found


def _installed(llvm: int) -> Path | None:
    """Return the path of an installed llvm-profdata of a version or a later one."""
    for version in range(llvm, llvm + NEWER):
        if found := shutil.which(f"llvm-profdata-{version}"):
            return Path(found)
    found = shutil.which("llvm-profdata")
    if found is None:
        return None
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"LLVM version (\d+)", said)
    return Path(found) if version is not None and int(version[1]) >= llvm else None


def build(folder: Path, profile: Path | None) -> Path:
    """Build a wheel into a folder, with a profile or without; return where it is.

    One that is built with a profile says so.
    """
    with_profile = [f"-Cprofile-use={profile}", "--cfg", "profile_guided"]
    return _maturin(folder, with_profile if profile else [])


def _maturin(folder: Path, flags: Sequence[str]) -> Path:
    """Build a wheel into a folder, with flags for the compiler; return where it is."""
    given = os.environ.get("RUSTFLAGS", "").split()
    environment = os.environ | {
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*given, *flags]),
        "PYO3_PYTHON": sys.executable,
    }
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as alone:
        command = [sys.executable, "-m", "maturin", "build", "--release", "--out", alone]
        # With a target its flags are not for what runs while something is built.
        command += ["--target", host()[0]]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        (wheel,) = Path(alone).glob("*.whl")
        return wheel.replace(folder / wheel.name)


def unpack(wheel: Path, folder: Path) -> Path:
    """Put what is in a wheel into a folder, from which Python can import it; return that."""
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def train() -> Path:
    """Make the profile; return where it is."""
    tool = profdata(*host())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("profile: building with counters", file=sys.stderr)
        wheel = _maturin(folder, ["-Cprofile-generate"])
        print("profile: running what is counted", file=sys.stderr)
        counts = run_workloads(folder, unpack(wheel, folder / "package"))
        PROFILE.parent.mkdir(exist_ok=True)
        subprocess.run([tool, "merge", "--output", PROFILE, counts], check=True)
    return PROFILE


def run_workloads(folder: Path, package: Path) -> Path:
    """Run all that is trained on, with the package in a folder; return where the counts are."""
    counts = folder / "counts"
    environment = os.environ | {
        "PYTHONPATH": str(package),
        "FLASHKEEL_CACHE": str(folder / "cache"),
        # A file for each process.
        "LLVM_PROFILE_FILE": str(counts / "%p.profraw"),
    }

    def flashkeel(*arguments: str | Path) -> None:
        command = [sys.executable, "-m", "flashkeel", *map(str, arguments)]
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False
        )
        if done.returncode != 0:
            sys.exit(f"profile: {' '.join(command)}: status {done.returncode}")

    for document in sorted(TRAINING.glob("*.toml")):
        flashkeel("run", document, "--format", "json")
    for trace in ("synthetic.msr", "synthetic.parquet"):
        file = folder / trace
        flashkeel("trace", "synth", RECORDED, "-o", file, "--format", file.suffix[1:])
        source = f'workload.source={{ policy = "trace", path = "{file}" }}'
        log = "measure.log_requests=true"
        flashkeel("run", RECORDED, "--format", "json", "--set", source, "--set", log)
    return counts
