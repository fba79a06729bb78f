"""What a reader of the documents would have beside them, so that each command can be done."""

import csv
import gzip
import shutil
import struct

import flashkeel
from imports.test_mqsim_files import CONFIG, SYNTHETIC
from small import SMALL

LOGGED = {"measure.log_requests": True, "measure.chip_log": {"from": "100ms", "length": "50ms"}}
ETW = """\
BeginHeader
 DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime, \
DiskNum, IrpFlags, DiskSvcTime, I/O Pri, VolSnap, FileObject, FileName
EndHeader
"""
DRIVE = """\
[device]
preset = "ssd-g"
logical_capacity = "512MiB"
geometry.blocks_per_plane = 448

[workload]
requests = 300
pacing = "closed"

[workload.source]
policy = "synthetic"
read_fraction = 0.5
"""
LARGE = """\
[workload]
requests = 300
pacing = "closed"

[workload.source]
policy = "synthetic"
read_fraction = 0.5
"""
MIRROR = """\
[[stack.devices]]
[stack.devices.mirror]
devices = [{ file.path = "disk" }, { file.path = "disk2" }]
"""


def lay_out(folder):
    """Write them: results, traces of several formats, documents, a file as a drive."""
    experiment = flashkeel.Experiment(SMALL, "small")
    for key, value in LOGGED.items():
        experiment = experiment.set(key, value)
    result = experiment.run()
    result.save(folder / "DIR")
    for name in ("A", "B", "RESULT", "out/demo"):
        shutil.copytree(folder / "DIR", folder / name)
    (folder / "FILE.toml").write_text(SMALL)
    (folder / "disk.toml").write_text(
        SMALL.partition("[workload]")[0]
        + '[workload.source]\npolicy = "trace"\npath = "disk.csv"\nfold = "wrap"\n'
    )
    events = (
        f" DiskRead, {10 + 20 * n}, x ( 4), 8, 0x0, 0x{n % 64:x}000, 0x1000, 5, 0, 0, 5, 3, , 0, a"
        for n in range(200)
    )
    (folder / "disk.csv").write_text(ETW + "\n".join(events) + "\n")
    lines = [f"{n / 10:.1f},{'RW'[n % 3 == 0]},{n % 64 << 12},4096\n" for n in range(200)]
    (folder / "mine.csv").write_text("".join(lines))
    recorded = "".join(
        f"{n * 50_000},h,0,{'Read' if n % 3 else 'Write'},{n % 64 << 16},4096,0\n"
        for n in range(900)
    )
    (folder / "recorded.csv").write_text(recorded)
    (folder / "broken.csv").write_text(
        "128166372003061629,h,0,Read,0,4096,0\n128166372003061630,h,0,Raed,0,4096,0\n"
    )
    msps = "".join(f"{n * 1000} 0 {n % 64 * 8} 8 {n % 3 > 0:d}\n" for n in range(500))
    with gzip.open(folder / "msps_dtrs_slice.ssdsim.gz", "wt") as out:
        out.write(msps)
    with gzip.open(folder / "cloudphysics_vm.vscsi.gz", "wb") as out:
        for n in range(3000):
            command = 0x0100_0000 | (0x2A if n % 3 == 0 else 0x28)
            block = n * 7919 % 65536 * 8
            out.write(struct.pack("<IIIIQQ", n, 4096, 1, command, block, n * 2000))
    (folder / "JOB.fio").write_text("[a]\nrw=randread\nbs=4k\nsize=1m\niodepth=4\n")
    (folder / "job.fio").write_text((folder / "JOB.fio").read_text())
    (folder / "ssdconfig.xml").write_text(CONFIG)
    scenario = f"<IO_Scenario>{SYNTHETIC}</IO_Scenario>"
    (folder / "workload.xml").write_text(f"<MQSim_IO_Scenarios>{scenario * 2}</MQSim_IO_Scenarios>")
    demand = [f"{n},w0{2 + n % 2},{(n % 5) << 30}\n" for n in range(60)]
    (folder / "writes.csv").write_text("window,workload,write_bytes\n" + "".join(demand))
    for name in ("disk", "disk2"):
        (folder / name).write_bytes(bytes(32 << 20))
    (folder / "device.toml").write_text(DRIVE)
    (folder / "large.toml").write_text(LARGE)
    (folder / "own.toml").write_text('[[stack.devices]]\nfile.path = "disk"\n' + LARGE)
    (folder / "mirror.toml").write_text(MIRROR)
    table = result.runs[0].requests()
    names = ["submitted_ns", "completed_ns", "operation", "lba", "sectors"]
    with (folder / "log.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(names)
        writer.writerows(zip(*(table[name].tolist() for name in names), strict=True))
