"""What chapter 5 claims of each workload, and when it counts as found here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from flashkeel.comparison import FEW
from flashkeel.output import units
from flashkeel.reproduce import intervals
from flashkeel.reproduce.claims import (
    Claim,
    Finding,
    Value,
    beyond_twice,
    owner,
    too_few,
)
from flashkeel.reproduce.intervals import UNTOLD
from flashkeel.reproduce.plmlight.systems import (
    BASELINE,
    CLASSES,
    EQUAL,
    HIGH,
    LOW,
    MEDIUM,
    ONE_DRIVE,
    PLAIN,
    PRIORITISED,
)
from flashkeel.run import Run

_HALF = 0.5
"""Of a reduction in the dissertation that has to be found."""


@dataclass(frozen=True)
class Measured:
    """The runs of one state by workload and system, and who was asked."""

    runs: Mapping[str, Mapping[str, Run]]
    unsustained: Collection[str] = ()
    """Workloads that one drive alone does not keep up with."""
    base: str = BASELINE
    """What gains are held against."""

    def host(self, workload: str, system: str, host: str) -> Run:
        """Return what one host saw; plain drives know no classes, and their hosts are alike."""
        return self.runs[workload][system].tenants[CLASSES.index(host)]

    def at(self, workload: str, system: str, host: str, kind: str, percentile: float) -> float:
        """Return a percentile in ns."""
        return self.host(workload, system, host).percentile(kind, percentile) or 0

    def known(
        self, workload: str, system: str, host: str, kind: str, percentile: float
    ) -> intervals.Estimate:
        """Return the same in ms with its 95 % interval."""
        return intervals.percentile(self.host(workload, system, host), kind, percentile)

    def gain(
        self, workload: str, system: str, host: str, percentile: float, kind: str = "read"
    ) -> intervals.Estimate:
        """Return by how many percent a percentile is below the baseline's of the same host."""
        base, ours = (
            self.known(workload, each, host, kind, percentile) for each in (self.base, system)
        )
        return intervals.reduction(base, ours)

    def beyond(self, workload: str, kind: str, percentile: float) -> int:
        """Return the fewest samples of a host beyond a percentile, under any system."""
        return min(
            host.beyond(kind, percentile)
            for run in self.runs[workload].values()
            for host in run.tenants
        )


@dataclass(frozen=True)
class Judged:
    """A claim, what its verdict rests on, and how it is judged."""

    claim: Claim
    workloads: tuple[str, ...]
    kind: str
    percentiles: tuple[float, ...]
    judge: Callable[[Measured], Finding]

    def finding(self, measured: Measured) -> Finding:
        """Return the verdict; none where ten samples of a host are not beyond a percentile."""
        beyond = min(
            measured.beyond(workload, self.kind, percentile)
            for workload in self.workloads
            for percentile in self.percentiles
        )
        found = self.judge(measured)
        if beyond < FEW:
            return Finding(found.measured, None, too_few(beyond))
        reasons = filter(None, (found.reason, self._beside(found, measured)))
        return replace(found, reason="; ".join(reasons))

    def _beside(self, found: Finding, measured: Measured) -> str:
        """Return what is found against one drive alone; empty where that makes no difference."""
        beside = self.judge(replace(measured, base=ONE_DRIVE))
        if beside.measured == found.measured or not isinstance(
            beside.measured, float | int | Mapping
        ):
            return ""
        late = [workload for workload in self.workloads if workload in measured.unsustained]
        which = f", which does not sustain {' and '.join(late)}" if late else ""
        verdict = {True: "holds", False: "does not", None: "cannot be told"}[beside.holds]
        return (
            f"against one drive alone{which}: {_words(beside.measured, self.claim.unit)}: {verdict}"
        )


def _words(value: float | Mapping[str, float | None], unit: str) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(n, unit)}" for name, n in value.items() if n is not None)
    return f"{units.significant(value)} {unit}"


