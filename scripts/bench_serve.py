"""Measure how fast a drive is served, beside qemu-nbd over a memory-backed image.

One fio job reads 4 KiB at random, 32 at a time, over a Unix socket, from each in turn, and then
from the served drive at three lower rates. The drive's model takes 1 us an operation, so that it
is not the bottleneck. Printed are rates, their ratio, and the server's own lateness at half of
what qemu-nbd has reached, at half of 1.2 times that, which is the rate asked for, and at half of
what the served drive has reached; written to ``target/bench_serve.json``. Nothing here fails
where it is slow.
"""

import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from flashkeel._core import BUILD

ROOT = Path(__file__).parent.parent
ROUNDS = 3
SECONDS = 4
MIB = 64
AIM = 1.2
"""The rate asked for, in those of qemu-nbd."""

DRIVE = f"""\
[device]
logical_capacity = "{MIB}MiB"
map_cache = "all"

[device.geometry]
channels = 4
chips_per_channel = 1
planes_per_chip = 1
blocks_per_plane = 512
pages_per_block = 16

[device.timing]
read = ["1us"]
program = ["1us"]
erase = "1us"
channel_rate = "100GB/s"
"""


def fio(uri: str, *options: str) -> float:
    """Read for some seconds; return requests a second."""
    job = ["fio", "--name=job", "--ioengine=nbd", f"--uri={uri}", "--rw=randread", "--bs=4k"]
    job += ["--iodepth=32", f"--size={MIB}m", "--time_based", f"--runtime={SECONDS}"]
    done = subprocess.run(
        [*job, *options, "--output-format=json"], capture_output=True, text=True, check=True
    )
    # Notes of the engine come before.
    (measured,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    return float(measured["read"]["iops"])


class Drive:
    """A served drive."""

    def __init__(self, folder: Path) -> None:
        """Serve it, and wait until it listens."""
        document, path = folder / "drive.toml", folder / "flashkeel.sock"
        document.write_text(DRIVE)
        self.uri = f"nbd+unix:///flashkeel?socket={path}"
        command = [sys.executable, "-m", "flashkeel", "serve", "nbd", str(document)]
        command += ["--listen", f"unix:{path}", "--format", "json"]
        self.server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.server.stderr is not None
        said = self.server.stderr.readline()
        if not said.startswith("Serving"):
            sys.exit(f"the server says: {said}{self.server.stderr.read()}")

    def end(self) -> dict[str, int]:
        """End it; return how late it was."""
        self.server.send_signal(signal.SIGINT)
        out, _ = self.server.communicate()
        late: dict[str, int] = json.loads(out)["late"]
        return late


def main() -> None:
    """Measure, print, write."""
    missing = [name for name in ("fio", "qemu-nbd") if shutil.which(name) is None]
    if missing:
        print(f"serving: not measured, for want of {' and '.join(missing)}")
        return
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        folder = Path(name)
        image, socket = folder / "image", folder / "qemu.sock"
        # Not sparse: of holes qemu-nbd would send no data.
        image.write_bytes(bytes(MIB << 20))
        other = subprocess.Popen(["qemu-nbd", "-f", "raw", "-t", "-e", "8", "-k", socket, image])
        drive = Drive(folder)
        while not socket.exists():
            if other.poll() is not None:
                drive.end()
                sys.exit(f"qemu-nbd has ended before it listened, with status {other.returncode}")
            time.sleep(0.01)
        theirs, ours = [], []
        for _ in range(ROUNDS):
            theirs.append(fio(f"nbd+unix:///?socket={socket}"))
            ours.append(fio(drive.uri))
        other.terminate()
        drive.end()
        rate, other_rate = statistics.median(ours), statistics.median(theirs)
        halves = {
            "half_of_qemu_nbd": other_rate / 2,
            "half_of_the_aim": AIM * other_rate / 2,
            "half_of_the_served": rate / 2,
        }
        late = {}
        for half, iops in halves.items():
            drive = Drive(folder)
            reached = fio(drive.uri, f"--rate_iops={round(iops)}")
            late[half] = {"reads_per_s": round(reached), **drive.end()}
    found = {
        "build": BUILD,
        "served_reads_per_s": round(rate),
        "qemu_nbd_reads_per_s": round(other_rate),
        "served_to_qemu_nbd": rate / other_rate,
        "lateness": late,
    }
    place = ROOT / "target" / "bench_serve.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(found, indent=2) + "\n")
    print(
        f"served: {found['served_reads_per_s']:,} reads of 4 KiB a second, qemu-nbd over memory "
        f"{found['qemu_nbd_reads_per_s']:,}: {found['served_to_qemu_nbd']:.2f} times as many "
        f"(median of {ROUNDS}; fio, one job, 32 at a time; build: {BUILD})"
    )
    words = {
        "half_of_qemu_nbd": "half of qemu-nbd's rate",
        "half_of_the_aim": f"half of {AIM} times that, the rate asked for",
        "half_of_the_served": "half of the served drive's own",
    }
    for half, seen in late.items():
        print(
            f"lateness at {words[half]}, {seen['reads_per_s']:,} a second: p99 "
            f"{seen['p99_ns'] / 1e3:.1f} us, p99.99 {seen['p99_99_ns'] / 1e3:.1f} us, of "
            f"{seen['count']:,} requests"
        )


if __name__ == "__main__":
    main()
