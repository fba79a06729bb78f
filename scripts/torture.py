"""Kill a server of a drive with data in a file, again and again, and look for what is missing.

    scripts/torture.py [--rounds N] [--seed S] [--folder DIR] [--drive NAME]

In each round a client writes, trims, flushes and reads at random, some requests at a time;
at a random answer the server is killed (kill -9). A new one is started over the same file,
and each page has to hold what was acknowledged last, or something that was being written.
What is done, and after which answer the server is killed, follows from the seed.

What a loss of the host's power may leave is tried in `crates/store/tests/restarts`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE = 4096

DRIVE = """\
[device]
logical_capacity = "16MiB"
map_cache = "all"
gc = { start_below = 16, stop_above = 24 }
buffer = { size = "1MiB" }

[device.geometry]
channels = 4
chips_per_channel = 1
planes_per_chip = 1
blocks_per_plane = 64
pages_per_block = 16
"""

STACK = (
    DRIVE
    + """\
[stack]
volumes = { policy = "striped", chunk = "16KiB" }
scheduler = "deadline"
block = "512B"

[[stack.devices]]
ssd = { logical_capacity = "8MiB", geometry = { channels = 2 } }

[[stack.devices]]
[stack.devices.network]
device = { ssd = { logical_capacity = "8MiB", geometry = { channels = 2 } } }
"""
)
"""As large, but two drives in turn, the second behind a network."""

STRIPES = """\
[device]
logical_capacity = "16MiB"
map_cache = "all"
allocation = "striped"
read_path = "gc-tolerant"
redundancy = { policy = "logical", update = "gc-tolerant" }
gc = { start_below = 16, stop_above = 24 }
buffer = { size = "1MiB", rewrite = "coalesce", flush = ["watermark"] }

[device.geometry]
channels = 8
chips_per_channel = 1
planes_per_chip = 1
blocks_per_plane = 64
pages_per_block = 16
"""
"""With parity over its chips."""

MIRROR = (
    DRIVE
    + """\
[[stack.devices]]
mirror = { devices = [{ ssd = {} }, { ssd = { geometry = { channels = 8 } } }] }
"""
)
"""Two drives with the same data."""

ANY = (
    DRIVE
    + """\
[[stack.devices]]
[stack.devices.mirror]
devices = [{ ssd = {} }, { ssd = { geometry = { channels = 8 } } }]
acknowledge = "any"
"""
)
"""The same, but a write is acknowledged once the first of them has it."""

NVM = (
    DRIVE
    + """\
[[stack.devices]]
nvm = { capacity = "16MiB" }
"""
)
"""A memory."""

TIER = (
    DRIVE
    + """\
[[stack.devices]]
[stack.devices.tier]
placement = "small-large"
eviction = "lru"
admission = "all"
fills = true
writeback = { policy = "periodic", period = "2ms", batch = "64KiB" }
upper.nvm = { capacity = "2MiB" }
lower.ssd = {}
"""
)
"""A memory before a drive, which takes small writes and keeps what has been read."""

JOURNAL = (
    DRIVE
    + """\
