"""The seven drives, their workloads, and what several figures need of a run."""

from __future__ import annotations

from functools import cache

from flashkeel.run import Run
from flashkeel.ssdcheck import Diagnosis, Drive

DRIVES = tuple(f"ssd-{letter}" for letter in "abcdefg")
"""Presets after SSD A to G."""

WRITE_INTENSIVE = ("tpce", "homes", "web")
READ_INTENSIVE = ("exchange", "live-maps-back-end", "build-server")
"""Groups of §V-A, by profile."""
SHORT = {"exchange": "Exch", "live-maps-back-end": "Live", "build-server": "Build"}
"""What the paper calls them in pictures."""


@cache
def diagnosis(drive: str, seed: int) -> Diagnosis:
    """Return what a probe of one specimen of a drive finds."""
    return Drive.find(f"sim:{drive}").probe(seed)


def letter(drive: str) -> str:
    """Return a preset's letter in the paper."""
    return drive[-1].upper()


def percentile(run: Run, operation: str, percent: float) -> float:
    """Return a latency percentile in ns from the histogram; NaN without samples.

    The paper judges others than those that every result has.
    """
    counts = _counts(run, operation)
    left = percent / 100 * sum(count for _, count in counts)
    for upper_ns, count in counts:
        left -= count
        if left <= 0:
            return float(upper_ns)
    return float("nan")


def share_below(run: Run, operation: str, ns: float) -> float:
    """Return the percentage of requests that took less than `ns`."""
    counts = _counts(run, operation)
    below = sum(count for upper_ns, count in counts if upper_ns < ns)
    return 100 * below / max(1, sum(count for _, count in counts))


def beyond(run: Run, operation: str, percent: float) -> int:
    """Return how many samples lie beyond a percentile."""
    return int(run.samples(operation) * (1 - percent / 100))


def throughput(run: Run) -> float:
    """Return the requests served per second."""
    return float(run.data["requests"] / run.data["simulated_s"])


def _counts(run: Run, operation: str) -> list[tuple[int, int]]:
    histograms = run.data["detail"]["histograms"]
    of_operation = (h["counts"] for h in histograms if h["operation"] == operation)
    return sorted((ns, count) for counts in of_operation for ns, count in counts)
