"""Exports of network block device servers as drives, from the command line."""

import json
import subprocess
import sys
from contextlib import contextmanager

import pytest
from torturing import torture


@contextmanager
def serving(folder):
    """Serve a small drive; yields the process and its URI."""
    document, path = folder / "drive.toml", folder / "drive.sock"
    document.write_text(torture.DRIVE)
    command = [sys.executable, "-m", "flashkeel", "serve", "nbd", document]
    server = subprocess.Popen(
        [*map(str, command), "--listen", f"unix:{path}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = server.stderr.readline()
        assert said.startswith("Serving "), said
        yield server, f"nbd+unix:///flashkeel?socket={path}"
    finally:
        server.kill()
        server.communicate()


def document(folder, uri, requests=300):
    path = folder / "mine.toml"
    path.write_text(
        f"[[stack.devices]]\nnbd.uri = {json.dumps(uri)}\n"
        f'[workload]\nrequests = {requests}\npacing = "closed"\n'
        '[workload.source]\npolicy = "synthetic"\nread_fraction = 0.5\n'
    )
    return path


def test_an_export_is_probed_run_and_predicted(cli, tmp_path):
    with serving(tmp_path) as (_, uri):
        kept = cli("probe", uri)
        assert kept.status == 2
        assert "--destroy lets its data be destroyed" in kept.err
        found = cli("probe", uri, "--destroy", "--limit", 8, "--out", tmp_path / "out")
        assert (found.status, found.err) == (0, "")
        assert "undetermined" in found.out
        model = json.loads((tmp_path / "out/model.json").read_text())
        assert model["sectors"] == 32768
        assert model["write_buffer"] == {"bytes": None, "type": "unknown", "flush": []}
        plan = document(tmp_path, uri)
        kept = cli("run", plan)
        assert kept.status == 2
        assert f"{uri}: it is read only" in kept.err
        done = cli("run", plan, "--destroy", "--format", "json")
        (run,) = json.loads(done.out)["runs"]
        assert (run["requests"], run["blame_ns"]["outside"] > 0) == (300, True)
        options = ("--model", tmp_path / "out/model.json", "--workload", plan, "--destroy")
        told = json.loads(cli("predict", uri, *options, "--format", "json").out)
        assert told["workloads"][0]["requests"] == 300


def test_a_server_that_ends_in_mid_run_is_said(tmp_path):
    with serving(tmp_path) as (server, uri):
        plan = document(tmp_path, uri, requests=10_000_000)
        command = [sys.executable, "-m", "flashkeel", "run", str(plan), "--destroy"]
        run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            run.wait(3)
        server.kill()
        _, told = run.communicate(timeout=30)
        assert run.returncode == 1
        assert f"{uri}: the server has hung up, with " in told or "the line is cut" in told
        assert "bytes were written to" in told


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("nbd+unix:///disk?socket=/nowhere/at/all", "no server there: No such file or directory"),
        ("nbd+unix:///disk", "no socket; write nbd://HOST"),
        ("nbds://localhost/disk", "TLS is not supported"),
    ],
)
def test_bad_uris(cli, tmp_path, uri, words):
    for outcome in (cli("probe", uri, "--destroy"), cli("run", document(tmp_path, uri))):
        assert outcome.status == 2
        assert f"{uri}: " in outcome.err
        assert words in outcome.err
