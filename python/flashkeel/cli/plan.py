"""``flashkeel plan``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from flashkeel import InputError, lifetime, padding, policies
from flashkeel.cli.common import (
    Seed,
    checked,
    console,
    echo,
    end,
    paragraph,
    show_with_picture,
    source_settings,
)
from flashkeel.cli.plan_buffer import buffer
from flashkeel.cli.plan_tier import MediumType, tier
from flashkeel.lifetime import Estimate, Plan
from flashkeel.media import Sold
from flashkeel.output import files, lifetime_plots, lifetime_tables
from flashkeel.output.progress import Bars
from flashkeel.padding import Padding

_ENDURANCE = ("rated_cycles", "tbw", "dwpd")
_DRIVE = ("capacity", *_ENDURANCE, "over_provisioning", "wear_levelling")
_RECORDED = ("demand", "trace")
_OF_TRACE = "workload.source."
_OF_OPTIONS = {
    "write_amplification": "--waf",
    "traffic.name": "--profile",
    "traffic.interval": "--interval",
    "traffic.workload": "--workload",
}
"""Options by the core's names of what they set, where these are others."""
_PROFILES = ", ".join(profile["name"] for profile in lifetime.write_profiles())


@click.group()
def plan() -> None:
    """Answer what a buyer asks of a drive."""


plan.add_command(buffer)
plan.add_command(tier)


@plan.command("lifetime")
@click.option(
    "--drive",
    type=MediumType(),
    metavar="MEDIUM",
    help="PRESET[,dwpd=X]: capacity, over-provisioning and endurance of a preset, the drive writes "
    "per day in the place of its wear law; what is given beside it counts more.",
)
@click.option("--capacity", metavar="SIZE", help="Capacity, as 128GB.")
@click.option(
    "--rated-cycles",
    type=click.IntRange(min=1),
    metavar="N",
    help="Cycles that a block endures.",
)
@click.option("--tbw", metavar="SIZE", help="Bytes the drive is rated for, as 75TB.")
@click.option("--dwpd", type=float, metavar="X", help="Drive writes per day, over five years.")
@click.option(
    "--over-provisioning",
    type=float,
    metavar="SHARE",
    help="Flash beyond the capacity; that of --drive or 0.07 if not given.",
)
@click.option(
    "--wear-levelling",
    type=click.IntRange(1, 200),
    metavar="N",
    help="Erases apart at which blocks change places; else wear is not levelled.",
)
@click.option("--profile", metavar="NAME", help=f"Traffic: {_PROFILES}.")
@click.option("--demand", metavar="FILE", help="Traffic: a CSV of bytes written by windows.")
@click.option("--workload", metavar="NAME", help="Which series of --demand.")
@click.option("--interval", metavar="TIME", help="Window of --demand; 30min if not given.")
@click.option("--trace", metavar="FILE", help="Traffic: the writes of a recorded trace.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of --trace, such as format=msr or reorder=10ms.",
)
@click.option("--gb-per-day", type=float, metavar="X", help="Traffic: so much, evenly.")
@click.option(
    "--throttle",
    type=click.Choice(policies.by_axis()["throttle"]),
    default="ready",
    show_default=True,
)
@click.option("--target-years", type=float, default=5.0, show_default=True, metavar="X")
@click.option("--waf", type=float, metavar="X", help="Write amplification; else measured.")
@click.option("--recovery", is_flag=True, help="Count what idle blocks recover (our constants).")
@click.option(
    "--pattern",
    type=click.Choice(policies.by_axis()["access pattern"]),
    help="Where writes go, for measuring write amplification; else as in --trace, or uniform.",
)
@click.option("--seed", type=Seed(), default=1, show_default=True, metavar="N", help="First seed.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    metavar="K",
    help="Live with K consecutive seeds.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Picture, as .png.")
@checked("the drive under --throttle does not last for --target-years")
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def lifetime_(**options: Any) -> None:  # noqa: ANN401
    """Say how long a drive lasts, and what a throttle costs."""
    chosen = _plan(options)
    if options["out"] is not None:
        lifetime_plots.check(options["out"])
        sources = [options[key] for key in ("trace", "demand") if options[key] is not None]
        files.refuse_overwriting(options["out"], sources)
    unthrottled = replace(chosen, throttle="none")
    plans = [unthrottled] if options["throttle"] == "none" else [unthrottled, chosen]
    with Bars(["lifetime"]) as bars:
        progress = partial(bars.update, 0)
        try:
            found = lifetime.estimates(plans, options["seeds"], options["seed"], progress)
        except InputError as error:
            raise InputError(_named(str(error))) from None
        free, held = found[0], found[-1]
        padded = _padding(options, free, progress)
    said = lifetime_tables.padding(padded, held)
    if options["drive"] is None and _wears_by_pages(free):
        said = [lifetime_tables.UNKNOWN_PADDING]
    show_with_picture(
        lambda: _show(free, held, padded, said, options["form"]),
        lambda out: lifetime_plots.save(free, held, out),
        options["out"],
        options["form"],
    )
    if options["check"]:
        end(held.meets_target())


