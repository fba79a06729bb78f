"""fio's own I/O logs are read to the byte, and fio replays ours."""

import json
import subprocess

import pytest
from flashkeel.imports import read_fio
from programs import require


def fio(folder, **options):
    """Run one fio job in a folder, and return what fio counted."""
    job = {"name": "job", "ioengine": "psync", "output-format": "json", "output": "out.json"}
    words = [f"--{name}={value}" for name, value in (job | options).items()]
    subprocess.run([require("fio"), *words], cwd=folder, check=True, capture_output=True)
    return json.loads((folder / "out.json").read_text())["jobs"][0]


def info(cli, log):
    outcome = cli("trace", "info", log, "--format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    return json.loads(outcome.out)


# Trims need a block device, or an engine that does nothing.
@pytest.mark.parametrize(
    "kind, engine", [("randrw", "psync"), ("write", "psync"), ("trim", "null")]
)
def test_a_log_of_fio_holds_what_fio_did(cli, tmp_path, kind, engine):
    log = tmp_path / "fio.log"
    counted = fio(
        tmp_path,
        filename=tmp_path / "file",
        size="4m",
        rw=kind,
        ioengine=engine,
        bsrange="4k-64k",
        number_ios=300,
        fsync=7,
        write_iolog=log,
    )
    found = info(cli, log)
    for operation in ("read", "write", "trim"):
        assert found[f"{operation}s"] == counted[operation]["total_ios"]
        assert found[f"{operation}_bytes"] == counted[operation]["io_bytes"]
    assert found["flushes"] == counted["sync"]["total_ios"]
    assert found["max_address_bytes"] <= 4 << 20
    assert [device["name"] for device in found["devices"]] == [str(tmp_path / "file")]


@pytest.mark.parametrize(
    "options",
    [
        {"size": "1m", "number_ios": 1000},
        {"size": "1m", "number_ios": 100, "loops": 4},
        {"size": "1m", "io_size": "4m", "number_ios": 600},
        {"size": "1m", "io_size": "4m", "loops": 3},
        {"size": "1m", "io_size": "512k", "loops": 3},
        {"size": "1MiB"},
        {"size": "1mi", "bs": "0x2000"},
        {"size": "1m", "kb_base": 1000},
        {"size": "1m", "bs": "48k"},
        {"size": "8m", "filesize": "4m"},
        {"size": "4m", "filesize": "8m", "offset": "2m"},
        {"size": "1m", "number_ios": 0},
        {"filename": "a:b", "filesize": "1m"},
        {"filename": "a:b", "nrfiles": 4, "filesize": "2m", "offset": "1m"},
        {"nrfiles": 4, "filesize": "1m"},
        {"nrfiles": 4, "filesize": "1m", "size": "2m"},
    ],
)
def test_a_job_file_asks_for_as_much_as_of_fio(tmp_path, options):
    options = {"rw": "randread", "ioengine": "null", "bs": "4k"} | options
    path = tmp_path / "job.fio"
    path.write_text("[a]\n" + "".join(f"{key}={value}\n" for key, value in options.items()))
    words = [require("fio"), "--output-format=json", "--output=out.json", path]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    counted = json.loads((tmp_path / "out.json").read_text())["jobs"][0]["read"]
    assert read_fio(path).table["workload"]["requests"] == counted["total_ios"]


def test_the_times_of_a_log_are_those_of_the_requests(cli, tmp_path):
    log = tmp_path / "fio.log"
    paced = {"rw": "write", "rate_iops": 500, "number_ios": 250}
    counted = fio(tmp_path, filename=tmp_path / "file", size="4m", write_iolog=log, **paced)
    # 250 requests at 500 a second are half a second; on a busy machine fio itself takes longer.
    assert 0.9 * 0.498e9 < info(cli, log)["span_ns"] < (counted["job_runtime"] + 1) * 1e6


def test_fio_replays_a_log_that_was_written_here(cli, tmp_path):
    log = tmp_path / "ours.log"
    sizes = ("workload.requests=500", "device.logical_capacity=380MiB")
    sets = [word for size in sizes for word in ("--set", size)]
    made = cli("trace", "synth", "rw-mixed", "-o", log, "--format", "fio", *sets)
    assert made.status == 0, made.err
    written = info(cli, log)
    with (tmp_path / "file").open("wb") as file:
        file.truncate(written["max_address_bytes"])
    counted = fio(tmp_path, read_iolog=log, replay_redirect=tmp_path / "file", replay_no_stall=1)
    for kind in ("read", "write"):
        assert counted[kind]["total_ios"] == written[f"{kind}s"]
        assert counted[kind]["io_bytes"] == written[f"{kind}_bytes"]
