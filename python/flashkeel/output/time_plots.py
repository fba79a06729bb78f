"""Pictures over time: how much was done and how slowly, by windows and by single requests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from flashkeel import amplification
from flashkeel._core import InputError
from flashkeel.output import plots, units
from flashkeel.output.plots import RUN_COLOURS, workload_kind
from flashkeel.run import SMALL_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flashkeel.result import Result
    from flashkeel.run import Run

_READS = ("read", "small_read")
TIMED = (*_READS, "write")
"""Classes whose latency there is over time."""
_COLUMNS, _ROWS = 200, 60
_GROUPS = 100
"""Into which windows are put together where one alone says little."""
_LEGEND_LETTERS = 120
"""That a legend of small letters has room for, side by side."""


_FREE_BLOCKS = re.compile(r"(ssd\d+_)?free_blocks")
"""Gauges of the drives of a run."""
_DRIVES = ("-", "--", ":", "-.")
"""How the lines of a run's drives differ; one after the fourth looks like the first again."""


def series(result: Result, latency_class: str | None = None) -> Figure:
    """Return, over time, IOPS, the latency of a class, write amplification, and free blocks.

    A line for each run, of free blocks for each of its drives; of a pool of seeds it is the first
    seed's. Without `latency_class` it is the first run's main one, and of a run that has none of
    these its own.
    """
    import numpy as np
    from matplotlib.figure import Figure

    classes = _timed(result, latency_class)
    figure = Figure(figsize=(10, 10), layout="constrained")
    rates, latencies, amplified, blocks = figure.subplots(4, 1, sharex=True)
    # A run that ends before its warm-up does has none.
    measured = [
        (run, one, table)
        for run, one in zip(result.runs, classes, strict=True)
        if len((table := run.series())["start_ns"])
    ]
    if not measured:
        raise InputError("nothing was measured over time: every run ended within its warm-up")
    last_s = max(float(table["start_ns"][-1]) / 1e9 for *_, table in measured)
    scale, unit = units.clock(last_s)
    for index, (run, one, table) in enumerate(measured):
        start_s = np.asarray(table["start_ns"], dtype=float) / 1e9
        whole_s = run.data["simulated_s"] / len(run.seeds)
        if len(start_s) > 1:
            whole_s = start_s[1] - start_s[0]
        # The end of the run cuts the last one short, if there are several.
        window_s = np.where((start_s < start_s[-1]) | (len(start_s) == 1), whole_s, np.nan)
        middle, end = (start_s + whole_s / 2) / scale, (start_s + whole_s) / scale
        line = plots.of_run(index) | {"linewidth": 0.9}
        dotted = line | {"linestyle": ":"}
        whose = f": {units.requests(one)}" if len(set(classes)) > 1 else ""
        label = f"{units.name(run.name)}{whose}"
        _line(rates, middle, table["reads"] / window_s, label=label, **line)
        _line(rates, middle, table["writes"] / window_s, **dotted)
        if one in TIMED:
            _line(latencies, middle, _known(table[f"{one}_mean_ns"]), **line)
            _line(latencies, middle, _known(table[f"{one}_max_ns"]), **dotted)
        _line(amplified, *_amplification(table, start_s / scale, whole_s / scale), **line)
        # Behind a stack each drive has its own; devices that are no SSD have none.
        drives = list(filter(_FREE_BLOCKS.fullmatch, table))
        for drive, name in enumerate(drives):
            line["linestyle"] = _DRIVES[drive % len(_DRIVES)]
            if index == 0 and len(drives) > 1:
                line["label"] = name.removesuffix("_free_blocks")
            # Read at the end of each window.
            _line(blocks, end, np.asarray(table[name], dtype=float), **line)
    rates.set_ylabel("IOPS (dotted: writes)")
    # As many beside each other as the picture has room for.
    handles, labels = rates.get_legend_handles_labels()
    columns = max(1, min(4, _LEGEND_LETTERS // (max(map(len, labels)) + 8)))
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize="small"
    )
    figure.set_figheight(10 + 0.2 * (len(result.runs) // columns))
    latencies.set_yscale("log")
    plots.latencies(latencies.yaxis)
    latencies.set_ylabel(f"{plots.words_of(classes)}: mean\n(dotted: slowest)")
    amplified.set_ylabel("write amplification")
    amplified.set_ylim(bottom=0)
    blocks.set_ylabel("free blocks")
    if blocks.get_legend_handles_labels()[0]:
        blocks.legend(frameon=False, fontsize="small", ncols=4)
    blocks.set_xlabel(f"time ({unit})")
    for axes in (rates, latencies, amplified, blocks):
        axes.grid(alpha=0.3)
    which = plots.which_seed(result.runs)
    figure.suptitle(f"{result.title} ({workload_kind(result.runs)}{which})")
    return figure


def _timed(result: Result, latency_class: str | None) -> list[str]:
    """Return the class of each run to draw over time: without `latency_class` what there is."""
    classes = plots.class_of_each(result.runs, latency_class, TIMED)
    if not set(classes).intersection(TIMED):
        raise InputError(
            f"a time series has the latency of reads and writes, not of {classes[0]!r}"
        )
    return classes


def _amplification(
    table: Mapping[str, Any], start: np.ndarray[Any, Any], length: float
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the middles of groups of windows, and the write amplification of each group.

    Programs follow the writes that they are for, so one window alone says little.
    """
    import numpy as np

    each = -(-len(start) // _GROUPS)
    firsts = np.arange(0, len(start), each)
    middle = start[firsts] + length * np.diff(np.append(firsts, len(start))) / 2
    found = amplification.of_windows(table)
    if found is None:
        return middle, np.full(len(firsts), np.nan)
    return middle, amplification.ratio(*(np.add.reduceat(part, firsts) for part in found))


def heat(result: Result, run: str | None = None, latency_class: str | None = None) -> Figure:
    """Return a heat map of single requests: time across, latency up, requests as colour.

    It takes the request log, which there is where the experiment sets
    ``measure.log_requests = true``. Without `run` it is the first one with such requests.
    Without `latency_class` it is the reads, and of a run that has none its main one.
    """
    import numpy as np
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    runs = result.runs if run is None else [result[run]]
    chosen = runs[0] if latency_class is None else plots.with_samples(runs, latency_class)[0]
    if latency_class is None:
        latency_class = "read" if chosen.samples("read") else chosen.main_class()
    time_s, latency_ns = _logged(chosen, latency_class)
    scale, unit = units.clock(float(time_s.max()))
    time = time_s / scale
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    low, high = np.log10(max(latency_ns.min(), 1)), np.log10(max(latency_ns.max(), 1))
    edges = np.logspace(low - 0.02, high + 0.02, _ROWS + 1)
    columns = np.linspace(time.min(), time.max(), _COLUMNS + 1)
    *_, cells = axes.hist2d(
        time, np.maximum(latency_ns, 1), bins=(columns, edges), norm=LogNorm(), cmap="viridis"
    )
    axes.set_yscale("log")
    plots.latencies(axes.yaxis)
    axes.set_ylabel(f"latency of {units.requests(latency_class)}")
    full = "; the request log was full then" if chosen.data.get("requests_not_logged") else ""
    axes.set_xlabel(f"completed at ({unit}){full}")
    figure.colorbar(cells, ax=axes, label="requests")
    which = plots.which_seed([chosen])
    figure.suptitle(f"{result.title}: {units.name(chosen.name)} ({workload_kind([chosen])}{which})")
    return figure


def windows(result: Result, run: str | None = None) -> Figure:
    """Return single reads over time, latency up, with deterministic windows in lanes below.

    A lane for each group of chips that are always in the same window, such as an NVM set. It
    takes the request log and the chip log, which there are where the experiment sets
    ``measure.log_requests = true`` and ``measure.chip_log``. Where a coordinator shares
    the windows out, what each class was given and has used follows.
    """
    from matplotlib.figure import Figure

    chosen = result.runs[0] if run is None else result[run]
    lanes, start_s, end_s = _lanes(chosen)
    counts = _counts(chosen)
    figure = Figure(figsize=(10, 7 if counts else 5), layout="constrained")
    heights = [4, 0.4 * len(lanes) + 0.4, *([2] if counts else [])]
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    time_s, latency_ns = _logged(chosen, "read")
    axes[0].plot(time_s, latency_ns, ".", markersize=2, color=RUN_COLOURS[0])
    axes[0].set_yscale("log")
    plots.latencies(axes[0].yaxis)
    axes[0].set_ylabel("latency of reads")
    for lane, spans in enumerate(lanes):
        axes[1].broken_barh(spans, (lane - 0.4, 0.8), color="#009E73")
    if len(lanes) == 1:
        for begin, length in lanes[0]:
            axes[0].axvspan(begin, begin + length, color="#DDEBDD", zorder=0)
    axes[1].set_yticks(range(len(lanes)), [f"set {lane}" for lane in range(len(lanes))])
    axes[1].set_ylabel("determi-\nnistic")
    if counts:
        table = chosen.series()
        # As read at the end of each window of the series, over that window.
        starts_s = [ns / 1e9 for ns in table["start_ns"]]
        edges_s = [*starts_s, starts_s[-1] + (starts_s[1] - starts_s[0] if starts_s[1:] else 0)]
        for index, name in enumerate(counts):
            line = plots.of_run(index) | {"drawstyle": "steps-pre"}
            given, used = (list(table[f"counts_{what}_{name}"]) for what in ("given", "used"))
            axes[2].plot(edges_s, given[:1] + given, label=f"{name}, given", **line)
            axes[2].plot(edges_s, used[:1] + used, **line | {"linestyle": ":"})
        axes[2].set_ylabel("counts (dotted: used)")
        axes[2].legend(frameon=False, fontsize="small")
    axes[-1].set_xlabel("time (s)")
    axes[0].set_xlim(start_s, end_s)
    which = plots.which_seed([chosen])
    figure.suptitle(f"{result.title}: {units.name(chosen.name)} ({workload_kind([chosen])}{which})")
    return figure


def _lanes(run: Run) -> tuple[list[list[tuple[float, float]]], float, float]:
    """Return when each group of chips is in deterministic windows, and the time watched, in s."""
    table = run.chips()
    columns = (table.column(name).to_pylist() for name in ("chip", "doing", "start_ns", "end_ns"))
    by_chip: dict[int, list[tuple[float, float]]] = {}
    start_s, end_s = float("inf"), 0.0
    for chip, doing, start_ns, end_ns in zip(*columns, strict=True):
        start_s, end_s = min(start_s, start_ns / 1e9), max(end_s, end_ns / 1e9)
        if doing == "deterministic":
            by_chip.setdefault(chip, []).append((start_ns / 1e9, (end_ns - start_ns) / 1e9))
    if not by_chip:
        raise InputError(f"run {run.name!r}: no deterministic window was watched")
    groups = dict.fromkeys(tuple(by_chip[chip]) for chip in sorted(by_chip))
    return [list(group) for group in groups], start_s, end_s


def _counts(run: Run) -> list[str]:
    """Return the classes whose counts are among the gauges."""
    prefix = "counts_given_"
    return [
        name.removeprefix(prefix) for name in run.series().column_names if name.startswith(prefix)
    ]


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


def _line(
    axes: Axes,
    x: np.ndarray[Any, Any],
    y: np.ndarray[Any, Any],
    **how: Any,  # noqa: ANN401
) -> None:
    """Draw a line, and a dot where a value stands between gaps, of which a line shows nothing."""
    import numpy as np

    before, after = np.append(np.nan, y[:-1]), np.append(y[1:], np.nan)
    is_alone = ~np.isnan(y) & np.isnan(before) & np.isnan(after)
    axes.plot(x, y, marker=".", markersize=3, markevery=np.flatnonzero(is_alone).tolist(), **how)


def _known(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return latencies with gaps where a window had no request."""
    import numpy as np

    found = np.asarray(values, dtype=float)
    return np.where(found > 0, found, np.nan)
