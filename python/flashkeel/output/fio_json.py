"""A result in the shape of fio's JSON output, ``json+``, for tools that read that."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from flashkeel import failures
from flashkeel.output.plots import workload_kind
from flashkeel.result import Result
from flashkeel.run import Run

_DIRECTIONS = ("read", "write", "trim")
# Upper bounds of fio's classes of latency, in each of its units.
_BUCKETS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
_MS_BUCKETS = (*_BUCKETS, 2000)


def render(result: Result) -> str:
    """Return one fio job per run, or where it has tenants, per tenant, as fio has its jobs.

    Requests are submitted in no time, so submission latencies are 0. Smallest latency and
    standard deviation are those of the histogram, to three significant digits. Keys of fio that
    have no equal here (processor use, the wall clock) are left out.
    """
    document = {
        "fio version": f"flashkeel-{result.document['version']}",
        "jobs": [
            _job(part, part.name if len(result) == 1 or part is run else f"{run.name}:{part.name}")
            for run in result.runs
            for part in run.tenants or [run]
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def _job(run: Run, name: str) -> dict[str, Any]:
    counts = [pair for direction in _DIRECTIONS for pair in run.distribution(direction)]
    return {
        "jobname": name,
        "desc": workload_kind([run]),
        "groupid": 0,
        "error": failures.error(run),
        "total_err": failures.count(run),
        "first_error": failures.error(run),
        "elapsed": round(_runtime_s(run)),
        **{direction: _direction(run, direction) for direction in _DIRECTIONS},
        "sync": {
            "total_ios": run.samples("flush"),
            "lat_ns": _latency(run, "flush", bins=False),
        },
        "job_runtime": round(_runtime_s(run) * 1000),
        "latency_ns": _classes(counts, 1, _BUCKETS),
        "latency_us": _classes(counts, 1000, _BUCKETS),
        "latency_ms": _classes(counts, 1_000_000, _MS_BUCKETS),
    }


def _runtime_s(run: Run) -> float:
    """Return how long a job took: a tenant may end before the others, as a job of fio's may."""
    return float(run.data.get("last_completion_s") or run.data["simulated_s"])


def _direction(run: Run, latency_class: str) -> dict[str, Any]:
    samples = run.samples(latency_class)
    seconds = _runtime_s(run)
    distribution = run.data.get(latency_class, {})
    total = distribution.get("bytes", 0)
    bandwidth = total / seconds if seconds else 0.0
    return {
        "io_bytes": total,
        "io_kbytes": total // 1024,
        "bw_bytes": round(bandwidth),
        "bw": round(bandwidth / 1024),
        "iops": samples / seconds if seconds else 0.0,
        "runtime": round(seconds * 1000) if samples else 0,
        "total_ios": samples,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": samples},
        "clat_ns": _latency(run, latency_class, bins=True),
        "lat_ns": _latency(run, latency_class, bins=False),
    }


def _latency(run: Run, latency_class: str, *, bins: bool) -> dict[str, Any]:
    counts = run.distribution(latency_class)
    samples = sum(count for _, count in counts)
    if not samples:
        return {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    distribution = run.data[latency_class]
    mean = distribution["mean_ns"]
    squares = sum(count * (ns - mean) ** 2 for ns, count in counts)
    found = {
        # A bin is known by its upper end, which may lie beyond the mean of what is in it.
        "min": min(counts[0][0], int(mean)),
        "max": distribution["max_ns"],
        "mean": mean,
        "stddev": math.sqrt(squares / samples),
        "N": samples,
    }
    if bins:
        found["percentile"] = distribution["percentile"]
        found["bins"] = {str(ns): count for ns, count in counts}
    return found


def _classes(
    counts: Sequence[tuple[int, int]], unit_ns: int, bounds: Sequence[int]
) -> dict[str, float]:
    """Return the percentage of requests in each of fio's classes of one unit.

    A class ends below its bound; the first one of a larger unit begins where those of the
    smaller end.
    """
    total = sum(count for _, count in counts) or 1
    low_ns = 0 if unit_ns == 1 else unit_ns
    found = {}
    for bound in bounds:
        inside = sum(count for ns, count in counts if low_ns <= ns < bound * unit_ns)
        found[str(bound)] = 100 * inside / total
        low_ns = bound * unit_ns
    if bounds is _MS_BUCKETS:
        found[">=2000"] = 100 * sum(count for ns, count in counts if ns >= low_ns) / total
    return found
