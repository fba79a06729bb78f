"""Over which localities a claim holds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from flashkeel.reproduce.claims import Finding, Outcome, Quantity, Range, Value
from flashkeel.reproduce.envm.hierarchy import NEAR, OWN_SKEW, Day, Setting, is_recorded, pair
from flashkeel.reproduce.intervals import every
from flashkeel.reproduce.session import Session

_T = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571}
"""Student's t for 95 %, by how many values there are."""


def skews(session: Session) -> tuple[float, ...]:
    """Return the skews that are swept."""
    if is_recorded(session):
        return (OWN_SKEW,)
    return (0.5, OWN_SKEW, 1.3) if session.quick else (0.0, 0.5, 0.7, OWN_SKEW, 1.3)


def localities(claims: Sequence[str], measure: Callable[[Session, float], Outcome]) -> Range:
    """Return what is swept: the skew of the addresses."""
    return Range(
        Quantity(
            "locality",
            (0.0, 0.5, 0.7, OWN_SKEW, 1.1, 1.3),
            OWN_SKEW,
            "reuse distances are not given; a skew of 0 lets memory have 2 % of the pages read and "
            "memory or ENVM 17, one of 0.9 19 and 54, one of 1.3 57 and 84",
            " (skew of a Zipf law)",
        ),
        tuple(claims),
        measure,
        lambda session: (
            "recorded days have a locality of their own" if is_recorded(session) else ""
        ),
    )


def below(a: float, b: float) -> bool | None:
    """Return whether `a` is below `b`; None where that cannot be told.

    Of means over seeds it cannot where the 95 % interval of their difference, seed by seed,
    contains 0; what is no mean is known exactly.
    """
    pairs = pair(a, b)
    if len(pairs) < 2:
        return None if abs(a - b) <= NEAR * max(abs(a), abs(b)) else a < b
    differences = [x - y for x, y in pairs]
    width = _T[len(pairs)] * statistics.stdev(differences) / math.sqrt(len(pairs))
    middle = statistics.fmean(differences)
    return None if abs(middle) <= width else middle < 0


def rising(values: Sequence[float]) -> bool | None:
    """Return whether each value is above the one before."""
    return every(below(a, b) for a, b in pairwise(values))


def judged(
    days: Mapping[Setting, Day],
    swept: Sequence[float],
    rule: Callable[[Callable[[Setting], Day]], bool | None],
    measured: Value,
    reason: str = "",
    at: float = OWN_SKEW,
) -> Finding:
    """Judge a rule at a skew, the profile's own if none is given, and say where else it holds.

    The rule is given a function from a setting to its day at the skew in question.
    """

    def day(skew: float, setting: Setting) -> Day:
        return days[setting.at(skew)]

    found = {skew: rule(partial(day, skew)) for skew in swept}
    places = {True: "holds", None: "untold", False: "does not"}
    parts = []
    for verdict, word in places.items():
        alike = [skew for skew in swept if found[skew] is verdict]
        if alike:
            where = "everywhere" if len(alike) == len(swept) else _reuse(days, alike)
            parts.append(f"{word} {where}")
    words = "; ".join(parts) if len(swept) > 1 else ""
    return Finding(measured, found[at], "; ".join(filter(None, (words, reason))))


def _reuse(days: Mapping[Setting, Day], at: Sequence[float]) -> str:
    """Return localities as what base and policy I read from memory, and from either."""
    shares = [
        f"{100 * days[Setting('base', skew)].memory_share:.0f}/"
        f"{100 * days[replace(Setting('I'), skew=skew)].upper_share:.0f}"
        for skew in at
    ]
    return f"at {', '.join(shares)} %"
