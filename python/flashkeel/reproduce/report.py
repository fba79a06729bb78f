"""What came of a reproduction: table, JSON and pictures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from flashkeel.output import files, units
from flashkeel.reproduce import range_report
from flashkeel.reproduce.claims import Claim, Study, Swept, Value, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERDICTS = "verdicts.json"
_HOLDS = {True: "[green]holds[/]", False: "[red]does not[/]", None: "[yellow]unknown[/]"}


def listing(chosen: Sequence[tuple[Study, Sequence[Claim]]]) -> str:
    """Return one object a claim that nobody has measured yet."""
    objects = [
        {
            "id": f"{study.id}/{claim.name}",
            "title": study.title,
            "claim": claim.claim,
            "rule": claim.rule,
            "unit": claim.unit,
            "paper": claim.paper,
            "over": study.open_for(claim),
        }
        for study, claims in chosen
        for claim in claims
    ]
    return json.dumps(objects, indent=2, ensure_ascii=False, allow_nan=False)


def to_json(verdicts: Sequence[Verdict]) -> str:
    """Return one object a claim."""
    return json.dumps(
        [_object(verdict) for verdict in verdicts], indent=2, ensure_ascii=False, allow_nan=False
    )


def _object(verdict: Verdict) -> dict[str, Any]:
    claim, finding = verdict.claim, verdict.finding
    return {
        "id": verdict.id,
        "claim": claim.claim,
        "rule": claim.rule,
        "unit": claim.unit,
        "paper": claim.paper,
        "measured": finding.measured,
        "ci95": finding.interval,
        "holds": finding.holds,
        "reason": finding.reason,
        "basis": verdict.basis,
        "conditions": verdict.outcome.conditions,
        **({"range": list(map(range_report.to_object, verdict.swept))} if verdict.swept else {}),
    }


def table(verdicts: Sequence[Verdict]) -> Group:
    """Return one table a figure, one row a claim."""
    parts: list[RenderableType] = []
    for _, group in groupby(verdicts, key=lambda verdict: verdict.study.id):
        rows = list(group)
        study, outcome = rows[0].study, rows[0].outcome
        found = Table(box=box.SIMPLE_HEAD)
        for name, ratio in (("claim", 3), ("rule", 3), ("paper", 2), ("measured", 2)):
            found.add_column(name, ratio=ratio)
        found.add_column("", no_wrap=True)
        for row in rows:
            found.add_row(
                f"[bold]{escape(row.claim.name)}[/] {escape(row.claim.claim)}",
                escape(row.claim.rule),
                escape(_value(row.claim.paper, row.claim.unit)),
                escape(_measured(row)),
                _HOLDS[row.finding.holds],
            )
        parts += [
            Text(f"{study.id}: {study.title} ({outcome.basis})", style="bold"),
            Text(outcome.conditions, style="dim"),
            found,
            *(note for row in rows for note in _notes(row)),
            *(_turned(row, swept) for row in rows for swept in row.swept if swept.turns),
        ]
    counts = {True: 0, False: 0, None: 0}
    for verdict in verdicts:
        counts[verdict.finding.holds] += 1
    claims = "1 claim" if len(verdicts) == 1 else f"{len(verdicts)} claims"
    parts.append(
        f"{claims}: {counts[True]} hold, {counts[False]} do not, {counts[None]} cannot be judged"
    )
    return Group(*parts)


def _notes(verdict: Verdict) -> list[Text]:
    """Return what stands below a table of a claim: why, and where else it holds."""
    name, reason = verdict.claim.name, verdict.finding.reason
    why = [Text(f"{name} → {reason}", style="dim")] if reason else []
    over = [f"{name} → {range_report.sentence(swept)}" for swept in verdict.swept]
    return why + [Text(each, style="bold") for each in over]


def _turned(verdict: Verdict, swept: Swept) -> Table:
    """Return the table of a claim that holds at some values and at others does not."""
    found = Table(box=box.SIMPLE_HEAD, title=f"{escape(verdict.claim.name)} (*: nearest)")
    for name in (swept.quantity.name, "", "measured"):
        found.add_column(name)
    for row in range_report.rows(swept, verdict.claim.unit):
        found.add_row(*map(escape, row))
    return found


def _measured(verdict: Verdict) -> str:
    text = _value(verdict.finding.measured, verdict.claim.unit)
    if verdict.finding.interval is not None:
        low, high = verdict.finding.interval
        text += f"\n[{units.significant(low)} … {units.significant(high)}]"
    if verdict.basis != verdict.outcome.basis:
        text += f"\n({verdict.basis})"
    return text


def _value(value: Value, unit: str) -> str:
    match value:
        case None:
            return units.MISSING
        case str():
            return value
        case int() | float():
            return f"{units.significant(value)} {unit}".rstrip()
        case Mapping():
            return "\n".join(f"{name} {_value(number, unit)}" for name, number in value.items())
    return ", ".join(_value(number, unit) for number in value)


def save(verdicts: Sequence[Verdict], directory: Path) -> list[Path]:
    """Write verdicts.json and one picture a figure to `directory`; return the files."""
    import matplotlib

    directory.mkdir(parents=True, exist_ok=True)
    written = [directory / VERDICTS]
    files.write(written[0], to_json(verdicts) + "\n")
    for name, (basis, draw) in _pictures(verdicts).items():
        path = directory / f"{name.replace('/', '-')}.png"
        with matplotlib.rc_context({"font.size": 9}):
            figure = draw()
            # Below everything: no picture goes about without saying what it rests on.
            figure.text(0.995, -0.01, f"basis: {basis}", ha="right", va="top", color="gray")
            with files.whole(path) as place:
                figure.savefig(place, dpi=130, bbox_inches="tight")
        written.append(path)
    return written


def _pictures(verdicts: Sequence[Verdict]) -> dict[str, tuple[str, Callable[[], Figure]]]:
    """Return the pictures by name, each with its basis: one a figure, one a claim that turned."""
    found: dict[str, tuple[str, Callable[[], Figure]]] = {}
    for verdict in verdicts:
        outcome = verdict.outcome
        if outcome.picture is not None:
            found[verdict.study.id] = (outcome.basis, outcome.picture)
        for swept in verdict.swept:
            if swept.turns:
                name = f"{verdict.id}-{swept.quantity.name.replace(' ', '-')}"
                found[name] = (verdict.basis, partial(range_report.draw, swept, verdict))
    return found
