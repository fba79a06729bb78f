"""Tables of a diagnosis and of predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.table import Table

from flashkeel.output import units
from flashkeel.ssdcheck import Diagnosis

_UNDETERMINED = "undetermined"
_FLUSH = {"full": "full", "read_trigger": "read"}


def diagnosis(found: Diagnosis) -> Iterator[Table]:
    """Yield the features found, and the evidence for each address bit."""
    model = found.model
    buffer, sleep = model["write_buffer"], model["sleep"]
    thresholds, times = model["thresholds_ns"], model["latencies_ns"]
    bits = model["volume_bits"]
    unknown = " ".join(reason.partition(": ")[0] for reason in model["undetermined"])
    is_known = "volume_bits" not in unknown.replace("gc_volume_bits", "")
    rows = {
        "internal volumes": f"{2 ** len(bits)} ({_bits(bits)})" if is_known else _UNDETERMINED,
        "garbage-collection volumes": _bits(model["gc_volume_bits"]),
        "write buffer": f"{units.size(buffer['bytes'])}, type {buffer['type']}",
        "flushed when": ", ".join(_FLUSH[name] for name in buffer["flush"]) or units.MISSING,
        "slow above": f"{_time(thresholds['read'])} read, {_time(thresholds['write'])} write",
        "normal": f"{_time(times['read'])} read, {_time(times['write'])} write",
        "flush takes": _time(times["flush"]),
        "with garbage collection": _time(times["collection"]),
        "sleeps after": f"{_time(sleep['after_ns'])}, wakes in {_time(sleep['wake_ns'])}"
        if sleep
        else (_UNDETERMINED if "sleep" in unknown else "not seen to sleep"),
    }
    table = Table(title=found.name, title_justify="left", box=box.SIMPLE_HEAD, show_header=False)
    for words, text in rows.items():
        table.add_row(words, text)
    for reason in model["undetermined"]:
        table.add_row("undetermined", reason)
    yield table
    if found.evidence is not None:
        yield _evidence(found.evidence)


def predictions(target: str, found: Sequence[dict[str, Any]]) -> Table:
    """Return one row a workload: how much was slow, and how much of it was predicted."""
    table = Table(title=f"{target}: predictions", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("workload")
    for words in ("requests", "slow", "slow found", "normal found", "precision", "switched"):
        table.add_column(words, justify="right")
    keys = ("slow_fraction", "slow_recall", "normal_recall", "precision")
    for row in found:
        shares = (units.share(row[key]) for key in keys)
        state = "on" if row["is_on"] else "off"
        table.add_row(row["workload"], units.count(row["requests"]), *shares, state)
    if len(found) > 1:
        table.add_section()
        table.add_row("mean", "", *(units.share(_mean(found, key)) for key in keys), "")
    return table


def _mean(found: Sequence[dict[str, Any]], key: str) -> float | None:
    values = [row[key] for row in found if row[key] is not None]
    return sum(values) / len(values) if values else None


def _evidence(evidence: dict[str, Any]) -> Table:
    table = Table(title="Evidence by address bit", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("bit", justify="right")
    tests = ("p one volume", "p two volumes", "stalls a buffer apart", "in own writes")
    for words in ("throughput at 0", "at 1", *tests):
        table.add_column(words, justify="right")
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
    return table


def _probability(p: float | None) -> str:
    return units.MISSING if p is None else f"{p:.2g}"


def _bits(bits: Sequence[int] | None) -> str:
    if bits is None:
        return _UNDETERMINED
    return "bits " + ", ".join(map(str, bits)) if bits else "none selected by a bit"


def _time(ns: int) -> str:
    return units.duration(ns) if ns else units.MISSING