[[stack.devices]]
[stack.devices.tier]
preset = "oc"
upper.dram = { capacity = "512KiB" }
[stack.devices.tier.lower.tier]
upper.nvm = { capacity = "4MiB" }
lower.ssd = {}
"""
)
"""Memory before an NVM with a journal before a drive."""

DRIVES = {
    "plain": DRIVE,
    "stack": STACK,
    "stripes": STRIPES,
    "mirror": MIRROR,
    "any": ANY,
    "nvm": NVM,
    "tier": TIER,
    "journal": JOURNAL,
}

READ, WRITE, FLUSH, TRIM, ZEROES = 0, 1, 3, 4, 6
FUA = 1


class Client:
    """A client of the network block device protocol, with simple replies."""

    def __init__(self, path: Path) -> None:
        """Connect to the socket at `path` and choose the default export."""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        self.receive(18)
        # Fixed newstyle, no zeroes; EXPORT_NAME with an empty name.
        self.socket.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, 0))
        self.bytes, _flags = struct.unpack(">QH", self.receive(10))

    def receive(self, count: int) -> bytes:
        """Return `count` bytes; raise ConnectionError if the server has gone."""
        received = b""
        while len(received) < count:
            more = self.socket.recv(count - len(received))
            if not more:
                raise ConnectionError("the server has gone")
            received += more
        return received

    def ask(
        self, kind: int, cookie: int, start: int, length: int, data: bytes = b"", flags: int = 0
    ) -> None:
        """Send a request."""
        head = struct.pack(">IHHQQI", 0x25609513, flags, kind, cookie, start, length)
        self.socket.sendall(head + data)

    def answer(self) -> tuple[int, int]:
        """Return the error and the cookie of the next answer."""
        magic, error, cookie = struct.unpack(">IIQ", self.receive(16))
        if magic != 0x67446698:
            raise RuntimeError(f"not an answer: {magic:#x}")
        return error, cookie


def content(page: int, version: int) -> bytes:
    """Return the bytes of a version of a page; version 0 is zeros."""
    if version == 0:
        return bytes(PAGE)
    return hashlib.blake2b(f"{page} {version}".encode(), digest_size=64).digest() * (PAGE // 64)


@contextmanager
def ended(server: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """See to it that a server does not outlive what is done with it."""
    try:
        yield server
    finally:
        server.kill()
        server.wait()


class Torture:
    """A drive, what it should hold, and how it is killed."""

    def __init__(self, folder: Path, seed: int, drive: str = DRIVE) -> None:
        """Begin with a new drive in `folder`."""
        self.random = random.Random(seed)
        self.document, self.data = folder / "drive.toml", folder / "drive.data"
        self.path = folder / "nbd.sock"
        self.document.write_text(drive)
        self.versions = [0] * ((16 << 20) // PAGE)
        self.maybe: dict[int, set[int]] = {}
        self.next = 1
        self.acknowledged = 0

    def start(self) -> subprocess.Popen[str]:
        """Start a server over the file, and wait until it listens."""
        command = [sys.executable, "-m", "flashkeel", "serve", "nbd", self.document]
        command += ["--listen", f"unix:{self.path}", "--data", self.data]
        server = subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True)
        assert server.stderr is not None
        said = server.stderr.readline()
        if not said.startswith("Serving"):
            raise RuntimeError(f"the server says: {said}{server.stderr.read()}")
        # Its first answer: it serves now, and an interrupt ends it in good order.
        Client(self.path).socket.close()
        return server

    def check(self, client: Client) -> None:
        """Read every page: it holds what it may hold, and nothing else from now on."""
        step = 256
        for first in range(0, len(self.versions), step):
            client.ask(READ, first, first * PAGE, step * PAGE)
            error, _ = client.answer()
            if error:
                raise RuntimeError(f"pages {first} and on cannot be read: error {error}")
            found = client.receive(step * PAGE)
            for at, page in enumerate(range(first, first + step)):
                held = found[at * PAGE : (at + 1) * PAGE]
                may = {self.versions[page]} | self.maybe.get(page, set())
                fits = [version for version in may if held == content(page, version)]
                if not fits:
                    raise RuntimeError(f"page {page} holds {held[:8].hex()}, none of {sorted(may)}")
                self.versions[page] = fits[0]
        self.maybe.clear()

    def load(self, client: Client, server: subprocess.Popen[str]) -> None:
        """Ask for random things until the server is killed, after a random answer."""
        depth, left = self.random.randint(1, 16), self.random.randint(0, 400)
        flying: dict[int, tuple[range, int | None, int]] = {}
        busy: set[int] = set()
        while left > 0:
            while len(flying) < depth:
                self.submit(client, flying, busy)
            error, cookie = client.answer()
            pages, version, length = flying.pop(cookie)
            if error:
                raise RuntimeError(f"a request of pages {pages} fails: error {error}")
            client.receive(length)
            busy.difference_update(pages)
            if version is not None:
                for page in pages:
                    self.versions[page] = version
                    self.maybe.pop(page, None)
            self.acknowledged += 1
            left -= 1
        server.send_signal(signal.SIGKILL)
        server.wait()
        for pages, version, _ in flying.values():
            if version is not None:
                for page in pages:
                    self.maybe.setdefault(page, set()).add(version)

    def submit(
        self, client: Client, flying: dict[int, tuple[range, int | None, int]], busy: set[int]
    ) -> None:
        """Send a random request of pages that no other has in hand."""
        count = self.random.randint(1, 16)
        first = self.random.randrange(len(self.versions) - count + 1)
        pages = range(first, first + count)
        if busy.intersection(pages):
            return
        kind = self.random.choices((WRITE, READ, TRIM, ZEROES, FLUSH), (12, 3, 1, 1, 1))[0]
        cookie, flags = self.next, FUA if kind == WRITE and self.random.random() < 0.1 else 0
        self.next += 1
        version, data, length = None, b"", 0
        if kind == WRITE:
            version, data = cookie, b"".join(content(page, cookie) for page in pages)
        elif kind in (TRIM, ZEROES):
            version = 0
        elif kind == READ:
            length = count * PAGE
        else:
            pages, count, first = range(0), 0, 0
        busy.update(pages)
        flying[cookie] = (pages, version, length)
        client.ask(kind, cookie, first * PAGE, count * PAGE, data, flags)

    def run(self, rounds: int, tell: Callable[[int, int], None] | None = None) -> None:
        """Kill it so many times; raise RuntimeError if anything is missing."""
        for number in range(rounds):
            with ended(self.start()) as server:
                client = Client(self.path)
                if client.bytes != len(self.versions) * PAGE:
                    raise RuntimeError(f"it has {client.bytes} bytes")
                self.check(client)
                self.load(client, server)
                client.socket.close()
            if tell:
                tell(number + 1, self.acknowledged)
        with ended(self.start()) as server:
            self.check(Client(self.path))
            server.send_signal(signal.SIGTERM)
            if server.wait(timeout=30):
                raise RuntimeError("the server does not end in good order")


def main() -> None:
    """Run as a command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=50, help="how often it is killed (50)")
    parser.add_argument(
        "--seed",
        type=int,
        default=int(os.environ.get("FLASHKEEL_SOAK_ROUND", "1")),
        help="what everything follows from (1)",
    )
    parser.add_argument("--folder", type=Path, help="where the file is (a new folder)")
    parser.add_argument("--drive", choices=DRIVES, default="plain", help="what is served (plain)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        torture = Torture(options.folder or Path(folder), options.seed, DRIVES[options.drive])

        def tell(number: int, acknowledged: int) -> None:
            if sys.stderr.isatty() or number % 50 == 0:
                print(
                    f"{number} of {options.rounds} rounds, {acknowledged:,} answers",
                    file=sys.stderr,
                )

        torture.run(options.rounds, tell)
    print(f"{options.rounds} rounds, {torture.acknowledged:,} answers, nothing missing")


if __name__ == "__main__":
    main()
