"""Figures 6, 7 and 11: what small reads suffer while a background task is at work.

The paper shows one window of 10 or 20 s. Here it is every window of that length
that begins with the task at work, one after the other, for each system at its
own times, and what is judged is the median over these windows of all seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import TYPE_CHECKING

from flashkeel.reproduce import intervals, pictures, series
from flashkeel.reproduce.autossd.device import capped, described, described_cap
from flashkeel.reproduce.autossd.systems import CLASS, case
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Quantity, Range, owners
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SYSTEMS = ("rain", "qosfc", "autossd")
_OURS = "autossd"
_SEEDS = 4
"""Runs of each system: under RAD-AS collection is at work in four or five windows of each."""
_FEWEST_SHARES = 100
"""Windows of 100 ms that a verdict about shares needs."""
_START_BELOW = 128
"""Free blocks below which collection starts, and what its share's error counts from (§4.2)."""
_SERIES_HOURS = 1.8
"""As long as a time series keeps windows of 100 ms: 65,536 of them."""


@dataclass(frozen=True)
class Task:
    """A background task as the time series shows it."""

    name: str
    active: str
    """Column that is 1 while it is at work."""
    state: str
    """Column of the state that its share follows, and what to call it."""
    state_words: str
    share: str
    """Column of its share."""


SCRUB = Task(
    "read scrubbing",
    "scrub_active",
    "max_read_count",
    "highest read count",
    "share_scrub_ppm",
)
GC = Task("garbage collection", "gc_active", "free_blocks", "free blocks", "share_gc_ppm")


def claims(task: Task, window_s: int, *, follows: bool) -> tuple[Claim, ...]:
    """Return the claims about `task`; `follows` for the one about its share."""
    bounded = Claim(
        "bounded",
        f"while {task.name} is at work rain and qosfc spike, autossd is bounded",
        f"in windows of {window_s} s that begin with {task.name} at work, the largest mean of "
        "100 ms is at most half of that of rain and of qosfc (medians over the windows)",
        None,
        "ms",
    )
    share = Claim(
        "follows",
        "the share's ridges match the valleys of the free blocks",
        f"over the windows of 100 ms with {task.name} at work and an error to follow, that is "
        f"fewer than {_START_BELOW} free blocks, shares are larger where fewer blocks are free: "
        "the correlation is below -0.3, its 95 % interval too",
        None,
        "",
    )
    return (bounded, share) if follows else (bounded,)


def measure(
    session: Session, profile: str, task: Task, window_s: int, intensity: float, follows: bool
) -> Outcome:
    """Run three systems under one trace and judge the windows after `task` sets in."""
    cases = [_case(session, profile, system, intensity) for system in _SYSTEMS]
    found = session.run(cases)
    runs = {system: found[f"{profile} {system}"] for system in _SYSTEMS}
    columns = {
        system: [series.columns(run, seed) for seed in run.seeds] for system, run in runs.items()
    }
    peaks = {
        system: [
            _peak_ms(table, at, window_s)
            for table in tables
            for at in _starts(table, task, window_s)
        ]
        for system, tables in columns.items()
    }
    findings = {"bounded": _bounded(peaks, task, runs)}
    if follows:
        findings["follows"] = _follows(columns[_OURS])
    windows = ", ".join(f"{system} {len(each)}" for system, each in peaks.items())
    seeds = len(runs[_OURS].seeds)
    hours = runs[_OURS].data["simulated_s"] / seeds / 3600
    times = f", {seeds} times with other seeds" if seeds > 1 else ""
    return Outcome(
        findings,
        basis(runs),
        f"{described(session)}; {described_cap()}; scrubbing on, in rain a stripe of "
        f"16 blocks at a time, in the others 4 blocks; the first {hours:.1f} h of {profile}, "
        f"{intensity:g} times as fast{times}; windows: {windows}",
        partial(_draw, runs, {s: tables[0] for s, tables in columns.items()}, task, window_s),
    )


def stops(profile: str, intensity: float) -> Range:
    """Return what is swept for the share: how far collection goes on without an error."""
    return Range(
        Quantity(
            "end of collection",
            (136, 160, 192, 256),
            256,
            "starts below 128 free blocks and ends above 256 (§4.2)",
            " free blocks",
        ),
        ("follows",),
        partial(_follows_at, profile, intensity),
    )


def leasts(profile: str, intensity: float) -> Range:
    """Return what is swept for the share too: the least that it falls to."""
    return Range(
        Quantity(
            "least share",
            (2, 4, 8),
            8,
            "not given; ours is what keeps tails shortest, and hides a small error",
            " %",
        ),
        ("follows",),
        partial(_least_at, profile, intensity),
    )


def _follows_at(profile: str, intensity: float, session: Session, stop_above: float) -> Outcome:
    keys = {"device.gc.stop_above": round(stop_above)}
    return _followed(profile, intensity, session, keys)


def _least_at(profile: str, intensity: float, session: Session, percent: float) -> Outcome:
    return _followed(profile, intensity, session, {"device.scheduler.gc_min": percent / 100})


def _followed(
    profile: str, intensity: float, session: Session, more: Mapping[str, float]
) -> Outcome:
    whole = _case(session, profile, _OURS, intensity)
    keys = {**whole.keys, **more}
    runs = session.run([Case(whole.name, keys, least_seeds=_SEEDS)])
    tables = [series.columns(run, seed) for run in runs.values() for seed in run.seeds]
    return Outcome(
        {"follows": _follows(tables)},
        basis(runs),
        f"{described(session)}; {described_cap()}; scrubbing on; {profile}, "
        f"{intensity:g} times as fast; "
        f"{len(tables)} seeds",
    )


