"""The page of a report: its sections, style and script in one file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib import resources
from itertools import groupby
from pathlib import Path

from flashkeel import _core
from flashkeel.output import files, units
from flashkeel.output.plots import shown_classes, workload_kind
from flashkeel.output.report import differences, series, tails, warnings
from flashkeel.output.report.tails import key
from flashkeel.run import LATENCY_CLASSES, Run

_SAFE = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""The page loads nothing at all."""

_SECTIONS = {
    "runs": "Runs",
    "tails": "Latency tails",
    "blame": "What owns the latency, by percentile band",
    "time": "Over time",
    "comparison": "Comparison",
    "configuration": "Differences in configuration",
}


def write(runs: Sequence[Run], title: str, path: Path) -> None:
    """Write the report of `runs` to `path`; the first one is what others are compared with."""
    files.write(path, render(runs, title))


def render(runs: Sequence[Run], title: str) -> str:
    """Return the report of `runs` as an HTML page."""
    first = shown_classes(runs)
    others = [c for c in LATENCY_CLASSES if c not in first and any(run.samples(c) for run in runs)]
    # All reads, where all of them are small, would say the same again.
    classes = first + [c for c in others if not _are_small(runs, c)]
    body = {
        "runs": _runs(runs),
        "tails": _by_class(
            classes, lambda c: tails.picture(runs, c) + _legend(runs) + tails.table(runs, c)
        ),
        "blame": _by_class(classes, lambda c: tails.blame(runs, c)),
        "time": _legend(runs) + series.section(runs, classes),
        "comparison": _by_class(classes, lambda c: differences.compared(runs[0], runs[1:], c)),
        "configuration": differences.configuration(runs),
    }
    if len(runs) == 1:
        del body["comparison"], body["configuration"]
    titles = _SECTIONS | {"comparison": f"Compared with {escape(runs[0].name)}"}
    links = "".join(f'<a href="#{name}">{titles[name]}</a>' for name in body)
    sections = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title">'
        f'<h2 id="{name}-title">{titles[name]}</h2>{text}</section>'
        for name, text in body.items()
    )
    version = runs[0].data.get("version", _core.version())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_SAFE}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}: report</title><style>{part('report.css')}{_choices(classes)}"
        "</style></head><body>"
        f'<a class="skip" href="#main">To the results</a><header><h1>{escape(title)}</h1>'
        f"<p>{escape(workload_kind(runs))}; flashkeel {escape(str(version))}</p></header>"
        f"{_chooser(classes)}<nav aria-label=Sections>{links}</nav>"
        f'<main id="main" tabindex="-1">{_warnings(runs)}{sections}</main>'
        f"<script>{part('report.js')}</script></body></html>\n"
    )


def _are_small(runs: Sequence[Run], latency_class: str) -> bool:
    return latency_class in ("read", "small_read") and all(
        run.samples("read") == run.samples("small_read") for run in runs
    )


def part(name: str) -> str:
    """Return the style sheet or the script of a report, by its file's name."""
    return resources.files("flashkeel.output.report").joinpath(name).read_text(encoding="utf-8")


def _by_class(classes: Sequence[str], make: Callable[[str], str]) -> str:
    return "".join(
        f'<div class="for" data-class="{latency_class}">'
        f"<h3>{units.requests(latency_class)}</h3>{make(latency_class)}</div>"
        for latency_class in classes
    )


def _chooser(classes: Sequence[str]) -> str:
    """Return the choice of a class of requests, which works without a script."""
    buttons = "".join(
        f'<label><input type="radio" name="class" id="show-{name}"'
        f"{'' if index else ' checked'}> {units.requests(name)}</label>"
        for index, name in enumerate(classes)
    )
    every = '<label><input type="radio" name="class" id="show-all"> all</label>'
    return f'<fieldset id="classes"><legend>Requests</legend>{buttons}{every}</fieldset>'


def _choices(classes: Sequence[str]) -> str:
    return "".join(
        f'body:has(#show-{name}:checked) .for:not([data-class="{name}"]){{display:none}}'
        for name in classes
    )


def _legend(runs: Sequence[Run]) -> str:
    marks = "".join(f"<li>{key(i)}{escape(run.name)}</li>" for i, run in enumerate(runs))
    return f'<ul class="legend">{marks}</ul>'


def _warnings(runs: Sequence[Run]) -> str:
    found = warnings.found(runs)
    if not found:
        return '<section id="warnings"><p>Nothing has to be warned of.</p></section>'
    items = "".join(_grouped(found))
    return (
        '<section id="warnings" aria-labelledby="warnings-title">'
        f'<h2 id="warnings-title">Before you believe it</h2><ul>{items}</ul></section>'
    )


def _grouped(found: Sequence[warnings.Warning]) -> Iterator[str]:
    """Give a line a kind and text, with the runs that it is true of."""
    ordered = sorted(found, key=lambda it: (it.kind == "note", it.kind, it.text))
    for (kind, text), group in groupby(ordered, key=lambda it: (it.kind, it.text)):
        names = ", ".join(it.run for it in group if it.run)
        whose = f" ({escape(names)})" if names else ""
        said = re.sub("`(.+?)`", r"<code>\1</code>", escape(text))
        yield f"<li><strong>{escape(kind)}</strong>{whose}: {said}</li>"


def _runs(runs: Sequence[Run]) -> str:
    heads = (
        "run", "seeds", "time", "reads", "IOPS", "MB/s", "writes", "IOPS", "MB/s", "WAF",
        "erases", "GC-blocked", "digest",
    )  # fmt: skip
    rows = []
    for index, run in enumerate(runs):
        cells = [str(len(run.seeds)), units.duration(run.data["simulated_s"] * 1e9)]
        for latency_class in ("read", "write"):
            cells += [
                units.count(run.samples(latency_class)),
                units.rate(run.iops(latency_class)),
                units.significant(run.bandwidth(latency_class) / 1e6),
            ]
        cells += [
            units.ratio(run.data.get("waf")),
            units.count(run.data.get("erases")),
            units.share(run.data.get("gc_blocked_fraction")),
            f"<code>{escape(str(run.data.get('digest', units.MISSING)))}</code>",
        ]
        body = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{key(index)}{escape(run.name)}</th>{body}</tr>')
    head = "".join(f'<th scope="col">{escape(word)}</th>' for word in heads)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Runs">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
