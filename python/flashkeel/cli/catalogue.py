"""``flashkeel list`` and ``flashkeel show``."""

from __future__ import annotations

import json
from typing import Literal

import click

from flashkeel import _core
from flashkeel.cli.common import echo


@click.command("list")
@click.argument(
    "kind", type=click.Choice(["presets", "tiers", "policies", "profiles", "experiments"])
)
def list_(kind: Literal["presets", "tiers", "policies", "profiles", "experiments"]) -> None:
    """List what is built in, one a line.

    Presets are those of devices; `tiers` are sets of policies that a tier can be based on.
    A policy stands after what it decides.
    """
    for name in json.loads(_core.list_names(kind)):
        echo(name)


@click.command()
@click.argument("name")
def show(name: str) -> None:
    """Print a built-in preset, profile or experiment as TOML."""
    echo(_core.show(name).rstrip("\n"))
