"""What a run comes to beside its percentiles, how it differs by seed, and between two runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flashkeel import comparison, spread
from flashkeel.run import Run

CLASSES = ("read", "write")
"""Classes of requests whose rates and means are compared."""

ALIKE = 1e-4
"""Share of a number below which a difference is none; a choice of ours.

A run ends with its last completion, so that rates of the same arrivals differ by a little.
"""


@dataclass(frozen=True)
class Measure:
    """One number of run A and of run B, such as ``waf``, whose name ends with its unit.

    `interval` is the 95 % interval of B - A by what the seeds of each differ by (Welch's t);
    `None` where either has fewer than four. What is below `ALIKE` of the larger is 0 in it, and
    as `difference`.
    """

    measure: str
    a: float
    b: float
    interval: tuple[float, float] | None

    @property
    def difference(self) -> float:
        """B - A."""
        return _difference(self.b - self.a, self.a, self.b)

    @property
    def verdict(self) -> str:
        """``lower`` or ``higher`` (B against A), ``overlap``, or ``unknown`` with few seeds."""
        return comparison.verdict(self.interval)


def compare(a: Run, b: Run) -> list[Measure]:
    """Compare write amplification, erases, rates and means; what neither has is left out.

    They are called ``waf``, ``erases_per_seed``, ``read_iops``, ``read_bytes_per_s``,
    ``read_mean_ns``, and so for writes.
    """
    others = dict(_of(b))
    found = []
    for name, one in _of(a):
        other = others.get(name)
        if one.value is None or other is None or other.value is None:
            continue
        if not (one.value or other.value):
            continue
        difference = other.value - one.value
        half = spread.half_width(one.seeds, other.seeds)
        interval = None
        if half is not None:
            low, high = (
                _difference(difference + by, one.value, other.value) for by in (-half, half)
            )
            interval = low, high
        found.append(Measure(name, one.value, other.value, interval))
    return found


def _difference(difference: float, a: float, b: float) -> float:
    """Return a difference of two numbers, or 0 where it is none to speak of."""
    return difference if abs(difference) >= ALIKE * max(a, b) else 0.0


def intervals(run: Run) -> dict[str, tuple[float, float]]:
    """Return the 95 % interval of each of these numbers by what the seeds of a run differ by.

    Student's t; none without four seeds that have the number. None goes below zero.
    """
    found = {}
    for name, known in _of(run):
        half = spread.of_mean(known.seeds)
        if known.value is not None and half is not None:
            found[name] = (max(0.0, known.value - half), known.value + half)
    return found


@dataclass(frozen=True)
class _Known:
    """A number of a run, and of each of its seeds that has one."""

    value: float | None
    seeds: list[float]


def _known(value: float | None, seeds: Sequence[float | None]) -> _Known:
    return _Known(value, [each for each in seeds if each is not None])


def _of(run: Run) -> Iterator[tuple[str, _Known]]:
    whole = run.data.get("by_seed", {})
    if "waf" in run.data:
        yield "waf", _known(run.waf, whole.get("waf", []))
        # Pools may be of different sizes.
        yield "erases_per_seed", _known(run.erases / len(run.seeds), whole.get("erases", []))
    for latency_class in CLASSES:
        if not run.samples(latency_class):
            continue
        kept = run.data[latency_class].get("by_seed", {})
        rates = kept.get("iops", [])
        parts = zip(rates, kept.get("bytes", []), kept.get("count", []), strict=False)
        bandwidths = [iops * size / count if count else 0.0 for iops, size, count in parts]
        yield f"{latency_class}_iops", _known(run.iops(latency_class), rates)
        yield f"{latency_class}_bytes_per_s", _known(run.bandwidth(latency_class), bandwidths)
        yield f"{latency_class}_mean_ns", _known(run.mean(latency_class), kept.get("mean_ns", []))
