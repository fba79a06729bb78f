"""The two copies of section 4.4.4, where every read comes in a window: whether counts help."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from flashkeel.comparison import FEW
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, too_few
from flashkeel.reproduce.pictures import log_durations
from flashkeel.reproduce.plmc.systems import (
    CLASSES,
    COPIES,
    DEVICE,
    HIGH,
    IN_TURN,
    IN_TURN_SHARED,
    JUDGED,
    LOAD,
    Shares,
    all_reads,
    fewest,
    gains,
    gains_of_all,
    middle,
    shared,
)
from flashkeel.reproduce.session import Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RULE = (
    "of all reads, each of which comes in a window of one copy: the 99th percentile over windows "
    "of their 99.99th is in the high class shorter by half at least, and in no other longer"
)
_BY_CLAIM = dict(zip(("cod", "hod"), IN_TURN_SHARED, strict=True))
_COD = Claim(
    "cod",
    "with expected counts (strict) the tails are shorter than the bare drive's: by 81.7 % in the "
    "high class, 42.9 and 16.2 % in the others",
    _RULE,
    {"high": 81.7, "medium": 42.9, "low": 16.2},
    "%",
)
_HOD = Claim(
    "hod",
    "with exact counts (strict) by 87.2, 56.9 and 42.5 %",
    _RULE,
    {"high": 87.2, "medium": 56.9, "low": 42.5},
    "%",
)
_UNHELD = Claim(
    "unheld",
    "two copies that are never both at background work give reads that are always deterministic "
    "(predictable latency mode itself: no host is held to counts)",
    _RULE,
    None,
    "%",
)


def _measure(session: Session) -> Outcome:
    return judged({name: shared(session, name) for name in (COPIES, IN_TURN, *IN_TURN_SHARED)})


def judged(runs: Mapping[str, list[Shares]]) -> Outcome:
    """Judge by runs of two copies: without windows, with them, and with counts."""
    least = min(map(fewest, runs.values()))
    missing = "" if least >= FEW else f"{too_few(least)}, of the 99th over windows"
    findings = {}
    for claim, name in (*_BY_CLAIM.items(), ("unheld", IN_TURN)):
        gain = gains(runs[COPIES], runs[name])
        holds = gain[HIGH] >= _HALF and min(gain.values()) >= 0
        findings[claim] = Finding(
            gain | gains_of_all(runs[COPIES], runs[name]),
            None if missing else holds,
            missing or "; ".join(filter(None, (_beyond(runs[name]), all_reads(_two(runs, name))))),
        )
    windows = min(run.windows for r in runs.values() for run in r)
    return Outcome(
        findings,
        "synthetic",
        f"two copies, each {DEVICE}, data set 1, counts as in configuration 2; {LOAD}; medians of "
        f"{len(runs[COPIES])} seeds of {windows} windows at least, which are as long as the other "
        "copy's background work, some 100 ms; two drives without windows, the shorter queue read, "
        "in windows of 100 ms by the clock",
        partial(_draw, runs),
    )


_HALF = 50.0


def _two(runs: Mapping[str, list[Shares]], name: str) -> dict[str, list[Shares]]:
    return {each: runs[each] for each in (COPIES, name)}


def _beyond(runs: list[Shares]) -> str:
    """Return which part of the reads came beyond their hosts' counts."""
    if not any(host["given"] for run in runs for host in run.hosts.values()):
        return ""
    each = (
        f"{host} {100 * sum(r.hosts[host]['beyond'] for r in runs) / asked:.3g}"
        for host in CLASSES
        if (asked := sum(r.hosts[host]["asked"] for r in runs))
    )
    return f"beyond counts, and so to the copy at work, in %: {', '.join(each)}"


def _draw(runs: Mapping[str, list[Shares]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(runs)
    for index, (name, r) in enumerate(runs.items()):
        places = [place + width * (index - len(runs) / 2) for place in range(len(CLASSES))]
        axes.bar(places, [middle(r, host, JUDGED) for host in CLASSES], width, label=name)
    axes.set_xticks(range(len(CLASSES)), CLASSES)
    axes.set_yscale("log")
    log_durations(axes.yaxis)
    axes.set_ylabel("p99 over windows of their tails")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    return figure


STUDY = Study(
    "plmc/copies",
    "The same over two copies whose windows come in turn",
    (_COD, _HOD, _UNHELD),
    _measure,
    is_cut_short=True,
)
