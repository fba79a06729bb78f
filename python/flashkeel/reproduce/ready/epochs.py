"""The length of epochs: how alike demands are by it, and whether READY chooses it well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

from flashkeel import lifetime
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.ready.lives import PROFILES, conditions, in_parallel, plan, response, years
from flashkeel.reproduce.session import Session

LENGTHS = {"1 min": 60, "30 min": 1_800, "1 h": 3_600, "2 h": 7_200}
"""The lengths that the paper compares, in seconds."""
AUTOMATIC = "automatic"

_WITHIN = {"exchange": 0.3, "proxy": 0.2}
_DRAWS = 20

_SIMILAR = Claim(
    "similar",
    "demands are most alike by periods of 30 minutes",
    "on exchange and proxy the share of periods whose demand is within 30 % and 20 % of the one "
    "before is larger by 30 min than by 1 min, and by 1 h and 2 h at most 0.05 larger than that",
    None,
    "of the periods",
)
_CHOSEN = Claim(
    "chosen",
    "the epoch is chosen by the traffic, so that demand is predicted well",
    "on each trace on which READY holds writes, with the length it chooses the variation of "
    "response times is at most 1.1 times that of the best fixed length, and the lifetime within "
    "0.5 % of five years",
    None,
    "of the mean",
)


def _measure(session: Session) -> Outcome:
    draws = session.seeds(_DRAWS)
    alike = {
        name: {
            length: fmean(
                lifetime.similarity({"policy": "profile", "name": name}, seconds, share, seed)
                or 0.0
                for seed in draws
            )
            for length, seconds in LENGTHS.items()
        }
        for name, share in _WITHIN.items()
    }
    return Outcome(
        {"similar": _similar(alike), "chosen": _chosen(*_lives(session))},
        "synthetic",
        conditions(),
    )


def _similar(alike: Mapping[str, Mapping[str, float]]) -> Finding:
    """Judge shares of periods alike, by trace and length."""
    holds = all(
        shares["30 min"] > shares["1 min"]
        and max(shares["1 h"], shares["2 h"]) <= shares["30 min"] + 0.05
        for shares in alike.values()
    )
    return Finding(
        _flat(alike),
        None if holds else False,
        f"the profiles' noise by the minute and by the half hour is ours; mean of {_DRAWS} draws"
        if holds
        else "the profiles' noise is ours, and longer periods average out more of it",
    )


def _lives(session: Session) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Return READY's variation and lifetime by trace and length, where it holds writes."""
    ways = {AUTOMATIC: None, **{name: [f"{seconds}s"] for name, seconds in LENGTHS.items()}}
    keys = [(name, way) for name in PROFILES for way in ways]
    plans = [replace(plan(name, "ready"), epochs=ways[way]) for name, way in keys]
    seeds = 1 if session.quick else 3
    lives = dict(zip(keys, in_parallel(plans, seeds, session), strict=True))
    held = [name for name in PROFILES if response(lives[name, AUTOMATIC], "held") > 0.01]
    varied = {name: {way: response(lives[name, way], "variation") for way in ways} for name in held}
    lasted = {name: {way: years(lives[name, way]) for way in ways} for name in held}
    return varied, lasted


def _chosen(
    varied: Mapping[str, Mapping[str, float]], lasted: Mapping[str, Mapping[str, float]]
) -> Finding:
    """Judge variations and lifetimes by trace and length."""
    best = {name: min(ways[length] for length in LENGTHS) for name, ways in varied.items()}
    worse = [name for name, ways in varied.items() if ways[AUTOMATIC] > 1.1 * best[name]]
    off = [name for name, ways in lasted.items() if abs(ways[AUTOMATIC] / 5.0 - 1) > 0.005]
    reasons = []
    if worse:
        reasons.append(f"more variation than with the best length on {', '.join(worse)}")
    if off:
        reasons.append(f"the lifetime is missed on {', '.join(off)}")
    return Finding(
        _flat(varied), None if not varied else not reasons, "; ".join(reasons) or "variation"
    )


def _flat(table: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {f"{a}: {b}": value for a, row in table.items() for b, value in row.items()}


STUDY = Study(
    "ready/epochs",
    "the length of epochs",
    (_SIMILAR, _CHOSEN),
    _measure,
    is_cut_short=True,
)
