"""Figure 1: performance drop and variation under 4 KiB random writes."""

from __future__ import annotations

from functools import partial
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from flashkeel.reproduce import series
from flashkeel.reproduce.autossd.device import scaled
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.session import Case, Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DROP = Claim(
    "drop",
    "a fresh drive is fast, and much slower once it collects garbage",
    "mean throughput of the last quarter is at most half of that of the first tenth",
    None,
    "times",
)
_SWINGS = Claim(
    "swings",
    "from then on performance swings",
    "throughput per 100 ms varies at least twice as much (standard deviation to mean) "
    "in the last quarter as in the first tenth",
    None,
    "of the mean",
)


def _measure(session: Session) -> Outcome:
    parts, seconds = (16, 200) if session.quick else (8, 400)
    case = Case(
        "fresh",
        {
            **scaled(parts),
            "device.precondition.pattern": "none",
            "workload.duration": f"{seconds}s",
            "workload.pacing": {"policy": "closed", "depth": 64},
            "workload.source": {"policy": "synthetic", "read_fraction": 0.0},
        },
    )
    run = session.run([case])["fresh"]
    columns = series.columns(run)
    # The last window is cut short.
    mb_per_s = [(b or 0) / columns.window_s / 1e6 for b in columns["write_bytes"][:-1]]
    fresh = mb_per_s[: len(mb_per_s) // 10]
    last = mb_per_s[-len(mb_per_s) // 4 :]
    drop = fmean(last) / fmean(fresh)
    variation = {"fresh": _variation(fresh), "last quarter": _variation(last)}
    half = len(last) // 2
    change = 100 * (fmean(last[half:]) / fmean(last[:half]) - 1)
    return Outcome(
        {
            "drop": Finding(
                drop,
                drop <= 0.5,
                f"write amplification {run.data['waf']:.2f} over the whole run; within "
                f"the last quarter throughput changes by {change:+.1f} %",
            ),
            "swings": Finding(variation, variation["last quarter"] >= 2 * variation["fresh"]),
        },
        "synthetic",
        f"1/{parts} of the device of Table 1, erased; no scrubbing; 4 KiB random writes, 64 "
        f"outstanding, for {seconds} s",
        partial(_draw, mb_per_s, columns.window_s),
    )


def _variation(values: list[float]) -> float:
    return stdev(values) / fmean(values)


def _draw(mb_per_s: list[float], window_s: float) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot([i * window_s for i in range(len(mb_per_s))], mb_per_s, linewidth=0.6)
    axes.set_title("4 KiB random writes on a fresh drive (synthetic workload)")
    axes.set_xlabel("time (s)")
    axes.set_ylabel("throughput (MB/s)")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    return figure


STUDY = Study(
    "autossd/fig1",
    "Drop and variation under random writes",
    (_DROP, _SWINGS),
    _measure,
    is_cut_short=True,
)
