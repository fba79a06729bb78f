"""Verdicts on numbers of which only an interval is known.

One rule for all: where the 95 % interval of what is judged contains the bound,
or those of two numbers that are compared overlap, there is no verdict.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from flashkeel.reproduce import series
from flashkeel.reproduce.claims import with_interval
from flashkeel.run import Run
from flashkeel.spread import t975

UNTOLD = "cannot be told: the 95 % interval contains the bound"
OVERLAP = "cannot be told: the 95 % intervals overlap"
FEWEST = 6
"""Values of which a median has a 95 % interval: with five the least and the most are 94 %."""


class Estimate(NamedTuple):
    """A number and the bounds of its 95 % interval: 0 and infinity where none is known."""

    value: float
    low: float
    high: float

    @property
    def interval(self) -> tuple[float, float] | None:
        """The bounds; None where none are known."""
        return (self.low, self.high) if math.isfinite(self.low + self.high) else None

    def times(self, factor: float) -> Estimate:
        """Return the estimate in another unit."""
        return Estimate(*(factor * each for each in self))

    def __str__(self) -> str:
        """Return the interval in words, without a unit."""
        return f"{self.low:.3g} … {self.high:.3g}" if self.interval else "unknown"


def exact(value: float) -> Estimate:
    """Return a number that is known, or whose interval nobody keeps."""
    return Estimate(value, value, value)


def percentile(run: Run, latency_class: str, at: float) -> Estimate:
    """Return a percentile of a run in ms; 0 where it has no samples."""
    value = run.percentile(latency_class, at) or 0
    found = with_interval(run, latency_class, at) or (value, 0.0, math.inf)
    return Estimate(*found).times(1e-6)


def response(run: Run, latency_class: str) -> Estimate:
    """Return the mean response time of a run in ms, with its interval from batch means.

    Requests are not independent: slow ones come together. So the time of each seed is cut
    into equal batches, half as many until neighbours no longer go together, and the batches
    are the samples (ratio of sums: requests differ in number). Unknown with fewer than
    eight windows a seed.
    """
    value = (run.mean(latency_class) or 0.0) / 1e6
    return _quotient(
        value, [[(total, n) for n, total in each] for each in _sums(run, latency_class)]
    )


def response_ratio(a: Run, b: Run, latency_class: str) -> Estimate:
    """Return the mean response time of `a` over that of `b`, which had the same requests.

    What the load does to both at a time says nothing of their ratio, so that it is made
    batch by batch: far narrower than from two intervals.
    """
    above, below = a.mean(latency_class), b.mean(latency_class)
    if above is None or not below:
        # Without requests that ended well in both it is not known.
        return Estimate(math.nan, 0.0, math.inf)
    value = above / below
    pairs = []
    for one, other in zip(_sums(a, latency_class), _sums(b, latency_class), strict=True):
        # Whoever is behind ends later.
        whole = min(len(one), len(other)) - 1
        ends = [[total for _, total in each[:whole]] for each in (one, other)]
        rests = [sum(total for _, total in each[whole:]) for each in (one, other)]
        parts = [[*end, rest] for end, rest in zip(ends, rests, strict=True)]
        pairs.append(list(zip(*parts, strict=True)))
    return _quotient(value, pairs)


_Z = 1.959964
"""The 97.5 % quantile of the normal distribution."""
_BATCHES = (64, 32, 16, 8)
"""Batches of a seed, tried in this order."""

_Pairs = Sequence[tuple[float, float]]


def _sums(run: Run, latency_class: str) -> list[_Pairs]:
    """Return the requests and the sum of their latencies in ms of each window, by seed."""
    found: list[_Pairs] = []
    for table in (series.columns(run, seed) for seed in run.seeds):
        counts, means_ns = table[f"{latency_class}s"], table[f"{latency_class}_mean_ns"]
        pairs = zip(counts, means_ns, strict=True)
        found.append([(n, n * (mean_ns or 0.0) / 1e6) for n, mean_ns in pairs])
    return found


def _quotient(value: float, seeds: Sequence[_Pairs]) -> Estimate:
    """Return a quotient of two sums over windows, with its interval from batches of them."""
    for count in _BATCHES:
        if any(len(each) < count for each in seeds):
            continue
        residuals = [[a - value * b for a, b in _batches(each, count)] for each in seeds]
        if count == _BATCHES[-1] or not _go_together(residuals):
            every = [residual for each in residuals for residual in each]
            below = sum(b for each in seeds for _, b in each)
            spread = math.sqrt(sum(r * r for r in every) * len(every) / (len(every) - 1))
            width = t975(len(every) - 1) * spread / below if below else math.inf
            return Estimate(value, value - width, value + width)
    return Estimate(value, 0.0, math.inf)


def _batches(windows: _Pairs, count: int) -> _Pairs:
    """Return both sums over so many equal parts of the windows."""
    edges = [round(at * len(windows) / count) for at in range(count + 1)]
    return [
        (sum(x for x, _ in windows[a:b]), sum(y for _, y in windows[a:b]))
        for a, b in pairwise(edges)
    ]


def _go_together(residuals: Sequence[Sequence[float]]) -> bool:
    """Return whether neighbouring batches are alike by more than chance."""
    pairs = [a * b for each in residuals for a, b in pairwise(each)]
    squares = [a * a for each in residuals for a in each]
    total = sum(squares)
    return total > 0 and sum(pairs) / total > 2 / math.sqrt(len(squares))


def correlation(pairs: Sequence[tuple[float, float]]) -> Estimate | None:
    """Return how two numbers go together in a time series; None where one never changes.

    The interval is Fisher's, which takes the pairs for independent ones, or wider by what
    batches of them say: those that are near in time are alike, and a few may decide.
    """
    columns = [list(column) for column in zip(*pairs, strict=True)]
    if not columns or any(len(set(column)) < 2 for column in columns):
        return None
    x, y = map(_standardised, columns)
    value = statistics.fmean(a * b for a, b in zip(x, y, strict=True))
    # What each pair adds to the correlation: its influence.
    added = [(a * b - value * (a * a + b * b) / 2, 1.0) for a, b in zip(x, y, strict=True)]
    inside = max(-_NEAR_ONE, min(_NEAR_ONE, value))
    batched = _quotient(0.0, [added]).high / (1 - inside * inside)
    fisher = _Z / math.sqrt(len(pairs) - 3) if len(pairs) > 3 else math.inf
    width = max(fisher, batched)
    return Estimate(value, *(math.tanh(math.atanh(inside) + end) for end in (-width, width)))


def _standardised(values: Sequence[float]) -> list[float]:
    """Return values of which not all are alike, with a mean of 0 and a variance of 1."""
    mean = statistics.fmean(values)
    deviation = math.sqrt(statistics.fmean((value - mean) ** 2 for value in values))
    return [(value - mean) / deviation for value in values]


_NEAR_ONE = 1 - 1e-12
"""Beyond which Fisher's transformation has no number."""


