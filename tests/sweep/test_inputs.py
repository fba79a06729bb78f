"""What a sweep reads: files that change, standard input, pipes."""

import json
import os

import pytest
from flashkeel.sweep import design, running
from small import SMALL

TRACE = "0 0 0 8 1\n1000 0 8 8 0\n2000 0 16 8 1\n"
DEVICE = SMALL.partition("[device]")[2].partition("[workload]")[0]
SWEEP = f"""\
title = "Mine"
[experiment]
seed = 7
[experiment.device]
{DEVICE.replace("[", "[experiment.")}
[experiment.workload.source]
policy = "trace"
path = "-"
format = "mqsim"
[grid]
"device.scheduler" = ["fifo", "debit"]
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SWEEP)
    return path


@pytest.fixture
def stdin(tmp_path):
    """Give a file with this text as standard input."""
    kept = os.dup(0)

    def give(text):
        path = tmp_path / "stdin"
        path.unlink(missing_ok=True)
        path.write_text(text)
        file = os.open(path, os.O_RDONLY)
        os.dup2(file, 0)
        os.close(file)

    yield give
    os.dup2(kept, 0)
    os.close(kept)


def test_another_standard_input_is_another_trace(cli, mine, stdin, tmp_path):
    command = ("sweep", mine, "-o", tmp_path / "out", "--format", "json")
    found = []
    for text in (TRACE, TRACE.partition("2000")[0]):
        stdin(text)
        outcome = cli(*command)
        assert outcome.status == 0, outcome.err
        found.append([row["requests"] for row in json.loads(outcome.out)])
    assert found == [[3, 3], [2, 2]]


def test_a_pipe_is_refused_before_anything_is_run(shell, mine, tmp_path):
    out = tmp_path / "out"
    outcome = shell("sweep", mine, "-o", out, stdin=TRACE)
    assert outcome.status == 2
    assert "standard input can be read only once; save it to a file first" in outcome.err
    assert not out.exists()


def test_points_that_are_missing_after_all_are_told(cli, mine, stdin, tmp_path, monkeypatch):
    stdin(TRACE)
    monkeypatch.setattr(running.Store, "put", lambda *_: None)
    outcome = cli("sweep", mine, "-o", tmp_path / "out")
    assert outcome.status == 1
    assert "2 of 2 points are missing" in outcome.err


def test_a_trace_that_changes_meanwhile_ends_the_sweep(mine, tmp_path):
    trace = tmp_path / "a.mqsim"
    trace.write_text(TRACE)
    mine.write_text(SWEEP.replace('path = "-"', f'path = "{trace}"'))
    store = running.Store(tmp_path / "out")
    points = running.points(design.read(str(mine)), 1)
    wanted = running.work(points, store).wanted
    assert len(wanted) == 2

    def change(index, phase, fraction):
        if (index, phase) == (1, "done"):
            trace.write_text(TRACE * 2)

    words = f"{trace}: it was changed while the sweep ran"
    with pytest.raises(RuntimeError, match=words):
        running.run(wanted, store, "local", 1, None, change)
    # Nothing is taken for a run of what is there now.
    assert running.work(points, running.Store(tmp_path / "out")).done == 0
    assert len(running.finished(points, store)) == 1
