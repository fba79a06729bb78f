"""``flashkeel plan buffer``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

from flashkeel import buffers, hierarchy
from flashkeel.buffers import Answer, Goal
from flashkeel.cli.common import Seed, checked, console, echo, end, paragraph
from flashkeel.cli.finding import find
from flashkeel.cli.plan_tier import Span
from flashkeel.output import buffer_tables
from flashkeel.output.progress import Bars

_ELSEWHERE = {
    "drive": "the drive is a key here, --set device.preset={}",
    "trace": "the trace is named alone here, plan buffer {}",
    "profile": "the profile is named alone here, plan buffer {}",
}
"""What the sisters of this command have an option for, which has one place here already."""


def _elsewhere(_: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(f"--{option.name}: {_ELSEWHERE[str(option.name)].format(value)}")


def _of_the_sisters(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command say how it is told what others take as options."""
    for name in _ELSEWHERE:
        option = click.option(f"--{name}", hidden=True, expose_value=False, callback=_elsewhere)
        command = option(command)
    return command


@click.command("buffer")
@_of_the_sisters
@click.argument("experiment", metavar="EXPERIMENT.toml|JOB.fio|TRACE|NAME")
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Set a key over the experiment's."
)
@click.option(
    "--percentile",
    type=click.Choice(hierarchy.PERCENTILES),
    default="p99.9",
    show_default=True,
    metavar="P",
    help="Which tail of writes, from p50 to p99.99.",
)
@click.option(
    "--max-write",
    type=Span(),
    default="1ms",
    show_default=True,
    metavar="TIME",
    help="The longest that it may be.",
)
@click.option("--seed", type=Seed(), metavar="N", help="Seed, instead of the experiment's.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="K",
    help="Run with K consecutive seeds, and pool them.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Seeds at a time; the results are the same for any number.",
)
@checked("the drive's own write buffer is too small")
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def buffer(experiment: str, sets: tuple[str, ...], **options: Any) -> None:  # noqa: ANN401
    """Say how large a drive's write buffer must be for bursts.

    They are those of a workload: each run of the experiment is run with buffers of several
    sizes, until the smallest is found, within a tenth, with which the tail of writes is short
    enough.
    """
    chosen = find(experiment, sets)
    goal = Goal(options["percentile"], options["max_write"])
    with Bars(["plan buffer"]) as bars:
        answers = buffers.plan(
            chosen,
            goal,
            options["seed"],
            options["seeds"],
            options["jobs"],
            partial(bars.update, 0),
        )
    if options["form"] == "json":
        echo(json.dumps(to_object(answers, goal), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _print(answers, goal)
    if options["check"]:
        end(all(answer.is_enough for answer in answers))


def _print(answers: Sequence[Answer], goal: Goal) -> None:
    for answer in answers:
        echo(buffer_tables.title(answer))
        console().print(buffer_tables.tried(answer, goal))
        echo(paragraph(buffer_tables.verdict(answer, goal)) + "\n")
    for note in buffer_tables.notes(answers, goal):
        echo(paragraph(f"Note: {note}"))


def to_object(answers: Sequence[Answer], goal: Goal) -> dict[str, Any]:
    """Return what ``--format json`` prints."""
    return {
        "percentile": goal.percentile,
        "max_write_ns": goal.write_ns,
        "runs": [
            {
                "name": answer.name,
                "configured_bytes": answer.configured_bytes,
                "smallest_bytes": answer.smallest and answer.smallest.size_bytes,
                "owner": answer.owner
                and {"cause": answer.owner.cause, "share": answer.owner.share},
                "tried": [
                    {
                        "size_bytes": tried.size_bytes,
                        "keeps": goal.is_kept(tried.run),
                        "write_ns": tried.run.percentile("write", goal.percentile),
                        "beyond": tried.run.beyond("write", goal.percentile),
                        "small_read_ns": tried.run.percentile("small_read", goal.percentile),
                    }
                    for tried in answer.tried
                ],
            }
            for answer in answers
        ],
        "notes": buffer_tables.notes(answers, goal),
    }
