"""Tables of predictions for a drive of which there is a log."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from flashkeel import percentiles
from flashkeel.comparison import FEW
from flashkeel.output import tables, units
from flashkeel.output.probe_tables import ERRORS

_NAME = 11
"""Characters of the longest word of a method's name."""
_TAIL = (50.0, 99.0, 99.9)


def predictions(found: dict[str, Any]) -> Iterator[RenderableType]:
    """Yield what was slow, how good each way would have been, and what was assumed."""
    yield _log(found)
    yield _latencies(found)
    yield _methods(found)
    yield _reliability(found["reliability"])
    lines = [*_by_chance(found), *_assumptions(found), *_undetermined(found)]
    if lines:
        # A terminal would break lines within words, and a file not at all.
        yield Text("\n".join(textwrap.fill(line, tables.PAGE) for line in lines))


def _log(found: dict[str, Any]) -> Group:
    thresholds = found["model"]["thresholds_ns"]
    slow = found["slow"]
    rows = {
        "format": found["format"],
        "reads and writes": f"{units.count(found['requests'])}, the second half judged",
        "judged": f"{units.count(found['judged'])}, {units.count(found['judged_reads'])} reads",
        "slow above": f"{units.duration(thresholds['read'])} read, "
        f"{units.duration(thresholds['write'])} write (4 KiB)",
        "slow": f"{units.count(slow)} ({units.share(slow / max(1, found['judged']))}), "
        f"{units.count(found['slow_reads'])} reads; "
        f"{units.count(found['slow_before'])} in the first half",
    }
    title = f"{found['log']}: would prediction have worked?"
    return tables.facts(title, rows.items())


def _latencies(found: dict[str, Any]) -> Group:
    names = [percentiles.label(at) for at in _TAIL]
    table = tables.grid("", "requests", "mean", *names, "longest", "slow")
    has_few = False
    for operation in ("read", "write"):
        took = found[operation]
        if not took["count"]:
            continue
        cells = []
        for at in map(percentiles.key, _TAIL):
            cell, beyond = units.duration(took["percentile"][at]), took["beyond"][at]
            low, high = took["ci95"][at]
            # One that many share is no guess.
            if beyond < FEW and not (took["ci95_bounded"][at] and low == high):
                cell += f" *{beyond}"
                has_few = True
            cells.append(cell)
        table.add_row(
            units.requests(operation, 2),
            units.count(took["count"]),
            units.duration(took["mean_ns"]),
            *cells,
            units.duration(took["max_ns"]),
            units.share(took["slow"] / took["count"]),
        )
    below = f"* fewer than {FEW} samples beyond: how many" if has_few else ""
    return tables.titled("What its requests took", table, below)


def _methods(found: dict[str, Any]) -> Group:
    table = tables.grid(
        "prediction\nby", "slow\nfrom", "slow\nfound", "of\nslow", "precision", "of\ncalled",
        "ROC-\nAUC", "mirror\nsaves", "reads",
    )  # fmt: skip
    for row in found["methods"]:
        score = row["score"]
        table.add_row(
            textwrap.fill(row["name"], _NAME),
            _threshold(row),
            units.share(row["recall"]),
            units.count(score["slow_found"] + score["slow_missed"]),
            units.share(row["precision"]),
            units.count(score["slow_found"] + score["normal_missed"]),
            units.ratio(row["roc_auc"]),
            units.share(_saved(row["saved_fraction"])),
            units.count(row["reads_sent"]),
        )
    return tables.titled("Judged on the second half", table)


def _by_chance(found: dict[str, Any]) -> Iterator[str]:
    """Name the ways that rank requests no better than a coin, however many slow ones they find."""
    slow = found["slow"]
    normal = found["judged"] - slow
    if slow <= 0 or normal <= 0:
        return
    # Of the rank sum without ties, under the null hypothesis (Mann and Whitney 1947).
    error = math.sqrt((slow + normal + 1) / (12 * slow * normal))
    names = [
        row["name"]
        for row in found["methods"]
        if row["roc_auc"] is not None and row["roc_auc"] - 0.5 <= ERRORS * error
    ]
    if names:
        yield (
            f"no better than chance: {', '.join(names)} (ROC-AUC at most {ERRORS} standard errors "
            f"above 0.5): of the requests called slow as many are as of all, "
            f"{units.share(slow / found['judged'])}, and the more are called the more are found"
        )


def _reliability(tenths: list[dict[str, Any]]) -> Group:
    table = tables.grid("said", "came", "of requests")
    for tenth in tenths:
        if tenth["requests"]:
            said, came = units.share(tenth["said"]), units.share(tenth["came"])
            table.add_row(said, came, units.count(tenth["requests"]))
    title = "SSDcheck's probabilities of being slow, by tenths, and what came"
    return tables.titled(title, table)


def _saved(fraction: float | None) -> float | None:
    """Return nothing as 0: it is the difference of two sums."""
    return fraction and round(fraction, 6)


def _threshold(row: dict[str, Any]) -> str:
    value = row["threshold"]
    if value is None:
        return "its own" if row["name"] == "SSDcheck" else units.MISSING
    if row["name"] == "queue depth":
        return f"depth {value:.0f}"
    return units.duration(value)


def _assumptions(found: dict[str, Any]) -> Iterator[str]:
    for note in found["notes"]:
        yield f"note: {note}"
    if found["is_model_assumed"]:
        yield (
            "note: without --model slow is what takes more than three times the median of its "
            "kind and size in the first half; buffer, volumes and sleep are not known, and the "
            "engine says nothing before it would be right"
        )
    if not found["is_on"]:
        yield "note: SSDcheck was switched off at the end: too few predictions would have come true"
    if found["passed_over"]:
        yield f"note: {units.count(found['passed_over'])} entries of other kinds passed over"
    yield (
        "mirror saves: part of all reads' time, if reads called slow go to another such drive, "
        "where they take the mean of reads of their size"
    )


def _undetermined(found: dict[str, Any]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for row in found["methods"]:
        for reason in row["undetermined"]:
            reasons.setdefault(reason, []).append(row["name"])
    for reason, names in reasons.items():
        yield f"undetermined ({', '.join(names)}): {reason}"
