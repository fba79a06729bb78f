"""Real files as drives, from the command line."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from flashkeel import InputError
from flashkeel.output import probe_tables
from flashkeel.ssdcheck import Diagnosis, Drive


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
    reasons = [f"{key}: the time given, 9s, ran out before" for key in ("volume_bits", "sleep")]
    _, table, _ = next(
        probe_tables.diagnosis(Diagnosis("disk", model | {"undetermined": reasons}))
    ).renderables
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_who_ends_a_probe_is_told_what_was_written(disk, number):
    command = [sys.executable, "-m", "flashkeel", "probe", str(disk), "--destroy"]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
    while not any(disk.read_bytes()):
        assert started.poll() is None, "it ended before it was interrupted"
        time.sleep(0.1)
    started.send_signal(number)
    _, told = started.communicate(timeout=60)
    assert started.returncode == 128 + number
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
    workload = '[workload]\nrequests = 10\npacing = "closed"\nsource = "synthetic"\n'
    plan.write_text(f"[[stack.devices]]\n{text}\n{workload}")
    outcome = cli("run", plan)
    assert outcome.status == 2
    assert words in outcome.err


def test_what_is_no_drive_is_not_probed(cli, tmp_path):
    empty = tmp_path / "empty"
    empty.touch()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, words in [
        (empty, "it is empty: neither a drive nor a document"),
        (pipe, "neither a regular file nor a block device"),
        (tmp_path, "neither a regular file nor a block device"),
        ("/dev/null", "neither a regular file nor a block device"),
        ("/dev/zero", "neither a regular file nor a block device"),
    ]:
        outcome = cli("probe", path, "--destroy")
        assert (outcome.status, outcome.out) == (2, "")
        assert f"{path}: {words}" in outcome.err


def test_names_of_drives(cli, tmp_path):
    odd = tmp_path / 'dísk 😀 "1"'
    odd.write_bytes(bytes(8 << 20))
    outcome = cli("probe", odd, "--destroy")
    assert outcome.status == 2
    assert outcome.err.startswith(f"flashkeel: {odd}: the device is too small to probe")
    with pytest.raises(InputError, match=r"bad\\udcff: a name that is no UTF-8"):
        path = tmp_path / os.fsdecode(b"bad\xff")
        path.write_bytes(bytes(8192))
        Drive.find(str(path))


def test_results_are_replaced_by_those_of_the_same_experiment(cli, disk, tmp_path):
    plan = document(tmp_path, 0.5)
    for _ in range(2):
        outcome = cli("run", plan, "--destroy", "--out", tmp_path / "out")
        assert (outcome.status, outcome.err) == (0, "")


@pytest.fixture
def loop(disk):
    """Return a loop device over the disk."""
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("loop devices take root and losetup")
    command = ["losetup", "-f", "--show", disk]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no loop device: {made.stderr}")
    device = made.stdout.strip()
    yield device
    subprocess.run(["losetup", "-d", device], check=True)


def test_a_block_device_is_a_drive(cli, disk, loop, tmp_path):
    plan = document(tmp_path, 0.5)
    plan.write_text(plan.read_text().replace('"disk"', f'"{loop}"'))
    before = disk.read_bytes()
    assert cli("run", plan).status == 2
    assert disk.read_bytes() == before
    outcome = cli("run", plan, "--destroy", "--format", "json")
    assert outcome.status == 0
    assert json.loads(outcome.out)["runs"][0]["requests"] == 300
    assert disk.read_bytes() != before
    # Who has it for himself alone, as whoever mounts it does.
    held = os.open(loop, os.O_RDWR | os.O_EXCL)
    outcome = cli("run", plan, "--destroy")
    os.close(held)
    assert outcome.status == 2
    assert "somebody else holds it" in outcome.err


def test_what_a_loop_device_lies_on_is_held(cli, disk, loop, tmp_path):
    before = disk.read_bytes()
    outcome = cli("run", document(tmp_path, 0.5), "--destroy")
    assert outcome.status == 2
    assert f"{disk}: the loop device {loop} lies on it" in outcome.err
    assert disk.read_bytes() == before


def test_a_write_protected_device_is_refused(cli, disk, loop, tmp_path):
    plan = document(tmp_path, 0.5)
    plan.write_text(plan.read_text().replace('"disk"', f'"{loop}"'))
    subprocess.run(["blockdev", "--setro", loop], check=True)
    outcome = cli("run", plan, "--destroy")
    subprocess.run(["blockdev", "--setrw", loop], check=True)
    assert outcome.status == 2
    assert f"{loop}: it is write-protected" in outcome.err


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
