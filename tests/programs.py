"""Programs of others that tests run: found, installed where that is simple, or missed by name."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGES = {
    "busybox": "busybox-static",
    "e2fsck": "e2fsprogs",
    "mke2fs": "e2fsprogs",
    "nbdcopy": "libnbd-bin",
    "nbdinfo": "libnbd-bin",
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
    why = _install(package) if shutil.which(program) is None else ""
    found = shutil.which(program)
    if found is None:
        missed = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        missed(f"{program} is missing, of the Debian package {package}: {why}")
    return Path(found)


def _install(package: str) -> str:
    """Install a Debian package, and return why not if it could not be."""
    if os.geteuid() != 0 or not Path("/etc/debian_version").exists():
        return "only root on Debian can install it"
    return _apt("update") or _apt("install", "--yes", "--no-install-recommends", package)


@functools.cache
def _apt(*arguments: str) -> str:
    """Run apt-get, no command twice, and return the last that it said if it failed."""
    done = subprocess.run(
        ["apt-get", "--quiet", *arguments],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return ""
    return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "apt-get failed"
