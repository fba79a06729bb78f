"""How long a drive lasts under a write demand, and what makes it last costs.

>>> from flashkeel import lifetime
>>> drive = {"capacity": "128GB", "rated_cycles": 3000}
>>> plan = lifetime.Plan(drive, {"policy": "profile", "name": "exchange"}, throttle="ready")
>>> print(plan.estimate(seeds=3).years)
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from flashkeel import _core
from flashkeel._core import InputError
from flashkeel.media import YEAR_DAYS, Medium, Sold
from flashkeel.seeds import check, consecutive

MOST_YEARS = 100.0
"""Nothing is looked at beyond."""
TARGET_TOLERANCE = 0.005
"""Share of the required lifetime by which a life may miss it: an epoch or two of rounding."""
_SLOW = 1.05
"""Times as long as recorded from which it is said that traffic takes longer."""
_UNLIKE = 1.2
"""Times as much write amplification as another from which a speed is not that of the other."""
_LEVELS = (0.05, 0.5, 0.95)
_DELAY_PERCENTILES = (50, 90, 99, 99.9, 99.99)
_BLOCK_PERCENTS = ("1", "10", "50", "90", "99")


@dataclass(frozen=True)
class Plan:
    """A drive, its traffic and the throttle between them."""

    drive: Mapping[str, Any]
    """``capacity``, one of ``rated_cycles``, ``tbw`` and ``dwpd``, and what else is known:
    ``over_provisioning``, ``wear_levelling`` (erases apart at which blocks change places)."""
    traffic: Mapping[str, Any]
    """A demand: ``policy`` and its settings, as ``{"policy": "profile", "name": "proxy"}``."""
    throttle: str | Mapping[str, Any] = "none"
    """What makes the drive last, a policy of the axis ``throttle``, alone or with settings."""
    target_years: float = 5.0
    """How long the drive has to last."""
    epochs: Sequence[str] | None = None
    """Lengths of an epoch to choose from, as ``"30min"``; the throttle's own where not given."""
    write_amplification: float | None = None
    """Bytes programmed per byte written; measured on a model where it is not given."""
    pattern: Mapping[str, Any] | None = None
    """Where single writes go, an access pattern of the workload's generators.

    Where it is None, a recorded trace's own addresses, or everywhere alike."""
    recovery: Mapping[str, Any] | None = None
    """Settings of the law ``self-recovery``; None where idle time gives nothing back."""
    resample: bool = False
    """Whether recorded traffic is redrawn from its own days with each seed but the first, which
    takes it as it was recorded."""
    method: Literal["fast-forward", "plain"] = "fast-forward"
    """Whether years are skipped, or every write of a small drive's life is simulated."""

    @property
    def guard(self) -> str:
        """Name of the throttle."""
        return self.throttle if isinstance(self.throttle, str) else str(self.throttle["policy"])

    def run(self, seed: int = 1) -> dict[str, Any]:
        """Return one life with its course, as the core describes it."""
        return estimates([self], 1, seed)[0].lives[0]

    def estimate(
        self, seeds: int = 5, seed: int = 1, progress: Callable[[str, float], object] | None = None
    ) -> Estimate:
        """Return the lives with `seeds` consecutive seeds from `seed` on."""
        return estimates([self], seeds, seed, progress)[0]

    def to_object(self) -> dict[str, Any]:
        """Return the plan as the core reads it; InputError where a number is none."""
        _refuse_no_numbers(vars(self), "")
        return {
            "drive": dict(self.drive),
            "traffic": dict(self.traffic),
            "throttle": self.throttle,
            "target": f"{round(self.target_years * YEAR_DAYS * 86_400)}s",
            "epochs": None if self.epochs is None else list(self.epochs),
            "write_amplification": self.write_amplification,
            "pattern": None if self.pattern is None else dict(self.pattern),
            "recovery": None if self.recovery is None else dict(self.recovery),
            "resample": self.resample,
            "method": self.method,
        }


def drive(medium: Medium, is_endurance_known: bool = False) -> dict[str, Any]:
    """Return a preset as the drive of a :class:`Plan`: capacity, spare flash and endurance.

    InputError where its endurance is not known, here or to who asks, and where part of its
    flash is for parity, which lives have not.
    """
    sold = Sold.of(medium, is_endurance_known)
    if sold.config["redundancy"]["policy"] != "none":
        raise InputError(
            f"drive {medium.preset}: part of its flash is for parity, which is not planned with; "
            "give capacity, over-provisioning and endurance"
        )
    found = {
        "capacity": f"{sold.capacity}B",
        "over_provisioning": sold.over_provisioning,
        "dwpd": medium.writes_per_day,
    }
    if medium.writes_per_day is None and sold.rated_cycles is not None:
        found["rated_cycles"] = round(sold.rated_cycles)
    return {key: value for key, value in found.items() if value is not None}


