"""Figure 4a: bandwidth of 128 KiB sequential accesses against the channel rate."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from flashkeel.reproduce.autossd.device import scaled
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, rises
from flashkeel.reproduce.session import Case, Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RATES = (100, 200, 300, 400, 600, 800, 1000, 1200, 1600, 2000)
"""Channel rates in MB/s."""
_KNEE = 1000
_SATURATED = 0.9
"""Share of the bandwidth at the largest rate that counts as saturated."""

_READ = Claim(
    "read-knee",
    "read bandwidth grows with the channel rate until about 1000 MB/s, "
    "where the read of the cells becomes the limit",
    "at every rate up to 800 MB/s at least 90 % of what four channels can carry, "
    "from 1000 to 2000 MB/s less than a quarter more",
    "knee at 1000 MB/s",
    "MB/s",
)
_WRITE = Claim(
    "write-earlier",
    "write bandwidth saturates earlier",
    "the rate at which 90 % of the bandwidth at 2000 MB/s is reached is lower for writes",
    None,
    "MB/s",
)


def _measure(session: Session) -> Outcome:
    cases = [
        Case(f"{kind} {rate}", _keys(kind, rate, 2 if session.quick else 8))
        for kind in ("read", "write")
        for rate in _RATES
    ]
    runs = session.run(cases)
    bandwidth = {
        kind: {rate: _mb_per_s(runs[f"{kind} {rate}"].data, kind) for rate in _RATES}
        for kind in ("read", "write")
    }
    reads = bandwidth["read"]
    follows = all(reads[rate] >= 0.9 * 4 * rate for rate in _RATES if rate <= 800)
    flat = reads[2000] / reads[_KNEE]
    saturated = {kind: _saturation(points) for kind, points in bandwidth.items()}
    grows = rises(list(reads.values()), 0.01)
    return Outcome(
        {
            "read-knee": Finding(
                {f"{rate} MB/s": reads[rate] for rate in (400, 800, _KNEE, 2000)},
                follows and grows and flat < 1.25,
            ),
            "write-earlier": Finding(saturated, saturated["write"] < saturated["read"]),
        },
        "synthetic",
        "1/8 of the device of Table 1, written from end to end beforehand; "
        "128 KiB sequential requests, 64 outstanding; no scrubbing",
        partial(_draw, bandwidth),
    )


def _keys(kind: str, rate: int, seconds: int) -> dict[str, object]:
    return {
        **scaled(8),
        "device.precondition": {"pattern": "sequential", "read_counts_below": 0},
        "device.timing.channel_rate": f"{rate}MB/s",
        "workload.duration": f"{seconds}s",
        "workload.warm_up": "500ms",
        "workload.pacing": {"policy": "closed", "depth": 64},
        "workload.source": {
            "policy": "synthetic",
            "read_fraction": 1.0 if kind == "read" else 0.0,
            "block_sizes": ["128KiB"],
            "pattern": "sequential",
        },
    }


def _mb_per_s(run: Mapping[str, object], kind: str) -> float:
    distribution = run[kind]
    seconds = run["simulated_s"]
    assert isinstance(distribution, dict) and isinstance(seconds, float)
    return float(distribution["bytes"]) / seconds / 1e6


def _saturation(points: Mapping[int, float]) -> float:
    most = points[_RATES[-1]]
    return next(rate for rate, value in points.items() if value >= _SATURATED * most)


def _draw(bandwidth: Mapping[str, Mapping[int, float]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.4), layout="constrained")
    axes = figure.subplots()
    for (kind, points), marker in zip(bandwidth.items(), "os", strict=True):
        axes.plot(list(points), list(points.values()), marker=marker, label=kind)
    axes.set_title("128 KiB sequential accesses")
    axes.set_xlabel("channel rate (MB/s)")
    axes.set_ylabel("bandwidth (MB/s)")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure


STUDY = Study(
    "autossd/fig4a", "Sequential bandwidth against channel rate", (_READ, _WRITE), _measure
)
