"""How far the seeds of a pool differ: intervals that count each seed as one.

Requests of one seed are not independent: slow ones come in bursts, which all of them share. So
the share of requests above a percentile is taken seed by seed, and its spread over the seeds is
carried over to the latency by the pooled histogram (Woodruff, Journal of the American Statistical
Association 47, 1952, with seeds as clusters), on a scale of log odds, where no bound leaves 0 to 1.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from flashkeel import percentiles
from flashkeel.arrow import TableFiles
from flashkeel.run import LATENCY_CLASSES, Run

FEWEST = 4
"""Seeds whose spread says something: with fewer an interval is longer than any difference."""

INDEPENDENT = f"take requests for independent: fewer than {FEWEST} seeds"
"""What is to be said of intervals that know nothing of what seeds differ by."""

Bounds = tuple[int, int] | None
"""Least and most of a latency in ns; None where it is not bounded."""


def keep(pooled: dict[str, Any], seeds: Sequence[dict[str, Any]]) -> None:
    """Add to a pooled run object, and to each distribution of it, what is whose: ``by_seed``.

    That are, in the order of the seeds, write amplification and erases, and of a distribution
    its samples, bytes, rate and mean, and of each percentile how many samples of a seed lie
    beyond its pooled value (``beyond``), and how many there or beyond (``at_or_beyond``).
    """
    # Not of tenants, which share their devices.
    if "waf" in pooled:
        pooled["by_seed"] = {key: [seed[key] for seed in seeds] for key in ("waf", "erases")}
    for latency_class in LATENCY_CLASSES:
        found = pooled.get(latency_class)
        if found is None or not found["count"]:
            continue
        each = [_sums(_run(seed), latency_class) for seed in seeds]
        # A percentile is at most the slowest request, which its bar of the histogram may pass.
        bars, _ = _sums(_run(pooled), latency_class)
        tops = {
            key: bars[min(bisect_left(bars, ns), len(bars) - 1)]
            for key, ns in found["percentile"].items()
        }
        parts = [seed.get(latency_class, {}) for seed in seeds]
        found["by_seed"] = {
            "count": [below[-1] for _, below in each],
            "bytes": [part.get("bytes", 0) for part in parts],
            "iops": [part.get("iops", 0.0) for part in parts],
            "mean_ns": [part.get("mean_ns") for part in parts],
            "beyond": _counts(each, tops, bisect_right),
            "at_or_beyond": _counts(each, tops, bisect_left),
        }
    tenants = [pooled.get("tenants", []), *(seed.get("tenants", []) for seed in seeds)]
    for whole, *shares in zip(*tenants, strict=True):
        keep(whole, shares)


def _counts(
    each: Sequence[tuple[list[int], list[int]]],
    tops: dict[str, int],
    place: Callable[[list[int], int], int],
) -> dict[str, list[int]]:
    """Return how many samples of each seed lie from a place on, for each percentile."""
    return {
        key: [below[-1] - below[place(values, ns)] for values, below in each]
        for key, ns in tops.items()
    }


def _run(data: dict[str, Any]) -> Run:
    return Run(data, TableFiles(Path()))


def _sums(run: Run, latency_class: str) -> tuple[list[int], list[int]]:
    """Return the latencies of a class, and how many are below each of them, and in all."""
    found = run.distribution(latency_class)
    return [ns for ns, _ in found], list(accumulate((n for _, n in found), initial=0))


@dataclass(frozen=True)
class Spread:
    """A percentile of a pool and what the seeds say of it."""

    log_odds: float
    """Of a request to be above it, as the percentile is meant."""
    error: float
    """Standard error of the log odds."""
    freedom: int
    """Degrees of freedom: one fewer than there are seeds."""
    values: Sequence[int]
    below: Sequence[int]

    def bounds(self, t: float) -> Bounds:
        """Return the latencies `t` standard errors from it; None without samples beyond."""
        found = []
        for step in (t, -t):
            above = 1 / (1 + math.exp(-(self.log_odds + step * self.error)))
            samples = self.below[-1]
            if samples * above < 1:
                return None
            rank = max(1, math.ceil(samples * (1 - above)))
            found.append(self.values[bisect_right(self.below, rank - 1) - 1])
        return found[0], found[1]

    @property
    def variance(self) -> float:
        """Square of the standard error of the latency; infinite where it is not known."""
        bounds = self.bounds(1.0)
        return math.inf if bounds is None else ((bounds[1] - bounds[0]) / 2) ** 2


def spread(run: Run, latency_class: str, percentile: float) -> Spread | None:
    """Return the spread of a percentile over the seeds; None where it is not known.

    That is with fewer than four seeds that have samples, or without the histograms.
    """
    key = percentiles.key(percentile)
    if not is_known(run, latency_class) or key not in run.data[latency_class]["by_seed"]["beyond"]:
        return None
    kept = run.data[latency_class]["by_seed"]
    odds = 1 - percentile / 100
    # Where many samples are equal to it, seeds may differ by these alone. (Earlier results do
    # not know them.)
    counts = [kept[name][key] for name in ("beyond", "at_or_beyond") if name in kept]
    error = max(_error(kept["count"], each, odds) for each in counts)
    values, below = _sums(run, latency_class)
    freedom = sum(map(bool, kept["count"])) - 1
    return Spread(math.log(odds / (1 - odds)), error, freedom, values, below)


def _error(counts: Sequence[int], beyond: Sequence[int], odds: float) -> float:
    """Return the standard error of the log odds to be beyond, over seeds that have samples."""
    pairs = [(n, of_it) for n, of_it in zip(counts, beyond, strict=True) if n]
    samples = sum(n for n, _ in pairs)
    share = sum(of_it for _, of_it in pairs) / samples
    squares = sum((of_it - n * share) ** 2 for n, of_it in pairs)
    slope = share * (1 - share) if 0 < share < 1 else odds * (1 - odds)
    return math.sqrt(squares * len(pairs) / (len(pairs) - 1)) / samples / slope


def is_known(run: Run, latency_class: str) -> bool:
    """Return whether it is known how far seeds differ in a class of requests.

    That takes four seeds that have samples, and the histograms.
    """
    kept = run.data.get(latency_class, {}).get("by_seed")
    return kept is not None and "detail" in run.data and sum(map(bool, kept["count"])) >= FEWEST


def is_missing(runs: Sequence[Run], latency_class: str) -> bool:
    """Return whether it is not known of one of the runs that have requests of the class."""
    return any(run.samples(latency_class) and not is_known(run, latency_class) for run in runs)


def interval(run: Run, latency_class: str, percentile: str | float) -> Bounds:
    """Return the 95 % interval of a percentile in ns; None where too few samples bound it.

    It is that of order statistics, which take requests for independent, or the one of what four
    seeds and more differ by (Student's t), whichever is wider.
    """
    bounds = run.order_interval(latency_class, percentile)
    found = bounds and spread(run, latency_class, percentiles.parse(percentile))
    return wider(bounds, found.bounds(t975(found.freedom))) if found else bounds


def wider(one: Bounds, other: Bounds) -> Bounds:
    """Return what takes in both intervals; None where one is open."""
    if one is None or other is None:
        return None
    return min(one[0], other[0]), max(one[1], other[1])


def intervals(a: Spread, b: Spread) -> tuple[Bounds, Bounds]:
    """Return the bounds of both, as far as their difference takes them (Welch's t)."""
    t = _welch([a.variance, b.variance], [a.freedom, b.freedom])
    return a.bounds(t), b.bounds(t)


def of_mean(values: Sequence[float]) -> float | None:
    """Return half the 95 % interval of a mean over seeds (Student's t); None of fewer than four."""
    if len(values) < FEWEST:
        return None
    return t975(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def half_width(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return half the 95 % interval of the difference of two means over seeds (Welch's t).

    None where either are of fewer than four seeds.
    """
    if min(len(a), len(b)) < FEWEST:
        return None
    variances = [statistics.variance(each) / len(each) for each in (a, b)]
    t = _welch(variances, [len(a) - 1, len(b) - 1])
    return t * math.sqrt(sum(variances))


def _welch(variances: Sequence[float], freedoms: Sequence[int]) -> float:
    """Return the t of a difference of two numbers, by the variance of each."""
    freedom = float(min(freedoms))
    if 0 < sum(variances) < math.inf:
        parts = [v * v / n for v, n in zip(variances, freedoms, strict=True)]
        freedom = sum(variances) ** 2 / sum(parts)
    return t975(freedom)


def t975(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's t (Cornish-Fisher, within 0.2 % from three on)."""
    z, n = 1.959964, freedom
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * n**4)
    )
