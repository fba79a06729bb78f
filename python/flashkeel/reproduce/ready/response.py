"""Performance analysis and response time variations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from flashkeel import units
from flashkeel.lifetime import GUARDS, Estimate, Guard
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.ready.lives import (
    CONDITIONS,
    LABELS,
    PROFILES,
    all_lives,
    response,
)
from flashkeel.reproduce.session import Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BEST = Claim(
    "unthrottled-best",
    "without throttling response times are best",
    "NT has the lowest mean response time of page writes on each trace, or as low",
    None,
)
_ORDER = Claim(
    "ready-better",
    "READY responds faster than ST and DT, while the lifetime is kept",
    "its mean response time is below both on each trace",
    None,
)
_FACTOR = Claim(
    "factor",
    "READY's response time is 4.4 times better than ST's on average",
    "ST's means, averaged over the traces, over READY's are at least 2.2, half of it",
    4.4,
)
_SWINGS = Claim(
    "cap-swings",
    "response times vary most under ST, which stops writes",
    "the standard deviation over the mean, of all pages, is larger under ST than under DT "
    "and READY on each trace on which they hold writes",
    None,
)
_HARD = Claim(
    "unpredictable",
    "READY and DT fluctuate most on proj and map, whose traffic is hard to predict",
    "DT's variation is larger on both than on proxy, exchange and msnfs, and below ST's there",
    None,
)

_REGULAR = ("proxy", "exchange", "msnfs")
_IRREGULAR = ("proj", "map")


def _measure(session: Session) -> Outcome:
    lives = all_lives(session)
    means = _table(lives, "mean_ns")
    varied = _table(lives, "variation")
    ratios = {name: means["ST"][name] / means["READY"][name] for name in PROFILES}
    # A throttle that holds nothing does not vary.
    holding = [n for n in PROFILES if response(lives[n]["ready"], "held") > 0.01]
    swings = all(
        varied["ST"][name] > varied[label][name]
        for label, names in (("DT", PROFILES), ("READY", holding))
        for name in names
    )
    hard = min(varied["DT"][n] for n in _IRREGULAR) > max(varied["DT"][n] for n in _REGULAR)
    hard &= all(varied["DT"][n] < varied["ST"][n] for n in _IRREGULAR)
    best = all(means["NT"][n] <= 1.001 * min(m[n] for m in means.values()) for n in PROFILES)
    faster = all(means["READY"][n] < min(means["ST"][n], means["DT"][n]) for n in PROFILES)
    factor = fmean(means["ST"].values()) / fmean(means["READY"].values())
    return Outcome(
        {
            "unthrottled-best": Finding(_milliseconds(means), best),
            "ready-better": Finding(ratios, faster),
            "factor": Finding(
                factor,
                factor >= 2.2,
                "it depends on what recovery is worth, by constants of ours; by trace "
                + ", ".join(f"{name} {units.significant(r)}" for name, r in ratios.items()),
            ),
            "cap-swings": Finding(_flat(varied), swings),
            "unpredictable": Finding({n: varied["DT"][n] for n in PROFILES}, hard),
        },
        "synthetic",
        CONDITIONS,
        partial(_draw, lives),
    )


def _table(lives: Mapping[str, Mapping[Guard, Estimate]], key: str) -> dict[str, dict[str, float]]:
    return {
        LABELS[guard]: {name: response(lives[name][guard], key) for name in PROFILES}
        for guard in GUARDS
    }


def _flat(table: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {f"{a} {b}": value for a, row in table.items() for b, value in row.items()}


def _milliseconds(table: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {f"{name} (ms)": value / 1e6 for name, value in _flat(table).items()}


def _draw(lives: Mapping[str, Mapping[Guard, Estimate]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6), layout="constrained")
    grid = figure.subplots(2, 3, sharex=True).flat
    for axes, name in zip(grid, PROFILES, strict=False):
        for guard in GUARDS:
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
    (_BEST, _ORDER, _FACTOR, _SWINGS, _HARD),
    _measure,
)
