"""Performance analysis and response time variations."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING

from flashkeel.lifetime import Estimate
from flashkeel.output import units
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Quantity, Range, Study
from flashkeel.reproduce.ready.lives import (
    GAIN_PER_DECADE,
    LABELS,
    PROFILES,
    all_lives,
    conditions,
    in_parallel,
    plan,
    response,
    worths,
)
from flashkeel.reproduce.ready.noisy import noisy
from flashkeel.reproduce.session import Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BEST = Claim(
    "unthrottled-best",
    "without throttling response times are best",
    "none: it follows from what a throttle is, which can only add to a service time",
    None,
    "ms",
)
_ORDER = Claim(
    "ready-better",
    "READY responds faster than ST and DT, while the lifetime is kept",
    "its mean response time is below both on each trace, and each of its drives lasts five years "
    "(p5 of the seeds, at most 0.5 % short)",
    None,
    "times",
    is_of_all=True,
)
_BETWEEN = Claim(
    "dt-between",
    "DT's response time lies between READY's and ST's",
    "its mean response time is above READY's and at least 1 % below ST's on each trace",
    None,
    "times",
)
_FACTOR = Claim(
    "factor",
    "READY's response time is 4.4 times better than ST's on average",
    "the geometric mean of ST's mean over READY's by trace is at least 2.2, half of it, over all "
    "traces and over those on which READY holds writes",
    4.4,
    "times",
)
_SWINGS = Claim(
    "cap-swings",
    "response times vary most under ST, which stops writes",
    "the standard deviation over the mean, of all pages, is larger under ST than under DT "
    "and READY on each trace; unknown where a throttle holds at most 1 % of the pages",
    None,
    "of the mean",
)
_HARD = Claim(
    "unpredictable",
    "READY and DT fluctuate most on proj and map, whose traffic is hard to predict",
    "the variation of both is larger on proj and map than on proxy, exchange and msnfs, and below "
    "ST's there; unknown where a throttle holds at most 1 % of the pages",
    None,
    "of the mean",
)

_REGULAR = ("proxy", "exchange", "msnfs")
_IRREGULAR = ("proj", "map")


_LEAST_HELD = 0.01
"""Share of the pages that a throttle holds, below which there is no variation to judge."""


def _measure(session: Session) -> Outcome:
    lives = all_lives(session, GAIN_PER_DECADE)
    found = _measure_at(session, GAIN_PER_DECADE)
    best = Finding(
        _milliseconds(_table(lives, "mean_ns")),
        None,
        "follows from the model: all four share one measured service time, to which a throttle "
        "can only add",
    )
    return replace(found, findings={"unthrottled-best": best, **found.findings})


def _measure_at(session: Session, gain: float) -> Outcome:
    lives = all_lives(session, gain)
    means = _table(lives, "mean_ns")
    varied = _table(lives, "variation")
    held = _table(lives, "held")
    ratios = {name: means["ST"][name] / means["READY"][name] for name in PROFILES}
    slower = {
        f"{label} {name}": means[label][name] / means["READY"][name]
        for label in ("ST", "DT")
        for name in PROFILES
    }
    kept = all(lives[name]["ready"].meets_target() for name in PROFILES)
    faster = min(slower.values()) > 1
    return Outcome(
        {
            "ready-better": Finding(slower, kept and faster, "" if kept else "it wears out before"),
            "dt-between": _between(means),
            "factor": _factor(means, ratios, held["READY"]),
            "cap-swings": _swings(varied, held),
            "unpredictable": _unpredictable(varied, held),
        },
        "synthetic",
        conditions(gain),
        partial(_draw, lives),
    )


def _measure_noisy(session: Session, noise: float) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        plans = {
            (name, guard): replace(
                plan(name, guard), traffic=noisy(name, noise, session.seed, Path(folder))
            )
            for name in _REGULAR
            for guard in LABELS
            if guard != "none"
        }
        found = in_parallel(list(plans.values()), 1, session)
    means: dict[str, dict[str, float]] = {}
    for (name, guard), estimate in zip(plans, found, strict=True):
        means.setdefault(LABELS[guard], {})[name] = response(estimate, "mean_ns")
    return Outcome(
        {"dt-between": _between(means)},
        "synthetic",
        f"{conditions()}; the demands of {', '.join(_REGULAR)} with this noise by the half hour "
        "instead of their own; one draw",
    )


def _between(means: Mapping[str, Mapping[str, float]]) -> Finding:
    """Judge whether DT lies between the others; `means` is by throttle and trace."""
    names = means["DT"]
    over = {name: means["DT"][name] / means["ST"][name] for name in names}
    level = [name for name, ratio in over.items() if ratio > 0.99]
    above = all(means["DT"][name] > means["READY"][name] for name in names)
    reason = (
        f"as slow as ST on {', '.join(level)}: in a closed loop the mean delay follows from the "
        "mean pace, which is the same where demand is regular; only ST's variation is larger"
        if level
        else ""
    )
    return Finding(over, above and not level, reason)


def _factor(
    means: Mapping[str, Mapping[str, float]],
    ratios: Mapping[str, float],
    held: Mapping[str, float],
) -> Finding:
    holding = [ratios[name] for name in PROFILES if held[name] > _LEAST_HELD]
    found = {
        "geometric mean": geometric_mean(ratios.values()),
        "where READY holds writes": geometric_mean(holding) if holding else None,
        "mean of ST over mean of READY": fmean(means["ST"].values())
        / fmean(means["READY"].values()),
    }
    judged = [value for value in list(found.values())[:2] if value is not None]
    by_trace = ", ".join(f"{name} {units.significant(ratio)}" for name, ratio in ratios.items())
    return Finding(
        found,
        min(judged) >= 2.2,
        "it depends on what recovery is worth, by constants of ours; a trace on which READY holds "
        f"nothing has ST's delay over a bare service time as its ratio; by trace {by_trace}",
    )


def _swings(
    varied: Mapping[str, Mapping[str, float]], held: Mapping[str, Mapping[str, float]]
) -> Finding:
    pairs = [(label, name) for label in ("DT", "READY") for name in PROFILES]
    judged, idle = _judged(pairs, held)
    return _verdict(
        _flat(varied), all(varied["ST"][name] > varied[label][name] for label, name in judged), idle
    )


def _unpredictable(
    varied: Mapping[str, Mapping[str, float]], held: Mapping[str, Mapping[str, float]]
) -> Finding:
    judged, idle = _judged([(t, n) for t in ("DT", "READY") for n in PROFILES], held)
    holds = True
    for label in ("DT", "READY"):
        regular = [varied[label][n] for t, n in judged if t == label and n in _REGULAR]
        for name in _IRREGULAR:
            if (label, name) in judged:
                swing = varied[label][name]
                holds &= swing > max(regular, default=0.0) and swing < varied["ST"][name]
    return _verdict(
        {f"{t} {n}": varied[t][n] for t in ("DT", "READY") for n in PROFILES}, holds, idle
    )


def _judged(
    pairs: list[tuple[str, str]], held: Mapping[str, Mapping[str, float]]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the pairs of throttle and trace with enough held, and the names of the others."""
    judged = [(label, name) for label, name in pairs if held[label][name] > _LEAST_HELD]
    return judged, [f"{label} on {name}" for label, name in pairs if (label, name) not in judged]


