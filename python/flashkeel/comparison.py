"""Comparison of two runs: differences of percentiles with their uncertainty."""

import math
from dataclasses import dataclass

from flashkeel.percentiles import key
from flashkeel.run import LATENCY_CLASSES, Run

FEW = 10
"""A percentile with fewer samples beyond it is a guess."""

PERCENTILES = (50.0, 99.0, 99.9, 99.99, 99.9999)


@dataclass(frozen=True)
class Comparison:
    """One percentile of one class in run A and in run B, in ns.

    `interval_ns` is the 95 % interval of B - A, by the method of variance
    estimates recovery (Zou and Donner, Statistics in Medicine 27, 2008) from
    the two order-statistic intervals; `None` where either is open.
    """

    latency_class: str
    percentile: float
    a_ns: int
    b_ns: int
    interval_ns: tuple[int, int] | None
    fewest_beyond: int
    """Samples beyond the percentile, in the run with fewer; a value that many share has all."""

    @property
    def difference_ns(self) -> int:
        """B - A."""
        return self.b_ns - self.a_ns

    @property
    def verdict(self) -> str:
        """``lower`` or ``higher`` (B against A), ``overlap`` or ``unknown``.

        It is unknown with fewer than ten samples beyond the percentile.
        """
        if self.interval_ns is None or self.fewest_beyond < FEW:
            return "unknown"
        low, high = self.interval_ns
        if low > 0:
            return "higher"
        return "lower" if high < 0 else "overlap"


def compare(a: Run, b: Run) -> list[Comparison]:
    """Compare two runs, class by class; classes without samples are left out."""
    return [
        _one(a, b, latency_class, percentile)
        for latency_class in LATENCY_CLASSES
        if a.samples(latency_class) and b.samples(latency_class)
        for percentile in PERCENTILES
    ]


def _one(a: Run, b: Run, latency_class: str, percentile: float) -> Comparison:
    a_ns = a.percentile(latency_class, percentile)
    b_ns = b.percentile(latency_class, percentile)
    assert a_ns is not None and b_ns is not None, f"{latency_class} {key(percentile)} has samples"
    a_interval = a.interval(latency_class, percentile)
    b_interval = b.interval(latency_class, percentile)
    interval = None
    if a_interval is not None and b_interval is not None:
        below = math.hypot(b_ns - b_interval[0], a_interval[1] - a_ns)
        above = math.hypot(b_interval[1] - b_ns, a_ns - a_interval[0])
        interval = (math.floor(b_ns - a_ns - below), math.ceil(b_ns - a_ns + above))
    return Comparison(
        latency_class,
        percentile,
        a_ns,
        b_ns,
        interval,
        min(rests_on(run, latency_class, percentile) for run in (a, b)),
    )


def rests_on(run: Run, latency_class: str, percentile: str | float) -> int:
    """Return how many samples lie beyond a percentile, or all where many share its value."""
    low, high = run.interval(latency_class, percentile) or (0, 1)
    return run.samples(latency_class) if low == high else run.beyond(latency_class, percentile)
