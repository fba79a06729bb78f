"""How much the settings of the share controller matter: one at a time around the defaults.

The paper tunes P and I by hand and gives no values; the defaults are ours, and
this is what they rest on. It is also the recipe for another device: see
docs/tuning.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from statistics import geometric_mean
from typing import TYPE_CHECKING

from flashkeel.reproduce import pictures
from flashkeel.reproduce.autossd import loads
from flashkeel.reproduce.autossd.device import SYSTEMS, scaled
from flashkeel.reproduce.autossd.systems import CLASS
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.session import Case, Session, basis, kind
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SWEEPS: dict[str, tuple[float | str, ...]] = {
    "gc_p": (5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5),
    "gc_i": (0.99, 0.997, 0.999, 0.9995, 0.9998),
    "period": ("100us", "300us", "1ms", "3ms", "10ms"),
    "gc_min": (0.02, 0.04, 0.08, 0.12, 0.16),
    "gc_max": (0.2, 0.4, 0.6, 0.8, 0.9),
}
"""Settings of the scheduler ``debit`` and the values they take."""

DEFAULTS: dict[str, float | str] = {
    "gc_p": 5e-6,
    "gc_i": 0.999,
    "period": "1ms",
    "gc_min": 0.08,
    "gc_max": 0.8,
}
"""What the device has them at."""
Tails = Mapping[float | str, Mapping[float, float]]
"""Percentiles in ns by the value of a setting."""
_PERCENTILES = (99.0, 99.9, 99.99)
_TOLERANCE = 0.1

_PLATEAU = Claim(
    "plateau",
    "P and I are tuned by hand; the defaults here are near the best of each setting",
    "p99.9 of small reads with the defaults, on the geometric mean of the loads, is at most "
    "10 % above the best of every sweep",
    None,
    "%",
    is_of_all=True,
)


def _measure(session: Session) -> Outcome:
    requests = 60_000 if session.quick else 300_000
    chosen = ["msn-befs x4"] if session.quick else [*loads.PROFILES, loads.BURSTS]
    cases = [
        _case(session, load, key, value, requests)
        for load in chosen
        for key, values in SWEEPS.items()
        for value in values
    ]
    runs = session.run(cases)
    tails = {
        key: {
            value: {
                at: geometric_mean([_tail(runs[_name(load, key, value)], at) for load in chosen])
                for at in _PERCENTILES
            }
            for value in values
        }
        for key, values in SWEEPS.items()
    }
    excess = {}
    for key, points in tails.items():
        tail = {value: point[99.9] for value, point in points.items()}
        least, best = min((ns, str(value)) for value, ns in tail.items())
        excess[f"{key}, best {best}"] = 100 * (tail[DEFAULTS[key]] / least - 1)
    return Outcome(
        {"plateau": _judge(excess, tails)},
        basis(runs),
        f"1/8 of the device of Table 1; no scrubbing; {requests:,} requests of "
        + ", ".join(chosen)
        + ("" if session.quick else f" ({loads.BURST_REQUESTS:,} of {loads.BURSTS})"),
        partial(_draw, tails, kind(runs)),
    )


def _judge(excess: Mapping[str, float], tails: Mapping[str, Tails]) -> Finding:
    """Judge the excess of the defaults; of settings that change nothing none is the best."""
    idle = [key for key, points in tails.items() if len({p[99.9] for p in points.values()}) == 1]
    holds = max(excess.values()) <= 100 * _TOLERANCE
    reasons = [
        f"nothing changes with {', '.join(idle)}: the share controller plays no part there"
        if idle
        else "",
        f"excess of p99.9 in %; p99.9 in ms: {_listed(tails)}",
    ]
    verdict = None if holds and idle else holds
    return Finding(excess, verdict, "; ".join(filter(None, reasons)))


def _listed(tails: Mapping[str, Tails]) -> str:
    """Return p99.9 of every setting."""
    return "; ".join(
        f"{key} {', '.join(f'{value} {point[99.9] / 1e6:.2f}' for value, point in points.items())}"
        for key, points in tails.items()
    )


def _case(session: Session, load: str, key: str, value: float | str, requests: int) -> Case:
    return Case(
        _name(load, key, value),
        {
            **scaled(8),
            **SYSTEMS["autossd"],
            f"device.scheduler.{key}": value,
            **loads.workload(session, load, requests),
        },
    )


def _name(load: str, key: str, value: float | str) -> str:
    return f"{load} {key}={value}"


def _tail(run: Run, percentile: float) -> float:
    return float(run.percentile(CLASS, percentile) or 0)


def _draw(tails: Mapping[str, Tails], kind: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.2), layout="constrained")
    figure.suptitle(f"Small reads by setting of the share controller; dotted: the default ({kind})")
    all_axes = figure.subplots(1, len(tails), sharey=True)
    for axes, (key, points) in zip(all_axes, tails.items(), strict=True):
        names = [str(value) for value in points]
        for at in _PERCENTILES:
            axes.plot(
                names,
                [point[at] for point in points.values()],
                marker="o",
                markersize=3,
                label=f"p{at:g}",
            )
        axes.axvline(names.index(str(DEFAULTS[key])), color="black", linewidth=0.6, linestyle=":")
        axes.set_yscale("log")
        pictures.log_durations(axes.yaxis)
        axes.set_xlabel(key)
        axes.tick_params(axis="x", labelrotation=45)
        axes.grid(alpha=0.3)
    all_axes[0].set_ylabel("response time")
    all_axes[0].legend(frameon=False)
    return figure


STUDY = Study(
    "autossd/sensitivity",
    "Settings of the share controller",
    (_PLATEAU,),
    _measure,
    is_cut_short=True,
)
