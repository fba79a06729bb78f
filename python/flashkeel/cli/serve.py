"""``flashkeel serve``: a drive in real time."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flashkeel.cli.common import Number, Seed, echo
from flashkeel.cli.probe import find_drive
from flashkeel.output import units
from flashkeel.output.progress import Bars
from flashkeel.serving import control as _control
from flashkeel.serving import web

if TYPE_CHECKING:
    from flashkeel._core import Serving


@click.group()
def serve() -> None:
    """Serve a drive in real time."""


@serve.command()
@click.argument("stack", metavar="sim:PRESET|FILE.toml|DRIVE")
@click.option(
    "--listen",
    default="127.0.0.1:10809",
    show_default=True,
    metavar="unix:PATH|ADDRESS:PORT",
    help="Where clients connect.",
)
@click.option(
    "--data",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep what is written there, and go on with what is found there.",
)
@click.option(
    "--metrics", metavar="ADDRESS:PORT", help="Answer browsers there, and Prometheus at /metrics."
)
@click.option("--control", metavar="unix:PATH", help="Answer `flashkeel explain unix:PATH` there.")
@click.option("--name", default="flashkeel", show_default=True, help="The name of the export.")
@click.option("--read-only", is_flag=True, help="Take no writes.")
@click.option(
    "--destroy", is_flag=True, help="The data of real drives may be destroyed; else it is kept."
)
@click.option(
    "--time-scale",
    type=Number(min=1e-3, max=1e6),
    default=1.0,
    show_default=True,
    metavar="X",
    help="Make the drive X times slower than it is, where the machine cannot keep up.",
)
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Set a key of the device or stack."
)
@click.option("--seed", type=Seed(), default=1, show_default=True, metavar="N", help="Seed.")
@click.option("--no-cache", is_flag=True, help="Neither use nor keep steady states on disk.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def nbd(
    stack: str,
    listen: str,
    data: Path | None,
    metrics: str | None,
    control: str | None,
    name: str,
    read_only: bool,
    destroy: bool,
    time_scale: float,
    sets: tuple[str, ...],
    seed: int,
    no_cache: bool,
    form: str,
) -> None:
    """Serve a drive as a network block device.

    Each request is answered when the model says. What is written is kept in memory, and lost when
    serving ends, with Ctrl-C; or in a file, and found there again however it ends. A real drive, or
    a stack over some, is served read-only without --destroy.
    """
    drive = find_drive(stack, sets, destroy)
    with Bars([stack]) as bars, ExitStack() as listening:
        # Before anything is written: where somebody else is, nothing is begun.
        commands = pages = None
        if control is not None:
            commands = listening.enter_context(_control.listening(_control.address(control)))
        if metrics is not None:
            pages = listening.enter_context(web.listening(metrics, name))

        def ready(uri: str, size: int, serving: Serving) -> None:
            if commands is not None:
                commands(serving)
            if pages is not None:
                place = pages(serving)
                echo(f"To be watched at {place}, for Prometheus at {place}metrics", err=True)
            echo(f"Serving {size / 2**30:.3g} GiB at {uri}", err=True)

        served = drive.serve_nbd(
            listen,
            data=data,
            name=name,
            read_only=read_only,
            time_scale=time_scale,
            seed=seed,
            use_cache=not no_cache,
            say=lambda sentence: echo(sentence, err=True),
            ready=ready,
            progress=lambda phase, fraction: bars.update(0, phase, fraction),
        )
    if form == "json":
        echo(json.dumps(served))
        return
    late = served["late"]
    requests, clients = served["requests"], served["clients"]
    echo(f"{requests:,} request{'' if requests == 1 else 's'}", nl=False)
    echo(f" over {clients:,} connection{'' if clients == 1 else 's'}", nl=False)
    echo(f", {served['faults']:,} of which broke the protocol" if served["faults"] else "")
    shown = (("half", "p50_ns"), ("p99", "p99_ns"), ("p99.9", "p99_9_ns"), ("most", "max_ns"))
    if late["count"]:
        parts = ", ".join(f"{word} {units.duration(late[key])}" for word, key in shown)
        echo(f"Later than the model says, of {late['count']:,} answers: {parts}")
    synced = served["synced"]
    if synced["count"]:
        parts = ", ".join(f"{word} {units.duration(synced[key])}" for word, key in shown)
        echo(f"Longer until they were durable, of {synced['count']:,} requests: {parts}")
