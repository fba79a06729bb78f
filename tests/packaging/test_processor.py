"""What is built runs on any x86-64, and gives the same there."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from programs import require

OPTIONS = ("--set", "workload.requests=2000", "--no-cache", "--format", "json")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="of another processor")
def test_a_processor_without_avx2_gives_the_same(cli, small_toml):
    here = cli("run", small_toml, *OPTIONS)
    # Of 2008: SSE4.2, and no AVX.
    emulator = [require("qemu-x86_64"), "-cpu", "Nehalem", Path(sys.executable).resolve()]
    done = subprocess.run(
        [*map(str, (*emulator, "-m", "flashkeel", "run", small_toml, *OPTIONS))],
        # The emulated interpreter is not that of an environment.
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    digests = [
        [run["digest"] for run in json.loads(text)["runs"]] for text in (here.out, done.stdout)
    ]
    assert len(digests[0]) == 2 and digests[0] == digests[1]
