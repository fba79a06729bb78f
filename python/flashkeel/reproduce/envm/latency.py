"""Figures 3.6 to 3.9 and 3.15: risk and latency of the policies on a busy day."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from flashkeel.comparison import FEW
from flashkeel.reproduce import intervals, pictures
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, reduction
from flashkeel.reproduce.envm.hierarchy import (
    OWN_SKEW,
    TLC_GB_PER_DAY,
    Day,
    Mean,
    Setting,
    conditions,
    measure,
    runs_of,
    shrink,
    times,
)
from flashkeel.reproduce.envm.locality import below, judged, localities, rising, skews
from flashkeel.reproduce.intervals import every, some
from flashkeel.reproduce.session import Session, basis, kind
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POLICIES = ("base", "I", "II", "II, most", "III")
_OWN = "at the profile's own skew; the reason says where else"

_CLAIMS = (
    Claim(
        "risk",
        "policies I and II lose the same in a crash, policy III nothing",
        f"I and II above 0 and within 10 % of each other, III 0, {_OWN}",
        None,
        "KB",
    ),
    Claim(
        "read-order",
        "average read latency on a busy day: base is worst, policy III best",
        f"base above I and II, III below them, {_OWN}",
        None,
        "µs",
    ),
    Claim(
        "read-to",
        "policy III reads in 58 % of base's time",
        f"at least half of that reduction: at most 79 %, {_OWN}",
        58.0,
        "%",
    ),
    Claim(
        "read-by",
        "policy III improves read latency by 58 %",
        f"by at least half as much, {_OWN}",
        58.0,
        "%",
    ),
    Claim(
        "read-relevant",
        "policy II reads faster than policy I",
        f"by either reading of what is relevant, {_OWN}",
        None,
        "µs",
    ),
    Claim(
        "write-order",
        "average write latency on a busy day: I < II < III < base",
        f"that order, {_OWN}",
        None,
        "µs",
    ),
    Claim(
        "write-to",
        "policy III writes in 28 % of base's time",
        f"at least half of that reduction: at most 64 %, {_OWN}",
        28.0,
        "%",
    ),
    Claim(
        "write-by",
        "policy III improves write latency by 28 %",
        f"by at least half as much, {_OWN}",
        28.0,
        "%",
    ),
    Claim(
        "tlc-endurance",
        "TLC alone keeps its rating of 252.5 GB a day",
        f"base over TLC writes less on a busy day, {_OWN}",
        TLC_GB_PER_DAY,
        "GB",
    ),
    Claim(
        "tlc-latency",
        "TLC alone reads and writes much slower than QLC with ENVM",
        f"both at least 1.25 times policy III's over QLC, {_OWN}",
        None,
        "µs",
    ),
    Claim(
        "tail",
        "99 % of reads take about as long under I, II and III, longer the larger they are",
        "within a quarter of each other and rising with the size in each, requests of 8, 32 and "
        "128 KiB (above half of that); at the profile's own skew",
        None,
        "µs",
    ),
    Claim(
        "write-days",
        "policy III's writes are slower on a busy day than on others",
        f"slower than on moderate and low days, {_OWN}",
        None,
        "µs",
    ),
    Claim(
        "write-full",
        "policy III improves write latency by 28 %",
        "by at least half as much on a drive that holds other data wherever the workload does not "
        "go, so that garbage is collected; at the profile's own skew",
        28.0,
        "%",
    ),
)

_LOGGED = ("I", "II", "III")
_FULL = ("base", "I", "II", "III")
_KIB = (8, 32, 128)

At = Callable[[Setting], Day]


def _swept(skews: Sequence[float]) -> list[Setting]:
    shapes = [Setting(policy) for policy in _POLICIES]
    shapes.append(Setting("base", technology="tlc"))
    shapes += [Setting("III", day=day) for day in ("moderate", "low")]
    return [shape.at(skew) for shape in shapes for skew in skews]


def _measure(session: Session) -> Outcome:
    swept = skews(session)
    full = [Setting(policy, is_full=True) for policy in _FULL]
    logged = [Setting(policy, is_logged=True) for policy in _LOGGED]
    days = measure(session, [*_swept(swept), *full, *logged])
    return Outcome(
        _swept_findings(days, swept, OWN_SKEW)
        | {
            "tail": _tail({name: days[Setting(name, is_logged=True)] for name in _LOGGED}),
            "write-full": _full({name: days[Setting(name, is_full=True)] for name in _FULL}),
        },
        basis(runs_of(days)),
        conditions(shrink(session), days),
        partial(_draw, days, swept, kind(runs_of(days))),
    )


def _measure_at(session: Session, skew: float) -> Outcome:
    days = measure(session, _swept((skew,)))
    return Outcome(
        _swept_findings(days, (skew,), skew),
        basis(runs_of(days)),
        conditions(shrink(session), days),
    )


def _full(days: Mapping[str, Day]) -> Finding:
    full = {name: day.write_us for name, day in days.items()}
    base, iii = days["base"], days["III"]
    if len(iii.runs) > 1:
        holds = below(iii.write_us, times(base.write_us, 0.86))
    else:
        # Collection comes in bursts: one seed is judged by the parts of its day.
        found = intervals.response_ratio(iii.runs[0], base.runs[0], "write")
        holds = intervals.at_most(found, intervals.exact(0.86))
    return Finding(
        reduction(full["base"], full["III"]),
        holds,
        "in µs: " + ", ".join(f"{name} {us:.0f}" for name, us in full.items()),
    )


def _swept_findings(
    days: Mapping[Setting, Day], swept: Sequence[float], skew: float
) -> dict[str, Finding]:
    """Judge at a skew what is judged at each that is swept."""
    iii, base = Setting("III"), Setting("base")
    own = {policy: days[Setting(policy).at(skew)] for policy in _POLICIES}
    tlc = days[replace(base, technology="tlc").at(skew)]
    reads = {name: day.read_us for name, day in own.items()}
    writes = {name: day.write_us for name, day in own.items()}
    found = partial(judged, days, swept, at=skew)
    by_day = {
        name: days[replace(iii, day=name).at(skew)].write_us for name in ("busy", "moderate", "low")
    }
    return {
        "risk": found(_risk, {name: day.risk_kb for name, day in own.items()}),
        "read-order": found(_read_order, reads),
        "read-to": found(
            lambda at: below(at(iii).read_us, times(at(base).read_us, 0.79)),
            100 * own["III"].read_us / own["base"].read_us,
        ),
        "read-by": found(
            lambda at: below(at(iii).read_us, times(at(base).read_us, 0.71)),
            reduction(own["base"].read_us, own["III"].read_us),
        ),
        "read-relevant": found(
            lambda at: some(
                below(at(Setting(name)).read_us, at(Setting("I")).read_us)
                for name in ("II", "II, most")
            ),
            {name: reads[name] for name in ("I", "II", "II, most")},
        ),
        "write-order": found(
            lambda at: rising([at(Setting(name)).write_us for name in ("I", "II", "III", "base")]),
            writes,
        ),
        "write-to": found(
            lambda at: below(at(iii).write_us, times(at(base).write_us, 0.64)),
            100 * own["III"].write_us / own["base"].write_us,
        ),
        "write-by": found(
            lambda at: below(at(iii).write_us, times(at(base).write_us, 0.86)),
            reduction(own["base"].write_us, own["III"].write_us),
        ),
        "tlc-endurance": found(
            lambda at: below(at(replace(base, technology="tlc")).ssd_gb, TLC_GB_PER_DAY),
            tlc.ssd_gb,
        ),
        "tlc-latency": found(
            lambda at: _slower(at(replace(base, technology="tlc")), at(iii)),
            {
                "TLC reads": tlc.read_us,
                "III reads": own["III"].read_us,
                "TLC writes": tlc.write_us,
                "III writes": own["III"].write_us,
            },
        ),
        "write-days": found(
            lambda at: some(
                [
                    below(
                        max(at(replace(iii, day=day)).write_us for day in ("moderate", "low")),
                        at(iii).write_us,
                    )
                ]
            ),
            by_day,
        ),
    }


def _risk(at: At) -> bool:
    i, ii, iii = (at(Setting(name)).risk_kb for name in ("I", "II", "III"))
    return iii == 0 and i > 0 and abs(i - ii) <= 0.1 * i


def _read_order(at: At) -> bool | None:
    base, i, ii, iii = (at(Setting(name)).read_us for name in ("base", "I", "II", "III"))
    return every([below(iii, i), below(iii, ii), below(i, base), below(ii, base)])


def _slower(tlc: Day, iii: Day) -> bool | None:
    return every(
        below(times(ours, 1.25), theirs)
        for ours, theirs in ((iii.read_us, tlc.read_us), (iii.write_us, tlc.write_us))
    )


def _tail(days: Mapping[str, Day]) -> Finding:
    tails, fewest = {}, math.inf
    for name, day in days.items():
        each = [_p99_us(run) for run in day.runs]
        for kib in _KIB:
            found = [tail[kib] for tail in each if kib in tail]
            fewest = min([fewest, *(beyond for _, beyond in found)]) if found else 0
            tails[name, kib] = Mean(us for us, _ in found) if found else math.nan
    measured = {f"{name} {kib} KiB": us for (name, kib), us in tails.items()}
    if fewest < FEW:
        return Finding(measured, None, f"{fewest} samples lie beyond, {FEW} are needed")
    steps = [below(tails[name, a], tails[name, b]) for name in days for a, b in pairwise(_KIB)]
    # Neighbours may be alike; the largest is longer than the smallest.
    over_all = every(below(tails[name, _KIB[0]], tails[name, _KIB[-1]]) for name in days)
    rises = False if False in steps else over_all
    alike = all(
        max(tails[name, kib] for name in days) <= 1.25 * min(tails[name, kib] for name in days)
        for kib in _KIB
    )
    missed = [
        *(["it does not rise with the size: what is waited for decides"] if rises is False else []),
        *(["whether it rises with the size cannot be told"] if rises is None else []),
        *([] if alike else ["they differ by more than a quarter"]),
    ]
    words = "; ".join([f"at least {fewest} samples beyond each", *missed])
    return Finding(measured, every((rises, alike)), words)


def _p99_us(run: Run) -> dict[int, tuple[float, int]]:
    """Return p99 of reads and how many lie beyond, by their size in KiB rounded up."""
    log = run.requests()
    found = {}
    for kib in _KIB:
        sectors = log["sectors"]
        is_one = (log["operation"] == "read") & (sectors > kib) & (sectors <= 2 * kib)
        latencies = sorted(log["latency_ns"][is_one].tolist())
        if latencies:
            beyond = len(latencies) // 100
            found[kib] = (latencies[len(latencies) - 1 - beyond] / 1e3, beyond)
    return found


def _draw(days: Mapping[Setting, Day], swept: tuple[float, ...], kind: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    read, write = figure.subplots(1, 2)
    shares = [100 * days[Setting("base", skew)].memory_share for skew in swept]
    for policy in _POLICIES:
        at = [days[Setting(policy, skew)] for skew in swept]
        read.plot(shares, [day.read_us for day in at], "o-", markersize=3, label=policy)
        write.plot(shares, [day.write_us for day in at], "o-", markersize=3, label=policy)
    own = 100 * days[Setting("base", OWN_SKEW)].memory_share
    for axes, what in ((read, "read"), (write, "write")):
        axes.axvline(own, color="black", linewidth=0.8, linestyle=":")
        axes.set_yscale("log")
        pictures.log_numbers(axes.yaxis)
        axes.set_ylabel(f"mean {what} latency (us)")
        axes.set_xlabel("pages read that memory has (%; dotted: the profile's own)")
        axes.grid(alpha=0.3)
    read.legend(frameon=False)
    figure.suptitle(f"A busy day by policy and locality ({kind})")
    return figure


_SWEPT = tuple(claim.name for claim in _CLAIMS if claim.name not in ("tail", "write-full"))

STUDY = Study(
    "envm/latency",
    "Risk and latency of the policies",
    _CLAIMS,
    _measure,
    (localities(_SWEPT, _measure_at),),
)
