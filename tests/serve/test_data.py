"""flashkeel serve nbd --data: what is written outlasts the server, and nothing else is harmed."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from programs import require
from torturing import torture

SEED = int(os.environ.get("FLASHKEEL_SOAK_ROUND", "0"))


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path):
    torture.Torture(tmp_path, SEED).run(50)


@pytest.mark.parametrize("drive", ["stripes", "mirror", "any", "nvm", "tier", "journal"])
def test_nor_is_anything_of_a_drive_with_parity_a_mirror_a_memory_or_a_tier(tmp_path, drive):
    torture.Torture(tmp_path, SEED, torture.DRIVES[drive]).run(6)


def test_nor_is_anything_of_a_stack(cli, tmp_path):
    drive = torture.Torture(tmp_path, SEED, torture.STACK)
    drive.run(10)
    # The same drives, whose volume lies otherwise on them.
    err = refused(cli, drive, "--set", "stack.volumes.chunk=64KiB")
    assert "it is of another stack, whose drives" in err
    assert "it is of another drive" in refused(
        cli, drive, "--set", "stack.devices.0.ssd.preset=ssd-a"
    )


@pytest.fixture
def drive(tmp_path):
    """A drive whose file has been written once."""
    found = torture.Torture(tmp_path, 1)
    found.run(1)
    return found


def refused(cli, drive, *options):
    before = drive.data.read_bytes()
    listen = ("--listen", f"unix:{drive.path}", "--data", drive.data)
    outcome = cli("serve", "nbd", drive.document, *listen, *options)
    assert outcome.status == 2
    assert drive.data.read_bytes() == before
    return outcome.err


def test_a_file_of_something_else_is_left_alone(cli, drive):
    drive.data.write_bytes(b"holiday pictures" * 100_000)
    assert "holds something else than the data of a served drive" in refused(cli, drive)
    drive.data.write_bytes(b"short")
    assert "holds something else" in refused(cli, drive)


def test_a_file_of_another_drive_or_a_damaged_one_is_left_alone(cli, drive):
    err = refused(cli, drive, "--set", "device.geometry.channels=8")
    assert "it is of another drive: 16777216 bytes over" in err
    whole = drive.data.read_bytes()
    drive.data.write_bytes(whole[:-4096])
    assert "it is truncated" in refused(cli, drive)
    drive.data.write_bytes(whole[:50] + b"\xff" + whole[51:])
    assert "it is damaged: its header" in refused(cli, drive)
    drive.data.write_bytes(whole[:12300] + b"\xff" + whole[12301:])
    assert "it is damaged: what is known of a block, at byte 12288" in refused(cli, drive)
    drive.data.write_bytes(whole[:16384] + bytes(4096) + whole[20480:])
    assert ", at byte 16384, does not have the right checksum" in refused(cli, drive)


def test_a_file_in_use_is_left_alone(cli, drive, tmp_path):
    server = drive.start()
    listen = ("--listen", f"unix:{tmp_path / 'other.sock'}", "--data", drive.data)
    outcome = cli("serve", "nbd", drive.document, *listen)
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=20)
    assert server.returncode == 0, said
    assert outcome.status == 2
    assert "another server is using it" in outcome.err


def test_what_is_not_found_again_is_refused_before_anything_is_made(cli, tmp_path):
    document, real = tmp_path / "drive.toml", tmp_path / "real.img"
    real.write_bytes(bytes(1 << 20))
    lower = f"lower.file = {{ path = '{real}' }}"
    document.write_text(
        "[[stack.devices]]\n"
        f'tier = {{ placement = "write-back", upper.nvm.capacity = "256KiB", {lower} }}\n'
    )
    data, sock = tmp_path / "drive.data", tmp_path / "sock"
    outcome = cli("serve", "nbd", document, "--data", data, "--listen", f"unix:{sock}")
    assert outcome.status == 2
    assert "it has a real drive in it" in outcome.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drive.toml", "real.img"]


def test_a_damaged_page_is_an_error_that_says_where(drive):
    server = drive.start()
    client = torture.Client(drive.path)
    client.ask(torture.WRITE, 1, 0, 4096, b"\x5a" * 4096)
    client.ask(torture.FLUSH, 2, 0, 0)
    assert sorted(client.answer() for _ in range(2)) == [(0, 1), (0, 2)]
    # More than the write buffer holds comes after it: it is in flash then.
    for cookie in range(3, 200):
        client.ask(
            torture.WRITE, cookie, (cookie * 16) % 3072 * 4096 + 4096, 16 * 4096, bytes(65536)
        )
        assert client.answer() == (0, cookie)
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=20) == 0
    whole = drive.data.read_bytes()
    places = [at for at in range(0, len(whole), 4096) if whole[at : at + 4096] == b"\x5a" * 4096]
    for at in places:
        whole = whole[:at] + b"\x5b" + whole[at + 1 :]
    drive.data.write_bytes(whole)
    server = drive.start()
    client = torture.Client(drive.path)
    client.ask(torture.READ, 1, 0, 4096)
    assert client.answer() == (5, 1)
    client.ask(torture.READ, 2, 8192, 4096)
    assert client.answer() == (0, 2)
    client.receive(4096)
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=20)
    assert server.returncode == 0
    (line,) = [line for line in said.splitlines() if "cannot be read" in line]
    assert any(f"at byte {at} of the file" in line for at in places)


def test_a_damaged_page_is_rebuilt_where_there_is_parity(tmp_path):
    drive = torture.Torture(tmp_path, 1, torture.STRIPES)
    pages = range(len(drive.versions))
    server = drive.start()
    client = torture.Client(drive.path)
    for first in pages[::16]:
        data = b"".join(torture.content(page, 1) for page in range(first, first + 16))
        client.ask(torture.WRITE, first, first * 4096, len(data), data)
        assert client.answer() == (0, first)
    client.ask(torture.FLUSH, 0, 0, 0)
    assert client.answer() == (0, 0)
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=20) == 0
    whole = bytearray(drive.data.read_bytes())
    damaged = pages[3::64]
    contents = {torture.content(page, 1) for page in damaged}
    places = [at for at in range(0, len(whole), 4096) if bytes(whole[at : at + 4096]) in contents]
    for at in places:
        whole[at + 5] ^= 1
    drive.data.write_bytes(whole)
    server = drive.start()
    client = torture.Client(drive.path)
    for _ in range(2):
        for page in damaged:
            client.ask(torture.READ, page, page * 4096, 4096)
            assert client.answer() == (0, page)
            assert client.receive(4096) == torture.content(page, 1)
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=20)
    assert server.returncode == 0
    lines = [line for line in said.splitlines() if "cannot be read" in line]
    # Ten at once, and at the end the others.
    assert len(lines) == 11
    assert lines[-1].endswith(f"; nor can {len(damaged) - 11} others before")
    assert all(any(f"at byte {at} of the file" in line for at in places) for line in lines)


@pytest.mark.parametrize("kind", ["plain", "stack", "stripes", "mirror", "any", "nvm", "tier"])
def test_nothing_else_is_lost_with_a_damaged_page_outside_flash(tmp_path, kind):
    drive = torture.Torture(tmp_path, 1, torture.DRIVES[kind])

    def serve(*asks):
        server = drive.start()
        client = torture.Client(drive.path)
        answers = []
        for cookie, (operation, page, byte) in enumerate(asks):
            data = byte * 4096 if operation == torture.WRITE else b""
            client.ask(operation, cookie, page * 4096, 4096, data)
            error, _ = client.answer()
            reads = operation == torture.READ and not error
            answers.append(client.receive(4096)[:1] if reads else error)
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=20)
        assert server.returncode == 0
        return answers, [line for line in said.splitlines() if "cannot be read" in line]

    read = [(torture.READ, page, b"") for page in range(4)]
    assert serve(*((torture.WRITE, page, b"\x41") for page in range(4)))[0] == [0] * 4
    assert serve(*((torture.WRITE, page, bytes([0x51 + page])) for page in range(4)))[0] == [0] * 4
    whole = bytearray(drive.data.read_bytes())
    for at in range(0, len(whole), 4096):
        if whole[at : at + 4096] in (b"\x52" * 4096, b"\x53" * 4096):
            whole[at + 7] ^= 1
    drive.data.write_bytes(whole)
    for _ in range(2):
        answers, said = serve(*read)
        assert answers == [b"\x51", 5, 5, b"\x54"]
        assert len(said) >= 2
    assert serve((torture.WRITE, 1, b"\x61"), (torture.TRIM, 2, b""))[0] == [0, 0]
    assert serve(*read) == ([b"\x51", b"\x61", b"\x00", b"\x54"], [])


def test_an_interrupt_ends_the_making_of_a_file_and_leaves_nothing(tmp_path):
    data = tmp_path / "drive.data"
    command = [sys.executable, "-m", "flashkeel", "serve", "nbd", "sim:samsung-860-evo"]
    command += ["--listen", f"unix:{tmp_path / 'nbd'}", "--data", data]
    server = subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True)
    begun = time.monotonic()
    while not any(path.stat().st_blocks > 4096 for path in tmp_path.glob(".drive.data.*.new")):
        assert time.monotonic() < begun + 60
        time.sleep(0.01)
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=10)
    assert server.returncode == 130, said
    assert list(tmp_path.glob("*.data*")) == list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda path: path.unlink(), "it was found deleted"),
        (lambda path: os.truncate(path, 4096), "it was found cut short, to 4096 bytes of "),
    ],
)
def test_serving_ends_where_its_file_is_deleted_or_cut_short(drive, harm, words):
    server = drive.start()
    client = torture.Client(drive.path)
    client.ask(torture.READ, 1, 0, 4096)
    assert client.answer() == (0, 1)
    harm(drive.data)
    # Nobody asks for anything.
    _, said = server.communicate(timeout=20)
    assert server.returncode == 1
    assert f"{drive.data}: {words}" in said
    assert "Traceback" not in said


def test_a_file_system_without_room_ends_serving_with_status_1(drive):
    server = drive.start()
    limit = drive.data.stat().st_size // 2
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (limit, limit))
    client = torture.Client(drive.path)
    answered = 0
    with pytest.raises(ConnectionError):
        for cookie in range(4096):
            client.ask(torture.WRITE, cookie, cookie % 4000 * 4096, 4096, b"\x77" * 4096)
            assert client.answer() == (0, cookie)
            answered += 1
    _, said = server.communicate(timeout=20)
    assert server.returncode == 1
    assert f"{drive.data}: File too large" in said
    # What was acknowledged is there.
    server = drive.start()
    client = torture.Client(drive.path)
    for page in range(answered):
        client.ask(torture.READ, page, page * 4096, 4096)
        assert client.answer() == (0, page)
        assert client.receive(4096) == b"\x77" * 4096
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=20) == 0


def test_fio_verifies_after_a_restart_what_it_wrote_before(tmp_path):
    drive = torture.Torture(tmp_path, 1)
    job = [require("fio"), "--name=job", "--ioengine=nbd", "--output-format=json"]
    job += [f"--uri=nbd+unix:///?socket={drive.path}", "--rw=randwrite", "--bs=4k", "--size=12m"]
    job += ["--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", "--randseed=5"]
    for options in (["--do_verify=0", "--end_fsync=1"], ["--verify_only"]):
        server = drive.start()
        done = subprocess.run(
            [*job, *options], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr + done.stdout
        server.send_signal(signal.SIGKILL)
        server.wait()


@pytest.mark.parametrize("form", ["table", "json"])
def test_all_that_waits_until_it_is_durable_is_counted(tmp_path, form):
    drive = torture.Torture(tmp_path, 1)
    command = [sys.executable, "-m", "flashkeel", "serve", "nbd", drive.document]
    command += ["--listen", f"unix:{drive.path}", "--data", drive.data, "--format", form]
    server = subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    server.stderr.readline()
    client = torture.Client(drive.path)
    client.ask(torture.WRITE, 1, 0, 4096, bytes(4096), torture.FUA)
    client.ask(torture.FLUSH, 2, 0, 0)
    assert sorted(client.answer() for _ in range(2)) == [(0, 1), (0, 2)]
    server.send_signal(signal.SIGTERM)
    out, _ = server.communicate(timeout=20)
    assert server.returncode == 0
    if form == "json":
        assert json.loads(out)["synced"]["count"] == 2
    else:
        # One of them is a write.
        assert "Longer until they were durable, of 2 requests: half " in out
