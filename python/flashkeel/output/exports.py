"""Results in shapes that other tools and people know: CSV, Markdown, biolatency's histograms."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence

from flashkeel import percentiles
from flashkeel.comparison import FEW, PERCENTILES, is_guess
from flashkeel.output import units
from flashkeel.output.plots import workload_kind
from flashkeel.result import Result
from flashkeel.run import LATENCY_CLASSES, Run

_STARS = 40
_Cell = str | float | None
_RUN_CSV = (
    *("seeds", "requests", "simulated_s", "waf", "erases"),
    *(
        column.format(latency_class)
        for latency_class in LATENCY_CLASSES
        for column in ("{}_count", "{}_iops", "{}_bytes_per_s", "{}_mean_ns", "{}_max_ns")
    ),
)
_CSV = ("class", "percentile", "latency_ns", "low_ns", "high_ns", "beyond", "samples")


def percentiles_csv(result: Result) -> str:
    """Return a row a run, class and percentile, with its 95 % interval and samples beyond.

    Where a run has tenants, rows of each follow, with its name in a column beside the run's.
    The last column is what the workload is: no generated one passes for a trace.
    """
    return _csv(result, _CSV, _percentiles)


def runs_csv(result: Result) -> str:
    """Return a row a run: what was measured of the drive, and of each class of requests.

    Of a class that is how many there are, their rate, bandwidth, mean and largest latency.
    Where a run has tenants, rows of each follow, which have the drive's figures of the whole run.
    """
    return _csv(result, _RUN_CSV, lambda run: [_whole(run)])


def _csv(
    result: Result, heads: Sequence[str], rows: Callable[[Run], Iterable[Sequence[_Cell]]]
) -> str:
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    parts = [
        ([run.name, tenant], part)
        for run in result.runs
        for tenant, part in [("", run), *((part.name, part) for part in run.tenants)]
    ]
    keys = 2 if any(run.tenants for run in result.runs) else 1
    table.writerow([*("run", "tenant")[:keys], *heads, "basis"])
    for names, part in parts:
        for row in rows(part):
            table.writerow([*names[:keys], *row, part.data["basis"]])
    return out.getvalue()


def _whole(run: Run) -> list[_Cell]:
    cells: list[_Cell] = [len(run.seeds), run.data["requests"], run.data["simulated_s"]]
    cells += [run.waf, run.erases]
    for latency_class in LATENCY_CLASSES:
        samples = run.samples(latency_class)
        largest = run.data[latency_class]["max_ns"] if samples else None
        rates = (run.iops(latency_class), run.bandwidth(latency_class))
        cells += [samples, *rates, run.mean(latency_class), largest]
    return cells


def _percentiles(run: Run) -> Iterator[list[_Cell]]:
    for latency_class in LATENCY_CLASSES:
        for at, ns in run.curve(latency_class) if run.samples(latency_class) else []:
            low, high = run.interval(latency_class, at) or ("", "")
            beyond, samples = run.beyond(latency_class, at), run.samples(latency_class)
            yield [latency_class, f"{at:g}", ns, low, high, beyond, samples]


def percentiles_markdown(result: Result) -> str:
    """Return a table a class for a text: percentiles down, runs across, few samples marked."""
    parts = [f"{result.title} ({workload_kind(result.runs)})".strip()]
    for latency_class in LATENCY_CLASSES:
        if not any(run.samples(latency_class) for run in result.runs):
            continue
        rows = [
            [units.requests(latency_class), *(run.name.replace("|", "\\|") for run in result.runs)],
            ["---", *("---:" for _ in result.runs)],
            ["requests", *(units.count(run.samples(latency_class)) for run in result.runs)],
            ["mean", *(units.duration(run.mean(latency_class)) for run in result.runs)],
        ]
        for at in PERCENTILES:
            cells = [_cell(run, latency_class, at) for run in result.runs]
            rows.append([percentiles.label(at), *cells])
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    parts.append(f"\\* fewer than {FEW} samples beyond: how many")
    return "\n\n".join(parts)


def _cell(run: Run, latency_class: str, at: float) -> str:
    found = units.duration(run.percentile(latency_class, at))
    few = is_guess(run, latency_class, at)
    return f"{found} \\*{run.beyond(latency_class, at)}" if few else found


def biolatency(result: Result) -> str:
    """Return a histogram a run and class, in powers of two of microseconds."""
    parts = [
        f"{run.name}: {units.requests(latency_class)} ({workload_kind([run])})\n"
        + _histogram(run, latency_class)
        for run in result.runs
        for latency_class in LATENCY_CLASSES
        if latency_class != "small_read" and run.samples(latency_class)
    ]
    return "\n".join(parts)


def _histogram(run: Run, latency_class: str) -> str:
    slots: dict[int, int] = {}
    for ns, count in run.distribution(latency_class):
        # Slot 0 is 0 to 1 us, slot n is 2^n to 2^(n+1) - 1.
        slot = max(0, (ns // 1000).bit_length() - 1)
        slots[slot] = slots.get(slot, 0) + count
    most = max(slots.values())
    lines = ["     usecs               : count    distribution"]
    for slot in range(max(slots) + 1):
        count = slots.get(slot, 0)
        low, high = (0, 1) if slot == 0 else (1 << slot, (2 << slot) - 1)
        stars = "*" * (_STARS * count // most)
        lines.append(f"{low:>10} -> {high:<10} : {count:<8} |{stars:<{_STARS}}|")
    return "\n".join(lines) + "\n"