def _verdict(found: Mapping[str, float], holds: bool, idle: list[str]) -> Finding:
    """Return what the judged pairs say; unknown if they agree but some cannot be judged."""
    if not idle:
        return Finding(found, holds)
    reason = f"holds at most 1 % of the pages: {', '.join(idle)}; the others "
    reason += "agree with the rule" if holds else "do not agree with the rule"
    return Finding(found, None if holds else False, reason)


def _table(lives: Mapping[str, Mapping[str, Estimate]], key: str) -> dict[str, dict[str, float]]:
    return {
        LABELS[guard]: {name: response(lives[name][guard], key) for name in PROFILES}
        for guard in LABELS
    }


def _flat(table: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {f"{a} {b}": value for a, row in table.items() for b, value in row.items()}


def _milliseconds(table: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {f"{name}": value / 1e6 for name, value in _flat(table).items()}


def _draw(lives: Mapping[str, Mapping[str, Estimate]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6), layout="constrained")
    grid = figure.subplots(2, 3, sharex=True).flat
    for axes, name in zip(grid, PROFILES, strict=False):
        for guard in LABELS:
            day = lives[name][guard].lives[0]["day"]
            hours = [minutes / 60 for minutes, _, _ in day]
            longest = [ns for _, _, ns in day]
            axes.plot(hours, longest, linewidth=0.7, label=LABELS[guard])
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda ns, _: units.duration(ns))
        axes.set_title(name)
        axes.grid(alpha=0.3)
    blank = figure.axes[-1]
    blank.axis("off")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    blank.legend(handles, labels, loc="center", frameon=False)
    figure.supxlabel("hours of a day, a year into the drive's life")
    figure.supylabel("longest response time by the minute")
    figure.suptitle("Response times of page writes (synthetic demand)")
    return figure


STUDY = Study(
    "ready/response",
    "response times under four throttles",
    (_BEST, _ORDER, _BETWEEN, _FACTOR, _SWINGS, _HARD),
    _measure,
    (
        worths(
            tuple(claim.name for claim in (_ORDER, _BETWEEN, _FACTOR, _SWINGS, _HARD)), _measure_at
        ),
        Range(
            Quantity(
                "irregularity",
                (0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
                0.1,
                "half hours within 30 % of the one before are 88 % on exchange, which is 0.1",
                " standard deviations of the logarithm of half an hour's demand",
            ),
            ("dt-between",),
            _measure_noisy,
        ),
    ),
    is_cut_short=True,
)
