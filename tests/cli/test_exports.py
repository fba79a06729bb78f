"""Exports of network block device servers as drives, from the command line."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from flashkeel import InputError
from flashkeel.ssdcheck import Drive
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


def _pumped(source, sink):
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def one_at_a_time(path):
    """Forward to the server at a socket, one client after the other; return the port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def forward():
        while True:
            client, _ = listener.accept()
            with client, socket.socket(socket.AF_UNIX) as server:
                server.connect(str(path))
                asking = threading.Thread(target=_pumped, args=(client, server))
                asking.start()
                _pumped(server, client)
                asking.join()

    threading.Thread(target=forward, daemon=True).start()
    return listener.getsockname()[1]


def test_a_server_may_have_one_client_at_a_time(shell, tmp_path):
    with serving(tmp_path) as (_, _uri):
        ports = [one_at_a_time(tmp_path / "drive.sock") for _ in range(2)]
        devices = ", ".join(f'{{ nbd.uri = "nbd://127.0.0.1:{port}/flashkeel" }}' for port in ports)
        plan = tmp_path / "mirror.toml"
        plan.write_text(
            f"[[stack.devices]]\nmirror.devices = [{devices}]\n"
            '[workload]\nrequests = 100\npacing = "closed"\nsource = "synthetic"\n'
        )
        started = time.monotonic()
        done = shell("run", plan, "--destroy", "--format", "json")
        # Who waits for a second line beside the first gives up after 30 s.
        assert (done.status, time.monotonic() - started < 25) == (0, True), done.err
    assert json.loads(done.out)["runs"][0]["requests"] == 100


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


def test_who_waits_for_a_mute_server_can_interrupt(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        uri = f"nbd://127.0.0.1:{listener.getsockname()[1]}/disk"
        for arguments in (["probe", uri], ["run", str(document(tmp_path, uri))]):
            command = [sys.executable, "-m", "flashkeel", *arguments]
            waiting = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            client, _ = listener.accept()
            with client:
                # The line is there before its greeting is waited for.
                time.sleep(0.5)
                waiting.send_signal(signal.SIGINT)
                _, told = waiting.communicate(timeout=20)
            assert (waiting.returncode, told.lstrip()) == (130, "flashkeel: interrupted\n")


def test_other_threads_go_on_while_a_server_is_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        uri = f"nbd://127.0.0.1:{listener.getsockname()[1]}/disk"
        refused = []

        def find():
            with pytest.raises(InputError, match="the server hangs up before") as raised:
                Drive.find(uri)
            refused.append(raised)

        finding = threading.Thread(target=find)
        finding.start()
        client, _ = listener.accept()
        client.close()
        finding.join(timeout=20)
    assert len(refused) == 1


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
