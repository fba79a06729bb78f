"""flashkeel serve nbd over files of this machine."""

import json
import os
import resource
import signal
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

TIER = """\
[[stack.devices]]
tier.placement = "write-back"
tier.lower.file.path = "one"
tier.upper.nvm.capacity = "8MiB"
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
        write(uri, 1, "64k")
        os.truncate(disks[0], SIZE // 2)
        _, err = server.communicate(timeout=20)
    assert server.returncode == 1
    assert f"{disks[0]}: it holds {SIZE // 2} bytes now, and held {SIZE}" in err
    assert "65536 bytes were written" in err
    assert "Traceback" not in err


def test_a_drive_without_room_ends_serving_with_what_was_written(tmp_path, disks):
    with serving(tmp_path, disks[0], "--destroy") as (server, uri):
        write(uri, 1, "64k")
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (SIZE // 2, SIZE // 2))
        full = ["-f", "raw", "-c", f"write -P 2 {SIZE // 2} 64k", uri]
        said = subprocess.run(
            [require("qemu-io"), *full], capture_output=True, text=True, timeout=60, check=False
        )
        assert "write failed" in said.stdout + said.stderr
        _, err = server.communicate(timeout=20)
    assert server.returncode == 1
    assert f"{disks[0]}: a write of 65536 bytes at byte {SIZE // 2} failed: File too large" in err
    assert f"bytes were written to {disks[0]}, between bytes 65536 and" in err
    assert disks[0].read_bytes()[65536:131072] == b"\x01" * 65536


def test_a_tier_over_a_file_says_what_it_will_forget(tmp_path, disks):
    document = tmp_path / "tier.toml"
    document.write_text(TIER)
    with serving(tmp_path, document, "--destroy") as (server, uri):
        said = server.stderr.readline()
        fio(uri, "--rw=randrw", "--bs=4k", "--iodepth=8", "--size=8m", "--verify=crc32c")
        ended(server)
    forgotten = "What simulated devices hold alone, or the upper device of a tier, is lost"
    assert said == f"{forgotten} when serving ends\n"


def test_a_tier_that_would_write_to_a_drive_that_may_not_be_destroyed_is_refused(
    cli, tmp_path, disks
):
    document = tmp_path / "tier.toml"
    upper = TIER.replace("upper.nvm.capacity", "upper.file.path").replace("8MiB", "two")
    document.write_text(
        upper + 'tier.admission = "all"\ntier.eviction = "lru"\ntier.fills = true\n'
    )
    before = disks[1].read_bytes()
    outcome = cli("serve", "nbd", document, "--listen", f"unix:{tmp_path / 'nbd.sock'}")
    assert outcome.status == 2
    assert "stack.devices.0.tier.upper: it is a real drive, and gets copies" in outcome.err
    assert "--destroy lets its data be destroyed" in outcome.err
    assert disks[1].read_bytes() == before


def write(uri, pattern, offset):
    script = ["-c", f"write -P {pattern} {offset} 64k", "-c", "flush"]
    subprocess.run([require("qemu-io"), "-f", "raw", *script, uri], check=True, timeout=60)


def test_a_mirror_goes_on_when_one_of_its_drives_is_cut_short(tmp_path, disks):
    document = tmp_path / "mirror.toml"
    document.write_text(MIRROR)
    with serving(tmp_path, document, "--destroy") as (server, uri):
        write(uri, 1, "64k")
        os.truncate(disks[0], SIZE // 2)
        said = server.stderr.readline()
        cut = f"{disks[0]}: it holds {SIZE // 2} bytes now, and held {SIZE}"
        assert said == f"{cut}; what has copies is served from others\n"
        write(uri, 2, "128k")
        back = tmp_path / "back"
        subprocess.run([require("nbdcopy"), uri, back], check=True, timeout=60)
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=20)
    expected = bytes(65536) + b"\x01" * 65536 + b"\x02" * 65536
    assert back.read_bytes() == disks[1].read_bytes() == expected.ljust(SIZE, b"\0")
    # Nothing was written to what is not the same drive any more.
    assert disks[0].read_bytes() == expected[:131072].ljust(SIZE // 2, b"\0")
    assert server.returncode == 1
    assert f"{cut}; what was written since may be on other copies alone" in err
    assert f"131072 bytes were written to {disks[1]}" in err


def test_a_mirror_without_drives_ends_serving(tmp_path, disks):
    document = tmp_path / "mirror.toml"
    document.write_text(MIRROR)
    with serving(tmp_path, document, "--destroy") as (server, uri):
        for disk in disks:
            os.truncate(disk, SIZE // 2)
            assert server.stderr.readline().startswith(f"{disk}: it holds")
        script = [require("qemu-io"), "-f", "raw", "-c", "write 0 64k", uri]
        subprocess.run(script, check=False, capture_output=True, timeout=60)
        _, err = server.communicate(timeout=20)
    assert server.returncode == 1
    assert all(f"{disk}: it holds" in err for disk in disks)


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
