"""``flashkeel explain``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from flashkeel import _core
from flashkeel._core import InputError
from flashkeel.budget import check, spent
from flashkeel.cli.common import console, echo, split_assignment
from flashkeel.cli.results import load_runs
from flashkeel.output import plots, tables, units
from flashkeel.run import LATENCY_CLASSES
from flashkeel.serving import control


@click.command()
@click.argument("result")
@click.option(
    "--above", default="p99.9", show_default=True, metavar="PERCENTILE", help="Look above it."
)
@click.option(
    "--class",
    "latency_class",
    type=click.Choice(LATENCY_CLASSES),
    help="Requests to look at; small reads are up to 64 KiB.",
)
@click.option(
    "--budget",
    metavar="PARTS",
    help="What host, network, queue and device may each take, as "
    "host=10us,network=50us,queue=100us,device=300us: says which part broke it.",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def explain(
    result: str, above: str, latency_class: str | None, budget: str | None, form: str
) -> None:
    """Say who owns the latency above a percentile.

    RESULT is a directory or file of `run --out`, or one of its runs as DIR:RUN, or what a tenant
    got as DIR:RUN:TENANT; or unix:PATH, where a drive is being served with `--control`: its last
    minute.
    """
    parts = _parts(budget) if budget is not None else None
    found = [(run, run.explain(above, latency_class)) for run in load_runs(result)]
    state = _state(result)
    errors = {} if state is None else _errors(state)
    asked = units.requests(latency_class or "request")
    if not result.startswith("unix:") and not any(one.count for _, one in found):
        names = ", ".join(repr(run.name) for run, _ in found)
        raise InputError(f"{result}: there are no {asked} in {names}")
    if form == "json":
        rows = [
            asdict(one)
            | {"basis": run.data["basis"]}
            | {f"server_{name}": error for name, error in errors.items()}
            | ({} if state is None else {"time_scale": state["time_scale"]})
            | ({} if parts is None else {"budget": [asdict(part) for part in spent(one, parts)]})
            for run, one in found
        ]
        echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    screen = console()
    for run, one in found:
        if one.count == 0:
            screen.print(f"{run.name}: no {asked}")
            continue
        screen.print(tables.explanation(one, plots.workload_kind([run])))
        if parts is not None:
            screen.print(tables.budget(one, spent(one, parts)))
    if state is not None and state["time_scale"] != 1:
        echo(
            f"All times are the drive's: clients see each {state['time_scale']:g} times as long, "
            "as --time-scale says"
        )
    said = {
        "late": "since its start the server was later than the model says, of {:,} answers",
        "synced": "since the start {:,} requests waited until they were durable in --data",
    }
    for name, error in errors.items() if any(one.count for _, one in found) else ():
        shown = (("half", "p50_ns"), ("p99", "p99_ns"), ("p99.9", "p99_9_ns"))
        words = ", ".join(f"{word} {units.duration(error[key])}" for word, key in shown)
        told = said[name].format(error["count"])
        echo(f"Clients saw more than this: {told}: {words}")


def _errors(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what clients of a served drive saw beyond the model, where anything was measured.

    Each has the bounds of the classes in which it is counted.
    """
    found = {name: state[name] for name in ("late", "synced") if state[name]["count"]}
    return {name: {"bounds_ns": state["bounds_ns"]} | error for name, error in found.items()}


def _state(target: str) -> dict[str, Any] | None:
    """Return what a served drive says of itself; None of a result."""
    return control.ask(control.address(target), "state") if target.startswith("unix:") else None


def _parts(text: str) -> dict[str, float]:
    """Return what each part may take, in ns."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, time = split_assignment(part.strip(), "--budget")
        if name in found:
            raise click.UsageError(f"--budget {text}: {name} twice")
        try:
            found[name] = _core.span_ns(time)
        except InputError as error:
            raise InputError(f"--budget {name}: {error}") from None
    check(found)
    return found
