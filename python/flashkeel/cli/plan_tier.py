"""``flashkeel plan tier``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from flashkeel import hierarchy
from flashkeel.candidates import Bounds, Outcome
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
from flashkeel.hierarchy import Answer, Plan
from flashkeel.media import Medium
from flashkeel.output import files, hierarchy_plots, hierarchy_tables, lifetime_plots
from flashkeel.output.progress import Bars
from flashkeel.prices import Prices
from flashkeel.quantities import SIZES

_NVM = "optane-p4800x"
_SECONDS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}


class Span(click.ParamType[float]):
    """A time such as ``250us``, in ns."""

    name = "time"
    units: Mapping[str, float] = _SECONDS
    example = "250us"

    def convert(
        self,
        value: Any,  # noqa: ANN401
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number that `value` is, or refuse it."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        for unit in sorted(self.units, key=len, reverse=True):
            if text.endswith(unit):
                try:
                    found = float(text.removesuffix(unit)) * self.units[unit]
                except ValueError:
                    break
                if found >= 0 and math.isfinite(found):
                    return found
                break
        self.fail(f"{value!r} is no {self.name}; write one as {self.example}", param, ctx)


class Size(Span):
    """A size such as ``64KiB``, in bytes."""

    name = "size"
    units: Mapping[str, float] = SIZES
    example = "64KiB"


class MediumType(click.ParamType[Medium]):
    """A medium: a preset and how it is sold, ``PRESET[,dwpd=X]``."""

    name = "medium"

    def convert(
        self,
        value: Any,  # noqa: ANN401
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Medium:
        """Return the medium that `value` is, or refuse it."""
        if isinstance(value, Medium):
            return value
        preset, comma, rest = str(value).partition(",")
        if not comma:
            return Medium(preset.strip())
        key, equals, text = (word.strip() for word in rest.partition("="))
        if not equals or key != "dwpd":
            self.fail(f"{rest!r}: after the preset comes dwpd=X", param, ctx)
        try:
            per_day = float(text)
        except ValueError:
            per_day = math.nan
        if not 0 < per_day < math.inf:
            self.fail(f"dwpd is {text!r}; it must be a number above 0", param, ctx)
        return Medium(preset.strip(), per_day)


@click.command("tier")
@click.option("--trace", metavar="FILE", help="Traffic: a recorded trace.")
@click.option("--profile", metavar="NAME", help="Traffic: made from a published profile.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="A key of the trace or the profile, such as columns or zipf_theta. Repeatable.",
)
@click.option("--requests", type=click.IntRange(min=1), metavar="N", help="At most so many of it.")
@click.option(
    "--drive",
    "drives",
    type=MediumType(),
    multiple=True,
    required=True,
    metavar="MEDIUM",
    help="A candidate, PRESET[,dwpd=X]: a preset of a drive, and the drive writes per day that "
    "it is sold with; else its wear law counts. Repeatable.",
)
@click.option(
    "--nvm",
    type=MediumType(),
    default=_NVM,
    show_default=True,
    metavar="MEDIUM",
    help="What is put before it, likewise.",
)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="SIZE",
    help="Of the NVM: a share of what the traffic touches, as 5%, or a size, as 1GiB. "
    f"Repeatable; {', '.join(hierarchy.SIZES)} if not given.",
)
@click.option(
    "--policy",
    "policies",
    type=click.Choice(hierarchy.POLICIES),
    multiple=True,
    help="Repeatable; all if not given. base is memory without an NVM.",
)
@click.option("--dram", default="2%", show_default=True, metavar="SIZE", help="Memory in front.")
@click.option(
    "--prices",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Prices for 10^9 bytes by preset or technology, in the place of the built-in table.",
)
@click.option(
    "--percentile",
    type=click.Choice(hierarchy.PERCENTILES),
    default="p99",
    show_default=True,
    metavar="P",
    help="Which tail, from p50 to p99.99.",
)
@click.option(
    "--max-read",
    type=Span(),
    metavar="TIME",
    help="Longest tail of reads, as 20ms; any if not given.",
)
@click.option("--max-write", type=Span(), metavar="TIME", help="Longest tail of writes, likewise.")
@click.option(
    "--years", type=float, default=5.0, show_default=True, metavar="X", help="How long both last."
)
@click.option(
    "--max-risk",
    type=Size(),
    default="0B",
    show_default=True,
    metavar="SIZE",
    help="What a power cut may take on average.",
)
@click.option(
    "--model",
    metavar="SIZE",
    help="Size of the drive's model; if not given 4 times what is touched, at least 32GiB, "
    "and at most the drive.",
)
@click.option("--seed", type=Seed(), default=1, show_default=True, metavar="N", help="First seed.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    metavar="K",
    help="Run with K consecutive seeds; bounds have to be kept under each.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Runs at a time; the results are the same for any number.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Picture, as .png.")
@checked("nothing that was tried keeps the bounds")
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def tier(**options: Any) -> None:  # noqa: ANN401
    """Say how much NVM a drive needs in front of it.

    Memory and NVM are put before a model of each drive under each policy, and the traffic is
    replayed at its own times. The model has the drive's channels, chips and times, and fewer,
    smaller blocks, all written. What may be bought is larger than what holds data where that
    alone would not last.
    """
    plan, bounds = _plan(options), _bounds(options)
    if options["out"] is not None:
        lifetime_plots.check(options["out"])
        read = [options[key] for key in ("trace", "prices") if options[key] is not None]
        files.refuse_overwriting(options["out"], read)
    with Bars(["plan tier"]) as bars:
        progress = partial(bars.update, 0)
        answer = plan.estimate(options["seeds"], options["seed"], options["jobs"], progress)
    show_with_picture(
        lambda: _show(answer, bounds, options["form"]),
        lambda out: hierarchy_plots.save(answer, bounds, out),
        options["out"],
        options["form"],
    )
    if options["check"]:
        end(answer.smallest(bounds) is not None)


def _show(answer: Answer, bounds: Bounds, form: str) -> None:
    if form == "json":
        result = to_object(answer, bounds)
        echo(json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _print(answer, bounds)


def _plan(options: Mapping[str, Any]) -> Plan:
    if (options["trace"] is None) == (options["profile"] is None):
        given = "missing" if options["trace"] is None else "given twice"
        raise click.UsageError(f"the traffic is {given}; give one of --trace and --profile")
    names = [drive.preset for drive in options["drives"]]
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"--drive {name} is given twice")
    if options["trace"] is not None:
        source = {"fold": "compact"} | source_settings(options["sets"])
        source |= {"policy": "trace", "path": options["trace"]}
    else:
        source = source_settings(options["sets"]) | {
            "policy": "profile",
            "name": options["profile"],
        }
        if options["requests"] is None:
            raise click.UsageError("a profile has no end; give --requests")
    return Plan(
        source=source,
        drives=options["drives"],
        nvm=options["nvm"],
        policies=tuple(dict.fromkeys(options["policies"])) or hierarchy.POLICIES,
        sizes=tuple(dict.fromkeys(options["sizes"])) or hierarchy.SIZES,
        dram=options["dram"],
        percentile=options["percentile"],
        requests=options["requests"],
        model=options["model"],
        prices=Prices.load(options["prices"]),
    )


def _bounds(options: Mapping[str, Any]) -> Bounds:
    if not 0 < options["years"] < math.inf:
        raise click.UsageError(f"--years {options['years']:g}: it must be above 0")
    return Bounds(options["max_read"], options["max_write"], options["years"], options["max_risk"])


def _print(answer: Answer, bounds: Bounds) -> None:
    shown = console()
    for drive in answer.plan.drives:
        shown.print(f"{drive.preset}: tails over seeds (!: beyond a bound)")
        shown.print(hierarchy_tables.latencies(answer, bounds, drive.preset))
        shown.print()
        shown.print(f"{drive.preset}: what a power cut takes, GB written a day, how long it lasts")
        shown.print(hierarchy_tables.writes(answer, bounds, drive.preset))
        shown.print()
    shown.print("The least of each policy that keeps the bounds, or what comes nearest")
    shown.print(hierarchy_tables.policies(answer, bounds))
    shown.print()
    shown.print(f"Nothing {'cheaper' if answer.has_costs(bounds) else 'smaller'} is quicker than")
    shown.print(hierarchy_tables.frontier(answer, bounds))
    shown.print()
    for sentence in hierarchy_tables.verdicts(answer, bounds):
        echo(paragraph(sentence))
    for note in hierarchy_tables.warnings(answer, bounds):
        echo(paragraph(f"Note: {note}"))


def to_object(answer: Answer, bounds: Bounds) -> dict[str, Any]:
    """Return what ``--format json`` prints."""
    numbers = {id(outcome): number for number, outcome in enumerate(answer.outcomes)}

    def number(outcome: Outcome | None) -> int | None:
        return None if outcome is None else numbers[id(outcome)]

    prices = answer.plan.prices
    return {
        "percentile": answer.plan.percentile,
        "bounds": {
            "read_ns": bounds.read_ns,
            "write_ns": bounds.write_ns,
            "years": bounds.years,
            "risk_bytes": bounds.risk_bytes,
        },
        "prices": {"date": prices.date, "currency": prices.currency},
        "footprint_bytes": answer.footprint_bytes,
        "duration_ns": answer.duration_ns,
        "synthetic": answer.is_synthetic,
        "smallest": number(answer.smallest(bounds)),
        "cheapest": number(answer.cheapest(bounds)),
        "nearest": number(answer.nearest(bounds)),
        "frontier": [number(outcome) for outcome in answer.frontier(bounds)],
        "outcomes": [_of(outcome, bounds) for outcome in answer.outcomes],
        "notes": hierarchy_tables.warnings(answer, bounds),
    }


def _of(outcome: Outcome, bounds: Bounds) -> dict[str, Any]:
    names = (
        "read_ns",
        "write_ns",
        "read_mean_ns",
        "write_mean_ns",
        "risk_bytes",
        "ssd_bytes_per_day",
        "nvm_bytes_per_day",
        "ssd_years",
        "nvm_years",
        "waf",
        "padded",
        "turned_over",
        "from_free",
        "failed",
        "behind",
    )
    sizes = [one.read_by_size_ns for one in outcome.measured]
    return {
        "drive": outcome.choice.drive,
        "policy": outcome.choice.policy,
        "size": outcome.choice.size,
        "nvm_bytes": outcome.nvm_bytes,
        "bought_bytes": outcome.bought_bytes(bounds),
        "cost": outcome.cost(bounds),
        # Where nothing may be at risk, or requests failed, it is missed by no number of times.
        "misses": {
            name: times if math.isfinite(times) else None
            for name, times in outcome.excess(bounds).items()
        },
        **{name: outcome.mean(name) for name in names},
        "over_seeds": {name: outcome.interval(name) for name in names},
        "read_by_size_ns": {
            "larger" if size is None else str(size): [one.get(size) for one in sizes]
            for size in sizes[0]
        },
        "beyond": [one.beyond for one in outcome.measured],
    }