def _padding(
    options: dict[str, Any], free: Estimate, progress: Callable[[str, float], object]
) -> Padding | None:
    """Return what the drive's buffer timeout comes to; None where it is no matter, or unknown.

    It is known of a preset.
    """
    preset, traffic = options["drive"], free.plan.traffic
    if preset is None or not _wears_by_pages(free):
        return None
    sold = Sold.of(preset, is_endurance_known=True)
    if options["trace"] is not None and padding.can_be_read(traffic["trace"]):
        return padding.of_trace(sold, traffic["trace"], progress)
    return padding.of_rate(sold, (_demanded_per_day(free) or 0.0) / 86_400)


def _wears_by_pages(free: Estimate) -> bool:
    """Return whether cycles are used up by what is measured of writes, if there are any."""
    is_measured = free.plan.write_amplification is None
    return "rated_cycles" in free.plan.drive and is_measured and bool(_demanded_per_day(free))


def _demanded_per_day(free: Estimate) -> float | None:
    return free.recorded.mean("endured", "demanded_per_day")


def _show(
    free: Estimate, held: Estimate, padded: Padding | None, said: Sequence[str], form: str
) -> None:
    """Show the answer, with what is said of padding among what is said of it."""
    if form == "json":
        result = lifetime.to_object(free, held) | {"padding": padded and asdict(padded)}
        result["notes"] = [*result["notes"], *said]
        echo(json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _print(free, held, said)


def _plan(options: dict[str, Any]) -> Plan:
    drive = _drive(options)
    _check_numbers(options)
    traffic = _traffic(options)
    return Plan(
        drive=drive,
        traffic=traffic,
        throttle=options["throttle"],
        target_years=options["target_years"],
        write_amplification=options["waf"],
        pattern=options["pattern"] and {"policy": options["pattern"]},
        recovery={} if options["recovery"] else None,
        resample=any(options[key] is not None for key in _RECORDED),
    )


def _drive(options: dict[str, Any]) -> dict[str, Any]:
    given = {key: options[key] for key in _DRIVE if options[key] is not None}
    endurance = [key for key in _ENDURANCE if key in given]
    preset = options["drive"]
    if preset is None and "capacity" not in given:
        raise click.UsageError("the drive is missing; give --drive or --capacity")
    if len(endurance) > 1 or (preset is None and not endurance):
        raise click.UsageError(
            "the drive's endurance is "
            + ("given twice" if endurance else "missing")
            + "; give one of --rated-cycles, --tbw and --dwpd"
        )
    if preset is None:
        return given
    known = lifetime.drive(preset, bool(endurance))
    kept = {key: known[key] for key in known if not endurance or key not in _ENDURANCE}
    return kept | given


def _named(error: str) -> str:
    """Return what is wrong with a key in the words of the option that it comes from."""
    key = re.split(r"[^\w.]", error, maxsplit=1)[0]
    rest = error.removeprefix(key)
    table, _, name = key.partition(".")
    if table == "drive" and name in _DRIVE:
        return f"--{name.replace('_', '-')}{rest}"
    if key.startswith(_OF_TRACE):
        return f"--set {key.removeprefix(_OF_TRACE)}{rest}"
    return _OF_OPTIONS.get(key, key) + rest


def _check_numbers(options: dict[str, Any]) -> None:
    for key in ("dwpd", "over_provisioning", "waf", "gb_per_day", "target_years"):
        value = options[key]
        if value is not None and not math.isfinite(value):
            raise click.UsageError(f"--{key.replace('_', '-')} {value}: give a number")
    target = options["target_years"]
    if not 0 < target <= lifetime.MOST_YEARS:
        raise click.UsageError(
            f"--target-years {target:g}: above 0, and at most {lifetime.MOST_YEARS:g} "
            "(nothing is simulated for longer)"
        )


def _traffic(options: dict[str, Any]) -> dict[str, Any]:
    given = [
        key for key in ("profile", "demand", "trace", "gb_per_day") if options[key] is not None
    ]
    if len(given) != 1:
        raise click.UsageError(
            "the traffic is "
            + ("given twice" if given else "missing")
            + "; give one of --profile, --demand, --trace and --gb-per-day"
        )
    if options["sets"] and given != ["trace"]:
        raise click.UsageError("--set describes --trace, which is not given")
    for key in ("workload", "interval"):
        if options[key] is not None and given != ["demand"]:
            raise click.UsageError(f"--{key} describes --demand, which is not given")
    match given[0]:
        case "profile":
            return {"policy": "profile", "name": options["profile"]}
        case "demand":
            return {
                "policy": "series",
                "path": options["demand"],
                "workload": options["workload"],
                "interval": options["interval"] or "30min",
            }
        case "trace":
            trace = source_settings(options["sets"]) | {"path": options["trace"]}
            return {"policy": "trace", "trace": trace}
    volume = options["gb_per_day"]
    if not 0 <= volume < 1e9:
        raise click.UsageError(f"--gb-per-day {volume:g}: from 0 to 1000000000")
    return {"policy": "constant", "per_day": f"{round(volume * 1e9)}B"}


def _print(free: Estimate, held: Estimate, said: Sequence[str]) -> None:
    if held.is_infinite:
        echo("Lifetime: infinite; the traffic has no writes.")
        return
    console().print(lifetime_tables.lives(free, held))
    echo()
    echo(lifetime_tables.verdict(free, held))
    for warning in (*lifetime_tables.warnings(free, held), *said):
        echo(paragraph(f"Warning: {warning}"))
    for note in held.notes:
        echo(paragraph(f"Note: {note}."))
