"""Time series of a run as lists, for judging and drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashkeel.run import Run


@dataclass(frozen=True)
class Columns:
    """Columns of a time series, one entry a window."""

    window_s: float
    _columns: dict[str, list[Any]]

    def __getitem__(self, name: str) -> list[Any]:
        """Return a column; None where it has no value."""
        return self._columns[name]

    @property
    def start_s(self) -> Sequence[float]:
        """Start of each window in s."""
        return [start / 1e9 for start in self._columns["start_ns"]]


def columns(run: Run, seed: int | None = None) -> Columns:
    """Return the time series of a run, by default of its first seed."""
    table = run.series(seed)
    found = {name: list(table.column(name).to_pylist()) for name in table.column_names}
    starts = found["start_ns"]
    window_ns = starts[1] - starts[0] if len(starts) > 1 else 0
    return Columns(window_ns / 1e9, found)


def least_free(runs: Mapping[str, Run]) -> str:
    """Return the fewest free blocks at the end of any window of each run, in words."""
    each = [f"{name} {min(columns(run)['free_blocks'])}" for name, run in runs.items()]
    return f"fewest free blocks: {', '.join(each)}"
