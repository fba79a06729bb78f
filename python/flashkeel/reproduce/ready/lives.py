"""The lives that READY's figures share: five profiles under four throttles."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flashkeel import cache, lifetime
from flashkeel.lifetime import Estimate, Plan
from flashkeel.reproduce.claims import Outcome, Quantity, Range
from flashkeel.reproduce.kept import Answers
from flashkeel.reproduce.session import Session

PROFILES = ("proxy", "proj", "exchange", "map", "msnfs")
TARGET_YEARS = 5.0
LABELS: Mapping[str, str] = {
    "none": "NT",
    "static-cap": "ST",
    "dynamic": "DT",
    "ready": "READY",
}
"""The throttles that the paper compares, and what it calls them."""

GAIN_PER_DECADE = 0.37
"""What recovery is worth, of the rated cycles: the default of the law, ours."""


def conditions(gain: float = GAIN_PER_DECADE) -> str:
    """Return what the figures' lives have in common, in words."""
    return (
        "synthetic write demand with the volume and regularity of the paper's traces, repeated "
        "until the mean block is worn out; the paper's capacities, write amplification and 3,000 "
        f"cycles; recovery by {100 * gain:g} % of the rated cycles for each tenfold of idle time "
        "beyond 10 min, which is our own constant for all traces, as the paper's are not published"
    )


OVER_PROVISIONING = 0.28
"""Usual for enterprise drives; under uniform writes it gives about the paper's amplification."""


def plan(
    name: str,
    guard: str,
    recovery: bool = True,
    over_provisioning: float = OVER_PROVISIONING,
    gain: float = GAIN_PER_DECADE,
) -> Plan:
    """Return the paper's setting for a trace, with a gain per tenfold of idle time."""
    profile = next(p for p in lifetime.write_profiles() if p["name"] == name)
    # The paper's capacity is that of the flash.
    capacity = round(profile["capacity_gb"] * 1e9 / (1 + over_provisioning))
    return Plan(
        drive={
            "capacity": f"{capacity}B",
            "over_provisioning": over_provisioning,
            "rated_cycles": 3000,
        },
        traffic={"policy": "profile", "name": name},
        throttle=guard,
        target_years=TARGET_YEARS,
        write_amplification=profile["write_amplification"],
        recovery={"gain_per_decade": gain} if recovery else None,
    )


def all_lives(session: Session, gain: float = GAIN_PER_DECADE) -> dict[str, dict[str, Estimate]]:
    """Return each profile's lives by throttle; several figures use the same.

    With another gain than our own it is one seed, as seeds differ by 0.3 % at most.
    """
    seeds = 1 if session.quick or gain != GAIN_PER_DECADE else 3
    made = (seeds, session.seed, gain)
    if made not in _LIVES:
        _LIVES[made] = _lives(session, seeds, gain)
    return _LIVES[made]


_LIVES: dict[tuple[int, int, float], dict[str, dict[str, Estimate]]] = {}


def _lives(session: Session, seeds: int, gain: float) -> dict[str, dict[str, Estimate]]:
    keys = [(name, guard) for name in PROFILES for guard in LABELS]
    plans = [plan(name, guard, gain=gain) for name, guard in keys]
    estimates = in_parallel(plans, seeds, session)
    lives: dict[str, dict[str, Estimate]] = {name: {} for name in PROFILES}
    for (name, guard), estimate in zip(keys, estimates, strict=True):
        lives[name][guard] = estimate
    return lives


def in_parallel(plans: Sequence[Plan], seeds: int, session: Session) -> list[Estimate]:
    """Return the lives of several plans; the core lets other threads run meanwhile.

    Where the session keeps runs, lives are kept too.
    """
    answers = Answers(cache.directory()) if session.keep else None

    def live(plan: Plan) -> Estimate:
        key = _key(plan, seeds, session.seed)
        found = None if answers is None else answers.find(key)
        if found is not None:
            return Estimate(plan, found)
        estimate = plan.estimate(seeds, session.seed)
        if answers is not None:
            answers.keep(key, estimate.lives)
        return estimate

    with ThreadPoolExecutor(session.jobs) as pool:
        return list(pool.map(live, plans))


def _key(plan: Plan, seeds: int, seed: int) -> str:
    """Return all that lives follow from; of a file of demands its contents, not its place."""
    asked = plan.to_object()
    traffic = dict(plan.traffic)
    if "path" in traffic:
        traffic["path"] = hashlib.sha256(Path(traffic["path"]).read_bytes()).hexdigest()
    return json.dumps([asked | {"traffic": traffic}, seeds, seed], sort_keys=True)


def years(estimate: Estimate) -> float:
    """Return the median lifetime; infinite where it has no end to speak of."""
    median = estimate.years["median"]
    return float("inf") if median is None else median


def worths(claims: tuple[str, ...], measure: Callable[[Session, float], Outcome]) -> Range:
    """Return what is swept: the gain of recovery, within and beyond what the text implies."""
    return Range(
        Quantity(
            "recovery",
            (20, 30, 37, 50, 70, 100),
            100 * GAIN_PER_DECADE,
            "constants not published; proj lasts five years unthrottled, for which a block has to "
            "endure 1.54 times its rated cycles",
            " % of the rated cycles for each tenfold of idle time",
        ),
        claims,
        lambda session, percent: measure(session, percent / 100),
    )


def response(estimate: Estimate, key: str) -> float:
    """Return the mean over seeds of a number of the response time."""
    value = estimate.mean("response", key)
    assert value is not None, "profiles have writes"
    return value
