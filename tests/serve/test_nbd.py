"""flashkeel serve nbd, with real clients and with hostile ones."""

import itertools
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from programs import require

DRIVE = """\
[device]
logical_capacity = "64MiB"
map_cache = "all"
gc = { start_below = 16, stop_above = 24 }
buffer = { size = "2MiB" }

[device.geometry]
channels = 4
chips_per_channel = 1
planes_per_chip = 1
blocks_per_plane = 96
pages_per_block = 16
"""


@contextmanager
def serving(tmp_path, *options):
    """Serve a small drive; yields the process, its URI and the path of its socket."""
    document, path = tmp_path / "drive.toml", tmp_path / "nbd.sock"
    document.write_text(DRIVE)
    command = [sys.executable, "-m", "flashkeel", "serve", "nbd", document]
    command += ["--listen", f"unix:{path}", "--format", "json", *options]
    server = subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        said = server.stderr.readline()
        words, _, uri = said.strip().rpartition(" ")
        assert words == "Serving 0.0625 GiB at", said
        yield server, uri, path
    finally:
        server.kill()
        server.wait()


def processor_ticks(process):
    """Return how long a process has computed, in ticks of 10 ms."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def ended(server):
    """End serving as Ctrl-C does; returns what was served."""
    server.send_signal(signal.SIGINT)
    out, err = server.communicate(timeout=20)
    assert server.returncode == 0, err
    return json.loads(out)


def fio(uri, *options):
    done = subprocess.run(
        [
            require("fio"),
            "--name=job",
            "--ioengine=nbd",
            f"--uri={uri}",
            "--output-format=json",
            # Nothing is left in the folder where tests are run.
            "--verify_state_save=0",
            *options,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    # Notes of the engine come before.
    (job,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    assert job["error"] == 0
    return job


def test_fio_finds_what_it_wrote_with_the_latency_of_the_model(tmp_path):
    with serving(tmp_path) as (server, uri, path):
        job = fio(
            uri,
            *("--rw=randrw", "--bs=4k", "--iodepth=8", "--size=16m", "--randseed=3"),
            *("--verify=crc32c", "--verify_fatal=1", "--do_verify=1"),
        )
        # Flash is read in 50 us at least, what is buffered sooner.
        assert job["read"]["clat_ns"]["mean"] > 30_000
        found = ended(server)
    assert not path.exists()
    assert found["clients"] >= 1
    assert found["requests"] == found["late"]["count"] >= 4096
    assert found["faults"] == 0
    assert 0 < found["late"]["p50_ns"] <= found["late"]["p99_99_ns"] <= found["late"]["max_ns"]


def test_who_ends_it_as_soon_as_it_serves_hears_what_was_served(tmp_path):
    for _ in range(3):
        with serving(tmp_path) as (server, _uri, _path):
            found = ended(server)
        assert found["requests"] == 0
        assert len(found["late"]["counts"]) == len(found["bounds_ns"]) + 1


def test_what_is_copied_there_comes_back(tmp_path):
    image, back = tmp_path / "image", tmp_path / "back"
    image.write_bytes(os.urandom(8 << 20) + bytes(8 << 20) + os.urandom(48 << 20))
    with serving(tmp_path) as (server, uri, _):
        info = json.loads(subprocess.check_output([require("nbdinfo"), "--json", uri], text=True))
        (export,) = info["exports"]
        assert export["export-size"] == 64 << 20
        assert export["description"] == "simulated by flashkeel"
        flags = ("is_read_only", "can_multi_conn", "can_fua", "can_trim", "can_zero", "can_flush")
        assert [export[flag] for flag in flags] == [False, True, True, True, True, True]
        assert export["block_size_minimum"] == 4096
        subprocess.run([require("nbdcopy"), "--flush", image, uri], check=True, timeout=60)
        subprocess.run([require("nbdcopy"), uri, back], check=True, timeout=60)
        assert ended(server)["clients"] >= 3
    assert back.read_bytes() == image.read_bytes()


def test_an_image_that_qemu_wrote_is_the_same_when_it_is_compared(tmp_path):
    image = tmp_path / "image"
    image.write_bytes(os.urandom(4 << 20) + bytes(56 << 20) + os.urandom(4 << 20))
    with serving(tmp_path) as (server, uri, _):
        formats = ("-f", "raw", "-F", "raw")
        convert = [require("qemu-img"), "convert", "-n", "-f", "raw", "-O", "raw", image, uri]
        subprocess.run(convert, check=True, timeout=60)
        compare = [require("qemu-img"), "compare", *formats, image, uri]
        assert "identical" in subprocess.check_output(compare, text=True, timeout=60)
        assert ended(server)["faults"] == 0


def test_qemu_finds_what_it_wrote_zeroed_and_discarded(tmp_path):
    with serving(tmp_path) as (server, uri, _):
        commands = (
            "write -P 0x5a 0 256k",
            "write -f -P 0xa5 128k 64k",
            "write -z 64k 64k",
            "discard 192k 32k",
            "flush",
            "read -P 0x5a 0 64k",
            "read -P 0 64k 64k",
            "read -P 0xa5 128k 64k",
            "read -P 0 192k 32k",
            "read -P 0x5a 224k 32k",
        )
        script = [part for command in commands for part in ("-c", command)]
        done = subprocess.run(
            [require("qemu-io"), "-f", "raw", *script, uri],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "failed" not in done.stdout
        assert ended(server)["faults"] == 0


def test_a_map_of_what_is_stored_shows_what_was_written_and_discarded(tmp_path):
    data = tmp_path / "drive.data"
    expected = [
        (64 << 10, "zero"),
        (128 << 10, "data"),
        (64 << 10, "hole,zero"),
        (256 << 10, "data"),
        ((64 << 20) - (512 << 10), "zero"),
    ]
    commands = ("write -P 1 64k 448k", "discard 192k 64k", "flush")
    script = [part for command in commands for part in ("-c", command)]
    # What is known of it outlasts the server.
    for round_commands in (script, ["-c", "flush"]):
        with serving(tmp_path, "--data", data) as (server, uri, _):
            subprocess.run([require("qemu-io"), "-f", "raw", *round_commands, uri], check=True)
            told = subprocess.check_output([require("nbdinfo"), "--map", "--json", uri], text=True)
            ended(server)
        ranges = [(each["length"], each["description"]) for each in json.loads(told)]
        # Ranges that are alike may be told in pieces.
        merged = []
        for length, description in ranges:
            if merged and merged[-1][1] == description:
                merged[-1] = (merged[-1][0] + length, description)
            else:
                merged.append((length, description))
        assert merged == expected


def test_a_hostile_client_disturbs_no_other(tmp_path):
    with serving(tmp_path) as (server, uri, path):
        hostile = []
        for bytes_sent in (b"", b"GET / HTTP/1.0\r\n\r\n", b"\0\0\0\3" + b"\xff" * 4096):
            client = socket.socket(socket.AF_UNIX)
            client.connect(str(path))
            client.sendall(bytes_sent)
            hostile.append(client)
        fio(uri, "--rw=randwrite", "--bs=16k", "--size=4m", "--verify=crc32c", "--verify_fatal=1")
        found = ended(server)
        for client in hostile:
            client.close()
    assert found["faults"] == 2


def test_serving_goes_on_where_nobody_hears_of_a_hostile_client(tmp_path):
    with serving(tmp_path) as (server, _, path):
        server.stderr.close()
        for _ in range(2):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                assert client.recv(18, socket.MSG_WAITALL).startswith(b"NBDMAGICIHAVEOPT")
                client.sendall(b"\xff" * 64)
                with pytest.raises(subprocess.TimeoutExpired):
                    server.wait(1)
        found = ended(server)
    assert (found["clients"], found["faults"]) == (2, 2)


def test_a_drive_that_is_read_only_says_so(tmp_path):
    with serving(tmp_path, "--read-only") as (server, uri, _):
        info = subprocess.check_output([require("nbdinfo"), "--json", uri], text=True)
        assert json.loads(info)["exports"][0]["is_read_only"]
        ended(server)


def test_a_slower_clock_makes_a_slower_drive(tmp_path):
    with serving(tmp_path, "--time-scale", "50") as (server, uri, _):
        job = fio(uri, "--rw=randread", "--bs=4k", "--size=1m", "--number_ios=60")
        assert job["read"]["clat_ns"]["mean"] > 50 * 30_000
        ended(server)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--listen", "somewhere"), "write unix:PATH or ADDRESS:PORT"),
        (("--listen", "unix:/nowhere/at/all"), r"/nowhere/at/all: No such file or directory"),
        (("--listen", "unix:"), "write unix:PATH or ADDRESS:PORT"),
        (("--listen", f"unix:{'x' * 108}"), "x: the path of a socket has at most 107 bytes"),
        (("--time-scale", "0"), "time-scale"),
        (("--time-scale", "1e-6"), "1e-06 is not in the range 0.001<=x<=1000000.0"),
        (("--time-scale", "nan"), "'nan' is not a number"),
        (("--name", "x" * 4097), "--name: 4097 bytes, of at most 4096"),
    ],
)
def test_what_cannot_be_served_is_refused(cli, tmp_path, options, words):
    document = tmp_path / "drive.toml"
    document.write_text(DRIVE)
    outcome = cli("serve", "nbd", document, *options)
    assert outcome.status == 2
    assert re.search(words, outcome.err)


def test_who_looks_the_export_up_is_told_of_as_a_connection(tmp_path):
    with serving(tmp_path, "--format", "table") as (server, _, path):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            assert client.recv(18, socket.MSG_WAITALL).startswith(b"NBDMAGICIHAVEOPT")
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=20)
    assert (out, server.returncode) == ("0 requests over 1 connection\n", 0), err


def test_clients_find_an_export_by_any_name(tmp_path):
    folder = tmp_path / "a b&c"
    folder.mkdir()
    with serving(folder, "--name", "räume #1?") as (server, uri, _):
        info = json.loads(subprocess.check_output([require("nbdinfo"), "--json", uri], text=True))
        assert info["exports"][0]["export-name"] == "räume #1?"
        ended(server)


def test_a_socket_in_use_is_left_alone_and_one_that_was_left_is_not(cli, tmp_path):
    with serving(tmp_path) as (server, _, path):
        outcome = cli("serve", "nbd", tmp_path / "drive.toml", "--listen", f"unix:{path}")
        assert outcome.status == 2
        assert "in use" in outcome.err
        server.kill()
        server.wait()
        assert path.exists()
    with serving(tmp_path) as (server, _, path):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            assert client.recv(18, socket.MSG_WAITALL).startswith(b"NBDMAGICIHAVEOPT")
        assert ended(server)["clients"] == 1
    path.write_text("no socket")
    outcome = cli("serve", "nbd", tmp_path / "drive.toml", "--listen", f"unix:{path}")
    assert outcome.status == 2
    assert f"{path}: something that is no socket is there" in outcome.err
    assert path.read_text() == "no socket"


def test_who_cannot_be_let_in_waits_and_costs_nothing(tmp_path):
    with serving(tmp_path) as (server, _, path):
        limit = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        open_files = {int(number) for number in os.listdir(f"/proc/{server.pid}/fd")}
        free = next(number for number in itertools.count() if number not in open_files)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (free, limit[1]))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            before = processor_ticks(server)
            time.sleep(1)
            # All of it, were the listener asked again at once.
            assert processor_ticks(server) - before < 25
            with pytest.raises(BlockingIOError):
                client.recv(8, socket.MSG_DONTWAIT)
            client.settimeout(10)
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limit)
            assert client.recv(8) == b"NBDMAGIC"
        ended(server)
