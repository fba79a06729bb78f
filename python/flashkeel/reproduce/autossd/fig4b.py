"""Figure 4b: 4 KiB random reads against the size of the map cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from flashkeel.reproduce.autossd.device import described, device
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, rises
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PARTS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
"""Shares of the map that the cache holds."""
_MAP_BYTES = 200 * 2**30 // 1024
"""The map of 200 GiB: 4 bytes an entry of 4 KiB."""
_CHIPS = 16
_READ_S = 50e-6
_PERCENTILE = 99.9

_FALLS = Claim(
    "falls",
    "the larger the map cache, the shorter the response time, and best with the whole map",
    "mean and p99.9 fall with every larger cache (up to 1 % of noise)",
    None,
    "µs",
)
_TRAFFIC = Claim(
    "traffic",
    "smaller caches cost flash traffic for map reads",
    "the chips' share of time spent reading falls with every larger cache",
    None,
    "%",
)


def _measure(session: Session) -> Outcome:
    map_bytes = _MAP_BYTES // (8 if session.quick else 1)
    sizes = {f"{part:.0%}": f"{int(map_bytes * part) // 4096 * 4}KiB" for part in _PARTS}
    sizes["all"] = "all"
    seconds = 6 if session.quick else 30
    cases = [
        Case(
            name,
            {
                **device(session),
                # Room enough that writing back the map does not start garbage collection.
                "device.precondition.pattern": "sequential",
                "device.map_cache": size,
                "workload.duration": f"{seconds}s",
                # The cold misses of every map page, one time and again.
                "workload.warm_up": f"{seconds // 2}s",
                "workload.source": {
                    "policy": "synthetic",
                    "read_fraction": 1.0,
                    "arrivals": {"policy": "poisson", "iops": 100_000},
                },
            },
            judged=("small_read", _PERCENTILE),
        )
        for name, size in sizes.items()
    ]
    runs = session.run(cases)
    means = {name: run.mean("small_read") or 0.0 for name, run in runs.items()}
    tails = {name: run.percentile("small_read", _PERCENTILE) or 0 for name, run in runs.items()}
    busy = {name: _utilisation(run) for name, run in runs.items()}
    falls = all(_falls(list(values.values()), 0.01) for values in (means, tails))
    return Outcome(
        {
            "falls": Finding({f"{name}": mean / 1e3 for name, mean in means.items()}, falls),
            "traffic": Finding(
                {name: 100 * each for name, each in busy.items()}, _falls(list(busy.values()))
            ),
        },
        basis(runs),
        f"{described(session)}, written from end to end beforehand; "
        "no scrubbing; 4 KiB random reads, 100,000 a second",
        partial(_draw, means, tails, busy),
    )


def _falls(values: Sequence[float], tolerance: float = 0.0) -> bool:
    """Return whether values fall: what never moves does not."""
    return rises(values[::-1], tolerance) and values[-1] < values[0]


def _utilisation(run: Run) -> float:
    reads = run.data["device"]["flash_operations"]
    busy_s: float = (reads["host_read"] + reads["map_read"]) * _READ_S
    return busy_s / (float(run.data["simulated_s"]) * _CHIPS)


def _draw(
    means: Mapping[str, float], tails: Mapping[str, float], busy: Mapping[str, float]
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.4), layout="constrained")
    axes = figure.subplots()
    names = list(means)
    right = axes.twinx()
    right.bar(names, [100 * part for part in busy.values()], color="#d0d0d0", width=0.6)
    right.set_ylabel("chips reading (% of time, bars)")
    axes.plot(names, [ns / 1e3 for ns in tails.values()], marker="s", label="p99.9")
    axes.plot(names, [ns / 1e3 for ns in means.values()], marker="o", label="mean")
    axes.set_zorder(right.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.set_ylim(bottom=0)
    axes.set_title("4 KiB random reads at 100 K IOPS")
    axes.set_xlabel("part of the map in memory")
    axes.set_ylabel("response time (µs)")
    axes.legend(frameon=False)
    return figure


STUDY = Study(
    "autossd/fig4b", "Reads against map cache", (_FALLS, _TRAFFIC), _measure, is_cut_short=True
)
