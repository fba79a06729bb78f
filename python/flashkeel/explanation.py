"""Who owns the latency of the requests above a percentile."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """What one cause of the blame ledger owns of a set of requests."""

    cause: str
    """Label of the cause, such as ``behind_gc_program``."""
    share: float
    """Fraction of the requests' summed latency."""
    mean_ns: float
    """Mean over all the requests, in ns."""
    requests: int
    """Requests in which it owns anything."""


@dataclass(frozen=True)
class Explanation:
    """The causes of latency above a percentile, largest first.

    The shares sum to 1: every nanosecond of a request has exactly one owner.
    """

    run: str
    latency_class: str
    above: float
    """The percentile."""
    threshold_ns: int | None
    """The smallest latency explained; `None` without samples."""
    count: int
    """Requests explained: the number nearest to the share asked for."""
    mean_ns: float | None
    """Their mean latency."""
    shares: tuple[Share, ...]
    """Causes that own anything, largest first."""

    def _repr_html_(self) -> str:
        from flashkeel.output import notebook

        return notebook.explanation(self)
