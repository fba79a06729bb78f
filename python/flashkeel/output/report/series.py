"""What happened over time: rows of drawings with one time axis and one cursor."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flashkeel import amplification
from flashkeel.output import units
from flashkeel.output.plots import which_seed
from flashkeel.output.report.draw import Drawing, Scale, colour, latencies, stroke
from flashkeel.run import Run

if TYPE_CHECKING:
    import numpy as np

_COLUMNS = 360
_LEFT, _RIGHT = 70, 740
_SHARES = ("host", "map", "gc", "scrub", "wear_levelling", "checkpoint")
_TASKS = {"gc": "garbage collection", "map": "map pages", "wear_levelling": "wear levelling"}

Values = list[float | None]


@dataclass(frozen=True)
class Row:
    """A quantity over time, for each run; None where nothing was measured."""

    title: str
    unit: str
    """``duration``, ``count`` or ``share``."""
    values: Sequence[Values]
    is_latency: bool = False
    peaks: Sequence[Values] = ()
    """The largest of any window, where `values` are means."""
    only: str = ""
    """The class of requests it is shown with; empty for all."""


def section(runs: Sequence[Run], classes: Sequence[str]) -> str:
    """Return the section: drawings, and the data of the cursor. Empty without any series."""
    found = _Grid.of(runs)
    if found is None:
        return "<p>This result has no time series beside it.</p>"
    rows = list(_rows(found, runs, classes))
    drawings = "".join(_drawing(row, found, index) for index, row in enumerate(rows))
    data = {
        "start_s": found.start_s,
        "step_s": found.step_s,
        "clock": units.clock(found.start_s + found.columns * found.step_s),
        "columns": found.columns,
        "left": _LEFT,
        "right": _RIGHT,
        "runs": [run.name for run in runs],
        "rows": [
            {
                "unit": row.unit,
                "values": [_short(values) for values in row.values],
                "peaks": [_short(values) for values in row.peaks],
            }
            for row in rows
        ],
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return (
        '<div id="series" tabindex="0" role="group" aria-label="Time series; arrow keys move a '
        'cursor through time">'
        f"<p>{_means(found)}{which_seed(runs)}.</p>"
        f'<p id="when" aria-live="polite">Point at a drawing, or press the arrow keys, '
        f"to read values.</p>{drawings}</div>"
        f'<script type="application/json" id="series-data">{text}</script>'
    )


def _means(grid: _Grid) -> str:
    """Return what a point of the drawings stands for."""
    if grid.columns == 1:
        return "All is one window"
    step, window = (units.duration(s * 1e9) for s in (grid.step_s, grid.window_s))
    if not grid.is_coarse:
        return f"Each point is a window of {step}"
    return f"Each point is the mean over {step}; what is dotted is of windows of {window} within it"


def _short(values: Values) -> Values:
    return [None if value is None else float(f"{value:.4g}") for value in values]


@dataclass(frozen=True)
class _Grid:
    """Columns of time that all runs share."""

    start_s: float
    step_s: float
    columns: int
    window_s: float
    """The shortest of the series' own windows, of which a column may have many."""
    tables: Sequence[dict[str, np.ndarray[Any, Any]] | None]

    @staticmethod
    def of(runs: Sequence[Run]) -> _Grid | None:
        """Return the columns of these runs' time series, of which one has to be there."""
        tables: list[dict[str, Any] | None] = []
        for run in runs:
            table = run.series() if run.has("series") else ()
            tables.append(dict(table) if len(table) else None)
        starts = [table["start_ns"] for table in tables if table is not None]
        if not starts:
            return None
        steps = [float(start[1] - start[0]) / 1e9 for start in starts if len(start) > 1] or [0.1]
        first = min(float(start[0]) for start in starts) / 1e9
        last = max(float(start[-1]) for start in starts) / 1e9 + max(steps)
        step = max(*steps, (last - first) / _COLUMNS)
        columns = math.ceil((last - first) / step - 1e-6)
        return _Grid(first, step, columns, min(steps), tables)

    @property
    def is_coarse(self) -> bool:
        """Return whether columns hide how much their windows differ."""
        return self.step_s > 1.001 * self.window_s

    def places(self, table: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """Return the column of each window of a series."""
        import numpy as np

        at = (table["start_ns"].astype(float) / 1e9 - self.start_s) / self.step_s + 1e-6
        return np.asarray(np.minimum(at.astype(int), self.columns - 1))

    def each(
        self, of: Callable[[dict[str, np.ndarray[Any, Any]], np.ndarray[Any, Any]], Values]
    ) -> list[Values]:
        """Return what `of` makes of every run's series and its columns."""
        nothing: Values = [None] * self.columns
        return [
            nothing if table is None else of(table, self.places(table)) for table in self.tables
        ]


def _rows(grid: _Grid, runs: Sequence[Run], classes: Sequence[str]) -> list[Row]:
    import numpy as np

    def rate(*names: str, largest: bool = False) -> list[Values]:
        def of(table: dict[str, Any], places: Any) -> Values:  # noqa: ANN401
            starts, counts = table["start_ns"], sum(table[name] for name in names)
            if len(starts) == 1:
                return [None] * grid.columns
            window_s = float(starts[1] - starts[0]) / 1e9
            # The end of the run cuts the last one short.
            places, counts = places[:-1], counts[:-1]
            windows = np.bincount(places, minlength=grid.columns)
            if largest:
                return _there(_largest(places, counts / window_s, grid.columns), windows)
            found = np.bincount(places, counts, grid.columns) / (np.maximum(windows, 1) * window_s)
            return _there(found, windows)

        return grid.each(of)

    def latency(name: str, largest: bool) -> list[Values]:
        def of(table: dict[str, Any], places: Any) -> Values:  # noqa: ANN401
            counts = np.bincount(places, table[f"{name}s"], grid.columns)
            if largest:
                values = _largest(places, table[f"{name}_max_ns"], grid.columns)
            else:
                means = np.nan_to_num(table[f"{name}_mean_ns"].astype(float))
                sums = np.bincount(places, means * table[f"{name}s"], grid.columns)
                values = sums / np.maximum(counts, 1)
            return _there(values, counts)

        return grid.each(of)

    def gauge(
        name: str, fold: Callable[..., Any], scale: float = 1.0, *, largest: bool = False
    ) -> list[Values]:
        def of(table: dict[str, Any], places: Any) -> Values:  # noqa: ANN401
            drives = [values for key, values in table.items() if _is_gauge(key, name)]
            if not any(values.any() for values in drives):
                # Nor is a share under a scheduler that knows none.
                return [None] * grid.columns
            values = fold(np.asarray(drives, dtype=float), axis=0) * scale
            counts = np.bincount(places, minlength=grid.columns)
            if largest:
                return _there(_largest(places, values, grid.columns), counts)
            sums = np.bincount(places, values, grid.columns)
            return _there(sums / np.maximum(counts, 1), counts)

        return grid.each(of)

    def amplified(table: dict[str, Any], places: Any) -> Values:  # noqa: ANN401
        found = amplification.of_windows(table)
        if found is None:
            return [None] * grid.columns
        written, programmed = (np.bincount(places, each, grid.columns) for each in found)
        return _there(amplification.ratio(written, programmed), written)

    rows = [
        Row(
            f"latency of {units.requests(name)}: mean (dotted: slowest)",
            "duration",
            latency(name, False),
            True,
            latency(name, True),
            name,
        )
        for name in classes
        if name in ("small_read", "read", "write")
    ]
    most = ": mean (dotted: most)" if grid.is_coarse else ""

    def peaks(of: Callable[..., list[Values]], *arguments: Any) -> Sequence[Values]:  # noqa: ANN401
        return of(*arguments, largest=True) if grid.is_coarse else ()

    both = ("reads", "writes")
    rows.append(Row(f"requests a second{most}", "count", rate(*both), peaks=peaks(rate, *both)))
    rows.append(Row("write amplification", "count", grid.each(amplified)))
    several = any(_drives(table) > 1 for table in grid.tables if table is not None)
    of = ", fewest of any drive" if several else ""
    rows.append(Row(f"free blocks{of}", "count", gauge("free_blocks", np.min)))
    inside = ("requests_in_device", np.sum)
    rows.append(
        Row(f"requests in the device{most}", "count", gauge(*inside), peaks=peaks(gauge, *inside))
    )
    rows.append(Row("collection at work", "share", gauge("gc_active", np.mean)))
    for task in _SHARES:
        row = Row(
            f"limit of the flash (may use up to): {_TASKS.get(task, task)}",
            "share",
            gauge(f"share_{task}_ppm", np.mean, 1e-6),
        )
        rows.append(row)
    # What was not measured, or never was, has no row.
    return [row for row in rows if any(value for values in row.values for value in values)]


def _is_gauge(key: str, name: str) -> bool:
    """Return whether a column is the gauge `name`, of the only drive or of one of several."""
    prefix, _, rest = key.partition("_")
    return key == name or (prefix.startswith("ssd") and rest == name)


def _drives(table: dict[str, Any]) -> int:
    return sum(_is_gauge(key, "free_blocks") for key in table)


def _largest(places: Any, values: Any, columns: int) -> Any:  # noqa: ANN401
    """Return the largest of the values in each column."""
    import numpy as np

    found = np.zeros(columns)
    np.maximum.at(found, places, np.asarray(values, dtype=float))
    return found


def _there(values: Any, counts: Any) -> Values:  # noqa: ANN401
    """Return values, None where nothing was counted."""
    return [float(value) if count else None for value, count in zip(values, counts, strict=True)]


_WORDS: dict[str, Callable[[float], str]] = {
    "duration": units.duration,
    "count": units.tick,
    "share": units.share,
}


def _drawing(row: Row, grid: _Grid, index: int) -> str:
    top, bottom = 8, 150 if row.is_latency else 96
    drawing = Drawing(760, bottom + 20)
    across = Scale(grid.start_s, grid.start_s + grid.columns * grid.step_s, _LEFT, _RIGHT)
    known = [v for values in (*row.values, *row.peaks) for v in values if v is not None]
    if row.is_latency:
        up = latencies(known, bottom, top)
    else:
        up = Scale(0.0, 1.0 if row.unit == "share" else max(known) * 1.05 or 1.0, bottom, top)
    drawing.axis_y(up, _LEFT, _RIGHT, _WORDS[row.unit])
    scale, unit = units.clock(across.high)
    for tick in Scale(across.low / scale, across.high / scale, _LEFT, _RIGHT).ticks():
        place = across(tick * scale)
        drawing.rule(place, top, place, bottom)
        drawing.text(place, bottom + 15, f"{tick:g} {unit}", "middle")
    for dots, every in ((True, row.peaks), (False, row.values)):
        for run, values in enumerate(every):
            middle = [grid.start_s + (column + 0.5) * grid.step_s for column in range(grid.columns)]
            points = [
                None if value is None else (across(at), up(max(value, 1) if up.is_log else value))
                for at, value in zip(middle, values, strict=True)
            ]
            kind = "line guess" if dots else stroke(run)
            drawing.line(points, colour(run), f"{kind} thin")
    drawing.rule(-9, top, -9, bottom, "cursor")
    shown = f' class="for" data-class="{row.only}"' if row.only else ""
    return (
        f"<figure{shown}><figcaption>{row.title} <output data-row={index}></output></figcaption>"
        f"{drawing.svg(f'{row.title}, over time')}</figure>"
    )
