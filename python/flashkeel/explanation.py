"""Who owns the latency of the requests above a percentile."""

from collections.abc import Iterable
from dataclasses import dataclass

from flashkeel import percentiles

_NEAR = 0.25
"""How much more or fewer requests may be explained than asked for, as a share of these."""


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
    total: int
    """Requests of the class, slow or not."""

    @property
    def reached(self) -> str:
        """The percentile that the requests explained lie above, as ``p99.9``.

        It is the one asked for unless latencies that are much alike lie there.
        """
        share = self.count / self.total if self.total else 0.0
        asked = 1 - self.above / 100
        if abs(share - asked) * self.total <= max(1.0, _NEAR * asked * self.total):
            return percentiles.label(self.above)
        return percentiles.label(100 - float(f"{100 * share:.{3 if share > 0.1 else 2}g}"))

    @property
    def is_as_asked(self) -> bool:
        """Whether the requests explained are those above the percentile asked for."""
        return self.reached == percentiles.label(self.above)

    def _repr_html_(self) -> str:
        from flashkeel.output import notebook

        return notebook.explanation(self)


def told_apart(explanations: Iterable[Explanation]) -> list[Explanation]:
    """Return one explanation of each set of requests, that whose percentile is the nearest."""
    found: dict[int, Explanation] = {}
    for one in explanations:
        known = found.get(one.count)
        if known is None or (one.is_as_asked and not known.is_as_asked):
            found[one.count] = one
    return list(found.values())
