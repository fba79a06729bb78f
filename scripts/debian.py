"""Packages of Debian, which root may install."""

import functools
import os
import subprocess
from pathlib import Path


def install(package: str) -> str:
    """Install a package, and return why not if it could not be."""
    if os.geteuid() != 0 or not Path("/etc/debian_version").exists():
        return "only root on Debian can install it"
    return apt("update") or apt("install", "--yes", "--no-install-recommends", package)


@functools.cache
def apt(*arguments: str) -> str:
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
