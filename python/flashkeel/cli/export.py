"""``flashkeel export``."""

from __future__ import annotations

from pathlib import Path

import click

from flashkeel.cli.common import echo, out_file
from flashkeel.cli.results import load_result, result_file
from flashkeel.output import exports, files, fio_json

_FORMATS = {
    "fio-json": fio_json.render,
    "csv": exports.percentiles_csv,
    "runs-csv": exports.runs_csv,
    "markdown": exports.percentiles_markdown,
    "biolatency": exports.biolatency,
}


@click.command()
@click.argument("result")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_FORMATS)),
    required=True,
    help="fio's json+; percentiles as CSV, or as Markdown tables; runs as CSV, a row each; "
    "histograms as biolatency prints them.",
)
@out_file("File to write, instead of standard output.")
def export(result: str, form: str, path: Path | None) -> None:
    """Print a result in the shape of another tool.

    RESULT is a directory or file of `run --out`, or one of its runs as
    DIR:RUN, or what a tenant got, as DIR:RUN:TENANT. Time series and request
    logs are Parquet files in it.
    """
    text = _FORMATS[form](load_result(result))
    if path is None:
        echo(text.rstrip("\n"))
        return
    files.refuse_overwriting(path, [result_file(result)])
    files.write(path, text.rstrip("\n") + "\n")
    echo(f"Wrote {path}")
