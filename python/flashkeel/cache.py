"""Where the steady states of devices are kept between runs, and by what they are told apart."""

import hashlib
import os
from functools import cache
from pathlib import Path

from flashkeel import _core


@cache
def simulator() -> str:
    """Return what tells this build of the simulator from others: any may change a result."""
    return hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()


def directory() -> Path:
    """Return the cache directory: ``FLASHKEEL_CACHE``, else the XDG one."""
    chosen = os.environ.get("FLASHKEEL_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification has relative paths ignored.
    if base and Path(base).is_absolute():
        return Path(base) / "flashkeel"
    return Path.home() / ".cache" / "flashkeel"
