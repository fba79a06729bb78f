"""A served drive under the kernel's own client, in a small emulated machine."""

import re
import signal
import subprocess
import sys

from machine import HOST, Machine
from torturing import torture

FILL = """\
for n in $(seq 40); do
  dd if=/dev/urandom of=/mnt/{folder}/$n bs=1k count=$((n * 3)) 2>/dev/null || exit 1
done
"""


class Drive:
    """A drive of a file, at one port for all of its servers."""

    def __init__(self, folder):
        self.document, self.data, self.place = folder / "d.toml", folder / "data", "127.0.0.1:0"
        self.document.write_text(torture.DRIVE.replace("16MiB", "48MiB").replace("64", "192"))
        self.serve()

    def serve(self):
        command = [sys.executable, "-m", "flashkeel", "serve", "nbd", self.document]
        command += ["--listen", self.place, "--data", self.data]
        self.server = subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True)
        said = self.server.stderr.readline()
        self.place = re.search(r"nbd://(127\.0\.0\.1:\d+)/flashkeel", said)[1]

    def end(self, with_signal):
        self.server.send_signal(with_signal)
        self.server.wait()
        return self.server.stderr.read()


def connect(machine, drive):
    port = drive.place.rpartition(":")[2]
    machine.run(f"/programs/nbd-client {HOST} {port} /dev/nbd0 -N flashkeel -b 4096")


def test_a_file_system_outlasts_its_server(tmp_path):
    drive = Drive(tmp_path)
    machine = Machine(tmp_path)
    try:
        connect(machine, drive)
        assert machine.run("cat /sys/block/nbd0/size").strip() == str((48 << 20) // 512)
        machine.run("/programs/mke2fs -q -t ext4 -b 4096 /dev/nbd0 && mount /dev/nbd0 /mnt")
        machine.run("mkdir /mnt/kept /mnt/late")
        machine.run(f"( {FILL.format(folder='kept')} ) && sync")
        sums = machine.run("cd /mnt && sha256sum kept/* | tee /sums && cd /")
        # More is written while its server is killed.
        machine.run(f"( {FILL.format(folder='late')} ) > /dev/null & sleep 0.5")
        drive.end(signal.SIGKILL)
        # What was on its way fails now; before, the kernel waits for somebody to reconnect.
        machine.run("/programs/nbd-client -d /dev/nbd0")
        machine.tried("wait; umount /mnt || umount -l /mnt")
        drive.serve()
        connect(machine, drive)
        # What ext4 had begun is in its journal.
        machine.run("mount /dev/nbd0 /mnt")
        machine.run("cd /mnt && sha256sum -c -s /sums && cd /")
        machine.run("rm -r /mnt/late && fstrim /mnt && umount /mnt")
        assert "clean" in machine.run(
            "/programs/e2fsck -f -n /dev/nbd0 && /programs/e2fsck -n /dev/nbd0"
        )
        machine.run(
            "mount /dev/nbd0 /mnt && cd /mnt && sha256sum -c -s /sums && cd / && umount /mnt"
        )
        machine.run("/programs/nbd-client -d /dev/nbd0")
        assert len(sums.splitlines()) == 40
    finally:
        machine.end()
        said = drive.end(signal.SIGINT)
    assert "disconnected" not in said