def median(values: Sequence[float]) -> Estimate:
    """Return the median with its interval from order statistics, unknown below six values."""
    ordered, n = sorted(values), len(values)
    # The largest rank below which a median lies with at most 2.5 %.
    below = 0.0
    rank = 0
    while (below := below + math.comb(n, rank) / 2**n) <= 0.025:
        rank += 1
    bounds = (ordered[rank - 1], ordered[n - rank]) if rank else (0.0, math.inf)
    return Estimate(statistics.median(ordered), *bounds)


def ratio(a: Estimate, b: Estimate) -> Estimate:
    """Return `a` divided by `b`: the widths of their logarithms add in quadrature.

    The method of variance estimates recovery (Zou and Donner, Statistics in
    Medicine 27, 2008).
    """
    (a0, a_low, a_high), (b0, b_low, b_high) = (tuple(map(_log, each)) for each in (a, b))
    below = math.hypot(a0 - a_low, b_high - b0)
    above = math.hypot(a_high - a0, b0 - b_low)
    return Estimate(*(math.exp(a0 - b0 + width) for width in (0, -below, above)))


def reduction(a: Estimate, b: Estimate) -> Estimate:
    """Return by how many percent `b` is below `a`."""
    left = ratio(b, a)
    return Estimate(*(100 * (1 - each) for each in (left.value, left.high, left.low)))


def mean(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of independent estimates: their widths add in quadrature."""
    n = len(estimates)
    middle = statistics.fmean(each.value for each in estimates)
    below = math.hypot(*(each.value - each.low for each in estimates)) / n
    above = math.hypot(*(each.high - each.value for each in estimates)) / n
    return Estimate(middle, middle - below, middle + above)


def over_windows(values: Sequence[float]) -> Estimate:
    """Return the geometric mean of what independent windows show, with its interval (Student's t).

    Unknown with fewer than six windows, or where one of them shows nothing.
    """
    if not all(value > 0 for value in values):
        return Estimate(statistics.fmean(values), 0.0, math.inf)
    logs = [math.log(value) for value in values]
    middle = statistics.fmean(logs)
    if len(logs) < FEWEST:
        return Estimate(math.exp(middle), 0.0, math.inf)
    width = t975(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Estimate(*(math.exp(middle + step) for step in (0.0, -width, width)))


def geometric_mean(estimates: Sequence[Estimate]) -> Estimate:
    """Return the geometric mean of independent estimates, by their logarithms."""
    logs = mean([Estimate(*map(_log, each)) for each in estimates])
    return Estimate(*map(math.exp, logs))


def at_most(a: Estimate, bound: Estimate, factor: float = 1.0) -> bool | None:
    """Return whether `a` is at most `factor` times `bound`; None where they overlap."""
    if a.high <= factor * bound.low:
        return True
    return False if a.low > factor * bound.high else None


def above(a: Estimate, b: Estimate) -> bool | None:
    """Return whether `a` is above `b`; None where they overlap."""
    found = at_most(a, b)
    return None if found is None else not found


def rises(values: Sequence[Estimate]) -> bool | None:
    """Return whether no value is below its predecessor; None where one is, and they overlap."""
    return every(
        True if b.value >= a.value else (False if b.high < a.low else None)
        for a, b in pairwise(values)
    )


def every(verdicts: Iterable[bool | None]) -> bool | None:
    """Return whether all hold: one that does not decides, else one that cannot be told."""
    found = set(verdicts)
    if False in found:
        return False
    return None if None in found else True


def some(verdicts: Iterable[bool | None]) -> bool | None:
    """Return whether any holds: one that does decides, else one that cannot be told."""
    found = set(verdicts)
    if True in found:
        return True
    return None if None in found else False


def words(estimates: Mapping[str, Estimate], unit: str) -> str:
    """Return the intervals of several numbers of one unit."""
    each = [
        f"{name} {value} {unit if value.interval else ''}".rstrip()
        for name, value in estimates.items()
    ]
    return f"95 % intervals: {', '.join(each)}"


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
