"""Base, all and NoGC under recorded traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flashkeel.comparison import FEW
from flashkeel.reproduce import intervals, recorded
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.session import Case, Session
from flashkeel.reproduce.ttflash.systems import ALL, BASE, CLASS, DEVICE, NOGC, SYSTEMS
from flashkeel.run import Run

_PERCENTILES = (99.0, 99.9)

_BLOCKED = Claim(
    "blocked",
    "GC blocks 2 to 7 % of I/Os in base and 0.003 to 0.05 % in ttFlash",
    "in every trace base blocks at least twenty times as many I/Os as all",
    None,
    "%",
)
_TAIL = Claim(
    "tail",
    "ttFlash's tail is near NoGC's, and base's is not",
    "p99 and p99.9 of reads: all at most 3.25 times NoGC, base at least 2.8 times, in every trace, "
    "on the geometric mean of its windows",
    None,
    "times",
)


def _measure(session: Session) -> Outcome:
    files = recorded.find(session, recorded.FILES)
    if not files:
        names = " or ".join(recorded.FILES.values())
        reason = f"needs {names}: give their folder by --traces or FLASHKEEL_TRACES"
        missing = Finding(None, None, reason)
        return Outcome({"blocked": missing, "tail": missing}, "trace", "not run")
    parts = {name: recorded.windows(path) for name, path in files.items()}
    keys = [(n, at, s) for n in files for at in range(len(parts[n])) for s in (BASE, ALL, NOGC)]
    found = session.run([Case(_name(*key), _keys(parts, *key)) for key in keys])
    runs = {key: found[_name(*key)] for key in keys}
    blocked = {
        f"{name} {s}": 100 * sum(counts) / sum(requests)
        for name in files
        for s in (BASE, ALL)
        for counts, requests in [_counts(runs, name, s)]
    }
    ratios = {
        (name, s, at): intervals.over_windows(_ratios(runs, name, s, at))
        for name in files
        for s in (BASE, ALL)
        for at in _PERCENTILES
    }
    tail = intervals.every(
        intervals.at_most(ratio, intervals.exact(3.25))
        if system == ALL
        else intervals.at_most(intervals.exact(2.8), ratio)
        for (_, system, _), ratio in ratios.items()
    )
    fewer = all(blocked[f"{n} {BASE}"] >= 20 * blocked[f"{n} {ALL}"] for n in files)
    fewest = min(sum(_counts(runs, name, BASE)[0]) for name in files)
    sparse = f"base blocks {fewest} requests of a trace, {FEW} are needed" if fewest < FEW else ""
    told = {_words(*key): ratio for key, ratio in ratios.items()}
    untold = "" if tail is not None else f"{intervals.UNTOLD}; "
    return Outcome(
        {
            "blocked": Finding(blocked, None if sparse else fewer, sparse),
            "tail": Finding(
                {name: ratio.value for name, ratio in told.items()},
                tail,
                f"{untold}over {recorded.WINDOWS} windows each, {intervals.words(told, '')}",
            ),
        },
        "trace",
        f"{DEVICE}, from its steady state on; {', '.join(path.name for path in files.values())}, "
        f"addresses wrapped into it, at the recorded times, in {recorded.WINDOWS} windows each",
    )


def _name(name: str, part: int, system: str) -> str:
    return f"{name} {part} {system}"


def _words(name: str, system: str, at: float) -> str:
    return f"{name} {system}, p{at:g} / NoGC's"


def _keys(
    parts: Mapping[str, Sequence[Mapping[str, Any]]], name: str, part: int, system: str
) -> dict[str, Any]:
    return SYSTEMS[system] | {"workload.source": parts[name][part]}


def _counts(
    runs: Mapping[tuple[str, int, str], Run], name: str, system: str
) -> tuple[list[int], list[int]]:
    """Return the requests that collection blocked in each window, and all of them."""
    chosen = [run.data for (n, _, s), run in runs.items() if (n, s) == (name, system)]
    return [data["gc_blocked"] for data in chosen], [data["requests"] for data in chosen]


def _ratios(
    runs: Mapping[tuple[str, int, str], Run], name: str, system: str, at: float
) -> list[float]:
    """Return a percentile over NoGC's in each window."""
    return [
        (run.percentile(CLASS, at) or 0) / (runs[name, part, NOGC].percentile(CLASS, at) or 1)
        for (n, part, s), run in runs.items()
        if (n, s) == (name, system)
    ]


STUDY = Study("ttflash/real", "Recorded traces", (_BLOCKED, _TAIL), _measure)
