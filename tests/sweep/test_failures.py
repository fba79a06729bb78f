"""Runs of a sweep that fail: the point is named, and the table has what was run before."""

import time
from functools import partial
from unittest.mock import Mock

import distributed
import pytest
from arro3.io import read_parquet
from flashkeel import execution, workers
from flashkeel.cli import sweep
from flashkeel.execution import Task
from flashkeel.sweep import executors
from small import SMALL

DEVICE = SMALL.partition("[device]")[2].partition("[workload]")[0]
SWEEP = f"""\
[experiment]
[experiment.device]
{DEVICE.replace("[", "[experiment.")}
[experiment.workload.source]
policy = "trace"
path = "t.csv"
[grid]
"workload.source.device" = ["hm.0", "none", "hm.1"]
"""
TRACE = "100,hm,0,Read,0,4096,0\n200,hm,1,Read,0,4096,0\n"


@pytest.mark.parametrize("executor", [("--jobs", 1), ("--jobs", 2), ("--executor", "dask")])
def test_the_point_whose_run_fails_is_named(cli, tmp_path, monkeypatch, executor):
    cluster = partial(distributed.LocalCluster, processes=False)
    monkeypatch.setattr(distributed, "LocalCluster", cluster)
    (tmp_path / "t.csv").write_text(TRACE)
    path = tmp_path / "mine.toml"
    path.write_text(SWEEP)
    outcome = cli("sweep", path, "-o", tmp_path / "out", *executor)
    assert outcome.status == 2
    place = "point 2 (workload.source.device = none), run "
    assert f"flashkeel: {place}" in outcome.err
    assert "none of its 2 requests is left" in outcome.err
    if executor == ("--jobs", 1):
        table = read_parquet(tmp_path / "out" / "sweep.parquet").read_all()
        assert table["workload.source.device"].to_pylist() == ["hm.0"]


def test_an_interrupt_of_the_picture_says_what_is_kept(cli, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text(TRACE)
    path = tmp_path / "mine.toml"
    path.write_text(SWEEP.replace('"none", ', ""))
    with monkeypatch.context() as patched:
        patched.setattr(sweep.outcome, "save", Mock(side_effect=KeyboardInterrupt))
        ended = cli("sweep", path, "-o", tmp_path / "out")
    assert ended.status == 130
    assert "hm.1" in ended.out
    assert "all points are kept in" in ended.err
    assert "the same command goes on from there" in ended.err
    assert "2 of 2 runs are there already" in cli("sweep", path, "-o", tmp_path / "out").err


@pytest.mark.parametrize("first_s", [0.2, 0.1])
def test_what_others_have_finished_is_kept_where_one_fails(monkeypatch, first_s):
    def run(task, files, progress):
        time.sleep(first_s if task.index == 0 else 0.2)
        if task.index == 0:
            raise RuntimeError("fails")
        return {"index": task.index}

    monkeypatch.setattr(execution, "run", run)
    finished = []
    tasks = [Task(index, "name", "", 1, None) for index in range(3)]
    with pytest.raises(RuntimeError, match="fails"):
        workers.execute(tasks, 3, None, None, lambda index, _: finished.append(index))
    assert sorted(finished) == [1, 2]


def test_a_worker_with_another_build_is_refused():
    with pytest.raises(RuntimeError, match="another build of flashkeel"):
        executors._on_worker("{}", 1, "that of another")
