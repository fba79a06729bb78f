"""The wheel and the source distribution, installed into clean environments."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from small import SMALL
from structure.source import ROOT

MATURIN = [sys.executable, "-m", "maturin"]
PYTHON = {"PYO3_PYTHON": sys.executable}


def call(*command, cwd=ROOT, **environment):
    # The sources that tests use must not stand in for what is installed.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel, from what `make` has compiled before."""
    out = tmp_path_factory.mktemp("wheel")
    call(*MATURIN, "build", "--release", "--quiet", "--out", out, **PYTHON)
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    out = tmp_path_factory.mktemp("sdist")
    call(*MATURIN, "sdist", "--out", out)
    (path,) = out.glob("*.tar.gz")
    return path


def works(folder, package):
    """Install a distribution into an environment of its own, and use it."""
    call(sys.executable, "-m", "venv", folder / "env")
    binaries = folder / "env/bin"
    call(binaries / "python", "-m", "pip", "install", "--quiet", package)
    (folder / "small.toml").write_text(SMALL)
    cache = {"FLASHKEEL_CACHE": str(folder / "cache")}
    command = binaries / "flashkeel"
    assert call(command, "--version", cwd=folder).startswith("flashkeel 0.")
    call(command, "run", "small.toml", "--out", "out", cwd=folder, **cache)
    call(command, "report", "out", "-o", "report.html", cwd=folder)
    assert "prefers-color-scheme" in (folder / "report.html").read_text()
    assert "geometry" in call(command, "show", "autossd", cwd=folder)
    where = call(binaries / "python", "-c", "import flashkeel; print(flashkeel.__file__)")
    assert Path(where.strip()).is_relative_to(folder)
    return call(command, "run", "small.toml", "--format", "json", cwd=folder, **cache)


def test_the_wheel_is_for_every_python_and_holds_what_it_needs(wheel):
    assert re.fullmatch(r"flashkeel-[\d.]+-cp311-abi3-manylinux_\d+_\d+_\w+\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    inside = {name.partition("/")[2] for name in names}
    package = ROOT / "python/flashkeel"
    data = [path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    needed = {path.relative_to(package).as_posix() for path in data if path.suffix != ".so"}
    assert needed <= inside
    licences = {Path(name).name for name in names if "/licenses/" in name}
    assert licences >= {"LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"}
    assert "_core.abi3.so" in inside


def test_the_wheel_works_in_a_clean_environment(wheel, small_result, tmp_path):
    printed = works(tmp_path, wheel)
    for run in small_result.runs:
        assert f'"digest": "{run.data["digest"]}"' in printed


def test_the_source_distribution_is_complete(source):
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    kinds = (":(glob)crates/*/src/**", "crates/*/Cargo.toml", "crates/*/build.rs", "python")
    tracked = call("git", "ls-files", *kinds).splitlines()
    assert len(tracked) > 500
    needed = {"Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "CHANGELOG.md"}
    needed |= {"LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"}
    assert needed | set(tracked) <= names


def test_the_source_distribution_builds_and_works(source, small_result, tmp_path):
    binaries = Path(sys.executable).parent
    options = {
        # Packages that were compiled before are not compiled again, and nothing is made as fast
        # as it can be: that takes minutes, and the same results come out.
        "CARGO_TARGET_DIR": str(ROOT / "target"),
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
        "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        **PYTHON,
    }
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    call(*pip, "--wheel-dir", tmp_path, source, **options)
    (built,) = tmp_path.glob("*.whl")
    printed = works(tmp_path, built)
    for run in small_result.runs:
        assert f'"digest": "{run.data["digest"]}"' in printed
