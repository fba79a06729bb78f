"""What every chip does in one window of time: chips down, time across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flashkeel._core import InputError
from flashkeel.output import units
from flashkeel.output.files import whole
from flashkeel.output.plots import workload_kind
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WAIT = "read_waits"
_DETERMINISTIC = "deterministic"
# Okabe and Ito's colours, which people with colour blindness can tell apart.
_GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "host read": ("#56B4E9", ("host_read",)),
    "rebuild": ("#CC79A7", ("rebuild",)),
    "host write": ("#0072B2", ("host_write",)),
    "parity": ("#009E73", ("parity_read", "parity_write")),
    "map": ("#F0E442", ("map_read", "map_write")),
    "GC": ("#E69F00", ("gc_read", "gc_program", "gc_move", "gc_copyback")),
}  # fmt: skip
_ERASE = ("erase", "#A63603")
_OTHER = ("other", "#999999")
_WAIT_COLOUR = "#000000"
_DETERMINISTIC_COLOUR = "#DDEBDD"


@dataclass(frozen=True)
class Window:
    """A part of the time that was watched; None is its end."""

    from_s: float | None = None
    length_s: float | None = None


@dataclass(frozen=True)
class _Rows:
    """Intervals by what is done: chip, start and length in ms."""

    by_doing: Mapping[str, list[tuple[int, float, float]]]
    chips: int
    channels: Sequence[int]
    """The first chip of each."""
    start_s: float
    end_s: float


def save(runs: Sequence[Run], path: Path, window: Window) -> None:
    """Draw a map of each run into one file, as its extension says."""
    figure = draw(runs, window)
    with whole(path) as place:
        figure.savefig(place, dpi=130)


def draw(runs: Sequence[Run], window: Window) -> Figure:
    """Return one map a run, below each other; InputError where a run has no chip log."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    found = [_rows(run, window) for run in runs]
    figure = Figure(figsize=(11, 0.6 + 3.4 * len(runs)), layout="constrained")
    all_axes = figure.subplots(len(runs), 1, squeeze=False)[:, 0]
    for axes, run, rows in zip(all_axes, runs, found, strict=True):
        _map(axes, rows)
        axes.set_title(f"{units.name(run.name)} ({workload_kind([run])})", loc="left")
        axes.set_ylabel("chip, channel by channel")
    all_axes[-1].set_xlabel("time in the run (s)")
    seen = {doing for rows in found for doing in rows.by_doing}
    shown = {_group(doing) for doing in seen - {_WAIT, _DETERMINISTIC}}
    order = [*((group, colour) for group, (colour, _) in _GROUPS.items()), _ERASE, _OTHER]
    patches = [
        Patch(color=colour, label=group) for group, colour in order if (group, colour) in shown
    ]
    patches.append(Patch(color=_WAIT_COLOUR, label="a read of the host waits for the chip"))
    if _DETERMINISTIC in seen:
        patches.append(Patch(color=_DETERMINISTIC_COLOUR, label="deterministic window"))
    figure.legend(handles=patches, loc="outside lower center", ncols=9, frameon=False)
    return figure


def _rows(run: Run, window: Window) -> _Rows:
    table = run.chips()
    log = run.data["config"]["measure"]["chip_log"]
    columns = {name: list(table.column(name).to_pylist()) for name in table.column_names}
    if not columns["chip"]:
        raise InputError(
            f"run {run.name!r}: no chip does anything in the window of measure.chip_log, "
            f"{log['length']} from {log['from']} on; the run may have ended before"
        )
    start_s = min(columns["start_ns"]) / 1e9 if window.from_s is None else window.from_s
    end_s = max(columns["end_ns"]) / 1e9
    if window.length_s is not None:
        end_s = min(end_s, start_s + window.length_s)
    if start_s >= end_s:
        raise InputError(
            f"run {run.name!r}: nothing was watched from {start_s:g} s on; "
            f"measure.chip_log is {log['length']} from {log['from']} on"
        )
    by_doing: dict[str, list[tuple[int, float, float]]] = {}
    every = zip(
        columns["chip"], columns["doing"], columns["start_ns"], columns["end_ns"], strict=True
    )
    for chip, doing, start_ns, end_ns in every:
        begin, end = max(start_ns / 1e9, start_s), min(end_ns / 1e9, end_s)
        if begin < end:
            by_doing.setdefault(doing, []).append((chip, begin, end - begin))
    first, channels = 0, []
    for chips in run.data["channels"]:
        channels.append(first)
        first += chips
    return _Rows(by_doing, first, channels, start_s, end_s)


def _group(doing: str) -> tuple[str, str]:
    """Return the group of what a chip does, and its colour."""
    for group, (colour, names) in _GROUPS.items():
        if doing in names:
            return group, colour
    return _ERASE if doing.endswith("erase") else _OTHER


def _map(axes: Axes, rows: _Rows) -> None:
    from matplotlib.collections import PolyCollection

    def boxes(names: Sequence[str], bottom: float, height: float) -> PolyCollection:
        corners = [
            ((x, y), (x + width, y), (x + width, y + height), (x, y + height))
            for name in names
            for chip, x, width in rows.by_doing.get(name, [])
            for y in (chip + bottom,)
        ]
        return PolyCollection(corners, linewidths=0)

    windows = boxes((_DETERMINISTIC,), 0.0, 1.0)
    windows.set_facecolor(_DETERMINISTIC_COLOUR)
    axes.add_collection(windows)
    for doing in rows.by_doing.keys() - {_WAIT, _DETERMINISTIC}:
        drawn = boxes((doing,), 0.0, 0.65)
        drawn.set_facecolor(_group(doing)[1])
        axes.add_collection(drawn)
    waits = boxes((_WAIT,), 0.65, 0.35)
    waits.set_facecolor(_WAIT_COLOUR)
    axes.add_collection(waits)
    axes.set_xlim(rows.start_s, rows.end_s)
    axes.set_ylim(rows.chips, 0)
    axes.set_yticks(rows.channels)
    axes.grid(axis="y", alpha=0.4)
