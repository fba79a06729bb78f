"""Real files as drives, from the command line."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from flashkeel.output import probe_tables
from flashkeel.ssdcheck import Diagnosis


@pytest.fixture
def disk(tmp_path):
    path = tmp_path / "disk"
    path.write_bytes(bytes(32 << 20))
    return path


def document(folder, read_fraction):
    path = folder / "mine.toml"
    path.write_text(
        '[[stack.devices]]\nfile.path = "disk"\n[workload]\nrequests = 300\npacing = "closed"\n'
        f'[workload.source]\npolicy = "synthetic"\nread_fraction = {read_fraction}\n'
    )
    return path


def test_a_probe_says_what_it_could_not_determine(cli, disk, tmp_path):
    outcome = cli("probe", disk, "--destroy", "--limit", 12, "--out", tmp_path / "out")
    assert (outcome.status, outcome.err) == (0, "")
    words = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert "sleeps after undetermined" in words
    model = json.loads((tmp_path / "out/model.json").read_text())
    assert model["sectors"] == 65536
    assert model["latencies_ns"]["read"] > 0
    assert model["write_buffer"] == {"bytes": None, "type": "unknown", "flush": []}
    reasons = ["volume_bits, sleep: the time given, 9s, ran out before"]
    table = next(probe_tables.diagnosis(Diagnosis("disk", model | {"undetermined": reasons})))
    cells = dict(zip(*(column.cells for column in table.columns), strict=True))
    assert cells["internal volumes"] == cells["sleeps after"] == "undetermined"
    # What was found serves to predict it.
    plan = document(tmp_path, 0.5)
    options = ("--model", tmp_path / "out/model.json", "--workload", plan, "--destroy")
    found = json.loads(cli("predict", disk, *options, "--format", "json").out)
    assert found["workloads"][0]["requests"] == 300


def test_nothing_is_destroyed_unless_it_may_be(cli, disk, tmp_path):
    outcome = cli("probe", disk)
    assert outcome.status == 2
    assert "--destroy lets its data be destroyed" in outcome.err
    outcome = cli("run", document(tmp_path, 0.5))
    assert outcome.status == 2
    assert f"{disk}: it is read only" in outcome.err
    assert disk.read_bytes() == bytes(32 << 20)
    # Reading needs no leave.
    outcome = cli("run", document(tmp_path, 1.0))
    assert outcome.status == 0
    assert "a real drive is in it" in outcome.out


def test_a_run_over_a_file_is_measured_in_its_time(cli, disk, tmp_path):
    plan = document(tmp_path, 0.5)
    outcome = cli("run", plan, "--destroy", "--seeds", 2, "--jobs", 2, "--format", "json")
    (run,) = json.loads(outcome.out)["runs"]
    assert run["requests"] == 600
    assert run["blame_ns"]["outside"] > 0
    assert disk.read_bytes() != bytes(32 << 20)


def test_who_interrupts_a_probe_is_told_what_was_written(disk):
    command = [sys.executable, "-m", "flashkeel", "probe", str(disk), "--destroy"]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
    while not any(disk.read_bytes()):
        time.sleep(0.1)
    started.send_signal(signal.SIGINT)
    _, told = started.communicate(timeout=60)
    assert started.returncode == 130
    assert "interrupted; " in told
    assert f" bytes were written to {disk}, between bytes " in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('file.path = "missing"', "missing: No such file or directory"),
        ('file.path = "/dev/null"', "neither a regular file nor a block device"),
        ("file = {}", 'the key "path" is missing'),
        ('file = { path = "disk", queue_depth = 0 }', "queue_depth: is 0; 1 to 4096"),
    ],
)
def test_bad_drives(cli, disk, tmp_path, text, words):
    plan = tmp_path / "bad.toml"
    plan.write_text(f"[[stack.devices]]\n{text}\n")
    outcome = cli("run", plan)
    assert outcome.status == 2
    assert words in outcome.err


def test_a_drive_too_small_to_probe(cli, tmp_path):
    small = tmp_path / "small"
    small.write_bytes(bytes(8 << 20))
    outcome = cli("probe", small, "--destroy")
    assert outcome.status == 2
    assert "too small to probe; at least 16 MiB" in outcome.err


@pytest.mark.parametrize(
    "stack",
    [
        '[stack]\nscheduler = "pas"\n[[stack.devices]]\nfile.path = "disk"\n',
        '[[stack.devices]]\nmirror.read = "predicted"\n'
        'mirror.devices = [{ file.path = "disk" }, { file.path = "other" }]\n',
    ],
)
def test_who_predicts_a_real_drive_is_given_a_model_of_it(cli, disk, tmp_path, stack):
    (tmp_path / "other").write_bytes(disk.read_bytes())
    plan = tmp_path / "mine.toml"
    workload = 'requests = 10\npacing = "closed"\n[workload.source]\npolicy = "synthetic"\n'
    plan.write_text(f"{stack}[workload]\n{workload}")
    outcome = cli("run", plan, "--destroy")
    assert outcome.status == 2
    assert "a real drive cannot be copied to try it" in outcome.err
    assert "model = FILE" in outcome.err
