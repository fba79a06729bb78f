"""Two runs side by side: percentiles, what else they come to, and in what they were set apart."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from flashkeel import percentiles, spread
from flashkeel.comparison import FEW, Comparison, covers
from flashkeel.measures import Measure
from flashkeel.output import units
from flashkeel.output.plots import workload_kind
from flashkeel.output.tables import PAGE, grid, titled
from flashkeel.quantities import bytes_erased_at_once
from flashkeel.run import Run

_FEW_SEEDS = "few seeds"
_OPEN = "seeds vary"
_ERASES = "erases_per_seed"
_MOST_SETTINGS = 5


def comparison(
    a: Run,
    b: Run,
    found: Sequence[Comparison],
    measured: Sequence[Measure],
    differ: Mapping[str, Sequence[str | None]],
) -> Group:
    """Return one row a percentile of each class, and one a measure: A, B, B - A, its interval.

    Below it the settings in which they differ.
    """
    kinds = dict.fromkeys(workload_kind([run]) for run in (a, b))
    title = f"A {a.name} against B {b.name} ({' against '.join(kinds)})"
    table = grid("", "A", "B", "B − A", "95 % interval", "B is")
    previous = ""
    for row in found:
        if row.latency_class != previous:
            previous = row.latency_class
            table.add_row(Text(units.requests(previous), style="bold"))
        interval = units.MISSING
        if row.interval_ns is not None:
            interval = units.interval(*row.interval_ns, units.signed_duration)
        mark = "" if row.fewest_beyond >= FEW else f" *{row.fewest_beyond}"
        table.add_row(
            f"  {percentiles.label(row.percentile)}{mark}",
            units.duration(row.a_ns),
            units.duration(row.b_ns),
            units.signed_duration(row.difference_ns),
            interval,
            verdict(row),
        )
    _add_measures(table, measured)
    caption = (
        f"overlap: the runs may be equal. * fewer than {FEW} samples beyond: how many\n"
        f"{textwrap.fill(covers(found), PAGE)}"
    )
    if any(row.interval is None for row in measured) or any(row.takes_seeds for row in found):
        caption += f"\n{_FEW_SEEDS}: a verdict takes {spread.FEWEST} seeds or more on both sides"
    if any(row.is_open for row in found):
        caption += f"\n{_OPEN}: by so much that nothing bounds the percentile of one of them"
    if any(row.measure == _ERASES for row in measured):
        caption += _erased(a, b)
    if not found:
        caption = "They have no class of requests in common."
    return titled(title, table, f"{caption}\n{_settings(differ)}")


def verdict(row: Comparison) -> str:
    """Return what is said of B in a percentile, and in two words why nothing is."""
    if row.verdict != "unknown":
        return row.verdict
    if row.takes_seeds:
        return _FEW_SEEDS
    return _OPEN if row.is_open else "too few"


def _add_measures(table: Table, measured: Sequence[Measure]) -> None:
    if measured:
        table.add_row(Text("whole run", style="bold"))
    for row in measured:
        words, of = _words(row.measure)
        interval = units.MISSING
        if row.interval is not None:
            interval = units.interval(*row.interval, _signed(of))
        table.add_row(
            f"  {words}",
            of(row.a),
            of(row.b),
            _signed(of)(row.difference),
            interval,
            _FEW_SEEDS if row.interval is None else row.verdict,
        )


def _words(measure: str) -> tuple[str, Callable[[float], str]]:
    """Return what a measure is called in tables, and how it is written."""
    if measure == "waf":
        return "WAF", units.ratio
    if measure == _ERASES:
        return "erases a seed", units.rate
    latency_class, _, rest = measure.partition("_")
    if rest == "iops":
        return f"{latency_class} IOPS", units.rate
    if rest == "mean_ns":
        return f"{latency_class} mean", units.duration
    return f"{latency_class} MB/s", lambda value: units.significant(value / 1e6)


def _signed(of: Callable[[float], str]) -> Callable[[float], str]:
    return lambda value: f"{'+' if value > 0 else ''}{of(value)}"


def _erased(a: Run, b: Run) -> str:
    """Return a line on what an erase frees, where that is another in A than in B."""
    configs = [run.data["config"] for run in (a, b)]
    if any(config.get("stack") for config in configs):
        return ""
    first, second = (bytes_erased_at_once(config["device"]["geometry"]) for config in configs)
    if first == second:
        return ""
    return f"\nerases: one frees {units.size(first)} of A, and {units.size(second)} of B"


def _settings(differ: Mapping[str, Sequence[str | None]]) -> str:
    """Return in which settings A and B differ, the first few with their values."""
    if not differ:
        return "A and B differ in no setting."
    shown = [
        f"{key}: A {units.MISSING if a is None else a}, B {units.MISSING if b is None else b}"
        for key, (a, b) in list(differ.items())[:_MOST_SETTINGS]
    ]
    rest = len(differ) - len(shown)
    if rest > 0:
        shown.append(f"and {rest} more settings, of which `flashkeel report` has a table")
    return "\n".join(["They differ in", *(textwrap.shorten(line, PAGE) for line in shown)])