def estimates(
    plans: Sequence[Plan],
    seeds: int = 5,
    seed: int = 1,
    progress: Callable[[str, float], object] | None = None,
) -> list[Estimate]:
    """Return the lives of each plan with `seeds` consecutive seeds from `seed` on.

    Plans that differ only in their throttle take little longer than one of them.
    `progress` is called with what is being done and the fraction of it that is done.
    """
    text = json.dumps([plan.to_object() for plan in plans])
    lives = json.loads(_core.lifetimes(text, consecutive(check(seed), seeds), progress))
    return [Estimate(plan, found) for plan, found in zip(plans, lives, strict=True)]


@dataclass(frozen=True)
class Estimate:
    """Lives of a plan with several seeds."""

    plan: Plan
    lives: Sequence[dict[str, Any]]

    @property
    def is_infinite(self) -> bool:
        """Whether nothing is ever written."""
        return all(life["is_infinite"] for life in self.lives)

    @property
    def years(self) -> dict[str, float | None]:
        """Return the quantiles of the lifetime; None where it has no end to speak of."""
        values = sorted(_or_endless(life["years"]) for life in self.lives)
        p5, median, p95 = (_quantile(values, level) for level in _LEVELS)
        return {"p5": _finite(p5), "median": _finite(median), "p95": _finite(p95)}

    @property
    def first_worn_years(self) -> float | None:
        """Mean years until the first block is worn out; None where that is beyond all."""
        years = self.mean("blocks", "first_worn_years")
        return None if years is None or years > MOST_YEARS else years

    @property
    def recorded_years(self) -> float | None:
        """Years under the traffic as it was recorded; None where none was, or beyond all."""
        found: float | None = self.lives[0]["years"] if self.plan.resample else None
        return found

    @property
    def recorded(self) -> Estimate:
        """The life under traffic as it was recorded; all lives where none was."""
        return Estimate(self.plan, self.lives[:1]) if self.plan.resample else self

    @property
    def drawn_per_day(self) -> tuple[float, float] | None:
        """Least and most bytes a day of traffic redrawn from a recording; None without one."""
        if not self.plan.resample:
            return None
        each = [life["endured"]["demanded_per_day"] for life in self.lives if life["endured"]]
        return (min(each), max(each)) if each else None

    def meets_target(self) -> bool:
        """Return whether the p5 of the lives is as long as required, but for the tolerance."""
        p5 = self.years["p5"]
        return p5 is None or p5 >= (1 - TARGET_TOLERANCE) * self.plan.target_years

    def mean(self, *path: str) -> float | None:
        """Return the mean over seeds of a number in the lives; None where there is none."""
        values = []
        for life in self.lives:
            value: Any = life
            for key in path:
                value = None if value is None else value[key]
            if value is not None:
                values.append(float(value))
        return statistics.fmean(values) if values else None

    def delay_ns(self, percentile: float) -> float | None:
        """Return the throttle's delay at the 50th, 90th, 99th, 99.9th or 99.99th percentile.

        None where nothing is written; InputError at another percentile.
        """
        if percentile not in _DELAY_PERCENTILES:
            known = ", ".join(map(str, _DELAY_PERCENTILES))
            raise InputError(f"no delay is known at {percentile}; there are {known}")
        at = _DELAY_PERCENTILES.index(percentile)
        held = [life["response"] for life in self.lives if life["response"] is not None]
        return statistics.fmean(r["delay_quantiles_ns"][at] for r in held) if held else None

    def wear_over_mean(self) -> dict[str, float] | None:
        """Return the wear that so many percent of the blocks are not above, over the mean."""
        seen = [life["blocks"]["quantiles_over_mean"] for life in self.lives if life["blocks"]]
        if not seen:
            return None
        return dict(
            zip(_BLOCK_PERCENTS, map(statistics.fmean, zip(*seen, strict=True)), strict=True)
        )

    @property
    def recorded_ns(self) -> int | None:
        """How long was recorded of the trace that the lives repeat; None where none was."""
        found: int | None = self.lives[0]["recorded_ns"]
        return found

    @property
    def notes(self) -> list[str]:
        """What whoever reads the result must know."""
        found = dict.fromkeys(note for life in self.lives for note in life["notes"])
        return [*found, *self._below_one(), *self._too_slow()]

    def _below_one(self) -> Iterator[str]:
        """Give a sentence where less is programmed than the host writes."""
        assumed = self.plan.write_amplification
        if assumed is not None and assumed < 1 and not self.is_infinite:
            yield (
                f"a write amplification of {assumed:g} is taken as it was given: less than the "
                "host writes is programmed only where a drive compresses, or merges in its buffer "
                "what is written again, which the model here does not"
            )

    def _too_slow(self) -> Iterator[str]:
        """Give a sentence where the traffic is more than the model can write in its time."""
        slow = [life["endured"] for life in self.lives if life["endured"]["slowdown"] > _SLOW]
        if not slow:
            return
        asked = statistics.fmean(each["demanded_per_day"] for each in slow) / 1e9
        times = statistics.fmean(each["slowdown"] for each in slow)
        seeds = "" if len(slow) == len(self.lives) else f" with {len(slow)} of the seeds"
        text = (
            f"the drive is too slow for {asked:.0f} GB a day{seeds}, as it is modelled: it writes "
            f"{asked / times:.0f} GB at most, and lasts {times:.2f} times as long for that"
        )
        assumed = self.plan.write_amplification
        measured = self.mean("endured", "write_amplification_measured")
        if assumed and measured and max(assumed, measured) > _UNLIKE * min(assumed, measured):
            text += (
                f"; its speed is that of the write amplification measured, {measured:.2f}, not of "
                f"the {assumed:g} that it wears by"
            )
        yield text


