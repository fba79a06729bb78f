"""``flashkeel list`` and ``flashkeel show``."""

from __future__ import annotations

import json

import click

from flashkeel import _core


@click.command("list")
@click.argument("kind", type=click.Choice(["presets", "policies", "experiments"]))
def list_(kind: str) -> None:
    """List what is built in, one name a line."""
    for name in json.loads(_core.list_names(kind)):
        click.echo(name)


@click.command()
@click.argument("name")
def show(name: str) -> None:
    """Print a built-in preset or experiment as TOML, ready to be changed."""
    click.echo(_core.show(name).rstrip("\n"))