def _all(workloads: tuple[str, ...], kind: str, percentile: float) -> Callable[[Measured], str]:
    def listed(measured: Measured) -> str:
        return "; ".join(
            f"{workload} {kind} p{percentile:g}: "
            + ", ".join(
                f"{system} "
                + "/".join(
                    units.duration(measured.at(workload, system, host, kind, percentile))
                    for host in (CLASSES if system not in PLAIN else (HIGH,))
                )
                for system in measured.runs[workload]
            )
            for workload in workloads
        )

    return listed


def _slow(measured: Measured) -> Finding:
    p90 = {w: measured.at(w, measured.base, HIGH, "read", 90) / 1e6 for w in ("I", "III")}
    return Finding(
        {f"{w} p90": ms for w, ms in p90.items()},
        all(ms >= 1 for ms in p90.values()),
        "; ".join(f"{w}: {owner(measured.runs[w][measured.base], 'read', 90)}" for w in p90),
    )


def _times(
    workload: str, system: str, percentile: float, kind: str, paper: float
) -> Callable[[Measured], Finding]:
    """At least half of the reduction that a factor is."""
    least = _HALF * (1 - 1 / paper)

    def judge(measured: Measured) -> Finding:
        base, ours = (
            measured.known(workload, each, HIGH, kind, percentile)
            for each in (measured.base, system)
        )
        times = intervals.ratio(base, ours)
        return _told(
            times.value,
            intervals.at_most(ours, base, 1 - least),
            f"{_all((workload,), kind, percentile)(measured)}; "
            + _owner(measured, workload, system, kind, percentile),
            times.interval,
        )

    return judge


def _told(
    measured: Value,
    holds: bool | None,
    reason: str,
    interval: tuple[float, float] | None = None,
) -> Finding:
    """Return a verdict, or why there is none where intervals do not tell."""
    return Finding(measured, holds, f"{UNTOLD}; {reason}" if holds is None else reason, interval)


def _far(gains: Mapping[str, tuple[float, float]]) -> str:
    """Return which gains, each beside the dissertation's, are beyond twice of it."""
    each = {name: beyond_twice(*pair) for name, pair in gains.items()}
    return "".join(f"; {name} {words}" for name, words in each.items() if words)


def _owner(measured: Measured, workload: str, system: str, kind: str, percentile: float) -> str:
    return f"{system}: {owner(measured.runs[workload][system], kind, percentile)}"


def _micro(measured: Measured) -> Finding:
    ms = {
        at: [measured.at("III", system, HIGH, "read", at) / 1e6 for system in (EQUAL, PRIORITISED)]
        for at in (99.0, 99.9)
    }
    return Finding(
        {
            f"{system} p{at:g}": each[index]
            for index, system in enumerate((EQUAL, PRIORITISED))
            for at, each in ms.items()
        },
        max(ms[99.0]) < 1 < min(ms[99.9]),
        _owner(measured, "III", PRIORITISED, "read", 99),
    )


def _apart(measured: Measured) -> Finding:
    high, *others = (measured.known("III", PRIORITISED, h, "read", 99) for h in CLASSES)
    below = {
        host: intervals.reduction(other, high)
        for host, other in zip((MEDIUM, LOW), others, strict=True)
    }
    return _told(
        {host: estimate.value for host, estimate in below.items()},
        intervals.every(intervals.at_most(high, other, 0.75) for other in others),
        _all(("III",), "read", 99)(measured),
    )


