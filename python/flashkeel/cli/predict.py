"""``flashkeel predict``: of a simulated drive, or of a real one by its log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from flashkeel._core import InputError, list_names
from flashkeel.cli.common import DESTROY, Number, Seed, console, echo, paragraph, print_notes
from flashkeel.cli.probe import FORMAT, NO_CACHE, SETS, find_drive
from flashkeel.experiment import Experiment
from flashkeel.output import files, log_tables, probe_tables
from flashkeel.output.progress import Bars
from flashkeel.seeds import consecutive
from flashkeel.ssdcheck import (
    PROFILE_REQUESTS,
    WORKLOADS,
    Diagnosis,
    find_workload,
    predict_log,
)

_OF_LOGS = ("iolog", "device", "time_unit")
_OF_DRIVES = ("workloads", "requests", "sets", "seed", "destroy", "no_cache")


@click.command()
@click.argument("target", metavar="[sim:PRESET|FILE.toml|DRIVE]", required=False)
@click.option(
    "--log",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Instead of a drive, a log of what one was asked and how long it took: fio's "
    "write_lat_log with log_offset=1, blkparse, blktrace, a trace with response times (msr, "
    "systor, etw), CSV whose first line names columns, or Parquet with such columns.",
)
@click.option(
    "--iolog",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --log: fio's write_iolog of the same job, which has exact times of submission.",
)
@click.option("--device", metavar="NAME", help="With --log: the device that counts, of several.")
@click.option(
    "--time-unit",
    metavar="TIME",
    help="With --log: what a tick of a trace and of its response times is, such as 1us; else its "
    "format's own.",
)
@click.option(
    "--model",
    "model_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Device model, as probe --out saves it; else another specimen is probed, and with "
    "--log its first half says what is slow.",
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="PROFILE|EXPERIMENT.toml",
    help="Workload; several, or else the paper's seven.",
)
@click.option(
    "--requests",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Requests of each profile.  [default: {PROFILE_REQUESTS}]",
)
@click.option(
    "--false-calls",
    type=Number(0, 1),
    metavar="PART",
    help="Of the normal requests no greater part is called slow; else as many as give the "
    "greatest harmonic mean of recall and precision, or 0.0085.",
)
@click.option(
    "--save-model",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the device model with what was learnt, for a later --model to begin with; of one "
    "--workload or --log.",
)
@SETS
@click.option(
    "--seed",
    type=Seed(),
    metavar="N",
    help="Seed, instead of the experiment's own, or 1 of a profile.",
)
@DESTROY
@NO_CACHE
@FORMAT
@click.pass_context
def predict(
    context: click.Context,
    target: str | None,
    log: Path | None,
    iolog: Path | None,
    device: str | None,
    time_unit: str | None,
    model_file: Path | None,
    workloads: tuple[str, ...],
    requests: int | None,
    false_calls: float | None,
    save_model: Path | None,
    sets: tuple[str, ...],
    seed: int | None,
    destroy: bool,
    no_cache: bool,
    form: str,
) -> None:
    """Predict every request to a drive, and say how good that was.

    The drive is simulated, or real: then --log tells what it was asked and how long it took, and
    predictions are scored beside three simple ones. Thresholds are fixed on the first half of the
    log and judged on the second.
    """
    _check(context, target, log)
    if save_model is not None:
        read = [log, iolog, None if target is None else Path(target), *map(Path, workloads)]
        files.refuse_overwriting(save_model, [it for it in read if it is not None and it.is_file()])
        _refuse_others(save_model)
        files.refuse_unwritable(save_model)
    model = None if model_file is None else Diagnosis.from_file(model_file)
    if log is not None:
        with Bars([log.name]) as bars:
            found = predict_log(
                log, model, iolog, device, partial(bars.update, 0), false_calls, time_unit
            )
        if save_model is not None:
            _save(save_model, log.name, found["model"])
        if model is not None:
            _warn_of_guesses(model)
            _warn(model, log.name, found)
        # Thousands of numbers, which are for another predictor.
        del found["model"]["learned"]
        if form == "json":
            echo(json.dumps(found, indent=2))
            return
        for part in log_tables.predictions(found):
            console().print(part)
        return
    assert target is not None
    drive = find_drive(target, sets, destroy)
    chosen = workloads or WORKLOADS
    if save_model is not None and len(chosen) != 1:
        raise click.UsageError("--save-model goes with one --workload, or with --log")
    experiments = _find_workloads(chosen, requests)
    with Bars(["model", *chosen]) as bars:
        if model is None:
            # The model must not know the very drive that it predicts.
            seeds = [it.plans(seed)[0]["config"]["seed"] for it in experiments]
            nexts = consecutive(seeds[0], len(seeds) + 1)
            other = next(it for it in nexts if it not in seeds)
            model = drive.probe(other, not no_cache, partial(bars.update, 0))
        results = [
            drive.predict(
                model,
                experiment,
                seed=seed,
                use_cache=not no_cache,
                progress=partial(bars.update, index),
                false_calls=false_calls,
            )
            | {"workload": name}
            for index, (name, experiment) in enumerate(zip(chosen, experiments, strict=True), 1)
        ]
    _warn_of_guesses(model)
    for name, result in zip(chosen, results, strict=True):
        _warn(model, name, result)
    learned = [result.pop("model") for result in results]
    _note_reach(model, learned[0]["sectors"])
    if save_model is not None:
        _save(save_model, target, learned[0])
    if form == "json":
        echo(json.dumps({"target": target, "workloads": results}, indent=2))
    else:
        _print(target, results)


def _find_workloads(names: Sequence[str], requests: int | None) -> list[Experiment]:
    """Return what is predicted; the requests are those of the profiles, of which there is one."""
    profiles = json.loads(list_names("profiles"))
    if not any(name in profiles for name in names):
        return [find_workload(name, requests) for name in names]
    return [find_workload(name, requests if name in profiles else None) for name in names]


def _print(target: str, results: list[dict[str, Any]]) -> None:
    console().print(probe_tables.predictions(target, results))
    for note in probe_tables.notes(results):
        echo(paragraph(note))


def _warn_of_guesses(model: Diagnosis) -> None:
    """Say if the probe did not find out what is slow; the model has a guess in its place."""
    for reason in model.model["undetermined"]:
        if reason.startswith("thresholds_ns"):
            echo(
                f"warning: {model.name}: what is slow is a guess, and so is all that is said of "
                f"slow requests: undetermined is {reason}",
                err=True,
            )


def _note_reach(model: Diagnosis, sectors: int) -> None:
    """Say if the model is of a log that knows a part of the drive only."""
    reached = model.model["sectors"]
    if reached < sectors:
        print_notes(
            [
                f"the log that the model {model.name} was read off reached {reached} of this "
                f"drive's {sectors} sectors"
            ]
        )


def _warn(model: Diagnosis, what: str, found: dict[str, Any]) -> None:
    """Say what the drive did that the model's cannot do."""
    if found["contradiction"] is not None:
        echo(
            f"warning: {what}: this drive does not behave as the model {model.name} says: "
            f"{found['contradiction']}",
            err=True,
        )


def _refuse_others(path: Path) -> None:
    """Refuse a file in which there is something else than a model."""
    if path.is_file() and path.stat().st_size > 0:
        try:
            Diagnosis.from_file(path)
        except InputError as error:
            raise InputError(
                f"{path}: is there and no device model; choose another name"
            ) from error


def _save(path: Path, name: str, model: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, Diagnosis(name, model).to_json() + "\n")


def _check(context: click.Context, target: str | None, log: Path | None) -> None:
    """Refuse options that have nothing to say."""
    if (target is None) == (log is None):
        raise click.UsageError("give either a drive (sim:PRESET or a TOML file) or --log FILE")
    idle = _OF_LOGS if log is None else _OF_DRIVES
    for name in idle:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = next(it.opts[0] for it in context.command.params if it.name == name)
            raise click.UsageError(
                f"{option} goes with --log"
                if log is None
                else f"{option} is of a simulated drive; a log has its own requests"
            )
