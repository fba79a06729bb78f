"""The simulator asks nothing of the world, and nothing in it has an order by chance."""

import re

import pytest
from structure.source import code, name, rust

FORBIDDEN = {
    "a clock": r"\b(Instant|SystemTime)\b",
    "files": r"\bfs::|\bFile::",
    "sockets": r"\bstd::net\b|\b(Tcp|Udp|Unix)(Stream|Listener|Socket)\b",
    "the environment": r"\benv::|\bstd::env\b",
    "threads": r"\b(thread::|thread_local!|rayon)",
    "hashed collections": r"\bHash(Map|Set)\b",
    "other random numbers": r"\b(thread_rng|StdRng|SmallRng|OsRng|getrandom)\b",
    "unsafe code": r"\bunsafe\b",
}

ALLOWED = {
    ("crates/device/src/prefetch.rs", "unsafe code"): "gives hints to processor and kernel",
    (
        "crates/device/src/processor.rs",
        "unsafe code",
    ): "calls what it has found the processor can do",
    (
        "crates/blockdev/src/drive.rs",
        "unsafe code",
    ): "hands requests and their buffers to the kernel",
    ("crates/workload/src/input/open.rs", "files"): "reads traces",
    ("crates/workload/src/input/mod.rs", "files"): "gives a trace's file to who reads it by itself",
    ("crates/workload/src/readers/parquet/mod.rs", "files"): "reads a trace from its end",
    ("crates/workload/src/writers/mod.rs", "files"): "writes traces",
    ("crates/blockdev/src/opening.rs", "files"): "opens real drives",
    ("crates/blockdev/src/drive.rs", "files"): "hands their requests to the kernel",
    ("crates/blockdev/src/drive.rs", "a clock"): "loses patience with drives that are closed",
    ("crates/blockdev/src/drive.rs", "the environment"): "the folder of its test",
    ("crates/blockdev/src/world.rs", "a clock"): "is the clock of real drives",
    ("crates/blockdev/src/world.rs", "files"): "looks whether they still are what they were",
    ("crates/blockdev/src/world.rs", "threads"): "asks whether somebody else can run meanwhile",
    ("crates/blockdev/src/nbd/line.rs", "a clock"): "loses patience with servers",
    ("crates/blockdev/src/nbd/line.rs", "sockets"): "talks to servers",
    ("crates/host/src/predictor/ssdcheck.rs", "files"): "reads the model of a real drive",
    ("crates/experiment/src/cache.rs", "files"): "keeps steady states; no result depends on it",
    ("crates/experiment/src/cache.rs", "a clock"): "finds the file unused for longest",
    ("crates/experiment/src/cache.rs", "the environment"): "the folder of its test",
    ("crates/experiment/src/cache.rs", "threads"): "calls what it writes after its own",
    ("crates/experiment/src/log_file.rs", "threads"): "encodes rows of the log as they come",
    (
        "crates/experiment/src/memory.rs",
        "files",
    ): "asks how much memory there is; no result depends on it",
    ("crates/experiment/src/run.rs", "a clock"): "reports wall time beside the result",
    ("crates/python/src/progress.rs", "a clock"): "limits progress reports",
    ("crates/serve/src/clock.rs", "a clock"): "is the clock of served drives",
    ("crates/store/src/disk.rs", "files"): "keeps the data of served drives",
    ("crates/store/src/disk.rs", "the environment"): "the folder of its test",
    ("crates/store/src/syncer.rs", "threads"): "synchronises that while others go on",
    ("crates/device/src/processor.rs", "threads"): "each test chooses its copy by itself",
    ("crates/serve/src/complaints.rs", "a clock"): "says little of clients at a time",
    ("crates/serve/src/connection.rs", "a clock"): "loses patience with clients",
    ("crates/serve/src/connection.rs", "sockets"): "the client of its test",
    ("crates/serve/src/server.rs", "a clock"): "asks once in a while whether to stop",
    (
        "crates/serve/src/server.rs",
        "threads",
    ): "takes the slack off its own timer, and asks whether a client can run meanwhile",
    ("crates/serve/src/sockets.rs", "a clock"): "loses patience with who has its folder locked",
    ("crates/serve/src/sockets.rs", "files"): "takes away its own socket",
    ("crates/serve/src/sockets.rs", "the environment"): "the folder of its test",
    ("crates/serve/src/sockets.rs", "threads"): "waits for who has its folder locked",
    ("crates/serve/src/sockets.rs", "sockets"): "talks to clients",
}
"""Who may use what, and why."""


@pytest.mark.parametrize("thing", FORBIDDEN)
def test_nothing_depends_on_the_world_or_on_chance(thing):
    pattern = re.compile(FORBIDDEN[thing])
    users = {name(path) for path in rust() if pattern.search(code(path))}
    assert users == {path for path, allowed in ALLOWED if allowed == thing}
