"""A run: what was measured, as a Python object."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flashkeel import _core, percentiles
from flashkeel._core import InputError
from flashkeel.explanation import Explanation, Share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flashkeel.arrow import Table, TableFiles

LATENCY_CLASSES = ("small_read", "read", "write", "trim", "flush")
"""Classes of requests that have a latency distribution; small reads are up to 64 KiB."""

OPERATIONS = ("read", "write", "trim", "flush", "write_zeroes", "demote")
"""Operations that have a histogram of each class of sizes."""

SMALL_BYTES = 64 << 10
"""Largest small read."""

_NO_SAMPLES: dict[str, Any] = {"count": 0, "percentile": {}}


class Run:
    """One run of an experiment, or the pool of its seeds.

    `data` is the run object of ``flashkeel run --format json``, with the blame
    table and the histograms under ``detail``. Times are in ns.
    """

    def __init__(
        self, data: dict[str, Any], files: TableFiles, tables_of: str | None = None
    ) -> None:
        """Take a run object, where its tables are, and the run whose they are, if another's."""
        self.data = data
        self._files = files
        self._tables_of = tables_of or str(data["name"])
        self._called: str | None = None

    def __repr__(self) -> str:
        return f"<Run {self.name!r}: {self.data['requests']:,} requests>"

    def _repr_html_(self) -> str:
        from flashkeel.output import notebook

        return notebook.runs([self])

    @property
    def name(self) -> str:
        """Name of the run within its experiment, or what it is called beside those of others."""
        return self._called or self._own_name

    @property
    def _own_name(self) -> str:
        return str(self.data["name"])

    def called(self, name: str) -> Run:
        """Return the run under another name, which tells it from runs of other experiments."""
        run = Run(self.data, self._files, self._tables_of)
        run._called = name
        return run

    @property
    def seeds(self) -> list[int]:
        """The seeds pooled in this run."""
        return list(self.data.get("seeds", [self.data["seed"]]))

    @property
    def synthetic(self) -> bool:
        """Whether the workload was generated rather than recorded."""
        return bool(self.data["basis"] == "synthetic")

    @property
    def profile(self) -> str | None:
        """Name of the profile the workload was made from; `None` where it was not."""
        source = self.data["config"]["workload"]["source"]
        return str(source["name"]) if source["policy"] == "profile" else None

    @property
    def tenants(self) -> list[Run]:
        """What each tenant of a stack got, as a run; its series and log are the whole run's."""
        parts = self.data.get("tenants", [])
        if not parts:
            return []
        whole = {key: value for key, value in self.data.items() if key != "tenants"}
        config = self.data["config"]
        # Each is of the workload that it has asked for.
        own = [config | {"workload": tenant["workload"]} for tenant in config["stack"]["tenants"]]
        return [
            Run(whole | part | {"config": asked}, self._files, self._tables_of)
            for part, asked in zip(parts, own, strict=True)
        ]

    @property
    def waf(self) -> float | None:
        """Write amplification: bytes programmed over bytes the host wrote; `None` if none."""
        value: float | None = self.data.get("waf")
        return value

    @property
    def erases(self) -> int:
        """Erases, by all seeds together.

        Each is of a block, or with ``geometry.multi_plane`` of one of each plane of a chip.
        """
        return int(self.data.get("erases", 0))

    def samples(self, latency_class: str) -> int:
        """Return the number of requests measured in `latency_class`."""
        return int(self._distribution(latency_class)["count"])

    def mean(self, latency_class: str) -> float | None:
        """Return the mean latency in ns; `None` without samples."""
        value: float | None = self._distribution(latency_class).get("mean_ns")
        return value

    def percentile(self, latency_class: str, percentile: str | float) -> int | None:
        """Return a latency percentile in ns; `None` without samples.

        `percentile` is written as ``99.9`` or ``"p99.9"``. One that is not in the result is that
        of the histogram, exact to three significant digits; InputError without histograms.
        """
        wanted = self._other(latency_class, percentile)
        if wanted is not None:
            slowest: int = self._distribution(latency_class)["max_ns"]
            return min(_ranked(self.distribution(latency_class), wanted), slowest)
        value: int | None = self._at(latency_class, "percentile", percentile)
        return value

    def curve(self, latency_class: str, start: float = 0.0) -> list[tuple[float, int]]:
        """Return all (percentile, ns) points of a class from `start` on; none without samples."""
        known = self._distribution(latency_class)["percentile"]
        points = sorted((float(at), ns) for at, ns in known.items())
        return [(at, ns) for at, ns in points if at >= start and ns is not None]

    def distribution(self, latency_class: str) -> list[tuple[int, int]]:
        """Return the latencies of a class, as (ns, requests) by ns; none without samples.

        Latencies are those of the histogram, exact to three significant digits.
        """
        self._distribution(latency_class)
        if "detail" not in self.data:
            raise self._without_detail("histograms")
        operation = "read" if latency_class == "small_read" else latency_class
        largest = SMALL_BYTES if latency_class == "small_read" else math.inf
        counts: Counter[int] = Counter()
        for one in self.data["detail"]["histograms"]:
            if one["operation"] == operation and (one["max_bytes"] or math.inf) <= largest:
                counts.update(dict(one["counts"]))
        return sorted(counts.items())

    def percentile_by_size(self, operation: str, percentile: str | float) -> dict[int | None, int]:
        """Return a percentile of an operation in ns, by the largest size of a class in bytes.

        Classes without requests are left out; that of the largest requests is None. InputError
        for what is none of `OPERATIONS`.
        """
        if operation not in OPERATIONS:
            known = ", ".join(OPERATIONS)
            raise InputError(f"no operation {operation!r}; the operations are {known}")
        if "detail" not in self.data:
            raise self._without_detail("histograms")
        wanted = percentiles.key(percentiles.parse(percentile))
        found: dict[int | None, int] = {}
        for one in self.data["detail"]["histograms"]:
            if one["operation"] == operation and one["counts"]:
                ranked = _ranked(sorted(one["counts"]), wanted)
                found[one["max_bytes"]] = min(ranked, one["max_ns"])
        return found

    def beyond(self, latency_class: str, percentile: str | float) -> int:
        """Return how many samples lie beyond a percentile; below ten it is a guess.

        Percentiles are those of :meth:`percentile`.
        """
        wanted = self._other(latency_class, percentile)
        if wanted is not None:
            found = self.distribution(latency_class)
            value = _ranked(found, wanted)
            return sum(count for ns, count in found if ns > value)
        return int(self._at(latency_class, "beyond", percentile) or 0)

    def interval(self, latency_class: str, percentile: str | float) -> tuple[int, int] | None:
        """Return the 95 % interval of a percentile in ns; `None` if too few samples bound it.

        Of a pool of four seeds or more it takes in what they differ by; of fewer it is
        :meth:`order_interval`. InputError for a percentile that is not in the result, as is one
        of the histogram: what its interval is has not been kept.
        """
        from flashkeel import spread

        return spread.interval(self, latency_class, percentile)

    def order_interval(self, latency_class: str, percentile: str | float) -> tuple[int, int] | None:
        """Return the 95 % interval from order statistics, which take requests for independent.

        `None` if too few samples bound it.
        """
        if not self._at(latency_class, "ci95_bounded", percentile):
            return None
        # It is there where that is; a document that lacks it says so.
        kept = self._distribution(latency_class)["ci95"]
        bounds = kept[percentiles.key(percentiles.parse(percentile))]
        return bounds[0], bounds[1]

    def explain(
        self, above: str | float = "p99.9", latency_class: str | None = None
    ) -> Explanation:
        """Return who owns the latency of the requests above a percentile.

        Without `latency_class` it is that of :meth:`main_class`.
        """
        if "detail" not in self.data:
            raise self._without_detail("blame table")
        chosen = latency_class or self.main_class()
        self._distribution(chosen)
        at = percentiles.parse(above)
        document = json.dumps({"schema": 1, "runs": [self.data]})
        found = json.loads(_core.explain(document, self._own_name, chosen, percentiles.label(at)))
        return Explanation(
            run=self.name,
            latency_class=chosen,
            above=at,
            threshold_ns=found["threshold_ns"],
            count=found["count"],
            mean_ns=found["mean_ns"],
            shares=tuple(
                Share(c["cause"], c["share"], c["mean_ns"], c["requests"]) for c in found["causes"]
            ),
            total=found["class_count"],
        )

    def iops(self, latency_class: str) -> float:
        """Return the requests of a class in a second of simulated time."""
        return float(self._distribution(latency_class).get("iops", 0.0))

    def bandwidth(self, latency_class: str) -> float:
        """Return the bytes a second of simulated time of a class, its requests as aligned."""
        distribution = self._distribution(latency_class)
        size = distribution["bytes"] / distribution["count"] if distribution["count"] else 0.0
        return size * self.iops(latency_class)

    def classes(self) -> list[str]:
        """Return the classes that the workload is made of, the one to look at first before others.

        These are reads (small reads where most of them are small) and writes. Reads come first,
        unless fewer than one request in a hundred is one.
        """
        small, reads, writes = (self.samples(c) for c in ("small_read", "read", "write"))
        found = (["small_read" if 2 * small >= reads else "read"] if reads else []) + (
            ["write"] if writes else []
        )
        return found[::-1] if 100 * reads < reads + writes else found

    def main_class(self) -> str:
        """Return the class to look at first: of reads and writes, else any with samples."""
        known = (*self.classes(), *LATENCY_CLASSES)
        return next((c for c in known if self.samples(c)), LATENCY_CLASSES[0])

    def has(self, kind: str) -> bool:
        """Return whether there is a table: of the ``series``, the ``requests`` or the ``chips``."""
        return self._files.path(kind, self._tables_of, self._seed(None)).exists()

    def series(self, seed: int | None = None) -> Table:
        """Return the time series, one row a window.

        ``pandas.DataFrame(run.series())`` takes it, as does any Arrow library. Of a pool
        of seeds it is the first seed's unless `seed` says another.
        """
        return self._files.read("series", self._tables_of, self._seed(seed))

    def requests(self, seed: int | None = None) -> Table:
        """Return the request log, one row a request: ``operation`` is text, the rest are numbers.

        Where there are several tenants, ``tenant`` counts from the first of :attr:`tenants`.
        It exists where the experiment sets ``measure.log_requests = true``.
        """
        return self._files.read("requests", self._tables_of, self._seed(seed))

    def chips(self, seed: int | None = None) -> Table:
        """Return what each chip did, one row an interval.

        ``chip`` counts channel by channel; ``doing`` is a flash operation's purpose,
        ``read_waits`` while a read of the host waits for the chip, or ``deterministic``
        while it is in a deterministic window; times are ns
        since the run began. ``requests`` are the numbers, as in :meth:`requests`, of those
        whose data is read from flash or programmed meanwhile. It exists where the
        experiment sets ``measure.chip_log``.
        """
        return self._files.read("chips", self._tables_of, self._seed(seed))

    def _without_detail(self, what: str) -> InputError:
        return InputError(
            f"run {self.name!r} holds no {what} (--format json leaves it out); "
            "save the result with --out DIR"
        )

    def _seed(self, seed: int | None) -> int:
        if seed is None:
            return self.seeds[0]
        if seed not in self.seeds:
            raise InputError(f"run {self.name!r} has no seed {seed}; it has {self.seeds}")
        return seed

    def _distribution(self, latency_class: str) -> dict[str, Any]:
        if latency_class not in LATENCY_CLASSES:
            raise InputError(
                f"no class {latency_class!r}; the classes are {', '.join(LATENCY_CLASSES)}"
            )
        distribution: dict[str, Any] = self.data.get(latency_class, _NO_SAMPLES)
        return distribution

    def _other(self, latency_class: str, percentile: str | float) -> str | None:
        """Return the key of a percentile that is not in the result, but in its histograms."""
        known = self._distribution(latency_class)["percentile"]
        wanted = percentiles.key(percentiles.parse(percentile))
        return wanted if known and "detail" in self.data and wanted not in known else None

    def _at(self, latency_class: str, what: str, percentile: str | float) -> Any:  # noqa: ANN401
        values = self._distribution(latency_class).get(what, {})
        wanted = percentiles.key(percentiles.parse(percentile))
        if values and wanted not in values:
            known = ", ".join(percentiles.label(float(k)) for k in values)
            raise InputError(f"no percentile {percentile} in the result; it has {known}")
        return values.get(wanted)


def _ranked(counts: Sequence[tuple[int, int]], percentile: str) -> int:
    """Return the latency of a histogram's percentile, by its key: of p0 the least."""
    # Exact: of a thousand requests p99.9 is the 999th.
    left = max(1, math.ceil(Fraction(percentile) / 100 * sum(count for _, count in counts)))
    for ns, count in counts:
        left -= count
        if left <= 0:
            return ns
    raise AssertionError("no percentile is beyond all requests")


def main_class(runs: Sequence[Run]) -> str:
    """Return the class to look at first in most of the runs; of equally many the first's."""
    found = Counter(run.main_class() for run in runs)
    return found.most_common(1)[0][0]
