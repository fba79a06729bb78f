"""Lifetime analysis: four throttles on five traces."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.ready.lives import (
    GAIN_PER_DECADE,
    LABELS,
    PROFILES,
    TARGET_YEARS,
    all_lives,
    conditions,
    worths,
    years,
)
from flashkeel.reproduce.session import Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_UNTHROTTLED = Claim(
    "unthrottled",
    "without throttling only proj reaches five years",
    "NT meets five years on proj, and misses them on the others",
    None,
    "years",
)
_CLOSE = Claim(
    "ready-close",
    "READY lasts close to five years on every trace",
    "it meets five years (p5 of the seeds, at most 0.5 % short), and lasts at most 5.5, on each",
    TARGET_YEARS,
    "years",
    is_of_all=True,
)
_LONG = Claim(
    "others-long",
    "ST and DT last much longer than five years, with endurance left unused",
    "each at least 1.2 times 5 years on every trace",
    None,
    "years",
)


def _measure(session: Session) -> Outcome:
    return _measure_at(session, GAIN_PER_DECADE)


def _measure_at(session: Session, gain: float) -> Outcome:
    lives = all_lives(session, gain)
    found = {
        LABELS[guard]: {name: years(lives[name][guard]) for name in PROFILES} for guard in LABELS
    }
    free, ready = found["NT"], found["READY"]
    long = {
        f"{label} {name}": value for label in ("ST", "DT") for name, value in found[label].items()
    }
    reached = [name for name in PROFILES if lives[name]["none"].meets_target()]
    kept = all(lives[name]["ready"].meets_target() for name in PROFILES)
    return Outcome(
        {
            "unthrottled": Finding(
                free,
                None if reached == ["proj"] else False,
                "recovery was chosen so that proj lasts five years unthrottled: calibrated"
                if reached == ["proj"]
                else "",
            ),
            "ready-close": Finding(ready, kept and all(y <= 5.5 for y in ready.values())),
            "others-long": Finding(long, all(y >= 1.2 * TARGET_YEARS for y in long.values())),
        },
        "synthetic",
        conditions(gain),
        partial(_draw, found),
    )


def _draw(found: Mapping[str, Mapping[str, float]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots()
    width = 0.2
    for index, (label, values) in enumerate(found.items()):
        places = [place + (index - 1.5) * width for place in range(len(PROFILES))]
        axes.bar(places, [values[name] for name in PROFILES], width, label=label)
    axes.axhline(TARGET_YEARS, color="black", linewidth=0.8, linestyle=":")
    axes.set_xticks(range(len(PROFILES)), PROFILES)
    axes.set_ylabel("lifetime (years)")
    axes.set_title("Lifetime by throttle (synthetic demand; dotted: required)")
    axes.legend(frameon=False, ncols=4)
    axes.grid(alpha=0.3, axis="y")
    return figure


STUDY = Study(
    "ready/lifetime",
    "lifetime under four throttles",
    (_UNTHROTTLED, _CLOSE, _LONG),
    _measure,
    (worths(tuple(claim.name for claim in (_UNTHROTTLED, _CLOSE, _LONG)), _measure_at),),
    is_cut_short=True,
)
