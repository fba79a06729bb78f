"""The scripts that try and measure served drives end, and leave nothing running."""

import os
import signal
import time
from types import SimpleNamespace

import bench_serve
import pytest
import soak
from torturing import torture


def is_running(pid):
    # A child of a process that has ended is init's, which need not have waited for it yet.
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(pid):
    deadline = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_running(pid)


def test_each_page_of_the_drive_is_asked_for(tmp_path):
    drive = torture.Torture(tmp_path, 1)
    drive.random = SimpleNamespace(
        randint=lambda low, high: high,
        randrange=lambda end: end - 1,
        choices=lambda kinds, weights: [torture.READ],
    )
    asked = []
    client = SimpleNamespace(ask=lambda *request: asked.append(request))
    drive.submit(client, {}, set())
    ((_, _, start, length, *_),) = asked
    assert start + length == len(drive.versions) * torture.PAGE


def test_a_check_that_fails_leaves_no_server(tmp_path, monkeypatch):
    drive = torture.Torture(tmp_path, 1)
    started = []
    start = drive.start
    monkeypatch.setattr(drive, "start", lambda: started.append(start()) or started[-1])
    drive.versions[5] = 1
    try:
        with pytest.raises(RuntimeError, match="page 5 holds"):
            drive.run(1)
        (server,) = started
        assert server.poll() is not None
    finally:
        for server in started:
            server.kill()
            server.wait()


def test_what_a_failed_command_has_started_ends_with_it(tmp_path):
    pid = tmp_path / "pid"
    command = ("sh", "-c", f"sleep 600 & echo $! > {pid}; exit 1")
    with pytest.raises(SystemExit, match="soak: failed in round 3"):
        soak.passes(command, 3, time.monotonic() + 60)
    left = int(pid.read_text())
    try:
        assert ends(left)
    finally:
        if is_running(left):
            os.kill(left, signal.SIGKILL)


def test_a_rival_that_ends_at_once_is_not_waited_for(tmp_path, monkeypatch):
    for name, script in (("fio", "exit 0"), ("qemu-nbd", "exit 3")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ended = []
    drive = SimpleNamespace(end=lambda: ended.append(True))
    monkeypatch.setattr(bench_serve, "Drive", lambda folder: drive)
    sleep, waits = time.sleep, iter([0.01] * 1000)
    # So that one that is waited for fails after ten seconds.
    monkeypatch.setattr(bench_serve, "time", SimpleNamespace(sleep=lambda _: sleep(next(waits))))
    with pytest.raises(SystemExit, match="qemu-nbd has ended before it listened, with status 3"):
        bench_serve.main()
    assert ended