def _gains(
    workload: str, wanted: Mapping[float, float], system: str = PRIORITISED
) -> Callable[[Measured], Finding]:
    def judge(measured: Measured) -> Finding:
        gains = {p: measured.gain(workload, system, HIGH, p) for p in wanted}
        bounds = {p: intervals.exact(_HALF * percent) for p, percent in wanted.items()}
        listed = "; ".join(_all((workload,), "read", p)(measured) for p in wanted)
        return _told(
            {f"p{p:g}": gain.value for p, gain in gains.items()},
            intervals.every(intervals.at_most(bounds[p], gains[p]) for p in wanted),
            f"{intervals.words({f'p{p:g}': gain for p, gain in gains.items()}, '%')}; {listed}; "
            + _owner(measured, workload, system, "read", min(wanted))
            + _far({f"p{p:g}": (gains[p].value, percent) for p, percent in wanted.items()}),
        )

    return judge


def _worse(measured: Measured) -> Finding:
    gains = {h: measured.gain("I", PRIORITISED, h, 99.9) for h in (MEDIUM, LOW)}
    none = intervals.exact(0)
    return _told(
        {host: gain.value for host, gain in gains.items()},
        intervals.every(intervals.above(none, gain) for gain in gains.values()),
        _all(("I",), "read", 99.9)(measured),
    )


def _gains_more(measured: Measured) -> Finding:
    gains = {
        (w, h): measured.gain(w, PRIORITISED, h, 99) for w in ("II", "IV") for h in (MEDIUM, LOW)
    }
    named = {f"{w} {h}": gain for (w, h), gain in gains.items()}
    none = intervals.exact(0)
    return _told(
        {name: gain.value for name, gain in named.items()},
        intervals.every(
            intervals.above(gains["IV", h], least)
            for h in (MEDIUM, LOW)
            for least in (gains["II", h], none)
        ),
        f"{intervals.words(named, '%')}; {_all(('II', 'IV'), 'read', 99)(measured)}; reads of IV "
        "have 13 pages of 4 KiB in the mean, those of II one, so that their times are not compared",
    )


def _quick_writes(measured: Measured) -> Finding:
    slowest = {
        system: max(measured.at("I", system, h, "write", 99.9) for h in CLASSES) / 1e3
        for system in (measured.base, EQUAL, PRIORITISED)
    }
    return Finding(
        {f"{system}": us for system, us in slowest.items()},
        all(slowest[system] < 1000 for system in (EQUAL, PRIORITISED)),
    )


def _writes(measured: Measured) -> Finding:
    gains = {
        f"{w} {system} p{p:g}": min(measured.gain(w, system, h, p, "write").value for h in CLASSES)
        for w in ("III", "IV")
        for system in (EQUAL, PRIORITISED)
        for p in (50.0, 99.0)
    }
    owners = "; ".join(f"{w} {_owner(measured, w, EQUAL, 'write', 99)}" for w in ("III", "IV"))
    return Finding(
        dict(gains),
        all(gain >= 25 for gain in gains.values()),
        f"{owners}; writes above 64 KiB go to both drives under either",
    )


def _alike(measured: Measured) -> Finding:
    spread = {}
    for w in ("III", "IV"):
        for system in (EQUAL, PRIORITISED):
            each = [measured.at(w, system, h, "write", 99) for h in CLASSES]
            spread[f"{w} {system}"] = max(each) / max(min(each), 1)
    return Finding(dict(spread), all(s <= 1.25 for s in spread.values()))


