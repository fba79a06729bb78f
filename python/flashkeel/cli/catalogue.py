"""``flashkeel list`` and ``flashkeel show``."""

from __future__ import annotations

import json
from typing import Literal

import click

from flashkeel import _core
from flashkeel._core import InputError
from flashkeel.cli.common import echo


@click.command("list")
@click.argument(
    "kind", type=click.Choice(["presets", "tiers", "policies", "profiles", "experiments", "sweeps"])
)
def list_(
    kind: Literal["presets", "tiers", "policies", "profiles", "experiments", "sweeps"],
) -> None:
    """List what is built in, one a line.

    Presets are those of SSDs and NVMs; `tiers` are sets of policies that a tier can be based on.
    A policy stands after what it decides.
    """
    if kind == "sweeps":
        from flashkeel.sweep import design

        names = design.examples()
    else:
        names = json.loads(_core.list_names(kind))
    for name in names:
        echo(name)


@click.command()
@click.argument("name")
def show(name: str) -> None:
    """Print what is built in as TOML.

    That is a preset, a set of a tier's policies, a profile, an experiment or a sweep.
    """
    try:
        text = _core.show(name)
    except InputError:
        from flashkeel.sweep import design

        if name not in design.examples():
            raise
        text = design.example(name)
    echo(text.rstrip("\n"))
