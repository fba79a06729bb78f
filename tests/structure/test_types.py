"""What the stub says of the extension's types holds; of the package's, `make lint` sees to it."""

import os
import subprocess
import sys

from structure.source import ROOT


def test_mypy_agrees_with_the_stub_of_the_extension():
    command = [sys.executable, "-m", "mypy.stubtest", "flashkeel._core"]
    place = os.environ | {"MYPYPATH": str(ROOT / "python")}
    done = subprocess.run(command, cwd=ROOT, env=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
