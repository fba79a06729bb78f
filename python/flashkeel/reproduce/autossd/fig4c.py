"""Figure 4c: 4 KiB random requests, 1:9 read to write, against fixed shares of GC."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from flashkeel.reproduce import intervals, series
from flashkeel.reproduce.autossd.device import described, device, scaled
from flashkeel.reproduce.claims import (
    Claim,
    Finding,
    Outcome,
    Quantity,
    Range,
    Study,
    few,
    owners,
    rises,
    too_few,
)
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHARES = (20, 30, 40, 50, 60, 70, 80)
_P3, _P6 = 99.9, 99.9999
_JUDGED_P6 = (20, 40, 80)
"""Six nines take 100 million requests a share."""

_ERASES = Claim(
    "erases",
    "the larger the share of GC, the more blocks it erases while it is active",
    "erases per second with GC active are at least 10 % more at 80 % than at 20 %, "
    "and fall by at most 3 % from any share to the next",
    None,
    "erases/s",
)
_P3_RISES = Claim(
    "p99.9",
    "the larger the share of GC, the worse p99.9 of reads",
    "p99.9 rises from 30 % on with every larger share (unknown where a fall is within the 95 % "
    "intervals), and is worse at 80 % than at 20 %",
    None,
    "ms",
)
_P6_FALLS = Claim(
    "p99.9999",
    "too small a share of GC makes p99.9999 worse",
    "at 20 % p99.9999 is at least 20 % above that at 40 % or at 80 %",
    None,
    "ms",
)


_NEAREST = 20_000
_RANGE_SHARES = (20, 40, 60, 80)
_RANGE_P = 99.99
"""What a range judges in place of six nines."""


def _measure(session: Session) -> Outcome:
    warm_up, seconds = (2, 12) if session.quick else (20, 1270)
    runs = _run(session, device(session), _NEAREST, _SHARES, _P6, (warm_up, seconds))
    return _judge(runs, _P6, f"{described(session)}; {_load(_NEAREST)}")


def _measure_at(session: Session, iops: float) -> Outcome:
    times = (2, 12) if session.quick else (10, 110)
    runs = _run(session, scaled(8), round(iops), _RANGE_SHARES, _RANGE_P, times)
    conditions = f"1/8 of the device of Table 1; {_load(round(iops))}, {times[1] - times[0]} s"
    return _judge(runs, _RANGE_P, f"{conditions}; p{_RANGE_P:g} in place of p{_P6:g}")


def _load(iops: int) -> str:
    return f"no scrubbing; 4 KiB random, 10 % reads, {iops:,} a second"


def _run(
    session: Session,
    keys: Mapping[str, Any],
    iops: int,
    shares: Sequence[int],
    judged: float,
    times: tuple[int, int],
) -> dict[str, Run]:
    """Run a share each; `times` are the warm-up and the whole in s."""
    cases = [
        Case(
            f"{share}",
            {
                **keys,
                "device.scheduler.gc_static": share / 100,
                "workload.duration": f"{times[1]}s",
                "workload.warm_up": f"{times[0]}s",
                "workload.source": {
                    "policy": "synthetic",
                    "read_fraction": 0.1,
                    "arrivals": {"policy": "poisson", "iops": iops},
                },
            },
            judged=("small_read", judged) if share in _JUDGED_P6 else None,
        )
        for share in shares
    ]
    return session.run(cases)


def _judge(runs: Mapping[str, Run], at: float, conditions: str) -> Outcome:
    """Judge the three claims, the last by the percentile `at`."""
    erases = {name: _erases_per_s(run) for name, run in runs.items()}
    p3 = {name: (run.percentile("small_read", _P3) or 0) / 1e6 for name, run in runs.items()}
    p6 = {name: (run.percentile("small_read", at) or 0) / 1e6 for name, run in runs.items()}
    rate = list(erases.values())
    is_active = all(map(math.isfinite, rate))
    tail = [intervals.percentile(run, "small_read", _P3) for run in runs.values()]
    worse_with_share = intervals.every(
        (intervals.rises(tail[1:]), intervals.above(tail[-1], tail[0]))
    )
    words = _owned(runs, _P3)
    judged = [runs[f"{share}"] for share in _JUDGED_P6]
    sparse = min(run.beyond("small_read", at) for run in judged)
    enough = not any(few(run, "small_read", at) for run in judged)
    worse = p6["20"] >= 1.2 * min(p6["40"], p6["80"])
    reason = "" if worse else f"{series.least_free(_named(runs))}; {_owned(runs, at)}"
    return Outcome(
        {
            "erases": Finding(
                _labelled(erases),
                rate[-1] >= 1.1 * rate[0] and rises(rate, 0.03) if is_active else None,
                "" if is_active else f"fewer than {_FEWEST_ERASES} erases, or none in sight",
            ),
            "p99.9": Finding(
                _labelled(p3),
                worse_with_share,
                f"{intervals.OVERLAP}; {words}" if worse_with_share is None else words,
            ),
            "p99.9999": Finding(
                _labelled(p6),
                worse if enough else None,
                reason if enough else too_few(sparse),
            ),
        },
        basis(runs),
        conditions,
        partial(_draw, erases, p3, p6, at),
    )


def _named(runs: Mapping[str, Run]) -> dict[str, Run]:
    """Return the runs that differ most, by their shares."""
    return {f"{share} %": runs[f"{share}"] for share in (20, 80)}


def _owned(runs: Mapping[str, Run], percentile: float) -> str:
    return owners(_named(runs), "small_read", percentile)


def _labelled(values: Mapping[str, float]) -> dict[str, float]:
    return {f"{share} %": value for share, value in values.items()}


_FEWEST_ERASES = 200
"""That a rate is taken from; ours."""


def _erases_per_s(run: Run) -> float:
    """Erases per second with GC active; the first seed's, whose series is at hand.

    Not a number of too few, or where no window ends while GC is active.
    """
    columns = series.columns(run)
    active = sum(columns["gc_active"]) / len(columns["gc_active"])
    if run.data["erases"] < _FEWEST_ERASES or not active:
        return math.nan
    return float(run.data["erases"] / (run.data["simulated_s"] * active))


def _draw(
    erases: Mapping[str, float], p3: Mapping[str, float], p6: Mapping[str, float], at: float
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.4), layout="constrained")
    axes = figure.subplots()
    names = [f"{share} %" for share in erases]
    right = axes.twinx()
    right.bar(names, list(erases.values()), color="#d0d0d0", width=0.6)
    right.set_ylabel("erases per second of GC (bars)")
    axes.plot(names, list(p6.values()), marker="s", label=f"p{at:g}")
    axes.plot(names, list(p3.values()), marker="o", label="p99.9")
    axes.set_zorder(right.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.set_yscale("log")
    axes.set_title("4 KiB random, 1:9 read/write")
    axes.set_xlabel("share of GC")
    axes.set_ylabel("response time of reads (ms)")
    axes.legend(frameon=False)
    return figure


_INTENSITY = Range(
    Quantity(
        "intensity",
        (15_000, 17_500, 20_000, 22_500, 25_000, 27_500),
        _NEAREST,
        "20,000 a second, of a drive whose over-provisioning in this figure is not given",
        " requests/s",
    ),
    ("erases", "p99.9", "p99.9999"),
    _measure_at,
)

STUDY = Study(
    "autossd/fig4c",
    "Reads against a fixed share of GC",
    (_ERASES, _P3_RISES, _P6_FALLS),
    _measure,
    (_INTENSITY,),
    is_cut_short=True,
)
