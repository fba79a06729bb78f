"""Average latency in a closed loop, in place of the Filebench run that the slides mention."""

from __future__ import annotations

from collections.abc import Mapping

from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.reproduce.ttflash.systems import ALL, BASE, DEVICE, NOGC, SYSTEMS
from flashkeel.run import Run

_SYSTEMS = (BASE, ALL, NOGC)
_WORKLOAD = {
    "workload.pacing": {"policy": "closed", "depth": 50},
    "workload.source": {
        "policy": "synthetic",
        "read_fraction": 0.33,
        "block_sizes": ["128KiB/67", "16KiB/33"],
    },
}
"""Filebench's ``fileserver.f``: each of 50 threads writes a file of 128 KiB, appends 16 KiB to
one and reads one."""

_AVERAGE = Claim(
    "average",
    "under Filebench ttFlash has a better average latency than base",
    "in a closed loop like a file server's the mean of all requests is below base's",
    None,
    "ms",
)


def _measure(session: Session) -> Outcome:
    keys = _WORKLOAD | {
        "workload.warm_up": "5s",
        "workload.requests": 60_000 if session.quick else 600_000,
    }
    runs = session.run([Case(system, SYSTEMS[system] | keys) for system in _SYSTEMS])
    means = {system: _mean_ms(run) for system, run in runs.items()}
    reads = {system: (run.mean("read") or 0.0) / 1e6 for system, run in runs.items()}
    return Outcome(
        {
            "average": Finding(
                _labelled(means, "all") | _labelled(reads, "reads"),
                means[ALL] < means[BASE],
                "the slides name no personality; no file system and no cache lie above the device, "
                "so that all requests reach it",
            )
        },
        basis(runs),
        f"{DEVICE}; 50 outstanding, a third reads; two thirds of 128 KiB, the others 16 KiB, all "
        "over the device",
    )


def _mean_ms(run: Run) -> float:
    means = {kind: run.mean(kind) or 0.0 for kind in ("read", "write")}
    counts = {kind: run.samples(kind) for kind in means}
    return sum(means[kind] * counts[kind] for kind in means) / sum(counts.values()) / 1e6


def _labelled(values: Mapping[str, float], what: str) -> dict[str, float]:
    return {f"{system}, {what}": value for system, value in values.items()}


STUDY = Study("ttflash/filebench", "A file server's closed loop", (_AVERAGE,), _measure)
