"""flashkeel serve nbd over files of this machine."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from programs import require
from test_nbd import ended, fio

SIZE = 32 << 20

MIRROR = """\
[[stack.devices]]
[[stack.devices.mirror.devices]]
file.path = "one"
[[stack.devices.mirror.devices]]
file.path = "two"
"""


@contextmanager
def serving(tmp_path, target, *options):
    path = tmp_path / "nbd.sock"
    command = [sys.executable, "-m", "flashkeel", "serve", "nbd", target, "--format", "json"]
    command += ["--listen", f"unix:{path}", *options]
    server = subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        said = server.stderr.readline()
        assert said.startswith("Serving 0.0312 GiB"), said + server.stderr.read()
        yield server, f"nbd+unix:///flashkeel?socket={path}"
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def disks(tmp_path):
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        path.write_bytes(bytes(SIZE))
    return paths


def test_a_mirror_of_two_files_holds_on_both_what_its_client_wrote(tmp_path, disks):
    document, image = tmp_path / "mirror.toml", tmp_path / "image"
    document.write_text(MIRROR)
    image.write_bytes(os.urandom(SIZE))
    with serving(tmp_path, document, "--destroy") as (server, uri):
        fio(uri, "--rw=randrw", "--bs=4k", "--iodepth=8", "--size=8m", "--verify=crc32c")
        subprocess.run([require("nbdcopy"), "--flush", image, uri], check=True, timeout=60)
        served = ended(server)
    # No model says what a real drive takes.
    assert (served["faults"], served["late"]["count"]) == (0, 0)
    assert [path.read_bytes() == image.read_bytes() for path in disks] == [True, True]


def test_a_drive_that_may_not_be_destroyed_is_served_read_only(tmp_path, disks):
    disks[0].write_bytes(bytes(range(256)) * (SIZE // 256))
    with serving(tmp_path, disks[0]) as (server, uri):
        info = json.loads(subprocess.check_output([require("nbdinfo"), "--json", uri], text=True))
        assert info["exports"][0]["is_read_only"]
        back = tmp_path / "back"
        subprocess.run([require("nbdcopy"), uri, back], check=True, timeout=60)
        assert back.read_bytes() == disks[0].read_bytes()
        ended(server)


def test_a_drive_that_is_cut_short_in_mid_run_ends_serving_with_what_was_written(tmp_path, disks):
    with serving(tmp_path, disks[0], "--destroy") as (server, uri):
        script = ["-c", "write -P 1 64k 64k", "-c", "flush"]
        subprocess.run([require("qemu-io"), "-f", "raw", *script, uri], check=True, timeout=60)
        os.truncate(disks[0], SIZE // 2)
        _, err = server.communicate(timeout=20)
    assert server.returncode == 1
    assert f"{disks[0]}: it holds {SIZE // 2} bytes now, and held {SIZE}" in err
    assert "65536 bytes were written" in err
    assert "Traceback" not in err


def test_an_export_is_not_served_again(tmp_path, disks):
    with serving(tmp_path, disks[0]) as (_, uri):
        command = [sys.executable, "-m", "flashkeel", "serve", "nbd", uri]
        done = subprocess.run(
            [*command, "--listen", f"unix:{tmp_path / 'second.sock'}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert "it cannot be served: an export is not served again" in done.stderr
