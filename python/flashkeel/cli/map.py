"""``flashkeel map``."""

from __future__ import annotations

from pathlib import Path

import click

from flashkeel.cli.common import echo, load_runs
from flashkeel.output import chip_map


@click.command("map")
@click.argument("results", metavar="RESULT…", nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE",
    help="Picture to write; .png, .svg and .pdf are known.",
)
@click.option(
    "--from",
    "from_s",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Draw from there on, of what was watched.",
)
@click.option(
    "--length",
    "length_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Draw so much of it.",
)
def map_(
    results: tuple[str, ...], path: Path, from_s: float | None, length_s: float | None
) -> None:
    """Draw what every chip does over time, and when reads wait.

    RESULT is a directory or file of `run --out`, or one of its runs as DIR:RUN;
    the experiment must have set measure.chip_log = { from = "20s" }.
    """
    if path.suffix not in {".png", ".svg", ".pdf"}:
        raise click.BadParameter(f"{path}: a picture ends in .png, .svg or .pdf")
    runs = [run for result in results for run in load_runs(result)]
    chip_map.save(runs, path, chip_map.Window(from_s, length_s))
    echo(f"Wrote {path}")
