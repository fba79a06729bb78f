"""The hierarchy as a small model: everything that has a size is divided by one number.

Capacities, footprint, traffic, ratings and the length of a day are; latencies, sizes of
requests and the time between them are not. So a day is a sample of its requests over a
sample of its addresses.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from flashkeel._core import LOGICAL_PAGE_BYTES
from flashkeel.reproduce import profiles
from flashkeel.reproduce.session import Case, Session
from flashkeel.run import Run

FOOTPRINT_GB = 200.0
"""What a day touches; ours."""
DRAM_GB = 4.0
ENVM_GB = 32.0
OPTANE_WRITES_PER_DAY = 3.125
"""Of its capacity: 100 GB a day for 32 GB (§3.6.1)."""
QLC_GB_PER_DAY = 110.0
TLC_GB_PER_DAY = 252.5
DAY_S = 24 * 60 * 60

NEAR = 0.03
"""Two means of a single seed that are nearer than this are not told apart; ours."""
SEEDS = 3
"""Of what is compared by its mean."""
OWN_SKEW = 0.9
"""Skew that profiles are made with."""
DAYS = {"busy": 29_511_504, "moderate": 27_316_433, "low": 12_520_032}
"""Requests of the profile of each class of day."""

POLICIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "base": ("base", {}),
    "I": ("oc", {}),
    "II": ("nlcwoip", {}),
    # "Any" clean copy as all of them.
    "II, most": ("nlcwoip", {"admission": {"policy": "relevant", "than": "most"}}),
    "III": ("nlcwip", {}),
    # Writes back only as far as room is needed.
    "III, late": ("nlcwip", {"writeback": "conditional"}),
}
"""A set of policies by what the dissertation calls it, and what is laid over its ENVM."""

_BITS = {"slc": 1, "mlc": 2, "tlc": 3, "qlc": 4, "plc": 5}
_GIB_PER_BIT = 233
_WORD_LINES = 384
_BLOCKS = 1366


@dataclass(frozen=True)
class Setting:
    """One hierarchy under one day."""

    policy: str
    skew: float = OWN_SKEW
    day: str = "busy"
    envm_gb: float = ENVM_GB
    magnification: int = 1
    technology: str = "qlc"
    is_full: bool = False
    """Whether the drive holds other data everywhere else."""
    budget: str = "anchored"
    is_logged: bool = False
    """Whether each request is kept."""

    def at(self, skew: float) -> Setting:
        """Return the same at another skew."""
        return replace(self, skew=skew)


class Mean(float):
    """A mean over seeds that knows the values, in the order of the seeds."""

    each: tuple[float, ...]

    def __new__(cls, values: Iterable[float]) -> Mean:
        """Return the mean of some values, at least one."""
        each = tuple(values)
        mean = super().__new__(cls, statistics.fmean(each))
        mean.each = each
        return mean


def times(value: float, factor: float) -> float:
    """Return a number in another unit, a mean with its values."""
    return Mean(factor * each for each in value.each) if isinstance(value, Mean) else factor * value


def pair(a: float, b: float) -> list[tuple[float, float]]:
    """Return two numbers seed by seed; one that is no mean is the same under each."""
    seeds = max(len(one.each) if isinstance(one, Mean) else 1 for one in (a, b))
    first, second = (
        one.each if isinstance(one, Mean) and len(one.each) == seeds else (float(one),) * seeds
        for one in (a, b)
    )
    return list(zip(first, second, strict=True))


@dataclass(frozen=True)
class Day:
    """What came of it, as of the whole size; of several seeds numbers are means."""

    read_us: float
    write_us: float
    risk_kb: float
    ssd_gb: float
    envm_gb: float
    journal_gb: float
    """Of what the ENVM was written, the journal."""
    envm_years: float
    """Until the ENVM is worn out by its wear law, if all days are like this one."""
    memory_share: float
    """Of the pages that are read, those in memory."""
    upper_share: float
    """Those in memory or ENVM."""
    runs: Sequence[Run]
    """One a seed."""

    def critical_gb(self, rating: float = QLC_GB_PER_DAY) -> float:
        """Return what the SSD got above a rating in GB."""
        return max(0.0, self.ssd_gb - rating)


def is_recorded(session: Session) -> bool:
    """Return whether there are recorded days to replay."""
    return session.traces is not None and any(session.traces.glob("systor-*"))


def shrink(session: Session) -> int:
    """Return the number by which sizes are divided; a recorded day is replayed whole."""
    if is_recorded(session):
        return 1
    return 512 if session.quick else 256


def rating(gb_per_day: float, scale: int, days: int = 7, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a rating in the small model."""
    day_us = round(DAY_S * 1e6 / scale)
    return {
        "per_day": size(gb_per_day, scale),
        "day": f"{day_us}us",
        "week": f"{day_us * days}us",
        **more,
    }


