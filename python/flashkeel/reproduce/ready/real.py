"""The guarantee under write demands that were recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from flashkeel import lifetime
from flashkeel.lifetime import Estimate, Plan
from flashkeel.output import units
from flashkeel.reproduce import recorded
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.ready.epochs import LENGTHS
from flashkeel.reproduce.ready.lives import LABELS, TARGET_YEARS, in_parallel, years
from flashkeel.reproduce.session import Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MET = Claim(
    "guarantee",
    "READY makes a drive last five years under any traffic",
    "under every recorded demand it meets five years, at most 0.5 % short",
    None,
    "demands",
    is_of_all=True,
)
_COST = Claim(
    "cost",
    "READY's guarantee costs less than a fixed cap's",
    "over the demands that need throttling, the median of ST's mean delay over READY's is above 1",
    None,
    "times",
)

_BETWEEN = Claim(
    "dt-between",
    "DT's response time lies between READY's and ST's",
    "over the demands that need throttling, DT's mean delay is above READY's on each, and the "
    "median of it over ST's is at most 0.99",
    None,
    "times",
    is_of_all=True,
)

_CYCLIC = Claim(
    "cyclic",
    "the write demand of enterprise traffic is cyclic",
    "over the recorded demands, the median share of half hours whose demand is within 30 % of the "
    "one before is above a half; the paper shows 0.88 on exchange",
    None,
    "of the periods",
)

_EPOCHS = Claim(
    "epochs",
    "no one length of epochs suits every traffic, so it is chosen by the traffic",
    "none of 30 min, 1 h and 2 h has the most periods within 30 % of the one before under more "
    "than three quarters of the recorded demands, which are known by the half hour",
    None,
    "demands",
)

_PERIOD_S = 1_800
_WITHIN = 0.3
_RECORDED_LENGTHS = {name: s for name, s in LENGTHS.items() if s >= _PERIOD_S}
_CAPACITY_GB = 480
_FACTOR = 2.0
_EVERY_IN_A_HURRY = 5


def _measure(session: Session) -> Outcome:
    path = recorded.find(session, recorded.DEMAND).get("demand")
    if path is None:
        reason = (
            f"needs {recorded.DEMAND['demand']}: give its folder by --traces or FLASHKEEL_TRACES"
        )
        missing = Finding(None, None, reason)
        return Outcome(
            dict.fromkeys((claim.name for claim in STUDY.claims), missing), "trace", "not run"
        )
    names = lifetime.demand_names(path)
    if session.quick:
        names = names[::_EVERY_IN_A_HURRY]
    keys = [(name, guard) for name in names for guard in LABELS]
    estimates = in_parallel([_plan(path, name, guard) for name, guard in keys], 1, session)
    lives = dict(zip(keys, estimates, strict=True))
    met = {
        LABELS[guard]: sum(lives[name, guard].meets_target() for name in names) for guard in LABELS
    }
    needy = [name for name in names if not lives[name, "none"].meets_target()]
    costs = {
        name: _delay(lives[name, "static-cap"]) / _delay(lives[name, "ready"]) for name in needy
    }
    tails = {
        f"{LABELS[guard]} (ms)": median(_p999(lives[name, guard]) for name in needy) / 1e6
        for guard in LABELS
        if needy
    }
    ratio = median(costs.values()) if costs else None
    delays = {name: [_delay(lives[name, guard]) for guard in _IN_ORDER] for name in needy}
    alike = {name: _alike(path, name) for name in names}
    similar = [shares["30 min"] for shares in alike.values()]
    return Outcome(
        {
            "cyclic": Finding(
                median(similar),
                median(similar) > 0.5,
                f"of {len(names)} demands {sum(share >= 0.88 for share in similar)} are as regular "
                "as exchange",
            ),
            "epochs": _epochs(alike),
            "guarantee": Finding(
                met,
                # Where none needs it nothing is kept.
                met["READY"] == len(names) if needy else None,
                f"of {len(names)} demands; {len(needy)} need it",
            ),
            "cost": Finding(
                ratio,
                None if ratio is None else ratio > 1,
                "median over them of the delay's 99.9th percentile: "
                + ", ".join(f"{name} {units.significant(value)}" for name, value in tails.items()),
            ),
            "dt-between": _between(delays),
        },
        "trace",
        f"{len(names)} recorded series of bytes written per 30 min (CloudPhysics), repeated; "
        f"a drive of {_CAPACITY_GB} GB, 3,000 cycles, write amplification {_FACTOR:g} assumed; "
        "recovery as in the other figures",
        partial(_draw, lives, needy) if needy else None,
    )


_IN_ORDER = ("ready", "dynamic", "static-cap")


def _between(delays: Mapping[str, Sequence[float]]) -> Finding:
    """Judge the mean delays of READY, DT and ST by demand."""
    if not delays:
        return Finding(None, None, "no demand needs throttling")
    over = [dt / st for _, dt, st in delays.values()]
    below = [name for name, (ready, dt, _) in delays.items() if dt <= ready]
    words = f"DT's over ST's from {min(over):.2f} to {max(over):.2f} over {len(over)} demands"
    if below:
        words += f"; not above READY's on {', '.join(below)}"
    return Finding(median(over), not below and median(over) <= 0.99, words)


def _plan(path: Path, name: str, guard: str) -> Plan:
    return Plan(
        drive={
            "capacity": f"{_CAPACITY_GB}GB",
            "over_provisioning": 0.28,
            "rated_cycles": 3000,
        },
        traffic=_traffic(path, name),
        throttle=guard,
        target_years=TARGET_YEARS,
        write_amplification=_FACTOR,
        recovery={},
    )


def _traffic(path: Path, name: str) -> dict[str, str]:
    return {"policy": "series", "path": str(path), "workload": name}


def _alike(path: Path, name: str) -> dict[str, float]:
    """Return the share of periods whose demand is like that of the one before, by length."""
    return {
        length: lifetime.similarity(_traffic(path, name), seconds, _WITHIN) or 0.0
        for length, seconds in _RECORDED_LENGTHS.items()
    }


def _epochs(alike: Mapping[str, Mapping[str, float]]) -> Finding:
    """Judge under how many demands each length has the most periods alike; the shorter if equal."""
    best = dict.fromkeys(_RECORDED_LENGTHS, 0)
    for shares in alike.values():
        best[max(_RECORDED_LENGTHS, key=lambda length: shares[length])] += 1
    medians = {length: median(shares[length] for shares in alike.values()) for length in best}
    shown = ", ".join(f"{name} {units.significant(share)}" for name, share in medians.items())
    return Finding(
        best, max(best.values()) <= 0.75 * len(alike), f"median share of periods alike: {shown}"
    )


def _delay(estimate: Estimate) -> float:
    return max(estimate.mean("response", "delay_mean_ns") or 0.0, 1.0)


def _p999(estimate: Estimate) -> float:
    return estimate.delay_ns(99.9) or 0.0


def _draw(lives: Mapping[tuple[str, str], Estimate], needy: list[str]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    for guard in LABELS:
        xs = [years(lives[name, guard]) for name in needy]
        ys = [_delay(lives[name, guard]) for name in needy]
        axes.plot(xs, ys, "o", markersize=4, alpha=0.7, label=LABELS[guard])
    axes.axvline(TARGET_YEARS, color="black", linewidth=0.8, linestyle=":")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda ns, _: units.duration(ns))
    axes.set_xlabel("lifetime (years; dotted: required)")
    axes.set_ylabel("mean delay of a page")
    axes.set_title("Recorded demands that outwear the drive unthrottled")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    return figure


STUDY = Study(
    "ready/real",
    "the guarantee under 53 recorded write demands",
    (_CYCLIC, _EPOCHS, _MET, _COST, _BETWEEN),
    _measure,
)