def _case(session: Session, profile: str, system: str, intensity: float) -> Case:
    whole = case(session, profile, system, intensity, capped())
    if session.quick:
        return Case(whole.name, whole.keys)
    keys = {**whole.keys, "workload.duration": f"{_SERIES_HOURS * 3600:.0f}s"}
    return Case(whole.name, keys, least_seeds=_SEEDS)


def _starts(table: series.Columns, task: Task, window_s: int) -> list[int]:
    """Return the rows at which windows begin: whole ones, none within another."""
    active = table[task.active]
    rows = round(window_s / table.window_s)
    found: list[int] = []
    for row in range(1, len(active) - rows):
        if active[row] and (not found or row >= found[-1] + rows):
            found.append(row)
    return found


def _means_ms(table: series.Columns, at: int, window_s: int) -> list[float | None]:
    rows = slice(at, at + round(window_s / table.window_s))
    return [None if ns is None else ns / 1e6 for ns in table[f"{CLASS}_mean_ns"][rows]]


def _peak_ms(table: series.Columns, at: int, window_s: int) -> float:
    return max((ms for ms in _means_ms(table, at, window_s) if ms is not None), default=0.0)


def _bounded(peaks: Mapping[str, Sequence[float]], task: Task, runs: Mapping[str, Run]) -> Finding:
    medians = {system: intervals.median(values) for system, values in peaks.items() if values}
    measured = {system: medians[system].value if system in medians else None for system in peaks}
    told = intervals.words(medians, "ms")
    fewest = min(map(len, peaks.values()))
    if fewest < intervals.FEWEST:
        reason = (
            f"{task.name} is at work in {fewest} windows of some system, "
            f"{intervals.FEWEST} are needed"
        )
        return Finding(measured, None, f"{reason}; {told}")
    others = [other for other in _SYSTEMS if other != _OURS]
    if idle := [other for other in others if not medians[other].value]:
        reason = f"there is nothing to be half of in {', '.join(idle)}; {told}"
        return Finding(measured, None, reason)
    holds = intervals.every(
        intervals.at_most(medians[_OURS], medians[other], 0.5) for other in others
    )
    reasons = [
        "cannot be told: autossd's interval overlaps half of another's" if holds is None else "",
        told,
        "" if holds else owners(runs, CLASS, 99.9),
    ]
    return Finding(measured, holds, "; ".join(filter(None, reasons)))


def _follows(tables: Sequence[series.Columns]) -> Finding:
    names = ("gc_active", "free_blocks", "share_gc_ppm")
    judged = [
        (free, share)
        for table in tables
        for active, free, share in zip(*(table[name] for name in names), strict=True)
        if active
    ]
    short = [(free, share) for free, share in judged if free < _START_BELOW]
    if len(short) < _FEWEST_SHARES:
        reason = (
            f"{len(short)} windows with collection at work and fewer than {_START_BELOW} free "
            f"blocks, {_FEWEST_SHARES} are needed"
        )
        return Finding(None, None, reason)
    found, whole = (intervals.correlation(pairs) for pairs in (short, judged))
    below = f"below {_START_BELOW} free blocks"
    # A share that never moves follows nothing.
    holds = found is not None and intervals.at_most(found, intervals.exact(-0.3))
    # It is 0 at the end of the window in which collection begins.
    least = min((share for _, share in judged if share), default=0)
    resting = sum(share == least for _, share in judged)
    reasons = [
        intervals.UNTOLD if holds is None else "",
        intervals.words({below: found}, "") if found else "",
        f"{len(judged)} windows with collection at work, {len(short)} with fewer than "
        f"{_START_BELOW} free blocks: with more eq. 1 has no error to follow; in {resting} the "
        f"share rests at its least, {least / 1e4:g} %",
    ]
    return Finding(
        {below: found and found.value, "in all at work": whole and whole.value},
        holds,
        "; ".join(filter(None, reasons)),
    )


def _draw(
    runs: Mapping[str, Run],
    columns: Mapping[str, series.Columns],
    task: Task,
    window_s: int,
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.2), layout="constrained")
    means, share, tail = figure.subplots(1, 3)
    starts = {system: _starts(table, task, window_s) for system, table in columns.items()}
    for system in _SYSTEMS:
        if starts[system]:
            table = columns[system]
            points = _means_ms(table, starts[system][0], window_s)
            seconds = [i * table.window_s for i in range(len(points))]
            # A window without reads has no mean, and leaves a gap.
            ms = [nan if point is None else point for point in points]
            means.plot(seconds, ms, label=system, linewidth=0.8, marker=".", markersize=2)
    means.set_title(f"{window_s} s with {task.name}")
    means.set_xlabel("time (s)")
    means.set_ylabel("mean of 100 ms (ms)")
    means.legend(frameon=False)
    _draw_share(share, columns[_OURS], starts[_OURS], task)
    pictures.tails(tail, runs, CLASS)
    tail.set_title("response times")
    for axes in (means, share):
        axes.grid(alpha=0.3)
    return figure


def _draw_share(axes: Axes, table: series.Columns, starts: Sequence[int], task: Task) -> None:
    # From the first start to some cycles on, which shows the saw teeth.
    first = starts[0] if starts else 0
    last = min(len(table.start_s), starts[4] if len(starts) > 4 else first + 3000)
    seconds = table.start_s[first:last]
    axes.plot(seconds, table[task.state][first:last], color="#0072B2", linewidth=0.8)
    axes.set_title("autossd")
    axes.set_xlabel("time (s)")
    axes.set_ylabel(task.state_words, color="#0072B2")
    right = axes.twinx()
    share = [ppm / 1e4 for ppm in table[task.share][first:last]]
    right.plot(seconds, share, color="#D55E00", linewidth=0.8)
    right.set_ylabel("share (%)", color="#D55E00")
