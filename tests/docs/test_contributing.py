"""What CONTRIBUTING.md adds as examples, a policy and a task, compiles and does its work."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from flashkeel import InputError, _core, policies
from structure.source import ROOT

WHOLE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return what stands below a heading."""
    below = WHOLE.partition(f"## {title}\n")[2]
    return re.split(r"^## ", below, maxsplit=1, flags=re.MULTILINE)[0]


def blocks(text: str) -> list[str]:
    """Return the pieces of Rust in a text."""
    return re.findall(r"^```rust\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


TEXT = section("Add a policy")
NAME, FOLDER = re.search(r"The file,\s+`(\w+)\.rs`\s+in\s+`([^`]+)`", TEXT).groups()
FOLDER = Path(FOLDER)
FILE, LINE = blocks(TEXT)
TASK, ENTRY, TASK_TEST = blocks(section("Add a background task"))
DEVICE = Path("crates/device")
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
    table = COPY / DEVICE / "src/sched/tasks.rs"
    tasks, others = table.read_text().split("            }\n            others {\n")
    write(table, f"{tasks}{ENTRY}            }}\n            others {{\n{others}")
    write(COPY / DEVICE / "src/ftl/patrol.rs", TASK)
    smoke = COPY / DEVICE / "tests/smoke.rs"
    write(smoke, f"{smoke.read_text()}\n{TASK_TEST}")


def write(path: Path, text: str) -> None:
    """Write a file that is as old as what it is made from: cargo looks at times."""
    changed = [FOLDER / "mod.rs", DEVICE / "src/sched/tasks.rs", DEVICE / "tests/smoke.rs"]
    made_from = [ROOT / path for path in (Path("CONTRIBUTING.md"), *changed)]
    path.write_text(text, encoding="utf-8")
    newest = max(source.stat().st_mtime_ns for source in made_from)
    os.utime(path, ns=(newest, newest))


def test_the_examples_compile_and_do_their_work():
    workspace()
    # The project's own crates are not optimised: that takes longer than the test.
    plain = [f"profile.dev.package.flashkeel-{name}.opt-level=0" for name in ("device", "config")]
    tests = ["--package", "flashkeel-device", "--test", "smoke", "--"]
    tests += ["every_victim_policy", "patrols_read"]
    command = ["cargo", "test", "--locked", "--target-dir", str(ROOT / "target")]
    command += [part for setting in plain for part in ("--config", setting)]
    done = subprocess.run(
        [*command, *tests], cwd=COPY, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "warning" not in done.stderr, done.stderr


def test_the_error_shown_names_every_victim_policy():
    known = policies.by_axis()["victim policy"]
    assert NAME not in known
    with pytest.raises(InputError) as refused:
        _core.resolve("", "x", [("device.gc.victim", "randm")])
    shown = f'{refused.value}, {NAME}; did you mean "{NAME}"?'
    assert f"flashkeel: {shown}" in TEXT
