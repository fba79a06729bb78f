"""READY's five years on a drive with the keel."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from flashkeel.lifetime import Estimate, Plan
from flashkeel.output import units
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.keel.systems import SHAPES, case, name
from flashkeel.reproduce.ready import lives
from flashkeel.reproduce.session import Session

_BUDGET = "50ms"
"""The longest that READY may hold a write: with 20 ms two profiles do not last as long."""
_SPARE = 1 / 7
"""An eighth of the flash, over what is for the host."""

_KEPT = Claim(
    "five-years",
    "with READY before it a drive with the keel lasts five years",
    "p5 of the lives is at least five years, at most 0.5 % short, under every profile; READY "
    f"holds no write for longer than {_BUDGET}",
    lives.TARGET_YEARS,
    "years",
)


def _measure(session: Session) -> Outcome:
    names = {shape: name(shape, "write-heavy") for shape in SHAPES}
    runs = session.run([case(session, shape, "write-heavy") for shape in SHAPES])
    factor = max(runs[each].data["waf"] for each in names.values())
    guards = ("none", "ready")
    keys = list(product(lives.PROFILES, guards))
    plans = [_plan(profile, guard, factor) for profile, guard in keys]
    seeds = 1 if session.quick else 5
    estimates = lives.in_parallel(plans, seeds, session)
    found = dict(zip(keys, estimates, strict=True))
    kept = all(found[profile, "ready"].meets_target() for profile in lives.PROFILES)
    unthrottled = {p: lives.years(found[p, "none"]) for p in lives.PROFILES}
    held = {p: units.duration(found[p, "ready"].delay_ns(99.9)) for p in lives.PROFILES}
    return Outcome(
        {
            "five-years": Finding(
                {p: _p5(found[p, "ready"]) for p in lives.PROFILES},
                None if session.quick else kept,
                "median without READY: "
                + ", ".join(f"{p} {units.significant(value)}" for p, value in unthrottled.items())
                + "; p99.9 of READY's delay of a write: "
                + ", ".join(f"{p} {value}" for p, value in held.items()),
            )
        },
        "synthetic",
        "READY's five profiles and drives, with an eighth of the flash spare and the keel's "
        f"largest write amplification under uniform writes, {factor:.3g}, instead of the paper's; "
        "else as in ready/lifetime",
    )


def _plan(profile: str, guard: str, factor: float) -> Plan:
    plan = lives.plan(profile, guard, over_provisioning=_SPARE)
    throttle = {"policy": guard, "latency_budget": _BUDGET} if guard == "ready" else guard
    return replace(plan, throttle=throttle, write_amplification=factor)


def _p5(estimate: Estimate) -> float:
    p5 = estimate.years["p5"]
    return float("inf") if p5 is None else p5


STUDY = Study("keel/lifetime", "Five years kept by READY", (_KEPT,), _measure)
