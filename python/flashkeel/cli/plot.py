"""``flashkeel plot``."""

from __future__ import annotations

from pathlib import Path

import click

from flashkeel.cli.common import echo, out_file, print_notes, refuse_no_picture
from flashkeel.cli.results import load_result
from flashkeel.output import files, pictures
from flashkeel.run import LATENCY_CLASSES


@click.command()
@click.argument("result")
@click.option(
    "--kind",
    type=click.Choice(list(pictures.KINDS)),
    default="tails",
    show_default=True,
    help="What to draw.",
)
@click.option(
    "--class",
    "latency_class",
    type=click.Choice(LATENCY_CLASSES),
    help="Requests to draw, for all kinds but `tails` and `windows`.",
)
@out_file("Picture to write, .png, .svg or .pdf.", required=True)
def plot(result: str, kind: str, latency_class: str | None, path: Path) -> None:
    """Draw tails, distributions, causes or time series of a result.

    RESULT is a directory or file of `run --out`, or one of its runs as
    DIR:RUN; for other kinds than `series`, `heat` and `windows` also a tenant, as
    DIR:RUN:TENANT. `heat` and `windows` take the log of requests of the first
    run, `heat` of the first with any of --class: measure.log_requests = true.
    """
    refuse_no_picture(path)
    if latency_class is not None and kind in ("tails", "windows"):
        raise click.UsageError(f"--class: the picture `{kind}` has the requests it has")
    chosen = {} if latency_class is None else {"latency_class": latency_class}
    whole = f"the picture `{kind}`" if kind in ("series", "heat", "windows") else ""
    found = load_result(result, whole)
    figure = found.plot(kind, **chosen)
    print_notes(pictures.notes(found, kind, latency_class))
    with files.whole(path) as place:
        figure.savefig(place, dpi=150)
    echo(f"Wrote {path}")
