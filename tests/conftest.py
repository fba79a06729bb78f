"""Fixtures: a small experiment, its result, and the command line."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import flashkeel
import pytest
from flashkeel.cli import main
from small import SMALL


@dataclass
class Outcome:
    """What a command did."""

    status: int
    out: str
    err: str


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    os.environ["FLASHKEEL_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True, scope="session")
def _interrupts():
    """Programs that tests start hear an interrupt, though what runs in a background does not."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def cli(monkeypatch, capsys):
    """Run the command line in this process."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["flashkeel", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        written = capsys.readouterr()
        return Outcome(stopped.value.code or 0, written.out, written.err)

    return call


@pytest.fixture
def shell():
    """Run the command line in a process of its own, with pipes."""

    def call(*arguments, stdin="", **environment):
        done = subprocess.run(
            [sys.executable, "-m", "flashkeel", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            env=os.environ | environment,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def small_toml(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("experiment") / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="session")
def small_result(small_toml) -> flashkeel.Result:
    return flashkeel.Experiment.from_toml(small_toml).run()


@pytest.fixture(scope="session")
def windowed() -> flashkeel.Result:
    """Of one run on a drive with commanded windows, with every log."""
    share = {"count": 200, "window": "20ms", "rest": "20ms"}
    experiment = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    experiment = experiment.set("measure.log_requests", True)
    experiment = experiment.set("measure.chip_log", {"from": "200ms", "length": "100ms"})
    experiment = experiment.set("device.window", "commanded").set("stack.depth", 64)
    devices = [{"coordinator": {"device": {"ssd": {}}, "share": share}}]
    return experiment.set("stack.devices", devices).run()


@pytest.fixture(scope="session")
def saved(small_result, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("saved") / "small"
    small_result.save(directory)
    return directory
