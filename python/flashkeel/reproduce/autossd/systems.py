"""The four systems under the eight traces of Table 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flashkeel.reproduce.autossd.device import SYSTEMS, device, scaled
from flashkeel.reproduce.profiles import or_all, source
from flashkeel.reproduce.session import Case, Session
from flashkeel.run import Run

PROFILES = ("dap-ds", "dap-ps", "dtrs", "lm-tbe", "msn-cfs", "msn-befs", "rad-as", "rad-be")
"""Table 2, in its order."""

CLASS = "small_read"
"""What the paper measures: reads up to 64 KiB (§5.2)."""

SIX_NINES = 99.9999

_QUICK_REQUESTS = 150_000
_QUICK_SMALL = 60_000
_REQUESTS = {"lm-tbe": 18_000_000, "msn-befs": 16_000_000}
"""Where less than the whole trace has ten samples beyond six nines."""

_MOST_SEEDS = {"dap-ps": 1, "rad-as": 4, "rad-be": 4}
"""Where the eleven million small reads that six nines take would be 20 to 55 traces."""


def case(
    session: Session,
    profile: str,
    system: str,
    intensity: float = 1.0,
    keys: Mapping[str, Any] | None = None,
) -> Case:
    """Return one system under one trace, judged by six nines of small reads.

    `keys` are set over the system's own.
    """
    limit = _QUICK_REQUESTS if session.quick else _REQUESTS.get(profile)
    return Case(
        f"{profile} {system}",
        {
            **device(session),
            # A task like the others in the paper's FTL (§4.2).
            "device.scrub.enabled": True,
            **SYSTEMS[system],
            **(keys or {}),
            "workload.source": source(session, profile, intensity),
            **({} if limit is None else {"workload.requests": limit}),
        },
        judged=(CLASS, SIX_NINES),
        most_seeds=_MOST_SEEDS.get(profile, 32),
    )


_SMALL_PARTS = 8
_SMALL_SEEDS = 4


def small(
    session: Session,
    profile: str,
    system: str,
    intensity: float,
    keys: Mapping[str, Any],
    requests: int = 300_000,
) -> Case:
    """Return one system under the beginning of a trace on an eighth of the device.

    It is judged by p99.99 of small reads. `keys` are set over the system's own.
    """
    return Case(
        f"{profile} {system}",
        {
            **scaled(_SMALL_PARTS),
            "device.scrub.enabled": True,
            **SYSTEMS[system],
            **keys,
            "workload.source": source(session, profile, intensity),
            "workload.requests": min(requests, _QUICK_SMALL) if session.quick else requests,
        },
        judged=(CLASS, 99.99),
        most_seeds=_SMALL_SEEDS,
    )


def described_small(session: Session, requests: int = 300_000) -> str:
    """Return what :func:`small` is, in words."""
    count = min(requests, _QUICK_SMALL) if session.quick else requests
    requests_run = f"{count:,} requests each{or_all(session)}"
    return f"1/{_SMALL_PARTS} of the device of Table 1; scrubbing on; {requests_run}"


def compared(
    session: Session, intensity: float, keys: Mapping[str, Any] | None = None
) -> dict[tuple[str, str], Run]:
    """Run every system under every trace; by trace and system."""
    cases = [case(session, p, s, intensity, keys) for p in PROFILES for s in SYSTEMS]
    runs = session.run(cases)
    return {(p, s): runs[f"{p} {s}"] for p in PROFILES for s in SYSTEMS}


def length(session: Session, profiles: Sequence[str] = PROFILES) -> str:
    """Return what :func:`case` adds to the device and how much of the traces is run, in words."""
    if session.quick:
        names = profiles[0] if len(profiles) == 1 else "each trace"
        return f"scrubbing on; the first {_QUICK_REQUESTS:,} requests of {names}{or_all(session)}"
    parts = [
        f"the first {_REQUESTS[p] / 1e6:g} million requests of {p}"
        for p in profiles
        if p in _REQUESTS
    ]
    whole = [p for p in profiles if p not in _REQUESTS]
    if whole:
        parts.append(f"the whole of {', '.join(whole)}")
    limits = [f"{p} at most {_MOST_SEEDS[p]}" for p in profiles if p in _MOST_SEEDS]
    seeds = ", ".join(["with as many seeds as six nines need", *limits])
    if session.traces is not None:
        seeds += f", recorded requests once{or_all(session)}"
    return f"scrubbing on; {' and '.join(parts)}, {seeds}"