def size(gb: float, scale: int) -> str:
    """Return a size in the small model, in whole pages."""
    return f"{max(1, round(gb * 1e9 / scale / LOGICAL_PAGE_BYTES)) * LOGICAL_PAGE_BYTES}B"


def ssd(technology: str, scale: int, is_full: bool) -> dict[str, Any]:
    """Return a drive with as many dies as the whole one and smaller, fewer blocks."""
    bits = _BITS[technology.partition("-")[0]]
    fewer = min(8, scale)
    pages = max(1, -(-_WORD_LINES * bits * fewer // scale))
    capacity_gb = _GIB_PER_BIT * bits * 2**30 / 1e9
    return {
        "preset": technology,
        "logical_capacity": size(capacity_gb, scale),
        "geometry": {"blocks_per_plane": -(-_BLOCKS // fewer), "pages_per_block": pages},
        "precondition": {"fill": 1.0 if is_full else min(1.0, FOOTPRINT_GB / capacity_gb)},
    }


def devices(setting: Setting, scale: int) -> list[dict[str, Any]]:
    """Return the hierarchy as ``stack.devices``."""
    preset, over = POLICIES[setting.policy]
    lower: dict[str, Any] = {"ssd": ssd(setting.technology, scale, setting.is_full)}
    lower_rating = rating(QLC_GB_PER_DAY, scale)
    tier: dict[str, Any] = {
        "preset": preset,
        "upper": {"dram": {"capacity": size(DRAM_GB, scale)}},
    }
    if setting.policy == "base":
        tier |= {"lower": lower, "ratings": {"lower": lower_rating}}
        return [{"tier": tier}]
    if preset == "nlcwip":
        lower_rating["budget"] = setting.budget
    nvm = {"preset": "optane-memory-32gb", "capacity": size(setting.envm_gb, scale)}
    upper_rating = rating(OPTANE_WRITES_PER_DAY * setting.envm_gb, scale)
    inner = {
        "upper": {"nvm": nvm},
        "lower": lower,
        "ratings": {"lower": lower_rating, "upper": upper_rating},
        **over,
    }
    return [{"tier": tier | {"lower": {"tier": inner}}}]


def case(session: Session, setting: Setting) -> Case:
    """Return a run of a hierarchy under its day."""
    scale = shrink(session)
    keys: dict[str, Any] = {"stack.devices": devices(setting, scale)}
    if setting.is_logged:
        keys["measure.log_requests"] = True
    chosen = profiles.source(session, f"systor-{setting.day}")
    chosen["write_magnification"] = setting.magnification
    if chosen["policy"] == "profile":
        chosen |= {"zipf_theta": setting.skew, "range": size(FOOTPRINT_GB, scale)}
        keys["workload.requests"] = DAYS[setting.day] // scale
    keys["workload.source"] = chosen
    return Case(str(setting), keys)


def measure(
    session: Session, settings: Iterable[Setting], seeds: int = SEEDS
) -> dict[Setting, Day]:
    """Run hierarchies with so many seeds, one with ``--quick``, and return what came of them."""
    cases = {setting: case(session, setting) for setting in dict.fromkeys(settings)}
    scale = shrink(session)
    by_seed = []
    for seed in session.seeds(1 if session.quick or scale == 1 else seeds):
        runs = replace(session, seed=seed).run(list(cases.values()))
        by_seed.append({setting: day(runs[case.name], scale) for setting, case in cases.items()})
    return {setting: _mean([days[setting] for days in by_seed]) for setting in cases}


def _mean(days: Sequence[Day]) -> Day:
    numbers = (one.name for one in fields(Day) if one.name != "runs")
    means = {name: Mean(getattr(day, name) for day in days) for name in numbers}
    return Day(**means, runs=[run for day in days for run in day.runs])


def runs_of(days: Mapping[Setting, Day]) -> dict[str, Run]:
    """Return all runs that findings rest on."""
    return {
        f"{setting} {number}": run
        for setting, day in days.items()
        for number, run in enumerate(day.runs)
    }


def day(run: Run, scale: int) -> Day:
    """Return what came of a run of one day."""
    tiers = run.data["stack"]["tiers"]
    inner, outer = tiers["0"], tiers.get("1", tiers["0"])
    has_envm = "1" in tiers
    gb = scale / 1e9
    envm_gb = inner["upper"]["bytes_written"] * gb if has_envm else 0.0
    endurance = sum(nvm["endurance_bytes"] for nvm in run.data["stack"]["nvms"].values())
    return Day(
        read_us=(run.mean("read") or 0.0) / 1e3,
        write_us=(run.mean("write") or 0.0) / 1e3,
        risk_kb=outer["mean_kilobytes_at_risk"] * scale,
        ssd_gb=inner["lower"]["bytes_written"] * gb,
        envm_gb=envm_gb,
        journal_gb=inner["journal_bytes"] * gb if has_envm else 0.0,
        envm_years=endurance * gb / (365 * envm_gb) if envm_gb else math.inf,
        memory_share=_hits(outer),
        upper_share=1 - (1 - _hits(outer)) * (1 - _hits(inner)) if has_envm else _hits(outer),
        runs=[run],
    )


def _of_seeds(days: Mapping[Setting, Day]) -> str:
    seeds = {len(day.runs) for day in days.values()} or {1}
    if seeds == {1}:
        return "one seed"
    others = " (one of longer writes)" if len(seeds) > 1 else ""
    return (
        f"means of {max(seeds)} seeds{others}, told apart by the 95 % interval of their difference"
    )


def _locality(days: Mapping[Setting, Day]) -> str:
    base, envm = days.get(Setting("base")), days.get(Setting("I"))
    if base is None or envm is None:
        return ""
    return (
        "; localities by the share of the pages read that memory has, and memory or ENVM: "
        f"{100 * base.memory_share:.0f}/{100 * envm.upper_share:.0f} %"
    )


def _hits(tier: Mapping[str, Any]) -> float:
    upper, lower = tier["pages_read_from_nvm"], tier["pages_read_from_ssd"]
    return float(upper / max(1, upper + lower))


def conditions(scale: int, days: Mapping[Setting, Day]) -> str:
    """Return what the runs of a figure have in common, those of `days` or of one sample."""
    devices = f"{DRAM_GB:g} GB of memory and {ENVM_GB:g} GB of Optane over 1 TB of QLC that holds "
    if scale == 1:
        return (
            f"recorded days, whole, each replayed once; nearer than {NEAR:.0%} is not told apart; "
            f"{devices}{FOOTPRINT_GB:g} GB, unless it is said otherwise; days that are not "
            "recorded are those of profiles"
        )
    return (
        f"a model of 1/{scale} in capacity, footprint, traffic and length of a day (a sample: "
        f"{DAYS['busy'] // scale} requests of a busy day), times as they are; "
        f"{_of_seeds(days)}; {devices}the {FOOTPRINT_GB:g} GB that are touched, "
        f"unless it is said otherwise{_locality(days)}"
    )
