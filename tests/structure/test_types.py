"""What is said of types holds: of the package's, and of the extension's, which the stub says."""

import os
import subprocess
import sys

import pytest
from structure.source import ROOT

CHECKS = {
    "the package": ["mypy"],
    "the stub of the extension": ["mypy.stubtest", "flashkeel._core"],
}


@pytest.mark.parametrize("what", CHECKS)
def test_mypy_agrees_with(what):
    command = [sys.executable, "-m", *CHECKS[what]]
    place = os.environ | {"MYPYPATH": str(ROOT / "python")}
    done = subprocess.run(command, cwd=ROOT, env=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
