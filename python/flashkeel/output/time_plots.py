"""Pictures over time: how much was done and how slowly, by windows and by single requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flashkeel._core import InputError
from flashkeel.output import units
from flashkeel.output.plots import RUN_COLOURS, workload_kind
from flashkeel.run import SMALL_BYTES

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from flashkeel.result import Result
    from flashkeel.run import Run

_READS = ("read", "small_read")
_COLUMNS, _ROWS = 200, 60


def series(result: Result, latency_class: str | None = None) -> Figure:
    """Return, over time, the IOPS of reads and writes, the latency of a class, and free blocks.

    A line for each run; of a pool of seeds it is the first seed's. Without `latency_class` it is
    the first run's main one.
    """
    import numpy as np
    from matplotlib.figure import Figure

    chosen = latency_class or result.runs[0].main_class()
    if chosen not in (*_READS, "write"):
        raise InputError(f"a time series has the latency of reads and writes, not of {chosen!r}")
    figure = Figure(figsize=(10, 8), layout="constrained")
    rates, latencies, blocks = figure.subplots(3, 1, sharex=True)
    for index, run in enumerate(result.runs):
        table = run.series()
        start_s = np.asarray(table["start_ns"], dtype=float) / 1e9
        window_s = start_s[1] - start_s[0] if len(start_s) > 1 else 1.0
        colour = RUN_COLOURS[index % len(RUN_COLOURS)]
        line = {"color": colour, "linewidth": 0.9}
        rates.plot(start_s, table["reads"] / window_s, label=run.name, **line)
        rates.plot(start_s, table["writes"] / window_s, linestyle=":", **line)
        latencies.plot(start_s, _known(table[f"{chosen}_mean_ns"]), **line)
        latencies.plot(start_s, _known(table[f"{chosen}_max_ns"]), linestyle=":", **line)
        blocks.plot(start_s, table["free_blocks"], **line)
    rates.set_ylabel("IOPS (dotted: writes)")
    rates.legend(loc="upper right", frameon=False, ncols=4, fontsize="small")
    latencies.set_yscale("log")
    latencies.yaxis.set_major_formatter(lambda ns, _: units.duration(ns))
    latencies.set_ylabel(f"{chosen.replace('_', ' ')}s: mean (dotted: slowest)")
    blocks.set_ylabel("free blocks")
    blocks.set_xlabel("time (s)")
    for axes in (rates, latencies, blocks):
        axes.grid(alpha=0.3)
    figure.suptitle(f"{result.title} ({workload_kind(result.runs)})")
    return figure


def heat(result: Result, run: str | None = None, latency_class: str = "read") -> Figure:
    """Return a heat map of single requests: time across, latency up, requests as colour.

    It takes the request log, which there is where the experiment sets
    ``measure.log_requests = true``. Without `run` it is the first one.
    """
    import numpy as np
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    chosen = result.runs[0] if run is None else result[run]
    time_s, latency_ns = _logged(chosen, latency_class)
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    low, high = np.log10(max(latency_ns.min(), 1)), np.log10(max(latency_ns.max(), 1))
    edges = np.logspace(low - 0.02, high + 0.02, _ROWS + 1)
    columns = np.linspace(time_s.min(), time_s.max(), _COLUMNS + 1)
    *_, cells = axes.hist2d(
        time_s, np.maximum(latency_ns, 1), bins=(columns, edges), norm=LogNorm(), cmap="viridis"
    )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda ns, _: units.duration(ns))
    axes.set_ylabel(f"latency of {latency_class.replace('_', ' ')}s")
    axes.set_xlabel("completed at (s)")
    figure.colorbar(cells, ax=axes, label="requests")
    figure.suptitle(f"{result.title}: {chosen.name} ({workload_kind([chosen])})")
    return figure


def _logged(run: Run, latency_class: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return completions in s and latencies in ns of the logged requests of a class."""
    import numpy as np

    table = run.requests()
    operation = "read" if latency_class in _READS else latency_class
    wanted = table["operation"] == operation
    if latency_class == "small_read":
        wanted &= table["sectors"] <= SMALL_BYTES // 512
    if not wanted.any():
        raise InputError(f"run {run.name!r} has no {latency_class} in its log of requests")
    completed_s = np.asarray(table["completed_ns"], dtype=float)[wanted] / 1e9
    return completed_s, np.asarray(table["latency_ns"], dtype=float)[wanted]


def _known(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return latencies with gaps where a window had no request."""
    import numpy as np

    found = np.asarray(values, dtype=float)
    return np.where(found > 0, found, np.nan)
