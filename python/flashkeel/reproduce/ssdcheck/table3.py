"""Table III: how many requests of Web are slow on SSD A."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from flashkeel.comparison import FEW
from flashkeel.reproduce import intervals, profiles
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Quantity, Range, Study
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.reproduce.ssdcheck.drives import share_below

_BOUNDS_US = (250, 3_500, 10_000)
_TABLE = {"read": (99.12, 99.99, 100.0), "write": (98.43, 99.96, 100.0)}
# §V-B has 99.12 % of the writes and 98.43 % of the reads below 250 us.
_TEXT = {"read": 98.43, "write": 99.12}
_FACTOR = 2.0


def _named(shares: tuple[float, ...]) -> dict[str, float]:
    return {f"< {us} us": share for us, share in zip(_BOUNDS_US, shares, strict=True)}


def _measure(session: Session) -> Outcome:
    return _run(session, {}, _SPEED, 500_000)


def _run(session: Session, keys: Mapping[str, Any], speed: float, requests: int) -> Outcome:
    case = Case(
        "web",
        {
            "device.preset": "ssd-a",
            **keys,
            "workload.requests": 50_000 if session.quick else requests,
            "workload.pacing": "think",
            "workload.source": profiles.source(session, "web", speed),
        },
    )
    runs = session.run([case])
    findings = {}
    for operation in _TABLE:
        shares = tuple(share_below(runs["web"], operation, us * 1e3) for us in _BOUNDS_US)
        slow = 100 - shares[0]
        count = round(slow / 100 * runs["web"].samples(operation))
        for name, below in (
            (operation, _TABLE[operation][0]),
            (f"{operation}-text", _TEXT[operation]),
        ):
            findings[name] = judge(_named(shares), slow, 100 - below, count)
    return Outcome(
        findings,
        basis(runs),
        "Web on SSD A, each request its gap after its predecessor's completion",
    )


def judge(shares: Mapping[str, float], slow: float, paper: float, count: int) -> Finding:
    """Judge a share of slow requests in percent, of which there were `count`."""
    if count < FEW:
        return Finding(shares, None, f"{count} requests are slow, {FEW} are needed")
    # As far as so many independent requests tell; slow ones come together, so no further.
    width = 1.96 / math.sqrt(count)
    verdicts = [
        intervals.above(intervals.Estimate(slow, slow * (1 - width), slow * (1 + width)), bound)
        for bound in (intervals.exact(paper / _FACTOR), intervals.exact(paper * _FACTOR))
    ]
    words = f"{slow:.2g} % are slow"
    match verdicts:
        case [True, False]:
            return Finding(shares, True, words)
        case [False, _] | [_, True]:
            return Finding(
                shares,
                False,
                f"{words}: what makes reads slow is mostly collection, whose frequency is the "
                "spare flash's, and what makes writes slow mostly waking from sleep, whose "
                "frequency is that of the trace's gaps; neither is given",
            )
    return Finding(shares, None, f"{words}; {intervals.UNTOLD}")


def _with_spare(session: Session, percent: float) -> Outcome:
    blocks = round(_BLOCKS / (1 + _OWN_SPARE / 100) * (1 + percent / 100))
    return _run(session, {"device.geometry.blocks_per_plane": blocks}, _SPEED, _RANGE_REQUESTS)


def _at_speed(session: Session, speed: float) -> Outcome:
    return _run(session, {}, speed, _RANGE_REQUESTS)


_BLOCKS, _OWN_SPARE = 384, 50
"""Of a plane of the preset, and the flash beyond its capacity in percent."""
_SPEED = 1.0
_RANGE_REQUESTS = 200_000
_CLAIMS = (
    *(
        Claim(
            operation,
            f"{100 - paper[0]:.2f} % of {operation}s take 250 us or more (the table)",
            "the share of slow ones within a factor of two",
            _named(paper),
            "%",
        )
        for operation, paper in _TABLE.items()
    ),
    *(
        Claim(
            f"{operation}-text",
            f"{100 - below:.2f} % of {operation}s take 250 us or more (the text, which has reads "
            "and writes the other way round)",
            "the share of slow ones within a factor of two",
            {f"< {_BOUNDS_US[0]} us": below},
            "%",
        )
        for operation, below in _TEXT.items()
    ),
)
_NAMES = tuple(claim.name for claim in _CLAIMS)
_SPARE = Range(
    Quantity(
        "spare flash",
        (25, 50, 75, 100, 200),
        _OWN_SPARE,
        "SSD A's is not given, nor how much of it was written",
        " % of the capacity",
    ),
    _NAMES,
    _with_spare,
)
_INTENSITY = Range(
    Quantity(
        "speed",
        (0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 1.0, 2.0, 4.0),
        _SPEED,
        "the trace's gaps are not given; ours have a mean of 1 ms",
        " times the assumed one",
    ),
    _NAMES,
    _at_speed,
)

STUDY = Study(
    "ssdcheck/table3",
    "Latencies of Web on SSD A",
    _CLAIMS,
    _measure,
    (_INTENSITY, _SPARE),
    is_cut_short=True,
)
