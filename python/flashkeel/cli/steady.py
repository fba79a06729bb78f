"""``flashkeel steady``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from flashkeel import steadiness
from flashkeel.cli.common import (
    Number,
    checked,
    console,
    echo,
    end,
    out_file,
    refuse_no_picture,
    saved_after,
)
from flashkeel.cli.results import load_runs
from flashkeel.output import files, steady_plots, tables
from flashkeel.run import Run
from flashkeel.steadiness import Criterion, Steadiness


@click.command()
@click.argument("result")
@click.option(
    "--ss",
    "criterion",
    metavar="WORDS",
    help="fio's criterion, as iops:10%, bw_slope:0.3% or lat:5%, instead of SNIA's.",
)
@click.option(
    "--ss-dur",
    "window_s",
    type=Number(min=0, min_open=True),
    metavar="SECONDS",
    help="Length of the window, instead of a fifth of the run: five rounds, or with --ss rounds of "
    "a second, and at least five.",
)
@click.option(
    "--variable",
    type=click.Choice(list(steadiness.VARIABLES)),
    help="What SNIA's criterion is applied to.  [default: lat]",
)
@out_file("Convergence plot to write, .png, .svg or .pdf.")
@checked("a seed of a run reached no steady state, or left it later")
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def steady(
    result: str,
    criterion: str | None,
    window_s: float | None,
    variable: str | None,
    path: Path | None,
    check: bool,
    form: str,
) -> None:
    """Say whether runs were in a steady state, and from when on.

    RESULT is a directory or file of `run --out`, or one of its runs as
    DIR:RUN. SNIA's Performance Test Specification calls five rounds steady whose values range
    over at most 20 % of their average and whose fitted line over at most 10 %. Each seed is
    judged by itself; the picture shows the first.
    """
    if path is not None:
        refuse_no_picture(path)
    if criterion is not None and variable is not None:
        raise click.UsageError("--variable goes with SNIA's criterion; --ss names one of its own")
    chosen = steadiness.parse(criterion) if criterion is not None else None
    tracked = chosen.variable if chosen else variable or "lat"
    runs = load_runs(result, "a steady state")
    parts = [(run, seed) for run in runs for seed in run.seeds]
    found = [steadiness.assess(run, tracked, chosen, window_s, seed) for run, seed in parts]
    if path is None:
        _show(parts, found, chosen, form)
    else:
        firsts = [it for it, (run, seed) in zip(found, parts, strict=True) if seed == run.seeds[0]]
        with saved_after(lambda: _save(runs, firsts, path)):
            _show(parts, found, chosen, form)
        if form == "table":
            echo(f"Wrote {path}")
    if check:
        end(all(each.reached is not None and not each.is_left for each in found))


def _show(
    parts: list[tuple[Run, int]], found: list[Steadiness], criterion: Criterion | None, form: str
) -> None:
    if form == "json":
        rows = [_as_json(*part, one, criterion) for part, one in zip(parts, found, strict=True)]
        echo(json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        named = [
            run.called(f"{run.name} seed {seed}") if len(run.seeds) > 1 else run
            for run, seed in parts
        ]
        console().print(tables.steady(named, found, criterion))


def _save(runs: list[Run], found: list[Steadiness], path: Path) -> None:
    with files.whole(path) as place:
        steady_plots.convergence(runs, found).savefig(place, dpi=130)


def _as_json(run: Run, seed: int, found: Steadiness, criterion: Criterion | None) -> dict[str, Any]:
    """Return fio's ``steadystate`` object, with SNIA's two shares beside."""
    window = found.reached or found.last
    data = {} if window is None else _window(window, criterion)
    if found.last is not None:
        data["last_mean"] = found.last.average
    return {
        "run": run.name,
        "seed": seed,
        "basis": run.data["basis"],
        "steadystate": {
            "ss": str(criterion) if criterion else f"{found.variable}:snia-pts",
            "attained": int(found.reached is not None),
        }
        | data,
    }


def _window(window: steadiness.Window, criterion: Criterion | None) -> dict[str, Any]:
    value = criterion.value(window) if criterion else window.deviation_share
    is_share = criterion is None or criterion.is_share
    return {
        "duration": window.points[-1].end_s - window.points[0].start_s,
        "from_s": window.points[0].start_s,
        "interval_s": window.points[0].end_s - window.points[0].start_s,
        # As fio does, in the unit of the limit.
        "criterion": f"{value * 100:f}%" if is_share else f"{value:f}",
        "max_deviation": window.deviation_share * window.average,
        "slope": window.slope_share_per_s * window.average,
        "range_share": window.range_share,
        "excursion_share": window.excursion_share,
        "data": {"mean": window.average, "values": [point.value for point in window.points]},
    }
