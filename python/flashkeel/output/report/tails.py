"""The latency tails of a class of requests, on an axis of nines, and what owns them by band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from flashkeel import percentiles, spread
from flashkeel.comparison import FEW, is_guess
from flashkeel.explanation import told_apart
from flashkeel.output import units
from flashkeel.output.plots import CAUSE_COLOURS, OTHER_COLOUR, SHOWN, SMALLEST_SHARE
from flashkeel.output.report.draw import Drawing, Scale, colour, latencies, stroke, turn
from flashkeel.run import Run

_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 724, 12, 330
_BANDS = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999)
_TABLE = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)


def picture(runs: Sequence[Run], latency_class: str) -> str:
    """Return the tails of all runs, dotted where fewer than ten samples are beyond."""
    drawing = Drawing(760, 370)
    across = Scale(percentiles.nines(SHOWN[0]), percentiles.nines(SHOWN[-1]), _LEFT, _RIGHT)
    curves = [run.curve(latency_class, SHOWN[0]) for run in runs]
    bounds = [
        [
            (at, interval)
            for at, _ in curve
            if not is_guess(run, latency_class, at)
            and (interval := run.interval(latency_class, at)) is not None
        ]
        for run, curve in zip(runs, curves, strict=True)
    ]
    values = [ns for curve in curves for _, ns in curve]
    values += [ns for found in bounds for _, interval in found for ns in interval]
    up = latencies(values, _BOTTOM, _TOP)
    drawing.axis_y(up, _LEFT, _RIGHT, units.duration)
    for percentile in SHOWN:
        x = across(percentiles.nines(percentile))
        drawing.rule(x, _TOP, x, _BOTTOM)
        drawing.text(x, _BOTTOM + 18, f"{percentile:g} %", "middle")
    drawing.text((_LEFT + _RIGHT) / 2, _BOTTOM + 36, "percentile of requests", "middle")
    for index, (run, curve, found) in enumerate(zip(runs, curves, bounds, strict=True)):
        shade = colour(index)
        below = [(across(percentiles.nines(at)), up(max(low, 1))) for at, (low, _) in found]
        above = [(across(percentiles.nines(at)), up(max(high, 1))) for at, (_, high) in found]
        if len(found) > 1:
            drawing.area([*below, *above[::-1]], shade)
        placed = [(across(percentiles.nines(at)), up(max(ns, 1))) for at, ns in curve]
        guesses = [is_guess(run, latency_class, at) for at, _ in curve]
        sure = guesses.count(False)
        drawing.line(placed[:sure], shade, stroke(index))
        drawing.line(placed[max(0, sure - 1) :], shade, "line guess")
        for (at, ns), (x, y), is_open in zip(curve, placed, guesses, strict=True):
            beyond = f"{run.beyond(latency_class, at):,} beyond"
            says = f"{run.name}, {percentiles.label(at)}: {units.duration(ns)}; {beyond}"
            drawing.dot(x, y, shade, is_open, says)
    return drawing.svg(f"Latency of {units.requests(latency_class)} from 90 % to 99.9999 %, by run")


def table(runs: Sequence[Run], latency_class: str) -> str:
    """Return what the picture shows, in numbers, with the samples beyond each."""
    heads = ["run", "samples", "mean", *map(percentiles.label, _TABLE), "largest"]
    rows = []
    curves = [run.curve(latency_class) for run in runs]
    for index, run in enumerate(runs):
        # Of lines on each other only the last is seen.
        first = curves.index(curves[index])
        equal = f" = {escape(runs[first].name)}" if curves[index] and first < index else ""
        cells = [
            units.count(run.samples(latency_class)),
            units.duration(run.mean(latency_class)),
        ]
        for at in _TABLE:
            cells.append(_cell(run, latency_class, at))
        largest = run.data.get(latency_class, {}).get("max_ns")
        cells.append(units.duration(largest if run.samples(latency_class) else None))
        body = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{key(index)}{escape(run.name)}{equal}</th>{body}</tr>')
    head = "".join(f'<th scope="col">{escape(word)}</th>' for word in heads)
    is_missing = spread.is_missing(runs, latency_class)
    assumed = f" Intervals {spread.INDEPENDENT}." if is_missing else ""
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Percentiles">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f"<p>Below a percentile: its 95 % interval, and how many samples are beyond; "
        f"<b class='few'>*</b> fewer than {FEW}.{assumed}</p>"
    )


def key(index: int) -> str:
    """Return the mark that goes with a run's name."""
    return f'<i class="key{turn(index)}" style="background-color:{colour(index)}"></i>'


