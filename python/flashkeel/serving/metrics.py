"""Metrics of a served drive for Prometheus, named after those of node_exporter's disks."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client.registry import Collector

__all__ = ["CONTENT_TYPE", "page"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flashkeel._core import Serving

_DISK = {
    "read": ("reads_completed", "read_bytes", "read_time_seconds"),
    "write": ("writes_completed", "written_bytes", "write_time_seconds"),
    "flush": ("flush_requests", None, "flush_requests_time_seconds"),
    "discard": ("discards_completed", None, "discard_time_seconds"),
}
"""What node_exporter calls the count, the bytes and the time of each operation."""

_PLURALS = {"read": "reads", "write": "writes", "flush": "flushes", "discard": "discards"}

_STATES = ("bytes_at_risk", "has_filled", "held_bytes_max", "table_bytes", "upper_pages")
"""What reports say of a device beside what they count: it may fall."""

_PERCENTILES = (
    ("0.5", "p50_ns"),
    ("0.99", "p99_ns"),
    ("0.999", "p99_9_ns"),
    ("0.9999", "p99_99_ns"),
)


class _Drive(Collector):
    """The metrics of one drive."""

    def __init__(self, name: str, serving: Serving) -> None:
        self._name = name
        self._serving = serving

    def collect(self) -> Iterable[Metric]:
        """Return the metrics as they are now."""
        said = self._serving.state()
        if said is None:
            return
        state = json.loads(said)
        yield from self._operations(state)
        yield from self._latencies(state)
        yield from self._lateness(state)
        yield from self._device(state["device"])
        words = "Clients that are connected."
        clients = GaugeMetricFamily("flashkeel_clients", words, labels=["device"])
        clients.add_metric([self._name], state["clients"])
        yield clients
        words = "How many times as long as the times given here clients see."
        scale = GaugeMetricFamily("flashkeel_time_scale", words, labels=["device"])
        scale.add_metric([self._name], state["time_scale"])
        yield scale

    def _operations(self, state: dict[str, Any]) -> Iterable[Metric]:
        for operation, (count, size, time) in _DISK.items():
            tally = state["operations"][operation]
            which = _PLURALS[operation]
            took = sum(tally["owned_ns"].values()) / 1e9
            values = (
                (count, f"Clients' {which} that were completed", tally["count"]),
                (size, f"Bytes of clients' {which}", tally["bytes"]),
                (time, f"Seconds that all {which} of clients took, added up", took),
            )
            for name, words, value in values:
                if name is not None:
                    yield self._counter(f"flashkeel_disk_{name}", words, value)
        failed = CounterMetricFamily(
            "flashkeel_disk_failed",
            "Requests that ended with an error.",
            labels=["device", "operation"],
        )
        for operation, tally in state["operations"].items():
            failed.add_metric([self._name, operation], tally["failed"])
        yield failed

    def _counter(self, name: str, words: str, value: float) -> Metric:
        counter = CounterMetricFamily(name, f"{words}.", labels=["device"])
        counter.add_metric([self._name], value)
        return counter

    def _latencies(self, state: dict[str, Any]) -> Iterable[Metric]:
        """Return a histogram by the cause that owned most of a request, and who owned it all."""
        histogram = HistogramMetricFamily(
            "flashkeel_latency_seconds",
            "Latency by the cause that owned most of the request.",
            labels=["device", "operation", "cause"],
        )
        owned = CounterMetricFamily(
            "flashkeel_latency_owned_seconds",
            "Latency of all requests by who owned it.",
            labels=["device", "operation", "cause"],
        )
        bounds = [f"{ns / 1e9:g}" for ns in state["bounds_ns"]] + ["+Inf"]
        for operation, tally in state["operations"].items():
            for cause, counts in tally["latencies"].items():
                sums = [sum(counts[: at + 1]) for at in range(len(counts))]
                histogram.add_metric(
                    [self._name, operation, cause],
                    list(zip(bounds, sums, strict=True)),
                    sum_value=tally["took_ns"][cause] / 1e9,
                )
            for cause, ns in tally["owned_ns"].items():
                if ns:
                    owned.add_metric([self._name, operation, cause], ns / 1e9)
        yield histogram
        yield owned

    def _lateness(self, state: dict[str, Any]) -> Iterable[Metric]:
        for key, name, words in (
            ("late", "lateness", "By how much answers were later than the model says."),
            ("synced", "sync", "How much longer requests took until they were durable."),
        ):
            found = state[key]
            gauge = GaugeMetricFamily(
                f"flashkeel_{name}_seconds", words, labels=["device", "quantile"]
            )
            for quantile, percentile in (*_PERCENTILES, ("1", "max_ns")):
                # Quantiles of nothing are no number, as in summaries of Prometheus' own clients.
                value = found[percentile] / 1e9 if found["count"] else math.nan
                gauge.add_metric([self._name, quantile], value)
            yield gauge
            yield self._counter(
                f"flashkeel_{name}_answers", "Answers that this is of", found["count"]
            )

    def _device(self, parts: list[dict[str, Any]]) -> Iterable[Metric]:
        """Return the device's own gauges and counters, part by part."""
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}

        def put(
            kind: type[GaugeMetricFamily | CounterMetricFamily], name: str, value: float, *at: str
        ) -> None:
            if name not in families:
                words = f"{name.replace('_', ' ')} of the device."
                labels = ["device", "part", "sort"][: len(at) + 1]
                families[name] = kind(f"flashkeel_{name}", words, labels=labels)
            families[name].add_metric([self._name, *at], value)

        for number, part in enumerate(parts):
            label = f"{part['kind']}{number}"
            for name, value in part["gauges"].items():
                put(GaugeMetricFamily, name, value, label)
            for name, value in part["report"].items():
                if name == "waf" and value is not None:
                    put(GaugeMetricFamily, "write_amplification", value, label)
                elif isinstance(value, dict):
                    counts = {
                        sort: count for sort, count in value.items() if isinstance(count, int)
                    }
                    for sort, count in counts.items():
                        put(CounterMetricFamily, name, count, label, sort)
                elif isinstance(value, int):
                    kind = GaugeMetricFamily if name in _STATES else CounterMetricFamily
                    put(kind, name, value, label)
        yield from families.values()


def page(name: str, serving: Serving) -> Callable[[], bytes]:
    """Return what makes the page of metrics of the drive called `name`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Drive(name, serving))
    return lambda: generate_latest(registry)
