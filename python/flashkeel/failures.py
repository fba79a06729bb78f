"""Requests of a run that did not end well."""

from __future__ import annotations

import errno

from flashkeel.run import Run

_AS_ERRNO = {
    "invalid": errno.EINVAL,
    "lost": errno.EIO,
    "read_only": errno.EROFS,
    "no_space": errno.ENOSPC,
    "media_error": errno.EIO,
    "gone": errno.ENODEV,
    "aborted": errno.ECANCELED,
}


def of(run: Run) -> dict[str, int]:
    """Return how many requests failed, by how; most first."""
    apart = {"invalid": run.data["invalid_requests"], "lost": run.data["lost_requests"]}
    every = apart | run.data.get("failed_requests", {})
    found = {how: int(count) for how, count in every.items() if count}
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def count(run: Run) -> int:
    """Return how many requests failed; they are in no distribution."""
    return sum(of(run).values())


def share(run: Run) -> float:
    """Return the share of the requests that failed."""
    return count(run) / max(1, int(run.data["requests"]))


def error(run: Run) -> int:
    """Return the number that POSIX gives to what most failures are; 0 without any."""
    return next((_AS_ERRNO.get(how, errno.EIO) for how in of(run)), 0)
