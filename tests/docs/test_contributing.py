"""The policy that CONTRIBUTING.md adds as an example is one: it compiles, and does its work."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from flashkeel import InputError, _core, policies
from structure.source import ROOT

WHOLE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TEXT = re.split(r"^## ", WHOLE.partition("## Add a policy\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
NAME, FOLDER = re.search(r"The file,\s+`(\w+)\.rs`\s+in\s+`([^`]+)`", TEXT).groups()
FILE, LINE = re.findall(r"^```rust\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
COPY = ROOT / "target/contributing"
"""The workspace with the example in it; kept, so that cargo compiles only what has changed."""


def workspace() -> None:
    """Copy the workspace, and follow the instructions there."""
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy2(ROOT / name, COPY)
    shutil.copytree(ROOT / "crates", COPY / "crates", ignore=shutil.ignore_patterns("target"))
    axis = COPY / FOLDER / "mod.rs"
    *_, last = re.finditer(r'^ +\w+\(\w+\) in \w+ = "[^"]+",\n', axis.read_text(), re.MULTILINE)
    write(axis, axis.read_text()[: last.end()] + LINE + axis.read_text()[last.end() :])
    write(COPY / FOLDER / f"{NAME}.rs", FILE)


def write(path: Path, text: str) -> None:
    """Write a file that is as old as what it is made from: cargo looks at times."""
    made_from = [ROOT / "CONTRIBUTING.md", ROOT / FOLDER / "mod.rs"]
    path.write_text(text, encoding="utf-8")
    newest = max(source.stat().st_mtime_ns for source in made_from)
    os.utime(path, ns=(newest, newest))


def test_the_example_compiles_and_cleans_blocks():
    workspace()
    # The project's own crates are not optimised: that takes longer than the test.
    plain = [f"profile.dev.package.flashkeel-{name}.opt-level=0" for name in ("device", "config")]
    tests = ["--package", "flashkeel-device", "--test", "smoke", "every_victim_policy"]
    command = ["cargo", "test", "--locked", "--target-dir", str(ROOT / "target")]
    command += [part for setting in plain for part in ("--config", setting)]
    done = subprocess.run(
        [*command, *tests], cwd=COPY, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert "warning" not in done.stderr, done.stderr


def test_the_error_shown_names_every_victim_policy():
    known = policies.by_axis()["victim policy"]
    assert NAME not in known
    with pytest.raises(InputError) as refused:
        _core.resolve("", "x", [("device.gc.victim", "randm")])
    shown = f'{refused.value}, {NAME}; did you mean "{NAME}"?'
    assert f"flashkeel: {shown}" in TEXT
