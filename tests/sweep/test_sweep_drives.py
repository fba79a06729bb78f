"""Sweeps over real drives: one run after the other, each of them measured anew."""

import json
import threading

import pytest
from arro3.io import read_parquet
from flashkeel import _core

SWEEP = """\
[experiment]
[[experiment.stack.devices]]
file.path = "disk"
[experiment.workload]
requests = 200
pacing = "closed"
source = { policy = "synthetic", read_fraction = 1.0 }
[grid]
seed = [1, 2, 3]
"""


@pytest.fixture
def real(tmp_path):
    (tmp_path / "disk").write_bytes(bytes(32 << 20))
    path = tmp_path / "real.toml"
    path.write_text(SWEEP)
    return path


def test_a_drive_is_used_by_one_run_after_the_other(cli, real, tmp_path, monkeypatch):
    run, lock = _core.run, threading.Lock()
    at_work, seen = 0, []

    def counted(*arguments):
        nonlocal at_work
        with lock:
            at_work += 1
            seen.append(at_work)
        try:
            return run(*arguments)
        finally:
            with lock:
                at_work -= 1

    monkeypatch.setattr(_core, "run", counted)
    outcome = cli("sweep", real, "-o", tmp_path / "out", "--jobs", 3)
    assert outcome.status == 0, outcome.err
    assert seen == [1, 1, 1]


def test_what_was_measured_on_a_drive_is_measured_anew(cli, real, tmp_path):
    out = tmp_path / "out"
    found = []
    for _ in range(2):
        outcome = cli("sweep", real, "-o", out, "--format", "json")
        assert outcome.status == 0, outcome.err
        rows = json.loads(outcome.out)
        found.append([row["small_read_mean_ns"] for row in rows])
        table = read_parquet(out / "sweep.parquet").read_all()
        assert table["small_read_mean_ns"].to_pylist() == found[-1]
    assert not set(found[0]) & set(found[1])
    assert not list(out.glob("runs/*"))
    assert "already" not in cli("sweep", real, "-o", out).err


def test_a_drive_is_measured_here(cli, real, tmp_path):
    outcome = cli("sweep", real, "-o", tmp_path / "out", "--executor", "dask")
    assert outcome.status == 2
    assert "--executor dask: a real drive is in it" in outcome.err
    assert not (tmp_path / "out").exists()


def test_an_interrupt_says_that_drives_are_measured_anew(cli, real, tmp_path, monkeypatch):
    run = _core.run

    def interrupted(plan, seed, *rest):
        if seed == 2:
            raise KeyboardInterrupt
        return run(plan, seed, *rest)

    monkeypatch.setattr(_core, "run", interrupted)
    outcome = cli("sweep", real, "-o", tmp_path / "out")
    assert outcome.status == 130
    assert "1 of 3 points are kept in" in outcome.err
    assert "the same command measures real drives anew" in outcome.err
    assert read_parquet(tmp_path / "out" / "sweep.parquet").read_all().num_rows == 1
