"""Algorithm 1 over weeks: what is written by day, against the rating and the budget."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashkeel import _core
from flashkeel.experiment import Experiment
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.envm.hierarchy import (
    DAY_S,
    DAYS,
    FOOTPRINT_GB,
    QLC_GB_PER_DAY,
    Setting,
    conditions,
    devices,
    size,
)
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.run import Run
from flashkeel.seeds import consecutive

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SCALE = 512
"""By what sizes are divided; weeks are sampled, however long a day is."""
_WEEK = ("busy", "moderate", "moderate", "busy", "moderate", "low", "low")
"""Classes of the days from Monday on; ours."""
_SETTINGS = {
    "base": Setting("base"),
    "III, no budget": Setting("III", budget="none"),
    "III, anchored": Setting("III"),
    "III, printed": Setting("III", budget="printed"),
    "III, late": Setting("III, late"),
}

_CLAIMS = (
    Claim(
        "weeks",
        "policy III with its write budget keeps the SSD within its rating",
        "in each week at most seven times 110 GB, by the anchored budget",
        7 * QLC_GB_PER_DAY,
        "GB",
        is_of_all=True,
    ),
    Claim(
        "days",
        "base exceeds the day's rating on busy and moderate days",
        "on each of them, and on no day of low traffic",
        None,
        "GB",
        is_of_all=True,
    ),
    Claim(
        "budget",
        "the budget lowers what the SSD is written",
        "over all weeks, by more than 3 % against policy III without one",
        None,
        "%",
    ),
    Claim(
        "printed",
        "the next week's budget is the estimate less what was written above it, as it is printed",
        "it stays between 0 and twice the rating in every week",
        None,
        "GB",
    ),
)


def _measure(session: Session) -> Outcome:
    weeks = 1 if session.quick else 3
    scale = _SCALE
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "systor-weeks.synthetic.csv"
        _write(session.seed, weeks, scale, path)
        source = {"policy": "trace", "path": str(path), "fold": "wrap"}
        cases = {name: _case(setting, scale, source) for name, setting in _SETTINGS.items()}
        runs = session.run(list(cases.values()))
    found = {name: runs[one.name] for name, one in cases.items()}
    by_day = {name: _days(run, scale, 7 * weeks) for name, run in found.items()}
    sums = {name: _weeks(days) for name, days in by_day.items()}
    base = list(zip(by_day["base"], _WEEK * weeks, strict=True))
    limit = 7 * QLC_GB_PER_DAY
    anchored = sums["III, anchored"]
    budgets = [budget * scale / 1e9 for budget in _budgets(found["III, printed"])]
    less = 100 * (1 - sum(anchored) / sum(sums["III, no budget"]))
    findings = {
        "weeks": Finding(
            max(anchored),
            max(anchored) <= limit,
            f"the largest of {weeks}; base {max(sums['base']):.0f}, writing back only for "
            f"room {max(sums['III, late']):.0f}",
        ),
        "days": Finding(
            {name: max(gb for gb, day in base if day == name) for name in DAYS},
            all((gb > QLC_GB_PER_DAY) == (day != "low") for gb, day in base),
            "the most of each class",
        ),
        "budget": Finding(
            less,
            less > 3,
            "writes above the budget go to the ENVM, which writes them back: they come to the "
            "SSD later",
        ),
        "printed": Finding(
            {f"week {number}": budget for number, budget in enumerate(budgets, 1)},
            None if weeks < 3 else all(0 <= budget <= 2 * limit for budget in budgets),
            "too few weeks to see it"
            if weeks < 3
            else "what is above the rating is taken off twice, so that it runs away",
        ),
    }
    days = "; ".join(
        [
            f"{weeks} week{'s' if weeks > 1 else ''} of sampled days ({', '.join(_WEEK)})",
            conditions(scale, {}),
        ]
    )
    return Outcome(findings, basis(found), days, partial(_draw, by_day, weeks))


def _case(setting: Setting, scale: int, source: Mapping[str, Any]) -> Case:
    keys = {"stack.devices": devices(setting, scale), "workload.source": source}
    return Case(str(setting), keys)


def _write(seed: int, weeks: int, scale: int, path: Path) -> None:
    """Write the sampled days one after the other, each of its own seed."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        days = _WEEK * weeks
        seeds = consecutive(seed, len(days))
        for number, (name, own) in enumerate(zip(days, seeds, strict=True)):
            offset = round(number * DAY_S * 1e7 / scale)
            for row in _requests(name, own, scale):
                writer.writerow([int(row[0]) + offset, *row[1:]])


def _requests(name: str, seed: int, scale: int) -> Iterator[list[str]]:
    experiment = Experiment.with_profile(f"systor-{name}")
    experiment = experiment.set("workload.requests", DAYS[name] // scale)
    experiment = experiment.set("workload.source.range", size(FOOTPRINT_GB, scale))
    (plan,) = experiment.plans()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "day.csv"
        _core.trace_synth(json.dumps(plan["config"]), str(path), "msr", seed, lambda *_: None)
        yield from csv.reader(io.StringIO(path.read_text()))


def _inner(run: Run) -> Mapping[str, Any]:
    tier: Mapping[str, Any] = run.data["stack"]["tiers"]["0"]
    return tier


def _days(run: Run, scale: int, count: int) -> list[float]:
    days = _inner(run)["lower"]["days"]
    found = [(day["safe_bytes"] + day["critical_bytes"]) * scale / 1e9 for day in days]
    # What is written back when the last day's requests are over falls into it.
    return [*found[: count - 1], sum(found[count - 1 :])]


def _weeks(days: list[float]) -> list[float]:
    return [sum(days[start : start + 7]) for start in range(0, len(days), 7)]


def _budgets(run: Run) -> list[float]:
    return list(_inner(run)["lower"].get("week_budgets_bytes", []))


def _draw(by_day: Mapping[str, list[float]], weeks: int) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.subplots()
    shown = [name for name in by_day if name != "III, no budget"]
    width = 0.8 / len(shown)
    for index, name in enumerate(shown):
        offset = (index - (len(shown) - 1) / 2) * width
        places = [place + offset for place in range(7 * weeks)]
        axes.bar(places, by_day[name], width, label=name)
    axes.axhline(QLC_GB_PER_DAY, color="black", linewidth=0.8, linestyle=":")
    axes.set_ylim(top=1.2 * max(max(days) for days in by_day.values()))
    axes.set_xticks(range(7 * weeks), [day[0].upper() for day in _WEEK * weeks])
    axes.set_xlabel("day (B: busy, M: moderate, L: low)")
    axes.set_ylabel("written to the SSD (GB)")
    axes.set_title("Writes by day against the rating (synthetic, sampled days; dotted: rating)")
    axes.legend(frameon=False, ncols=len(shown))
    axes.grid(alpha=0.3, axis="y")
    return figure


STUDY = Study(
    "envm/week", "Writes against the rating, day by day", _CLAIMS, _measure, is_cut_short=True
)