def _cell(run: Run, latency_class: str, at: float) -> str:
    ns = run.percentile(latency_class, at)
    if ns is None:
        return units.MISSING
    interval = run.interval(latency_class, at)
    bounds = f"<small>{units.interval(*interval)}</small>" if interval is not None else ""
    mark = "<b class='few'> *</b>" if is_guess(run, latency_class, at) else ""
    beyond = run.beyond(latency_class, at)
    return f"{units.duration(ns)}{mark}{bounds}<small>{units.count(beyond)} beyond</small>"


@dataclass(frozen=True)
class Band:
    """The requests between two percentiles, and what each cause owns of their latency, in ns."""

    name: str
    count: int
    owned_ns: dict[str, float]


def bands(run: Run, latency_class: str) -> list[Band]:
    """Return the requests of a class by bands of percentiles, as far as these can be told apart."""
    found = told_apart(run.explain(at, latency_class) for at in _BANDS)
    sums = [{s.cause: s.mean_ns * e.count for s in e.shares} for e in found]
    sums.append({})
    counts = [*(e.count for e in found), 0]
    reached = [e.reached for e in found]
    names = [*(f"{low} to {high}" for low, high in pairwise(reached)), f"above {reached[-1]}"]
    parts = zip(names, pairwise(counts), pairwise(sums), strict=True)
    return [
        Band(
            name.replace("p0 to", "up to").replace("above p0", "all") if row == 0 else name,
            count - beyond,
            {cause: max(0.0, ns - less.get(cause, 0.0)) for cause, ns in more.items()},
        )
        for row, (name, (count, beyond), (more, less)) in enumerate(parts)
    ]


def blame(runs: Sequence[Run], latency_class: str) -> str:
    """Return bars, one a run and band, and which colour is which cause."""
    found = [(run, bands(run, latency_class)) for run in runs if run.samples(latency_class)]
    named = {
        cause
        for _, run_bands in found
        for band in run_bands
        for cause, ns in band.owned_ns.items()
        if ns >= SMALLEST_SHARE * sum(band.owned_ns.values()) and ns > 0
    }
    order = [cause for cause in CAUSE_COLOURS if cause in named]
    order += sorted(named.difference(order))
    legend = "".join(
        f'<li><i class="key" style="background:{CAUSE_COLOURS.get(cause, OTHER_COLOUR)}"></i>'
        f"{escape(units.cause(cause))}</li>"
        for cause in order
    )
    small = (
        f'<li><i class="key" style="background:{OTHER_COLOUR}"></i>'
        f"others, each below {SMALLEST_SHARE:.0%}</li>"
    )
    parts = "".join(
        f"<figure><figcaption>{escape(run.name)}</figcaption>"
        f"{_bars(run, run_bands, order)}</figure>"
        for run, run_bands in found
    )
    return f'<ul class="legend">{legend}{small}</ul><div class="bars">{parts}</div>'


def _bars(run: Run, found: Sequence[Band], order: Sequence[str]) -> str:
    left, wide, high = 120, 330, 22
    drawing = Drawing(560, high * len(found) + 20)
    for row, band in enumerate(found):
        y, x, total = row * high, float(left), sum(band.owned_ns.values()) or 1.0
        drawing.text(left - 6, y + 14, band.name, "end")
        rest = 1.0
        for cause in order:
            share = band.owned_ns.get(cause, 0.0) / total
            if not share:
                continue
            rest -= share
            says = f"{band.name}: {units.cause(cause)} {units.share(share)}"
            drawing.box(
                x, y + 2, share * wide, high - 5, CAUSE_COLOURS.get(cause, OTHER_COLOUR), says
            )
            x += share * wide
        if rest > 1e-6:
            drawing.box(x, y + 2, rest * wide, high - 5, OTHER_COLOUR, "others")
        mean = units.duration(total / band.count) if band.count else units.MISSING
        drawing.text(left + wide + 6, y + 14, f"{mean}, {units.count(band.count)}")
    drawing.text(left, high * len(found) + 14, "share of the latency; mean, requests")
    words = "; ".join(f"{band.name}: {_largest(band)}" for band in found)
    return drawing.svg(f"What owns the latency of {run.name}. {words}")


def _largest(band: Band) -> str:
    total = sum(band.owned_ns.values()) or 1.0
    cause, ns = max(band.owned_ns.items(), key=lambda item: item[1], default=("nobody", 0.0))
    return f"{units.cause(cause)} {units.share(ns / total)}"
