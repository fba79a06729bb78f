"""Where the steady states of devices are kept between runs."""

import os
from pathlib import Path


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