def to_object(free: Estimate, chosen: Estimate) -> dict[str, Any]:
    """Return what ``plan lifetime --format json`` prints.

    `free` is the life without a throttle, `chosen` the one with it.
    """
    return {
        "years": chosen.years,
        "recorded_years": chosen.recorded_years,
        "infinite": chosen.is_infinite,
        "meets_target": chosen.meets_target(),
        "target_years": chosen.plan.target_years,
        "waf": chosen.mean("endured", "write_amplification"),
        "waf_measured": chosen.mean("endured", "write_amplification_measured"),
        "waf_assumed": chosen.plan.write_amplification,
        "dwpd": chosen.recorded.mean("endured", "drive_writes_per_day"),
        "rated_cycles": chosen.mean("endured", "rated_cycles"),
        "gb_per_day": {
            "demanded": _giga(chosen.recorded.mean("endured", "demanded_per_day")),
            "written": _giga(chosen.recorded.mean("endured", "written_per_day")),
        },
        "blocks": {
            "max_over_mean": chosen.mean("blocks", "max_over_mean"),
            "percentiles_over_mean": chosen.wear_over_mean(),
            "first_worn_years": chosen.first_worn_years,
        },
        "throttle": {
            "policy": chosen.plan.guard,
            "needed": not free.meets_target(),
            "years_without": free.years,
            "delay_ns": {
                "mean": chosen.mean("response", "delay_mean_ns"),
                "50": chosen.delay_ns(50),
                "99": chosen.delay_ns(99),
                "99.9": chosen.delay_ns(99.9),
                "longest": chosen.mean("response", "delay_longest_ns"),
            },
            "response_ns": {
                "mean": chosen.mean("response", "mean_ns"),
                "mean_without": free.mean("response", "mean_ns"),
            },
        },
        "seeds": [life["seed"] for life in chosen.lives],
        "synthetic": any(life["is_synthetic"] for life in chosen.lives),
        "recorded_ns": chosen.recorded_ns,
        "notes": chosen.notes,
    }


def write_profiles() -> list[dict[str, Any]]:
    """Return the built-in write profiles: name, volume, write amplification, capacity."""
    profiles: list[dict[str, Any]] = json.loads(_core.write_profiles())
    return profiles


def demand_names(path: Path) -> list[str]:
    """Return the names of the series in a file of write demands."""
    names: list[str] = json.loads(_core.demand_names(str(path)))
    return names


def similarity(
    traffic: Mapping[str, Any], period_s: int, share: float, seed: int = 1
) -> float | None:
    """Return how cyclic a traffic is.

    The share of its periods of `period_s` seconds in which the demand differs from that of the
    period before by less than `share` of it (READY, "Cyclical Behaviors of Enterprise Workloads");
    None where it has fewer than two periods.
    """
    return _core.demand_similarity(json.dumps(dict(traffic)), period_s, share, check(seed))


def _refuse_no_numbers(value: Any, key: str) -> None:  # noqa: ANN401
    """Raise InputError where a number in `value`, which `key` names, is not finite."""
    match value:
        case float() if not math.isfinite(value):
            raise InputError(f"{key} = {value}: give a number")
        case Mapping():
            for name, part in value.items():
                _refuse_no_numbers(part, f"{key}.{name}" if key else name)


def _giga(value: float | None) -> float | None:
    return None if value is None else value / 1e9


def _or_endless(years: float | None) -> float:
    return float("inf") if years is None else years


def _finite(years: float) -> float | None:
    return None if years == float("inf") else years


def _quantile(values: Sequence[float], level: float) -> float:
    """Return a quantile of sorted values, between neighbours in proportion."""
    place = level * (len(values) - 1)
    below = int(place)
    part = place - below
    if part == 0:
        return values[below]
    return values[below] * (1 - part) + values[below + 1] * part
