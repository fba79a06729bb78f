"""Figure 8: what flash requests of the host wait for, under MSN-BEFS.

The paper counts the wait of each flash request; the ledger counts that of each
host request, along the flash request that ends last. The causes are the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from flashkeel.output import units
from flashkeel.reproduce.autossd.device import SYSTEMS, capped, described, described_cap
from flashkeel.reproduce.autossd.systems import CLASS, case, length
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, owners
from flashkeel.reproduce.session import Session, basis
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PROFILE = "msn-befs"
_GROUPS = {
    "host": ("behind_host_read", "behind_host_write"),
    "GC": ("behind_gc_read", "behind_gc_program", "behind_erase", "no_free_block"),
    "scrubbing": ("behind_scrub",),
    "map": ("behind_map", "map_load"),
    "parity": ("behind_parity", "reconstruction"),
    "scheduler": ("scheduler_hold",),
}
_NO_WAIT = ("own_flash", "controller", "host_link")

_GC_LEAST = Claim(
    "gc-least",
    "autossd's reads wait least for garbage collection",
    "mean wait behind GC of a small read: at most half of that of each other system",
    None,
    "µs",
)
_LEAST = Claim(
    "least",
    "in all, autossd's reads wait least",
    "mean wait of a small read: below that of each other system",
    None,
    "µs",
)


def _measure(session: Session) -> Outcome:
    found = session.run([case(session, _PROFILE, s, keys=capped()) for s in SYSTEMS])
    runs = {system: found[f"{_PROFILE} {system}"] for system in SYSTEMS}
    waits = {system: _waits_us(run) for system, run in runs.items()}
    gc = {system: wait["GC"] for system, wait in waits.items()}
    total = {system: sum(wait.values()) for system, wait in waits.items()}
    reason = owners(runs, CLASS, 0.0)
    findings = {
        "gc-least": _judge(gc, lambda ours, wait: ours <= wait / 2, reason),
        "least": _judge(total, operator.lt, reason),
    }
    return Outcome(
        findings,
        basis(runs),
        f"{described(session)}; {length(session, [_PROFILE])}; {described_cap()}; "
        "mean wait of small reads",
        partial(_draw, waits),
    )


def _judge(
    waits: Mapping[str, float], is_less: Callable[[float, float], bool], reason: str
) -> Finding:
    """Judge whether what autossd waits is less than what each other system does."""
    others = {system: wait for system, wait in waits.items() if system != "autossd"}
    idle = [system for system, wait in others.items() if not wait]
    # Against none there is nothing to be less than.
    holds = all(is_less(waits["autossd"], wait) for wait in others.values() if wait)
    if holds and idle:
        return Finding(waits, None, f"there is no wait to be less than in {', '.join(idle)}")
    return Finding(waits, holds, "" if holds else reason)


def _waits_us(run: Run) -> dict[str, float]:
    """Return the mean wait of a small read by group of causes, in µs."""
    found = run.explain(0.0, CLASS)
    by_cause = {share.cause: share.mean_ns / 1e3 for share in found.shares}
    waits = {
        group: sum(by_cause.pop(cause, 0.0) for cause in causes)
        for group, causes in _GROUPS.items()
    }
    return waits | {"other": sum(us for cause, us in by_cause.items() if cause not in _NO_WAIT)}


def _draw(waits: Mapping[str, Mapping[str, float]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.8), layout="constrained")
    axes = figure.subplots()
    left = [0.0] * len(waits)
    for group in next(iter(waits.values())):
        widths = [wait[group] for wait in waits.values()]
        axes.barh(list(waits), widths, left=left, label=group, height=0.6)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(lambda us, _: units.duration(us * 1e3))
    axes.set_title("What small reads wait for under MSN-BEFS")
    axes.set_xlabel("mean wait of a small read")
    figure.legend(loc="outside right center", frameon=False)
    return figure


STUDY = Study(
    "autossd/fig8",
    "What reads wait for under MSN-BEFS",
    (_GC_LEAST, _LEAST),
    _measure,
    is_cut_short=True,
)
