"""``flashkeel compare``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click

from flashkeel import comparison, measures, settings, spread
from flashkeel._core import InputError
from flashkeel.cli.common import checked, console, echo, end, paragraph, print_notes
from flashkeel.cli.results import load_runs, result_file, told_apart
from flashkeel.comparison import Comparison
from flashkeel.output import cautions, comparison_tables, units
from flashkeel.run import Run

_FEW_SEEDS = (
    f"--check passed over percentiles that seem higher: with fewer than {spread.FEWEST} seeds on a "
    f"side another seed alone may make them so; give both sides `run --seeds {spread.FEWEST}`"
)


@click.command()
@click.argument("a")
@click.argument("b")
@checked(
    "a percentile of B is higher than A's by its interval, more of B's requests failed, or B lacks "
    "runs or requests that A has. With fewer than four seeds on a side (run --seeds 4) no "
    "percentile is called higher"
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def compare(a: str, b: str, check: bool, form: str) -> None:
    """Compare two results A and B: percentiles, WAF, rates.

    Each is a directory or file of `run --out`, or one of its runs as
    DIR:RUN, or what a tenant got, as DIR:RUN:TENANT. Runs of the same name are
    compared, or a single one with all of the other side.
    """
    runs = {"A": load_runs(a), "B": load_runs(b)}
    apart = _places(a, b)
    pairs = _pairs(runs["A"], runs["B"])
    found = [comparison.compare(*pair) for pair in pairs]
    alone = _alone(pairs, runs)
    if form == "json":
        objects = [_as_json(*pair, rows) for pair, rows in zip(pairs, found, strict=True)]
        echo(json.dumps(objects, indent=2, ensure_ascii=False))
    else:
        screen = console()
        for pair, rows in zip(pairs, found, strict=True):
            left, right = pair if apart is None else _named_apart(pair, apart)
            measured, differ = measures.compare(*pair), settings.differing(pair)
            screen.print(comparison_tables.comparison(left, right, rows, measured, differ))
        for side, each in runs.items():
            for caution in cautions.of(each):
                echo(paragraph(f"Note: {side} {caution}"))
        for text in _missing(pairs):
            echo(paragraph(text))
        if alone:
            echo(f"Not compared, as the other side has none of that name: {', '.join(alone)}")
    if check:
        is_whole = not any(text.startswith("A ") for text in alone)
        every_row = [row for rows in found for row in rows]
        if any(row.takes_seeds and row.difference_ns > 0 for row in every_row):
            print_notes([_FEW_SEEDS])
        every = zip(pairs, found, strict=True)
        end(is_whole and all(comparison.passes(*pair, rows) for pair, rows in every))


def _places(a: str, b: str) -> list[str] | None:
    """Return where A and B lie, if they do apart; a served drive is called what it is."""
    files = [None if it.startswith("unix:") else result_file(it).resolve() for it in (a, b)]
    if None in files:
        return [a, b] if a != b else None
    known = [file for file in files if file is not None]
    return told_apart(known) if len(set(known)) > 1 else None


def _named_apart(pair: tuple[Run, Run], places: list[str]) -> tuple[Run, Run]:
    """Return A and B; of one name, they are called after their places, too."""
    a, b = pair
    if a.name != b.name:
        return pair
    return a.called(f"{places[0]}: {a.name}"), b.called(f"{places[1]}: {b.name}")


def _pairs(a: list[Run], b: list[Run]) -> list[tuple[Run, Run]]:
    if len(a) == 1:
        return [(a[0], run) for run in b]
    if len(b) == 1:
        return [(run, b[0]) for run in a]
    named = {run.name: run for run in b}
    pairs = [(run, named[run.name]) for run in a if run.name in named]
    if not pairs:
        names = [", ".join(run.name for run in side) for side in (a, b)]
        raise InputError(f"no run of A ({names[0]}) has the name of one of B ({names[1]})")
    return pairs


def _alone(pairs: list[tuple[Run, Run]], runs: dict[str, list[Run]]) -> list[str]:
    """Return the runs that are in no pair, each with its side."""
    paired = {id(run) for pair in pairs for run in pair}
    return [
        f"{side} {run.name}" for side, each in runs.items() for run in each if id(run) not in paired
    ]


def _missing(pairs: list[tuple[Run, Run]]) -> Iterator[str]:
    """Say of which requests only one of a pair has any."""
    for a, b in pairs:
        for (side, run), other in ((("A", a), b), (("B", b), a)):
            if lost := comparison.lost_classes(run, other):
                words = ", ".join(units.requests(one, 2) for one in lost)
                yield f"Only {side} ({run.name}) has {words}"


def _as_json(a: Run, b: Run, found: Sequence[Comparison]) -> dict[str, object]:
    rows = [
        asdict(row) | {"difference_ns": row.difference_ns, "verdict": row.verdict} for row in found
    ]
    whole = [
        asdict(row) | {"difference": row.difference, "verdict": row.verdict}
        for row in measures.compare(a, b)
    ]
    basis = {side: run.data["basis"] for side, run in (("a_basis", a), ("b_basis", b))}
    notes = {side: list(cautions.of([run])) for side, run in (("a_notes", a), ("b_notes", b))}
    return {"a": a.name, "b": b.name, **basis, **notes, "percentiles": rows, "measures": whole}
