"""The table of a sweep: a row a point, with as many columns as fit a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table

from flashkeel import percentiles
from flashkeel.comparison import FEW
from flashkeel.output import sweep_labels, units
from flashkeel.output.plots import workload_kind
from flashkeel.output.tables import PAGE, grid, of_intervals, tail, titled
from flashkeel.run import Run, main_class
from flashkeel.steadiness import is_early

_CYCLE = "writes/cycle"
_TELL_LEAST = (_CYCLE, "MB/s", "p99.99", "IOPS", "mean")
"""What a table has no room for goes first, in this order."""


def sweep(
    title: str,
    keys: Sequence[str],
    all_runs: Sequence[Run],
    rows: Sequence[Mapping[str, Any]],
    room: int = PAGE,
) -> Group:
    """Return one row a point: its keys, throughput, how far a cycle of the flash goes, the tail.

    Columns that are empty throughout are left out, and those that tell least where a line of
    `room` characters does not hold all.
    """
    latency_class = main_class(all_runs)
    names = [sweep_labels.name(key).replace("_", "\n") for key in keys]
    several = len({run.data["name"] for run in all_runs}) > 1
    short = sweep_labels.shortened(keys, rows)
    firsts = [
        [(f"{row['point']} {row['run']}" if several else str(row["point"])) + _marks(row)]
        + [str(row[key]) for key in keys]
        for row in short
    ]
    found = _columns(all_runs, rows, latency_class)
    shown = {name: cells for name, cells in found.items() if set(cells) != {units.MISSING}}

    def whole() -> Table:
        table = grid("run" if several else "point", *names, *map(_head, shown))
        for first, *cells in zip(firsts, *shown.values(), strict=True):
            table.add_row(*map(escape, (*first, *cells)))
        return table

    wide, dropped = Console(width=1000), []
    while wide.measure(whole()).maximum > room and (
        least := next((name for name in _TELL_LEAST if name in shown), None)
    ):
        del shown[least]
        dropped.append(least)
    caption = [units.requests(latency_class)]
    if _CYCLE in shown:
        caption.append(f"{_CYCLE}: drive writes for each cycle of the flash")
    caption.append(f"* fewer than {FEW} samples beyond: how many")
    lines = ["; ".join(caption)]
    if not all(run.samples(latency_class) for run in all_runs):
        words = units.requests(latency_class)
        lines.append(f"of points without {words} other classes are columns of sweep.parquet")
    lines += [*map(sweep_labels.meaning, sweep_labels.long_keys(keys, rows))]
    if dropped:
        lines.append(f"no room here, but columns of sweep.parquet: {', '.join(dropped)}")
    below = "\n".join(lines) + of_intervals(all_runs, latency_class) + _meanings(rows)
    return titled(f"{title} ({workload_kind(all_runs)})", whole(), below)


def _head(name: str) -> str:
    return name.replace("/", "/\n") if name == _CYCLE else name


def _columns(
    all_runs: Sequence[Run], rows: Sequence[Mapping[str, Any]], latency_class: str
) -> dict[str, list[str]]:
    """Return the cells of each column of what was measured, by its name."""
    known = [run if run.samples(latency_class) else None for run in all_runs]
    return {
        "IOPS": [units.rate(run.iops(latency_class) if run else None) for run in known],
        "MB/s": [
            units.significant(run.bandwidth(latency_class) / 1e6) if run else units.MISSING
            for run in known
        ],
        "WAF": [("~" if _is_early(row) else "") + units.ratio(row["waf"]) for row in rows],
        _CYCLE: [units.ratio(row["drive_writes_per_cycle"]) for row in rows],
        "mean": [units.duration(run.mean(latency_class)) for run in all_runs],
    } | {
        percentiles.label(at): [tail(run, latency_class, at) for run in all_runs]
        for at in (99.9, 99.99)
    }


def _is_early(row: Mapping[str, Any]) -> bool:
    return is_early(row.get("from_free_blocks"), row.get("left_in_buffer"))


def _marks(row: Mapping[str, Any]) -> str:
    marks = ("!" if row.get("overloaded") else "") + ("^" if row.get("of_first_state") else "")
    return f" {marks}" if marks else ""


def _meanings(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what marks of points mean, a line or more for each that is there."""
    words = ""
    if any(map(_is_early, rows)):
        words += (
            "\n~ blocks that were free before, or are free now, are more than a tenth of what"
            "\nwas programmed, or as much of what was written is in the write buffer yet: WAF"
            "\nis not yet the one that lasts"
        )
    if any(row.get("overloaded") for row in rows):
        words += "\n! requests come faster than they are served: latencies say how long the run was"
    if any(row.get("of_first_state") for row in rows):
        words += (
            "\n^ what the drive held before is in the figures: pages that were never written"
            "\nare read, or scattered ones in order, or the host wrote less than the whole"
            "\ndrive"
        )
    return words
