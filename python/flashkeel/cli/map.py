"""``flashkeel map``."""

from __future__ import annotations

from pathlib import Path

import click

from flashkeel.cli.common import Number, echo, out_file, refuse_no_picture
from flashkeel.cli.results import load_runs
from flashkeel.output import chip_map, perfetto


@click.command("map")
@click.argument("results", metavar="RESULT…", nargs=-1, required=True)
@out_file("File to write: a picture, .png, .svg or .pdf, or .pftrace for Perfetto.", required=True)
@click.option(
    "--from",
    "from_s",
    type=Number(min=0),
    metavar="SECONDS",
    help="Draw from there on, of what was watched.",
)
@click.option(
    "--length",
    "length_s",
    type=Number(min=0, min_open=True),
    metavar="SECONDS",
    help="Draw so much of it.",
)
def map_(
    results: tuple[str, ...], path: Path, from_s: float | None, length_s: float | None
) -> None:
    """Show what every chip does over time, and when reads wait.

    RESULT is a directory or file of `run --out`, or one of its runs as DIR:RUN;
    the experiment must have set measure.chip_log = { from = "20s" }. In a trace for Perfetto's
    viewer requests are shown, too, where it has set measure.log_requests.
    """
    if path.suffix != perfetto.SUFFIX:
        refuse_no_picture(path, f", a trace for Perfetto in {perfetto.SUFFIX}")
    runs = [run for result in results for run in load_runs(result, "what chips do")]
    if path.suffix == perfetto.SUFFIX:
        perfetto.save(runs, path, from_s, length_s)
    else:
        chip_map.save(runs, path, chip_map.Window(from_s, length_s))
    echo(f"Wrote {path}")
