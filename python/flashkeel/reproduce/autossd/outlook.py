"""The outlook of §6: shares that go by expected idleness too, under bursts and recorded traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flashkeel.reproduce import intervals, recorded
from flashkeel.reproduce.autossd import loads
from flashkeel.reproduce.autossd.device import scaled
from flashkeel.reproduce.autossd.systems import CLASS
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, owners
from flashkeel.reproduce.intervals import Estimate
from flashkeel.reproduce.session import Case, Session, amount, basis
from flashkeel.run import Run

_SPEEDS = {"dtrs": (2.0, 8.0), "cloudphysics": (8.0, 32.0)}
"""At the recorded times collection is at work too seldom to be judged."""
_CONTROLS = ("feedback", "foresight")
_PERCENTILES = (99.0, 99.9)
_STEADY_LOADS = ("msn-befs x4", "msn-befs x8", "msn-befs x12", "dtrs x4")
_STEADY_REQUESTS = 600_000

_RULE = "p99.9 of small reads with foresight is below that with feedback alone, by more than chance"
_BURSTS = Claim(
    "bursts",
    "the background's share can be raised when the host is expected to be idle and lowered when "
    "requests are, which the paper expects to help (no figures)",
    f"bursts of a second, and a second between: {_RULE}",
    None,
    "times",
)
_STEADY = Claim(
    "steady",
    "of ours: what it costs where pauses are short",
    "profiles near saturation: p99.9 of small reads with foresight is at most 10 % above that "
    "with feedback alone, in each",
    None,
    "times",
    is_of_all=True,
)
_RECORDED = Claim(
    "recorded",
    "the same of recorded requests",
    f"in each of two traces, at each of two speeds, on the mean of its windows: {_RULE}",
    None,
    "times",
)


def _measure(session: Session) -> Outcome:
    files = recorded.find(session, recorded.FILES)
    requests = 200_000 if session.quick else 2_600_000
    steady = _STEADY_LOADS[:1] if session.quick else _STEADY_LOADS
    sources = {
        load: loads.workload(session, load, min(requests, _STEADY_REQUESTS))
        for load in (loads.BURSTS, *steady)
    }
    cases = [
        _case(f"{load} {control}", control, keys, (CLASS, 99.9))
        for load, keys in sources.items()
        for control in _CONTROLS
    ]
    cases += [
        _case(_window(name, speed, at, control), control, {"workload.source": part})
        for name, path in files.items()
        for speed in _SPEEDS[name]
        for at, part in enumerate(recorded.windows(path, speed))
        for control in _CONTROLS
    ]
    runs = session.run(cases)
    speeds = ", ".join(
        f"{name} {' and '.join(f'{speed:g}' for speed in each)} times as fast"
        for name, each in _SPEEDS.items()
    )
    missing = [file for name, file in recorded.FILES.items() if name not in files]
    return Outcome(
        {
            "bursts": _judge(runs, [loads.BURSTS]),
            "steady": replace(
                _judge(runs, steady, 1.1),
                basis=basis({f"{x} {c}": runs[f"{x} {c}"] for x in steady for c in _CONTROLS}),
            ),
            "recorded": Finding(
                None,
                None,
                f"needs {' and '.join(missing)}: give their folder by --traces or FLASHKEEL_TRACES",
                basis="trace",
            )
            if missing
            else _judge_windows(runs),
        },
        # Of bursts; the others say their own.
        "synthetic",
        "1/8 of the device of Table 1; bursts: 38,000 requests a second for a second, then none "
        f"for one; steady: {', '.join(steady)}; recorded: {speeds}, in "
        f"{recorded.WINDOWS} windows each; {amount(runs.values())}",
    )


def _case(
    name: str, control: str, keys: Mapping[str, Any], judged: tuple[str, float] | None = None
) -> Case:
    scheduler = {"policy": "debit", "control": control}
    return Case(name, {**scaled(8), "device.scheduler": scheduler, **keys}, judged, most_seeds=4)


def _window(name: str, speed: float, at: int, control: str) -> str:
    return f"{name} x{speed:g}, window {at} {control}"


def _judge_windows(runs: Mapping[str, Run]) -> Finding:
    """Ask the same of each recorded trace at each speed, window by window."""
    found = {
        f"{at}, {name} x{speed:g}": intervals.over_windows(
            [_quotient(runs, name, speed, part, percentile) for part in range(recorded.WINDOWS)]
        )
        for name, speeds in _SPEEDS.items()
        for speed in speeds
        for at, percentile in (("mean", None), *((f"p{p:g}", p) for p in _PERCENTILES))
    }
    holds = intervals.every(
        intervals.at_most(ratio, intervals.exact(1))
        for name, ratio in found.items()
        if name.startswith("p99.9,")
    )
    untold = intervals.UNTOLD if holds is None else ""
    return Finding(
        {name: ratio.value for name, ratio in found.items()},
        holds,
        "; ".join(filter(None, [untold, intervals.words(found, "")])),
        basis="trace",
    )


def _quotient(
    runs: Mapping[str, Run], name: str, speed: float, part: int, percentile: float | None
) -> float:
    """Return foresight over feedback in one window."""
    one, other = (
        run.mean(CLASS) if percentile is None else run.percentile(CLASS, percentile)
        for run in (runs[_window(name, speed, part, c)] for c in ("foresight", "feedback"))
    )
    return (one or 0.0) / (other or 1.0)


def _judge(runs: Mapping[str, Run], names: Sequence[str], most: float = 1.0) -> Finding:
    """Ask whether foresight's p99.9 is at most so many times feedback's, under each load."""
    tails = {
        load: {
            control: intervals.percentile(runs[f"{load} {control}"], CLASS, 99.9)
            for control in _CONTROLS
        }
        for load in names
    }
    below = intervals.every(
        intervals.at_most(found["foresight"], found["feedback"], most) for found in tails.values()
    )
    measured = {
        f"{at}, {load}": estimate.value
        for load in names
        for at, estimate in _ratios(runs, load).items()
    }
    told = "; ".join(f"{load}: {intervals.words(found, 'ms')}" for load, found in tails.items())
    first = {control: runs[f"{names[0]} {control}"] for control in _CONTROLS}
    reasons = [intervals.OVERLAP if below is None else "", told, owners(first, CLASS, 99.9)]
    return Finding(measured, below, "; ".join(filter(None, reasons)))


def _ratios(runs: Mapping[str, Run], load: str) -> dict[str, Estimate]:
    """Return foresight over feedback, of the mean and of percentiles."""
    one, other = (runs[f"{load} {control}"] for control in ("foresight", "feedback"))
    tails = {
        f"p{at:g}": intervals.ratio(*(intervals.percentile(run, CLASS, at) for run in (one, other)))
        for at in _PERCENTILES
    }
    return {"mean": intervals.response_ratio(one, other, CLASS)} | tails


STUDY = Study(
    "autossd/outlook",
    "Shares that go by expected idleness",
    (_BURSTS, _STEADY, _RECORDED),
    _measure,
)