_READS = "read"
JUDGED: tuple[Judged, ...] = (
    Judged(
        Claim(
            "baseline",
            "reads of the write-heavy workloads take milliseconds from the 90th percentile on",
            "p90 of reads is 1 ms at least on the plain mirror, under I and III",
            None,
            "ms",
        ),
        ("I", "III"),
        _READS,
        (90.0,),
        _slow,
    ),
    Judged(
        Claim(
            "III-equal",
            "III: with the equal base the high class's p99 of reads is 2.7 times better than the "
            "baseline's",
            "half of that reduction: 1.46 times at least",
            2.7,
            "times",
        ),
        ("III",),
        _READS,
        (99.0,),
        _times("III", EQUAL, 99, _READS, 2.7),
    ),
    Judged(
        Claim(
            "III-prioritised",
            "III: 5.8 times better with the prioritised base (called read p99 in one place)",
            "half of that reduction: 1.71 times at least",
            5.8,
            "times",
        ),
        ("III",),
        _READS,
        (99.0,),
        _times("III", PRIORITISED, 99, _READS, 5.8),
    ),
    Judged(
        Claim(
            "III-prioritised-writes",
            "III: 5.8 times better with the prioritised base (called write latency in another)",
            "half of that reduction in the high class's p99 of writes: 1.71 times at least",
            5.8,
            "times",
        ),
        ("III",),
        "write",
        (99.0,),
        _times("III", PRIORITISED, 99, "write", 5.8),
    ),
    Judged(
        Claim(
            "III-microseconds",
            "III: reads take microseconds at the 99th percentile, and milliseconds again at p99.9",
            "p99 of the high class is below 1 ms and p99.9 above, with both bases",
            None,
            "ms",
        ),
        ("III",),
        _READS,
        (99.0, 99.9),
        _micro,
    ),
    Judged(
        Claim(
            "III-classes",
            "III: with the prioritised base the high class is better than the others by half at "
            "p99",
            "its p99 is shorter than theirs by a quarter at least",
            {MEDIUM: 50.0, LOW: 50.0},
            "%",
        ),
        ("III",),
        _READS,
        (99.0,),
        _apart,
    ),
    Judged(
        Claim(
            "I-high",
            "I: the high class's p99.9 of reads is shorter by about half",
            "by a quarter at least, prioritised base",
            {"p99.9": 50.0},
            "%",
        ),
        ("I",),
        _READS,
        (99.9,),
        _gains("I", {99.9: 50.0}),
    ),
    Judged(
        Claim(
            "I-others",
            "I: the low and the medium class get worse for it",
            "their p99.9 is longer than the baseline's, prioritised base",
            None,
            "%",
        ),
        ("I",),
        _READS,
        (99.9,),
        _worse,
    ),
    Judged(
        Claim(
            "II-high",
            "II: the high class's reads are better by 70 % at p99 and by 30 % at p99.99",
            "by half of that, prioritised base",
            {"p99": 70.0, "p99.99": 30.0},
            "%",
        ),
        ("II",),
        _READS,
        (99.0, 99.99),
        _gains("II", {99.0: 70.0, 99.99: 30.0}),
    ),
    Judged(
        Claim(
            "IV-high",
            "IV: by 80 % at p99 and by 55 % at p99.9",
            "by half of that, prioritised base",
            {"p99": 80.0, "p99.9": 55.0},
            "%",
        ),
        ("IV",),
        _READS,
        (99.0, 99.9),
        _gains("IV", {99.0: 80.0, 99.9: 55.0}),
    ),
    Judged(
        Claim(
            "IV-others",
            "IV: the reads of the low and the medium class are better than in II",
            "their p99 is below IV's own baseline, and gains more on it than on II's own there, "
            "prioritised base",
            None,
            "%",
        ),
        ("II", "IV"),
        _READS,
        (99.0,),
        _gains_more,
    ),
    Judged(
        Claim(
            "I-writes",
            "I: writes take microseconds in all classes",
            "p99.9 of each class is below 1 ms, with both bases",
            None,
            "µs",
        ),
        ("I",),
        "write",
        (99.9,),
        _quick_writes,
    ),
    Judged(
        Claim(
            "large-writes",
            "III and IV: writes are significantly better than the baseline's",
            "median and p99 of every class are shorter by a quarter at least, with both bases",
            None,
            "%",
        ),
        ("III", "IV"),
        "write",
        (50.0, 99.0),
        _writes,
    ),
    Judged(
        Claim(
            "writes-alike",
            "III and IV: classes do not differ in writes, whose counts they share",
            "the longest p99 of a class is at most 1.25 times the shortest, with both bases",
            None,
            "times",
        ),
        ("III", "IV"),
        "write",
        (99.0,),
        _alike,
    ),
)
