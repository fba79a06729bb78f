"""What notebooks show of runs: a table of their percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from flashkeel import percentiles
from flashkeel.comparison import FEW, PERCENTILES
from flashkeel.output import units
from flashkeel.output.plots import workload_kind
from flashkeel.run import LATENCY_CLASSES, Run


def runs(all_runs: Sequence[Run]) -> str:
    """Return an HTML table, one row a run and class: its requests, rate and percentiles."""
    heads = ["run", "class", "requests", "IOPS", "mean", *map(percentiles.label, PERCENTILES)]
    rows = [
        _row(run, latency_class)
        for run in all_runs
        for latency_class in LATENCY_CLASSES
        if run.samples(latency_class)
    ]
    head = "".join(f"<th>{head}</th>" for head in heads)
    return (
        f"<table><tr>{head}</tr>{''.join(rows)}</table>"
        f"<p>{escape(workload_kind(all_runs))}; * fewer than {FEW} samples beyond: how many</p>"
    )


def _row(run: Run, latency_class: str) -> str:
    cells = [
        run.name,
        latency_class.replace("_", " "),
        units.count(run.samples(latency_class)),
        units.count(run.iops(latency_class)),
        units.duration(run.mean(latency_class)),
    ]
    for percentile in PERCENTILES:
        beyond = run.beyond(latency_class, percentile)
        mark = "" if beyond >= FEW else f" *{beyond}"
        cells.append(units.duration(run.percentile(latency_class, percentile)) + mark)
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
