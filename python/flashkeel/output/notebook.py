"""What notebooks show: percentiles and tails of runs, causes of a tail, differences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from flashkeel import percentiles
from flashkeel.comparison import FEW, PERCENTILES, is_guess
from flashkeel.explanation import Explanation
from flashkeel.output import units
from flashkeel.output.plots import CAUSE_COLOURS, OTHER_COLOUR, workload_kind
from flashkeel.output.report import page
from flashkeel.output.report.tails import key, picture
from flashkeel.run import LATENCY_CLASSES, Run

_RULES = re.compile(r"^\.(?:line|key)\.\w+ \{.*\}$", re.MULTILINE)
"""Of the report's style: how lines of one colour are told apart, and points alone are seen."""


def style() -> str:
    """Return the colours and lines of drawings, for what stands in a page of others."""
    colours = ["#0072b2", "#c04f00", "#00805c", "#b0558a", "#a07000", "#2b8cbe", "#555555"]
    runs = "".join(f"--r{index}:{colour};" for index, colour in enumerate(colours))
    return (
        f".flashkeel{{--ink:currentColor;--paper:white;{runs}max-width:760px}}"
        ".flashkeel svg text{fill:currentColor;font:12px sans-serif}"
        ".flashkeel .line{fill:none;stroke-width:2}"
        ".flashkeel .guess{stroke-dasharray:2 4}"
        ".flashkeel .band{opacity:.18}"
        ".flashkeel .grid{stroke:#8888;stroke-width:.5}"
        ".flashkeel .key{display:inline-block;width:.8em;height:.8em;margin-right:.4em}"
        f"{''.join(f'.flashkeel {rule}' for rule in _RULES.findall(page.part('report.css')))}"
    )


def runs(all_runs: Sequence[Run]) -> str:
    """Return the tails of each run's main class, and a table with one row a run and class."""
    heads = ["run", "class", "requests", "IOPS", "mean", *map(percentiles.label, PERCENTILES)]
    rows = [
        _row(run, latency_class)
        for run in all_runs
        for latency_class in LATENCY_CLASSES
        if run.samples(latency_class)
    ]
    head = "".join(f"<th>{head}</th>" for head in heads)
    return (
        f"{_picture(all_runs)}<table><tr>{head}</tr>{''.join(rows)}</table>"
        f"<p>{escape(workload_kind(all_runs))}; * fewer than {FEW} samples beyond: how many</p>"
    )


def _picture(all_runs: Sequence[Run]) -> str:
    """Return the tails as a report draws them, in colours of its own."""
    classes = dict.fromkeys(run.main_class() for run in all_runs if run.samples(run.main_class()))
    if not classes:
        return ""
    drawn = ""
    for latency_class in classes:
        names = "".join(
            f"<span>{key(index)}{escape(run.name)}&emsp;</span>"
            for index, run in enumerate(all_runs)
            if run.samples(latency_class)
        )
        words = units.requests(latency_class)
        drawn += f"<p>Latency of {words}: {names}</p>{picture(all_runs, latency_class)}"
    return f'<div class="flashkeel"><style>{style()}</style>{drawn}</div>'


def explanation(found: Explanation) -> str:
    """Return one row a cause, with a bar as long as its share."""
    rows = "".join(
        f"<tr><td>{escape(units.cause(it.cause))}</td><td>{units.share(it.share)}</td>"
        f"<td>{units.duration(it.mean_ns)}</td><td>{units.count(it.requests)}</td>"
        f'<td style="text-align:left"><div style="width:{160 * it.share:.0f}px;height:10px;'
        f'background:{CAUSE_COLOURS.get(it.cause, OTHER_COLOUR)}"></div></td></tr>'
        for it in found.shares
    )
    head = "".join(f"<th>{it}</th>" for it in ("cause", "share", "mean", "requests", ""))
    words = units.requests(found.latency_class, found.count)
    return (
        f"<p><b>{escape(found.run)}</b>: {found.count:,} {words} above {found.reached} "
        f"(from {units.threshold(found)}), mean "
        f"{units.duration(found.mean_ns)}</p><table><tr>{head}</tr>{rows}</table>"
    )


def _row(run: Run, latency_class: str) -> str:
    cells = [
        run.name,
        latency_class.replace("_", " "),
        units.count(run.samples(latency_class)),
        units.rate(run.iops(latency_class)),
        units.duration(run.mean(latency_class)),
    ]
    for percentile in PERCENTILES:
        few = is_guess(run, latency_class, percentile)
        mark = f" *{run.beyond(latency_class, percentile)}" if few else ""
        cells.append(units.duration(run.percentile(latency_class, percentile)) + mark)
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
