"""What static wear levelling is worth: the first worn block against the mean one."""

from __future__ import annotations

from collections.abc import Mapping

from flashkeel.lifetime import Plan
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.ready.lives import in_parallel, years
from flashkeel.reproduce.session import Session

_EVEN = Claim(
    "even",
    "lifetime by capacity and cycles takes blocks to wear evenly",
    "with static wear levelling the first block is worn out no earlier than 0.9 of the mean "
    "one's life, on a small drive whose every write is simulated and on a large one; on the small "
    "one later than without it (on the large one it is foreseen within 0.03)",
    None,
    "times",
)

_SMALL = Plan(
    drive={"capacity": "32MiB", "over_provisioning": 0.25, "rated_cycles": 150},
    traffic={"policy": "constant", "per_day": "200GB"},
    pattern={"policy": "hot-cold", "hot_space": 0.5, "hot_accesses": 1.0},
    method="plain",
)
_LARGE = Plan(
    drive={"capacity": "480GB", "over_provisioning": 0.28, "rated_cycles": 3000},
    traffic={"policy": "constant", "per_day": "480GB"},
    pattern=_SMALL.pattern,
)
_DRIVES = {"32 MiB": (_SMALL, 10), "480 GB": (_LARGE, 50)}
"""Each with the erases apart at which its blocks are levelled."""

_FORESEEN_WITHIN = 0.03


def _measure(session: Session) -> Outcome:
    plans = {
        (name, levelled): _levelled(plan, apart if levelled else None)
        for name, (plan, apart) in _DRIVES.items()
        for levelled in (False, True)
    }
    lives = in_parallel(list(plans.values()), 1, session)
    first: dict[str, dict[bool, float]] = {name: {} for name in _DRIVES}
    found: dict[str, float] = {}
    for (name, levelled), estimate in zip(plans, lives, strict=True):
        label = f"{name}, {'levelled' if levelled else 'without'}"
        first[name][levelled] = (estimate.mean("blocks", "first_worn_years") or 0.0) / years(
            estimate
        )
        found[f"{label}: first over mean"] = first[name][levelled]
        found[f"{label}: most over mean wear"] = estimate.mean("blocks", "max_over_mean") or 0.0
        found[f"{label}: write amplification"] = (
            estimate.mean("endured", "write_amplification") or 0.0
        )
    apart = " and ".join(f"{apart} ({name})" for name, (_, apart) in _DRIVES.items())
    return Outcome(
        {"even": _judge(found, first)},
        "synthetic",
        "half of each drive's data never change, the other half is written uniformly; drives of "
        f"150 and 3,000 cycles, levelled at so many erases apart: {apart}",
    )


def _judge(found: Mapping[str, float], first: Mapping[str, Mapping[bool, float]]) -> Finding:
    """Judge when the first block is worn out, of the mean one's life, by drive and levelling."""
    even = all(drive[True] >= 0.9 for drive in first.values())
    large = first["480 GB"]
    reason = ""
    if abs(large[True] - large[False]) <= _FORESEEN_WITHIN:
        reason = (
            "on the large drive no difference can be told: over thousands of cycles collection by "
            "cost and benefit moves old blocks too"
        )
    return Finding(found, even and first["32 MiB"][True] > first["32 MiB"][False], reason)


def _levelled(plan: Plan, apart: int | None) -> Plan:
    return Plan(**{**vars(plan), "drive": {**plan.drive, "wear_levelling": apart}})


STUDY = Study("ready/levelling", "what static wear levelling is worth", (_EVEN,), _measure)
