"""Append-only stripes in place of ttFlash's static ones, for those who write at random."""

from __future__ import annotations

from collections.abc import Mapping

from flashkeel.reproduce import intervals
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, few, too_few
from flashkeel.reproduce.intervals import Estimate
from flashkeel.reproduce.profiles import source
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.reproduce.ttflash.systems import ALL, BASE, CLASS, SYSTEMS, case, length
from flashkeel.run import Run

_PROFILES = ("exch", "msnfs", "tpcc")
"""Those with many small writes at random places."""
_APPEND = "append-only"
_READS_FIRST = "append-only, reads-first"
_KEYS = SYSTEMS[ALL] | {
    # As wide as ttFlash's: seven pages and their parity.
    "device.redundancy": {"policy": "physical", "pages": 8},
    "device.allocation": "dynamic",
    "device.read_path": "reconstruct",
    # Blocks of a stripe are emptied together, so that nothing stays within a plane.
    "device.gc.movement": "queued",
    "device.gc.rotation": "none",
}
_VARIANTS = {
    BASE: SYSTEMS[BASE],
    ALL: SYSTEMS[ALL],
    _APPEND: _KEYS | {"device.scheduler": "priority"},
    _READS_FIRST: _KEYS | {"device.scheduler": "reads-first"},
}
_PERCENTILES = (99.0, 99.9, 99.99)

_ERASES = Claim(
    "erases",
    "TPCC and MSN take over 53 % more erases (static stripes, whose parity is updated); the "
    "alternative, of ours: stripes that are only appended to",
    "append-only stripes take at most half of the further erases that static ones take over base, "
    "in each trace of random writes",
    53.0,
    "%",
)
_TAILS = Claim(
    "tails",
    "of ours: what append-only stripes cost in tails",
    "p99.9 and p99.99 of reads are at most twice those of all of ttFlash, in each trace",
    None,
    "times",
)


def _measure(session: Session) -> Outcome:
    pairs = [(profile, variant) for profile in _PROFILES for variant in _VARIANTS]
    found = session.run([_case(session, *pair) for pair in pairs])
    runs = {pair: found[" ".join(pair)] for pair in pairs}
    extra = {
        (p, v): 100 * (runs[p, v].data["erases"] / max(runs[p, BASE].data["erases"], 1) - 1)
        for p, v in pairs
        if v != BASE
    }
    fewest = min(run.data["erases"] for run in runs.values())
    is_known = {p: runs[p, BASE].data["erases"] >= _FEWEST_ERASES for p in _PROFILES}
    fewer = all(extra[p, _APPEND] <= extra[p, ALL] / 2 for p in _PROFILES)
    # Where static stripes take no more there is nothing to take half of.
    is_more = all(extra[p, ALL] > 0 for p in _PROFILES)
    ratios = {(p, at): _ratio(runs, p, at) for p in _PROFILES for at in _PERCENTILES}
    tails = intervals.every(
        intervals.at_most(ratio, intervals.exact(2)) for (_, at), ratio in ratios.items() if at > 99
    )
    sparse = [run.beyond(CLASS, 99.99) for run in runs.values() if few(run, CLASS, 99.99)]
    blocked = {
        f"{p}, {v} {100 * runs[p, v].data['gc_blocked_fraction']:.3g} %": None
        for p, v in pairs
        if v != BASE
    }
    return Outcome(
        {
            "erases": Finding(
                {f"{p}, {v}": value if is_known[p] else None for (p, v), value in extra.items()},
                fewer if is_more and fewest >= _FEWEST_ERASES else None,
                f"{'' if is_more else _NO_MORE}{fewest:,} erases or more; requests that collection "
                f"blocks: {', '.join(blocked)}",
            ),
            "tails": Finding(
                {f"{p}, p{at:g} over all's": ratio.value for (p, at), ratio in ratios.items()},
                None if sparse else tails,
                too_few(min(sparse)) if sparse else _told(runs),
            ),
        },
        basis(found),
        f"{length(session)}; stripes of 7 pages and parity, `priority` and `reads-first`",
    )


_NO_MORE = "static stripes take no further erases in some trace; "
_FEWEST_ERASES = 500
"""What shares of erases are judged with."""


def _case(session: Session, profile: str, variant: str) -> Case:
    usual = case(session, profile, ALL)
    keys: Mapping[str, object] = {
        key: value for key, value in usual.keys.items() if key.startswith("workload.")
    }
    keys = _VARIANTS[variant] | dict(keys) | {"workload.source": source(session, profile)}
    return Case(f"{profile} {variant}", keys, usual.judged)


def _ratio(runs: Mapping[tuple[str, str], Run], profile: str, at: float) -> Estimate:
    ours, theirs = (
        intervals.percentile(runs[profile, variant], CLASS, at) for variant in (_APPEND, ALL)
    )
    return intervals.ratio(ours, theirs)


def _told(runs: Mapping[tuple[str, str], Run]) -> str:
    """Return p99.99 of every variant under each trace."""
    parts = []
    for profile in _PROFILES:
        found = {v: intervals.percentile(runs[profile, v], CLASS, 99.99) for v in _VARIANTS}
        parts.append(f"{profile}, p99.99, {intervals.words(found, 'ms')}")
    return "; ".join(parts)


STUDY = Study(
    "ttflash/append-only",
    "Append-only stripes for random writers",
    (_ERASES, _TAILS),
    _measure,
    is_cut_short=True,
)
