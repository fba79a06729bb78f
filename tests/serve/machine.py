"""A small emulated machine with a distribution's kernel, to which a test talks as to a shell."""

import os
import re
import select
import subprocess
import time
from pathlib import Path

import pytest
from programs import require

PROGRAMS = ("nbd-client", "mke2fs", "e2fsck")
MODULES = (
    "virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci",
    "failover", "net_failover", "virtio_net", "libcrc32c", "nbd",
)  # fmt: skip
"""What is not built into Debian's kernel for clouds, in the order in which it is loaded."""

INIT = """\
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod /modules/$module.ko; done
ifconfig lo up
ifconfig eth0 10.0.2.15 up
echo 1 > /proc/sys/kernel/printk
stty -echo
export PS1=
echo end-0 $?
exec sh 2>&1
"""
PATIENCE_S = 120
HOST = "10.0.2.2"
"""What the machine that emulates is called in the one that is emulated."""


def _kernel(folder: Path) -> tuple[Path, Path]:
    """Return a kernel and the folder of its modules, fetched as a package without installing it."""
    missed = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
    if not Path("/etc/debian_version").exists():
        missed("Debian's kernel for clouds is missing: this is no Debian")

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            missed(f"Debian's kernel for clouds is missing: {done.stderr.strip()}")
        return done.stdout

    depends = run("apt-cache", "depends", "linux-image-cloud-amd64")
    (package,) = re.findall(r"Depends: (linux-image-\S+-cloud-amd64)", depends)
    run("apt-get", "download", package)
    (file,) = folder.glob("linux-image-*.deb")
    run("dpkg-deb", "-x", file, folder)
    (image,) = folder.glob("boot/vmlinuz-*")
    (modules,) = folder.glob("lib/modules/*")
    return image, modules


def _entry(name: str, mode: int, content: bytes) -> bytes:
    """Return a file as it stands in an initial file system: cpio's newc format."""
    words = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % word for word in words) + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)


def _initial(modules: Path) -> bytes:
    """Return an initial file system with what is needed to use a drive."""
    files: dict[str, bytes] = {"init": INIT.encode()}
    places = {"bin/busybox": "busybox"} | {f"programs/{name}": name for name in PROGRAMS}
    for place, name in places.items():
        program = require(name)
        files[place] = program.read_bytes()
        # Of a static program it says nothing, and fails.
        needs = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(?:=> |^\s+)(/\S+) \(", needs, re.MULTILINE):
            files[library.lstrip("/")] = Path(library).read_bytes()
    order = []
    for name in MODULES:
        found = list(modules.rglob(f"{name}.ko"))
        if found:
            files[f"modules/{name}.ko"] = found[0].read_bytes()
            order.append(name)
    files["modules/order"] = "\n".join(order).encode()
    folders = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    folders |= {"proc", "sys", "dev", "mnt", "etc"}
    entries = [_entry(name, 0o40755, b"") for name in sorted(folders)]
    entries += [_entry(name, 0o100755, content) for name, content in files.items()]
    return b"".join(entries) + _entry("TRAILER!!!", 0, b"")


class Machine:
    """It boots when it is made, and is gone with :meth:`end`."""

    def __init__(self, folder: Path) -> None:
        """Boot it; `folder` is for its parts."""
        emulator = require("qemu-system-x86_64")
        kernel, modules = _kernel(folder)
        initial = folder / "initial.cpio"
        initial.write_bytes(_initial(modules))
        command = [emulator, "-M", "q35", "-accel", "tcg", "-m", "512", "-smp", "1", "-no-reboot"]
        command += ["-display", "none", "-monitor", "none", "-serial", "stdio"]
        command += ["-nic", "user,model=virtio-net-pci", "-kernel", kernel, "-initrd", initial]
        command += ["-append", "console=ttyS0 quiet panic=-1"]
        self.process = subprocess.Popen(
            [*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.number = 0
        self.seen = b""
        self._answer("boot", rb"()end-0 (\d+)", PATIENCE_S)

    def run(self, command: str, patience_s: float = PATIENCE_S) -> str:
        """Run a shell command that has to succeed; return what it says."""
        status, said = self.tried(command, patience_s)
        assert status == 0, f"{command}: {said}"
        return said

    def tried(self, command: str, patience_s: float = PATIENCE_S) -> tuple[int, str]:
        """Run a shell command; return its status and what it says."""
        assert self.process.stdin is not None
        self.number += 1
        line = f"echo begin-{self.number}; {command} 2>&1; echo end-{self.number} $?\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        pattern = rb"begin-%d\r?\n(.*?)end-%d (\d+)" % (self.number, self.number)
        return self._answer(command, pattern, patience_s)

    def _answer(self, command: str, pattern: bytes, patience_s: float) -> tuple[int, str]:
        """Wait until it says something; return the status and what was said before."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + patience_s
        while (found := re.search(pattern, self.seen, re.DOTALL)) is None:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.process.stdout], [], [], max(left, 0))
            said = self.seen[-2000:].decode(errors="replace")
            assert ready, f"{command}: no answer; {said}"
            read = os.read(self.process.stdout.fileno(), 1 << 16)
            assert read, f"{command}: the machine has ended; {said}"
            self.seen += read
        self.seen = self.seen[found.end() :]
        return int(found[2]), found[1].decode(errors="replace").replace("\r", "").strip()

    def end(self) -> None:
        """Switch it off."""
        self.process.kill()
        self.process.wait()
