"""What stands for an experiment on the command line."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from flashkeel import parsing

TRACE = "".join(
    f"{n * 10_000},host,0,{kind},{n * 4096},4096,0\n"
    for n, kind in enumerate(["Read", "Write"] * 3)
)
LIFETIME = ("plan", "lifetime", "--capacity", "1GB", "--dwpd", "1")
TIER = ("plan", "tier", "--drive", "qlc", "--profile", "homes", "--requests", "9")
SMALL = ("--set", "device.preset=ssd-a", "--no-cache")


@pytest.mark.parametrize("name", ["disk.csv", "disk.gz", "disk"])
def test_a_trace_is_replayed_on_the_default_device(cli, tmp_path, name, monkeypatch):
    (tmp_path / "traces").mkdir()
    path = tmp_path / "traces" / name
    path.write_bytes(gzip.compress(TRACE.encode()) if name.endswith(".gz") else TRACE.encode())
    # Relative to where one is, whatever the run is called.
    monkeypatch.chdir(tmp_path)
    outcome = cli("run", f"traces/{name}", *SMALL, "--format", "json")
    assert outcome.status == 0, outcome.err
    assert f"note: traces/{name}: a trace (msr), replayed on the default device" in outcome.err
    (run,) = json.loads(outcome.out)["runs"]
    assert (run["requests"], run["basis"]) == (6, "trace")
    assert run["config"]["workload"]["source"]["path"] == str(path)


def test_what_a_trace_is_may_be_set(cli, tmp_path):
    path = tmp_path / "disk.csv"
    path.write_text("5,W,0,4096\n900,R,4096,8192\n")
    refused = cli("run", path, *SMALL)
    assert refused.status == 2
    assert 'begins with "5,W,0,4096"' in refused.err
    columns = "workload.source.columns=time=1,unit=us,op=2,offset=3,length=4"
    outcome = cli("run", path, *SMALL, "--set", columns, "--format", "json")
    assert json.loads(outcome.out)["runs"][0]["requests"] == 2


@pytest.mark.parametrize("command", [("run",), ("plan", "buffer")])
def test_a_trace_without_units_is_told_them(cli, tmp_path, command):
    path = tmp_path / "disk.csv"
    path.write_text("volume,timestamp,op,offset,size\na,5,W,0,4096\na,9,R,4096,4096\n")
    refused = cli(*command, path, *SMALL[:2])
    assert (refused.status, "unit is missing" in refused.err) == (2, True)
    outcome = cli(*command, path, *SMALL[:2], "--set", "workload.source.time_unit=1ms")
    assert outcome.status == 0, outcome.err
    assert f"note: {path}: a trace (columns), replayed" in outcome.err


@pytest.mark.parametrize("held", ["", "\n", "# nothing yet\n"])
def test_an_empty_file_is_called_empty(cli, tmp_path, held):
    path = tmp_path / "disk.csv"
    path.write_text(held)
    for name in (path, os.devnull):
        outcome = cli("run", name)
        assert outcome.status == 2
        assert f"{name}: is empty, or holds comments only" in outcome.err


def test_a_trace_may_come_through_standard_input(shell, tmp_path):
    outcome = shell("run", "-", *SMALL, "--format", "json", stdin=TRACE)
    assert outcome.status == 0, outcome.err
    assert "note: standard input: a trace, replayed on the default device" in outcome.err
    assert json.loads(outcome.out)["runs"][0]["requests"] == 6


def test_a_profile_is_run_by_its_name(cli):
    outcome = cli("run", "homes", *SMALL, "--set", "workload.requests=10", "--format", "json")
    assert outcome.status == 0, outcome.err
    assert json.loads(outcome.out)["runs"][0]["basis"] == "synthetic"


def test_what_is_neither_experiment_nor_trace_is_told_as_both(cli, tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("seed = 3\n[device\n")
    outcome = cli("run", path)
    assert outcome.status == 2
    assert f"{path}: no experiment: not TOML (" in outcome.err
    assert f"at line 2, column 8)); no trace: {path}:1: no known trace format" in outcome.err


def test_an_experiment_needs_no_ending(cli, tmp_path):
    path = tmp_path / "mine"
    path.write_text('title = "Mine"\n[device]\nsise = 1\n')
    assert f"{path}:3: device.sise" in cli("run", path).err


def test_a_fio_job_is_called_what_it_is(cli, tmp_path):
    job = tmp_path / "job.job"
    job.write_text("[a]\nrw=randread\nsize=1m\n")
    assert "it is a fio job file" in cli("run", job).err


def test_a_folder_is_no_experiment(cli, tmp_path):
    outcome = cli("run", tmp_path)
    assert (outcome.status, outcome.err) == (2, f"flashkeel: {tmp_path}: Is a directory\n")


def test_an_unknown_name_names_what_there_is(cli):
    outcome = cli("run", "hmoes")
    assert outcome.status == 2
    assert "the experiments are demo, " in outcome.err
    assert 'did you mean "homes"?' in outcome.err


def test_a_long_trace_is_not_read_as_a_document(cli, tmp_path, monkeypatch):
    path = tmp_path / "disk.csv"
    with path.open("w") as file:
        file.write(TRACE)
        # Of more than any document has, and nothing on the disk.
        file.truncate(parsing.LONGEST_DOCUMENT)
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("it is read"))
    outcome = cli("run", path, "--set", "device.foo=1")
    assert outcome.status == 2
    assert "a trace (msr), replayed on the default device" in outcome.err
    assert "device.foo: unknown key" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "TRACE", "--set", "format=msr"), "or workload.source.KEY for one of the trace"),
        (("plan", "buffer", "TRACE", "--set", "columns=time=1"), "or workload.source.KEY"),
        (("run", "homes", "--set", "intensity=2"), "or workload.source.KEY"),
        (("run", "homes", "--set", "sed=2"), 'did you mean "seed"?'),
        (("trace", "info", "TRACE", "--set", "workload.source.format=msr"), "write format"),
        (
            (*LIFETIME, "--trace", "TRACE", "--set", "workload.source.window.from=1s"),
            "write window.from",
        ),
        ((*TIER, "--set", "workload.source.intensity=2"), "write intensity"),
    ],
)
def test_a_key_that_is_called_otherwise_elsewhere_is_told_its_name(cli, tmp_path, arguments, words):
    path = tmp_path / "disk.csv"
    path.write_text(TRACE)
    outcome = cli(*(path if each == "TRACE" else each for each in arguments))
    assert (outcome.status, outcome.out) == (2, "")
    assert words in outcome.err


@pytest.mark.parametrize(
    ("sets", "is_said"),
    [
        ((), True), (("--set", 'device.host_link="3500MB/s"'), False),
        (("--set", "device.preset=ssd-a"), False),
    ],
)  # fmt: skip
def test_a_replay_on_a_drive_without_a_link_says_so(cli, tmp_path, sets, is_said):
    small = ("--set", "device.logical_capacity=400MiB", "--no-cache", "--format", "json")
    small += ("--set", "device.precondition.pattern=none")
    trace, job = tmp_path / "disk.csv", tmp_path / "job.fio"
    trace.write_text(TRACE)
    job.write_text("[j]\ndirect=1\nrw=randread\nsize=64m\nnumber_ios=10\n")
    for path in (trace, job):
        outcome = cli("run", path, *small, *sets)
        assert outcome.status == 0, outcome.err
        assert ("note: the device has no host_link" in outcome.err) == is_said
    # Who writes an experiment has chosen.
    path = tmp_path / "mine.toml"
    path.write_text(
        "[device]\n[workload]\nrequests = 10\npacing = 'closed'\n"
        "source = { policy = 'synthetic' }\n"
    )
    assert cli("run", path, *small, *sets).err == ""
