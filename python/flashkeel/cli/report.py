"""``flashkeel report``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from flashkeel._core import InputError
from flashkeel.cli.common import echo, out_file
from flashkeel.cli.results import load_runs, result_file, told_apart
from flashkeel.output.files import refuse_overwriting
from flashkeel.output.report import page
from flashkeel.run import Run


@click.command()
@click.argument("results", metavar="RESULT…", nargs=-1, required=True)
@out_file("Page to write, such as report.html.", required=True)
@click.option("--title", metavar="WORDS", help="Title, instead of the first experiment's.")
@click.option("--base", metavar="RUN", help="Run that the others are compared with, by name.")
def report(results: tuple[str, ...], path: Path, title: str | None, base: str | None) -> None:
    """Write all that results say into one page.

    RESULT is a directory or file of `run --out`, or one of its runs as
    DIR:RUN. The page needs nothing but a browser: tails, what owns them, time series,
    comparison with the first run, differences in configuration, warnings.
    """
    if path.suffix.lower() in (".pdf", ".png", ".svg", ".jpg", ".jpeg"):
        raise InputError(f"{path}: a report is a page for a browser; call it {path.stem}.html")
    refuse_overwriting(path, map(result_file, results))
    for result in results:
        if result.startswith("unix:"):
            raise click.BadParameter(f"{result}: a report is of results that `run --out` saved")
    runs = _named_apart({result: load_runs(result, "a report") for result in results})
    if base is not None:
        if base not in [run.name for run in runs]:
            known = ", ".join(run.name for run in runs)
            raise InputError(f"--base {base}: no such run; there are {known}")
        runs.sort(key=lambda run: run.name != base)
    chosen = title or str(runs[0].data.get("config", {}).get("title") or "") or results[0]
    page.write(runs, chosen, path)
    echo(f"Wrote {path}")


def _named_apart(found: dict[str, list[Run]]) -> list[Run]:
    """Return all runs; those with a name that others have are called after their result, too."""
    counts = Counter(run.name for runs in found.values() for run in runs)
    places = told_apart([result_file(result).resolve() for result in found])
    return [
        run.called(f"{place}: {run.name}") if counts[run.name] > 1 else run
        for place, runs in zip(places, found.values(), strict=True)
        for run in runs
    ]
