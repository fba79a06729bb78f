"""A result in the shape of fio's JSON output, for tools that read that."""

from __future__ import annotations

import json
from typing import Any

from flashkeel.output.plots import workload_kind
from flashkeel.result import Result
from flashkeel.run import Run


def render(result: Result) -> str:
    """Return one fio job per run.

    Keys of fio that have no equal here (submission latencies, minima,
    deviations, processor use, the wall clock) are left out.
    """
    document = {
        "fio version": f"flashkeel-{result.document['version']}",
        "jobs": [_job(run) for run in result.runs],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def _job(run: Run) -> dict[str, Any]:
    return {
        "jobname": run.name,
        "desc": workload_kind([run]),
        "groupid": 0,
        "error": 0,
        "elapsed": round(run.data["simulated_s"]),
        "read": _direction(run, "read"),
        "write": _direction(run, "write"),
        "trim": _direction(run, "trim"),
    }


def _direction(run: Run, latency_class: str) -> dict[str, Any]:
    samples = run.samples(latency_class)
    seconds = run.data["simulated_s"]
    if not samples or not seconds:
        return _IDLE
    distribution = run.data[latency_class]
    bandwidth = distribution["bytes"] / seconds
    latency = {"mean": distribution["mean_ns"], "max": distribution["max_ns"], "N": samples}
    return {
        "io_bytes": distribution["bytes"],
        "io_kbytes": distribution["bytes"] // 1024,
        "bw_bytes": round(bandwidth),
        "bw": round(bandwidth / 1024),
        "iops": distribution["iops"],
        "runtime": round(seconds * 1000),
        "total_ios": samples,
        "clat_ns": latency | {"percentile": distribution["percentile"]},
        "lat_ns": latency,
    }


_NO_LATENCY = {"mean": 0.0, "max": 0, "N": 0}
_IDLE: dict[str, Any] = {
    "io_bytes": 0,
    "io_kbytes": 0,
    "bw_bytes": 0,
    "bw": 0,
    "iops": 0.0,
    "runtime": 0,
    "total_ios": 0,
    "clat_ns": _NO_LATENCY,
    "lat_ns": _NO_LATENCY,
}
