"""Tables of a diagnosis and of predictions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group

from flashkeel.output import tables, units
from flashkeel.ssdcheck import Diagnosis

ERRORS = 3
"""Standard errors from chance that predictions have to be, to mean anything."""
_UNDETERMINED = "undetermined"
_FLUSH = {"full": "full", "read_trigger": "read"}


def diagnosis(found: Diagnosis) -> Iterator[Group]:
    """Yield the features found, and the evidence for each address bit."""
    model = found.model
    buffer, sleep = model["write_buffer"], model["sleep"]
    thresholds, times = model["thresholds_ns"], model["latencies_ns"]
    bits = model["volume_bits"]
    unknown = " ".join(reason.partition(": ")[0] for reason in model["undetermined"])
    is_known = "volume_bits" not in unknown.replace("gc_volume_bits", "")
    slow = f"{_time(thresholds['read'])} read, {_time(thresholds['write'])} write"
    guessed = ", a guess" if "thresholds_ns" in unknown else ""
    rows = {
        "internal volumes": f"{2 ** len(bits)} ({_bits(bits)})" if is_known else _UNDETERMINED,
        "garbage-collection volumes": _bits(model["gc_volume_bits"]),
        "write buffer": f"{units.size(buffer['bytes'])}, type {buffer['type']}",
        "flushed when": ", ".join(_FLUSH[name] for name in buffer["flush"]) or units.MISSING,
        "slow above": slow + guessed,
        "normal": f"{_time(times['read'])} read, {_time(times['write'])} write",
        "flush takes": _time(times["flush"]),
        "with garbage collection": _time(times["collection"]),
        "sleeps after": f"{_time(sleep['after_ns'])}, wakes in {_time(sleep['wake_ns'])}"
        if sleep
        else (_UNDETERMINED if "sleep" in unknown else "not seen to sleep"),
    }
    reasons = [("undetermined", reason) for reason in model["undetermined"]]
    yield tables.facts(found.name, [*rows.items(), *reasons])
    if found.evidence is not None:
        yield _evidence(found.evidence)


def predictions(target: str, found: Sequence[dict[str, Any]]) -> Group:
    """Return one row a workload: how much was slow, and how much of it was predicted."""
    heads = ("requests", "slow", "slow\nfound", "normal\nfound", "precision", "switched")
    table = tables.grid("workload", *heads)
    keys = ("slow_fraction", "slow_recall", "normal_recall", "precision")
    for row in found:
        shares = (units.share(row[key]) for key in keys)
        state = "on" if row["is_on"] else "off"
        table.add_row(row["workload"], units.count(row["requests"]), *shares, state)
    if len(found) > 1:
        table.add_section()
        table.add_row("mean", "", *(units.share(_mean(found, key)) for key in keys), "")
    is_synthetic = any(row["basis"] == "synthetic" for row in found)
    kind = "synthetic workload" if is_synthetic else "recorded trace"
    at_random = "called at random: slow found = 1 - normal found, precision = slow"
    return tables.titled(f"{target}: predictions ({kind})", table, at_random)


def notes(found: Sequence[dict[str, Any]]) -> list[str]:
    """Return what readers of predictions must know of them and of their workloads."""
    told = [
        (
            row["workload"],
            [_by_chance(row["score"]), *row["notes"], tables.changed_input(row["input"])],
        )
        for row in found
    ]
    return [f"Note: {name}: {text}" for name, texts in told for text in texts if text]


def _by_chance(score: dict[str, int]) -> str | None:
    """Say that calls found no more slow requests than as many at random; None where they did."""
    requests, found = sum(score.values()), score["slow_found"]
    slow, called = found + score["slow_missed"], found + score["normal_missed"]
    if not slow or not called or slow == requests:
        return None
    part = slow / requests
    # Drawn without replacement: the hypergeometric distribution.
    error = math.sqrt(called * part * (1 - part) * (requests - called) / (requests - 1))
    if found > called * part + ERRORS * error:
        return None
    return (
        f"no better than chance: of the requests called slow {units.share(found / called)} are, "
        f"of all {units.share(part)} (less than {ERRORS} standard errors apart)"
    )


def _mean(found: Sequence[dict[str, Any]], key: str) -> float | None:
    values = [row[key] for row in found if row[key] is not None]
    return sum(values) / len(values) if values else None


def _evidence(evidence: dict[str, Any]) -> Group:
    tests = ("p one\nvolume", "p two\nvolumes", "stalls a\nbuffer apart", "in own\nwrites")
    table = tables.grid("bit", "throughput\nat 0", "at 1", *tests)
    flips = {flip["bit"]: flip for flip in evidence["collection"]["flip"]}
    for row in evidence["allocation"]:
        flip = flips.get(row["bit"])
        chances = ("p", "p_own") if flip else ()
        flushes = ("with_flushes", "with_own_flushes") if flip else ()
        table.add_row(
            str(row["bit"]),
            *(units.share(part) for part in row["relative_throughput"]),
            *(_probability(flip[key]) for key in chances if flip),
            *(units.share(flip[key]) for key in flushes if flip),
        )
    return tables.titled("Evidence by address bit", table)


def _probability(p: float | None) -> str:
    return units.MISSING if p is None else f"{p:.2g}"


def _bits(bits: Sequence[int] | None) -> str:
    if bits is None:
        return _UNDETERMINED
    return "bits " + ", ".join(map(str, bits)) if bits else "none selected by a bit"


def _time(ns: int) -> str:
    return units.duration(ns) if ns else units.MISSING
