"""A plot of latency tails in plain characters, for a terminal or a log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from flashkeel import percentiles
from flashkeel.output import units
from flashkeel.output.plots import SHOWN
from flashkeel.run import Run

_MARKS = "ox+*#@%&abcdefghijklmnpqrstuvwyz"
_SEVERAL = "="
_COLUMNS_PER_NINE = 12
_ROWS = 14


def tails(runs: Sequence[Run], latency_class: str) -> str:
    """Return the tails of `runs`: percentile from 90 to 99.9999 % against latency.

    Both axes are logarithmic. Empty where there are no samples.
    """
    curves = [_columns(run.curve(latency_class, SHOWN[0])) for run in runs]
    values = [value for line in curves for value in line if value is not None]
    if not values:
        return ""
    low, high = min(values), max(values)
    # Latencies that are all the same have no scale, and need one row.
    rows = _ROWS if high > low else 1
    step = (high - low) / (_ROWS - 1) or 1.0
    grid = [[" "] * _width() for _ in range(rows)]
    for index, line in enumerate(curves):
        for column, value in enumerate(line):
            if value is not None:
                row = round((high - value) / step)
                taken = grid[row][column] != " "
                grid[row][column] = _SEVERAL if taken else _MARKS[index % len(_MARKS)]
    # Where latencies hardly differ, so would the labels not at all.
    labels = {
        units.duration(10 ** (high - row * step)): row for row in range(min(1, rows - 1), rows, 3)
    }
    labelled = {row: label for label, row in labels.items()}
    lines = [
        f"{labelled.get(row, ''):>9} |{''.join(cells).rstrip()}" for row, cells in enumerate(grid)
    ]
    marks = [
        f"{_MARKS[i % len(_MARKS)]} {run.name}"
        for i, run in enumerate(runs)
        if run.samples(latency_class)
    ]
    if any(_SEVERAL in row for row in grid):
        marks.append(f"{_SEVERAL} several")
    legend = "  ".join(marks)
    return "\n".join([*lines, f"{'':>9} +{'-' * _width()}", _axis(), f"{'':>11}{legend}"])


def _width() -> int:
    return _COLUMNS_PER_NINE * (len(SHOWN) - 1) + 1


def _axis() -> str:
    line = " " * 11
    for index, percentile in enumerate(SHOWN):
        line = line.ljust(11 + index * _COLUMNS_PER_NINE) + f"{percentile:g}"
    return f"{line} %"


def _columns(points: Sequence[tuple[float, int]]) -> list[float | None]:
    """Interpolate log10(ns) at every column, linearly in nines."""
    if len(points) < 2:
        return [None] * _width()
    # A logarithmic axis has no place for zero.
    known = [(percentiles.nines(p), math.log10(max(ns, 1))) for p, ns in points]
    line: list[float | None] = []
    for column in range(_width()):
        x = 1 + column / _COLUMNS_PER_NINE
        line.append(_interpolate(known, x) if x <= known[-1][0] + 1e-9 else None)
    return line


def _interpolate(known: Sequence[tuple[float, float]], x: float) -> float:
    for (x0, y0), (x1, y1) in pairwise(known):
        if x <= x1 + 1e-9:
            return y0 + (y1 - y0) * max(0.0, x - x0) / (x1 - x0)
    return known[-1][1]
