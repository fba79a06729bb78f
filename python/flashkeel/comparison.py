"""Comparison of two runs: differences of percentiles with their uncertainty."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flashkeel import failures, spread
from flashkeel._core import InputError
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
    the intervals of the two; `None` where either is open. These are from order statistics,
    which take requests for independent, or where both runs have four seeds and more
    (`over_seeds`) the wider of that and of what the seeds differ by. Histograms round up, so that
    either is as much lower as their precision says, at most.
    """

    latency_class: str
    percentile: float
    a_ns: int
    b_ns: int
    interval_ns: tuple[int, int] | None
    fewest_beyond: int
    """Samples beyond the percentile, in the run with fewer; a value that many share has all."""
    over_seeds: bool = False

    @property
    def difference_ns(self) -> int:
        """B - A."""
        return self.b_ns - self.a_ns

    @property
    def verdict(self) -> str:
        """``lower`` or ``higher`` (B against A), ``overlap`` or ``unknown``.

        It is unknown with fewer than ten samples beyond the percentile, and where intervals that
        know nothing of what seeds differ by lie apart.
        """
        found = verdict(self.interval_ns if self.fewest_beyond >= FEW else None)
        return "unknown" if self.takes_seeds else found

    @property
    def takes_seeds(self) -> bool:
        """Whether there is no verdict for want of seeds: with four and more there might be."""
        if self.over_seeds or self.fewest_beyond < FEW:
            return False
        return verdict(self.interval_ns) in ("lower", "higher")

    @property
    def is_open(self) -> bool:
        """Whether there is no interval, though samples are enough: seeds differ by too much."""
        return self.interval_ns is None and self.fewest_beyond >= FEW


def verdict(interval: tuple[float, float] | None) -> str:
    """Return what the interval of a difference says of B, as `Comparison.verdict` does."""
    if interval is None:
        return "unknown"
    low, high = interval
    if low > 0:
        return "higher"
    return "lower" if high < 0 else "overlap"


def covers(found: Sequence[Comparison]) -> str:
    """Say what the intervals of a comparison take in, and what they leave out."""
    if all(it.over_seeds for it in found):
        return "Intervals take in how far seeds differ."
    return (
        "Intervals take requests for independent: where slow ones come in bursts, seeds differ "
        f"by more. Runs of {spread.FEWEST} seeds or more on both sides take that in, and of fewer "
        "none is called lower or higher."
    )


def compare(a: Run, b: Run) -> list[Comparison]:
    """Compare two runs, class by class; classes without samples are left out.

    InputError where one is no run, such as a result, which has several.
    """
    for each in (a, b):
        if not isinstance(each, Run):
            kind = type(each).__name__
            raise InputError(f"compare takes runs, not a {kind}: result.runs[0] or result['NAME']")
    return [
        _one(a, b, latency_class, percentile)
        for latency_class in LATENCY_CLASSES
        if a.samples(latency_class) and b.samples(latency_class)
        for percentile in PERCENTILES
    ]


def lost_classes(a: Run, b: Run) -> list[str]:
    """Return the classes of requests that `a` has samples of and `b` none."""
    return [
        latency_class
        for latency_class in LATENCY_CLASSES
        if a.samples(latency_class) and not b.samples(latency_class)
    ]


def passes(a: Run, b: Run, rows: Sequence[Comparison]) -> bool:
    """Return whether `b` is no worse than `a` by what `rows` compare, and all of it was compared.

    It is worse where a percentile is higher, a larger share of its requests failed, or requests
    of a class are missing.
    """
    is_higher = any(row.verdict == "higher" for row in rows)
    fails_more = failures.share(b) > failures.share(a)
    return bool(rows) and not is_higher and not fails_more and not lost_classes(a, b)


def _one(a: Run, b: Run, latency_class: str, percentile: float) -> Comparison:
    a_ns = a.percentile(latency_class, percentile)
    b_ns = b.percentile(latency_class, percentile)
    assert a_ns is not None and b_ns is not None, f"{latency_class} {key(percentile)} has samples"
    bounds = tuple(run.order_interval(latency_class, percentile) for run in (a, b))
    spreads = [spread.spread(run, latency_class, percentile) for run in (a, b)]
    over_seeds = None not in spreads
    if spreads[0] is not None and spreads[1] is not None:
        of_seeds = spread.intervals(spreads[0], spreads[1])
        bounds = tuple(map(spread.wider, bounds, of_seeds))
    unrounded = [_unrounded(run, each) for run, each in zip((a, b), bounds, strict=True)]
    return Comparison(
        latency_class,
        percentile,
        a_ns,
        b_ns,
        _of_difference(a_ns, b_ns, unrounded[0], unrounded[1]),
        min(rests_on(run, latency_class, percentile) for run in (a, b)),
        over_seeds,
    )


def _unrounded(run: Run, bounds: spread.Bounds) -> tuple[float, float] | None:
    """Return bounds that take in what the histogram has rounded up to them."""
    if bounds is None:
        return None
    return bounds[0] * (1 - run.data.get("histogram_precision", 0.0)), bounds[1]


def _of_difference(
    a_ns: int, b_ns: int, a: tuple[float, float] | None, b: tuple[float, float] | None
) -> spread.Bounds:
    if a is None or b is None:
        return None
    below = math.hypot(b_ns - b[0], a[1] - a_ns)
    above = math.hypot(b[1] - b_ns, a_ns - a[0])
    return math.floor(b_ns - a_ns - below), math.ceil(b_ns - a_ns + above)


def rests_on(run: Run, latency_class: str, percentile: str | float) -> int:
    """Return how many samples lie beyond a percentile, or all where many share its value."""
    low, high = run.order_interval(latency_class, percentile) or (0, 1)
    return run.samples(latency_class) if low == high else run.beyond(latency_class, percentile)


def is_guess(run: Run, latency_class: str, percentile: str | float) -> bool:
    """Return whether a percentile of some requests rests on fewer than FEW of them."""
    return run.samples(latency_class) > 0 and rests_on(run, latency_class, percentile) < FEW
