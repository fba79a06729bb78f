"""Figures 5.4 to 5.14, on drives that collect garbage and on drives that have none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from flashkeel.output import units
from flashkeel.reproduce.claims import Outcome, Quantity, Range, Study
from flashkeel.reproduce.pictures import tails
from flashkeel.reproduce.plmlight.claims import JUDGED, Measured
from flashkeel.reproduce.plmlight.systems import (
    BASELINE,
    CLASSES,
    DEVICE,
    HIGH,
    ONE_DRIVE,
    PRIORITISED,
    STATES,
    WORKLOADS,
    Load,
    is_sustained,
    judged_by,
    keeps_up,
    load,
    measure,
    overload,
    overload_s,
    sustained,
)
from flashkeel.reproduce.session import Session
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _measure(state: str, session: Session) -> Outcome:
    found = {w: sustained(session, state, w) for w in WORKLOADS}
    loads = {w: each for w, (each, _) in found.items()}
    measured = _beside_one_drive({w: runs for w, (_, runs) in found.items()}, loads)
    beyond = {w: _overload(session, state, w) for w in WORKLOADS}
    findings = {judged.claim.name: judged.finding(measured) for judged in JUDGED}
    # What the full intensity does stands once for each workload, beside its first claim.
    for workload, text in beyond.items():
        first = next(j for j in JUDGED if workload in j.workloads and j.claim.name != "baseline")
        said = findings[first.claim.name]
        reason = "; ".join(filter(None, (said.reason, text)))
        findings[first.claim.name] = replace(said, reason=reason)
    return Outcome(
        findings,
        "synthetic",
        _conditions(session, state, loads),
        partial(_draw, measured.runs),
    )


_AGAINST = (
    "the baseline is the plain mirror of both drives, as many as PLMlight has; beside it stands "
    'what is found against one drive alone, as the text\'s "on SSD" may be read'
)
_PERCENTS = (1, 2, 4, 6, 8)
"""Of the dissertation's intensity."""
_SUSTAINED = 4
"""The largest of them that collecting drives sustain under all four workloads."""


def _measure_at(session: Session, percent: float) -> Outcome:
    state = "collecting"
    loads = {
        w: load(session, state, w, percent / 100 * kind.full_iops) for w, kind in WORKLOADS.items()
    }
    measured = _beside_one_drive(
        {w: measure(session, state, each) for w, each in loads.items()}, loads
    )
    behind = [
        w for w, runs in measured.runs.items() if not is_sustained(judged_by(runs), loads[w].iops)
    ]
    findings = {}
    for judged in JUDGED:
        found = judged.finding(measured)
        late = [w for w in judged.workloads if w in behind]
        if late:
            found = replace(found, holds=None, reason=f"not sustained: {', '.join(late)}")
        findings[judged.claim.name] = found
    return Outcome(
        findings,
        "synthetic",
        f"{DEVICE}, {STATES[state].what}; {percent:g} % of the full intensity, in windows as much "
        f"longer; classes in the order high, medium, low; {_AGAINST}",
    )


_INTENSITY = Range(
    Quantity(
        "intensity",
        _PERCENTS,
        _SUSTAINED,
        "the dissertation's own, 100 %, is more than any such pair sustains; of these 4 % is the "
        "most that ours does under each of its workloads",
        " % of the dissertation's",
    ),
    tuple(judged.claim.name for judged in JUDGED),
    _measure_at,
)


def _beside_one_drive(runs: Mapping[str, Mapping[str, Run]], loads: Mapping[str, Load]) -> Measured:
    late = [
        w
        for w, each in loads.items()
        if not is_sustained({ONE_DRIVE: runs[w][ONE_DRIVE]}, each.iops)
    ]
    return Measured(runs, late)


def _overload(session: Session, state: str, workload: str) -> str:
    """Return what becomes of the dissertation's intensity, which no such pair sustains."""
    runs = overload(session, state, workload)
    full = WORKLOADS[workload].full_iops
    each = (
        f"{system} p99 of reads {units.duration(run.tenants[0].percentile('read', 99) or 0)}, "
        f"keeps up with {units.share(keeps_up(run, full))}"
        for system, run in runs.items()
    )
    return (
        f"at the full intensity of {workload} ({full:,.0f}/s) for "
        f"{overload_s(session) * 1000:.0f} ms: " + ", ".join(each)
    )


def _conditions(session: Session, state: str, loads: Mapping[str, Load]) -> str:
    rates = ", ".join(
        f"{w} {each.iops:,.0f}/s in windows of {each.window_ms:.3g} ms"
        f" ({each.iops / WORKLOADS[w].full_iops:.0%} of the full intensity)"
        for w, each in loads.items()
    )
    at = (
        "intensities a little below what the plain mirror and PLMlight both sustain (without "
        "--quick they are searched for)"
        if session.quick
        else "nine tenths of the highest intensity that the plain mirror and PLMlight both sustain"
    )
    seeds = "one seed" if session.quick else "three seeds pooled"
    return (
        f"{DEVICE}, {STATES[state].what}; {at}: {rates}; {seeds}; classes in the order high, "
        f"medium, low; {_AGAINST}"
    )


def _draw(runs: Mapping[str, Mapping[str, Run]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8), layout="constrained")
    for axes, (workload, systems) in zip(
        figure.subplots(2, 2, sharey=True).flat, runs.items(), strict=True
    ):
        shown = {BASELINE: systems[BASELINE].tenants[CLASSES.index(HIGH)]} | {
            f"{PRIORITISED}, {host}": run
            for host, run in zip(CLASSES, systems[PRIORITISED].tenants, strict=True)
        }
        tails(axes, shown, "read")
        axes.set_title(workload)
    return figure


STUDIES = tuple(
    Study(
        f"plmlight/{state}",
        f"Deterministic windows on ordinary drives, {state}",
        tuple(judged.claim for judged in JUDGED),
        partial(_measure, state),
        (_INTENSITY,) if state == "collecting" else (),
        is_cut_short=True,
    )
    for state in STATES
)
