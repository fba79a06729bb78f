"""What static wear levelling is worth: the first worn block against the mean one."""

from __future__ import annotations

from flashkeel.lifetime import Plan
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.ready.lives import years
from flashkeel.reproduce.session import Session

_EVEN = Claim(
    "even",
    "lifetime by capacity and cycles takes blocks to wear evenly",
    "with static wear levelling the first block is worn out no earlier than 0.9 of the mean "
    "one's life, and later than without it",
    None,
)

_THRESHOLD = 10


def _measure(session: Session) -> Outcome:
    found: dict[str, float] = {}
    for name, threshold in (("without", None), ("levelled", _THRESHOLD)):
        estimate = Plan(
            drive={
                "capacity": "32MiB",
                "over_provisioning": 0.25,
                "rated_cycles": 150,
                "wear_levelling": threshold,
            },
            traffic={"policy": "constant", "per_day": "200GB"},
            pattern={"policy": "hot-cold", "hot_space": 0.5, "hot_accesses": 1.0},
            method="plain",
        ).estimate(1, session.seed)
        first = estimate.mean("blocks", "first_worn_years") or 0.0
        found[f"{name}: first over mean"] = first / years(estimate)
        found[f"{name}: first worn, hours"] = first * 365 * 24
        found[f"{name}: write amplification"] = (
            estimate.mean("endured", "write_amplification") or 0.0
        )
    with_, without = (found[f"{name}: first over mean"] for name in ("levelled", "without"))
    return Outcome(
        {"even": Finding(found, with_ >= 0.9 and with_ > without)},
        "synthetic",
        "a drive of 32 MiB and 150 cycles, simulated to its end; half of its data never change, "
        f"the other half is written uniformly; levelled at {_THRESHOLD} erases apart",
    )


STUDY = Study("ready/levelling", "what static wear levelling is worth", (_EVEN,), _measure)
