"""Every command in every document is one, and those of the tour do what it says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from flashkeel.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`(flashkeel [a-z][^`]*)`")
DONE = {"docs/tour.md": 16, "docs/sweeps.md": 1}
"""Pages whose commands are carried out in turn, and how many they have at least."""
LEFT_OUT = ("plan tier", "--executor dask --scheduler")
"""What takes minutes, or a cluster; tests of their own do it."""
SMALL = {
    "run": ["--set", "workload.requests=3000", "--set", "workload.warm_up=0s"],
    "sweep": ["--set", "workload.requests=2000", "--set", "workload.warm_up=0s"],
}
"""Settings with which commands that take long are quick."""


def commands(text):
    """Return the commands in blocks, as written, each in one line."""
    for kind, block in BLOCK.findall(text):
        for line in [] if kind else re.sub(r"\\\n\s*", "", block).splitlines():
            told = line.strip().removeprefix("$ ").removeprefix(".venv/bin/")
            if told.startswith("flashkeel "):
                yield told.partition("  #")[0]


def named():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        name = page.relative_to(ROOT).as_posix()
        found = [*commands(text), *(" ".join(it.split()) for it in CODE.findall(text))]
        for command in dict.fromkeys(found):
            yield pytest.param(command, id=f"{name}: {command}"[:90])


@pytest.mark.parametrize("command", list(named()))
def test_a_command_is_one(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "…" in command or re.search(r"\b(DIR|FILE|RUN|NAME|TRACE|K|N)\b", command):
        # It stands for many: its options are looked at, not its arguments.
        command = command.replace("…", "")
    words = shlex.split(re.split(r" [|>&]", command.replace("[", "").replace("]", ""))[0])[1:]
    group, path = app, []
    while isinstance(group, click.Group) and words and words[0] in group.commands:
        path.append(words[0])
        group = group.commands[words.pop(0)]
    assert path, f"there is no command {words[:1]}"
    known = {name for it in group.params for name in it.opts} | {"--help", "-h"}
    options = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
    numbers = {word for word in options if re.fullmatch(r"-[\d.]+", word)}
    assert options - numbers <= known


@pytest.mark.parametrize("page", DONE)
def test_the_commands_of_a_page_are_carried_out(page, tmp_path):
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, document in re.findall(
        r"Save this as `(\w+\.toml)`:\n\n```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    ):
        (tmp_path / name).write_text(document)
    done = 0
    for command in commands(text):
        if any(part in command for part in LEFT_OUT):
            continue
        words = shlex.split(command)[1:]
        words += SMALL.get(words[0], [])
        outcome = subprocess.run(
            [sys.executable, "-m", "flashkeel", *words],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert outcome.returncode == 0, f"{command}\n{outcome.stdout}\n{outcome.stderr}"
        done += 1
    assert done >= DONE[page]


def test_the_tour_has_every_command():
    shown = {command.split()[1] for command in commands((ROOT / "docs/tour.md").read_text())}
    text = (ROOT / "docs/tour.md").read_text(encoding="utf-8")
    shown |= {command.split()[1] for command in CODE.findall(text)}
    assert set(app.commands) <= shown
