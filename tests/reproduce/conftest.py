"""A study small enough to run in a test."""

import pytest
from flashkeel.reproduce import works
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.session import Case, basis

TINY = {
    "device.geometry": {
        "channels": 2, "chips_per_channel": 2, "planes_per_chip": 1,
        "blocks_per_plane": 24, "pages_per_block": 16,
    },
    "device.logical_capacity": "12MiB",
    "device.map_cache": "all",
    "device.gc.start_below": 24,
    "device.gc.stop_above": 28,
    "workload.requests": 2000,
    "workload.source": {
        "policy": "synthetic",
        "read_fraction": 0.5,
        "arrivals": {"policy": "poisson", "iops": 5000},
    },
}  # fmt: skip


def tiny(name, judged=None, most_seeds=8, least_seeds=1, **keys):
    keys = TINY | {k.replace("__", "."): v for k, v in keys.items()}
    return Case(name, keys, judged, most_seeds, least_seeds)


def _measure(session):
    cases = [tiny(name, ("read", 99.0), device__scheduler=name) for name in ("fifo", "priority")]
    runs = session.run(cases)
    means = {name: run.mean("read") for name, run in runs.items()}
    return Outcome(
        {
            "mean": Finding(means, means["priority"] < means["fifo"]),
            "never": Finding(None, None, "no samples"),
        },
        basis(runs),
        "a tiny device",
    )


STUDY = Study(
    "toy/fig1",
    "A toy",
    (
        Claim("mean", "priority is quicker", "mean of priority below that of fifo", -10.0, "ns"),
        Claim("never", "nobody knows", "there is none", None, ""),
    ),
    _measure,
)


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(works, "STUDIES", (*works.STUDIES, STUDY))
