"""The seven systems, from base to NoGC, under the six traces."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from flashkeel import _core
from flashkeel.reproduce.profiles import or_all, source
from flashkeel.reproduce.session import Case, Session
from flashkeel.run import Run

PROFILES = ("dapps", "dtrs", "exch", "lmbe", "msnfs", "tpcc")
CLASS = "read"
"""What is judged: the capacitor-backed buffer takes writes at once."""

BASE, ALL, NOGC = "base", "all", "nogc"


def flat(table: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the keys of a document's table, each with its path."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}.{key}")
        else:
            found[f"{prefix}.{key}"] = value
    return found


def _systems() -> dict[str, dict[str, Any]]:
    document = tomllib.loads(_core.show("ttflash"))
    device = flat(document["device"], "device")
    # Runs of several seeds differ in their requests, not in their steady state.
    device["device.precondition.seed"] = 1
    return {run["name"]: device | run.get("set", {}) for run in document["runs"]}


SYSTEMS = _systems()
"""Keys of each run of the built-in experiment ``ttflash``, in its order."""

DEVICE = "1/16 of the slides' device (16 GiB in 64 chips)"

_WARM_UP = "10s"
_REQUESTS = {"dapps": 300_000}
"""Where two million would be many days."""
_QUICK_REQUESTS = {"dapps": 12_000}


def case(session: Session, profile: str, system: str) -> Case:
    """Return one system under one trace, judged by p99.99 of reads."""
    requests = (
        _QUICK_REQUESTS.get(profile, 120_000)
        if session.quick
        else _REQUESTS.get(profile, 2_000_000)
    )
    return Case(
        f"{profile} {system}",
        SYSTEMS[system]
        | {
            "workload.warm_up": _WARM_UP,
            "workload.requests": requests,
            "workload.source": source(session, profile),
        },
        judged=(CLASS, 99.99),
    )


def compared(session: Session) -> dict[tuple[str, str], Run]:
    """Run every system under every trace; by trace and system."""
    keys = [(profile, system) for profile in PROFILES for system in SYSTEMS]
    runs = session.run([case(session, *key) for key in keys])
    return {key: runs[" ".join(key)] for key in keys}


def length(session: Session) -> str:
    """Return what is run, in words."""
    counts = "120,000 {} (DAPPS: 12,000)" if session.quick else "2 million {} (DAPPS: 300,000)"
    return f"{DEVICE}; the first {counts.format('requests of each trace')}{or_all(session)}"
