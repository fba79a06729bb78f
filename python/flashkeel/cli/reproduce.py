"""``flashkeel reproduce``."""

from __future__ import annotations

from pathlib import Path

import click

from flashkeel import reproduce as reproduction
from flashkeel.cli.common import Seed, checked, console, echo, end, saved_after
from flashkeel.output import files
from flashkeel.output.progress import Bars
from flashkeel.reproduce import profiles, report, works
from flashkeel.reproduce.claims import Claim, Study, Verdict

_PIPE_WIDTH = 80
"""Of a table that is as wide as it may be: its cells are sentences."""


@click.command()
@click.argument("ids", metavar="[ID]…", nargs=-1)
@click.option(
    "--quick", is_flag=True, help="Shorter windows, smaller devices, one seed: a first look."
)
@click.option(
    "--range",
    "over_ranges",
    is_flag=True,
    help="Over the set-up quantities that a work leaves open: where claims hold.",
)
@click.option("--list", "only_list", is_flag=True, help="List figures and claims; run nothing.")
@click.option("--seed", type=Seed(), default=1, show_default=True, metavar="N", help="First seed.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Runs at a time; the results are the same for any number.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Save verdicts and pictures there.",
)
@click.option(
    "--traces",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Recorded traces to use instead of synthetic ones, named after their profiles.",
)
@checked("a claim does not hold; one that cannot be judged passes")
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def reproduce(
    ids: tuple[str, ...],
    quick: bool,
    over_ranges: bool,
    only_list: bool,
    seed: int,
    jobs: int,
    out: Path | None,
    traces: Path | None,
    check: bool,
    form: str,
) -> None:
    """Measure what published works claim.

    That is a work, a figure, a claim, or everything. Where a figure fails the others are
    measured, and the exit status says so. What was measured before an interrupt is shown and
    saved, and the runs that have ended are kept: the same command goes on from there.
    """
    studies = works.select(ids)
    if only_list:
        _list([(study, works.claims_of(study, ids)) for study in studies], form)
        return
    if traces is not None:
        profiles.refuse_useless(traces)
    if out is not None:
        # Where nothing can be written, that is known before hours of work.
        click.get_current_context().with_resource(files.folder(out))
    with Bars(["reproduce"]) as bars:
        session = reproduction.Session(
            quick=quick,
            seed=seed,
            jobs=jobs,
            traces=traces,
            keep=True,
            progress=lambda phase, fraction: bars.update(0, phase, fraction),
        )
        measure = reproduction.sweep if over_ranges else reproduction.reproduce
        unfinished: reproduction.Unfinished | reproduction.BrokenOff | None = None
        try:
            verdicts = measure(ids, session)
        except (reproduction.Unfinished, reproduction.BrokenOff) as error:
            verdicts, unfinished = error.verdicts, error
    if isinstance(unfinished, reproduction.BrokenOff) and not verdicts:
        raise _ended(unfinished)
    _show(verdicts, form, out)
    if caution := profiles.generated(session):
        echo(f"flashkeel: {caution}", err=True)
    if isinstance(unfinished, reproduction.BrokenOff):
        raise _ended(unfinished)
    if unfinished is not None:
        raise unfinished
    if check:
        end(not any(verdict.finding.holds is False for verdict in verdicts))


def _show(verdicts: list[Verdict], form: str, out: Path | None) -> None:
    written: list[Path] = []
    with saved_after(lambda: written.extend(report.save(verdicts, out) if out is not None else ())):
        if form == "json":
            echo(report.to_json(verdicts))
        else:
            console(_PIPE_WIDTH).print(report.table(verdicts))
    if form == "table":
        for path in written:
            echo(f"Wrote {path}")


def _ended(end: reproduction.BrokenOff) -> BaseException:
    """Return what ends the command after an interrupt, or after a batch queue's end of it."""
    told = f"{end}; runs that have ended are kept, and the same command goes on from there"
    if not isinstance(end.__cause__, SystemExit):
        return KeyboardInterrupt(told)
    end.__cause__.add_note(told)
    return end.__cause__


def _list(chosen: list[tuple[Study, list[Claim]]], form: str) -> None:
    if form == "json":
        echo(report.listing(chosen))
        return
    for study, claims in chosen:
        echo(f"{study.id}: {study.title}")
        for claim in claims:
            over = ", ".join(study.open_for(claim))
            echo(f"  {study.id}/{claim.name}: {claim.claim}" + (f" (over {over})" if over else ""))
