"""Programs of others that tests run: found, installed where that is simple, or missed by name."""

import os
import shutil
from pathlib import Path

import pytest
from debian import install

PACKAGES = {
    "busybox": "busybox-static",
    "e2fsck": "e2fsprogs",
    "mke2fs": "e2fsprogs",
    "nbdcopy": "libnbd-bin",
    "nbdinfo": "libnbd-bin",
    "node": "nodejs",
    "qemu-img": "qemu-utils",
    "qemu-io": "qemu-utils",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-x86_64": "qemu-user",
}
"""Debian packages that are not called as the program in them."""


def require(program: str) -> Path:
    """Return the path of a program.

    Where it is missing, root on Debian installs its package; anybody else skips
    the test, or fails it where ``CI=true``: there nothing may go untested.
    """
    package = PACKAGES.get(program, program)
    why = install(package) if shutil.which(program) is None else ""
    found = shutil.which(program)
    if found is None:
        missed = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        missed(f"{program} is missing, of the Debian package {package}: {why}")
    return Path(found)
