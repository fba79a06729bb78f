"""What came of a sweep: a table with a row a point, and a picture."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashkeel import first_state, measures, overload, percentiles, spread, steadiness
from flashkeel._core import InputError
from flashkeel.arrow import write_table
from flashkeel.comparison import FEW
from flashkeel.output import files, plots, sweep_labels
from flashkeel.quantities import flash_bytes, wearing_amplification
from flashkeel.run import LATENCY_CLASSES, Run, main_class
from flashkeel.suggest import did_you_mean
from flashkeel.sweep import quantity
from flashkeel.sweep.design import Design
from flashkeel.sweep.running import Done

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE = "sweep.png"
_TABLES, _TENANTS = ("sweep.parquet", "sweep.csv"), ("tenants.parquet", "tenants.csv")
FILES = (*_TABLES, *_TENANTS, PICTURE)
"""What :func:`save` writes."""
_DECADE = 10
"""Times the least value from which on an axis is logarithmic."""
_MOST_TICKS = 12
_MOST_NAMED = 8
"""Points that are named where they are left out."""
_MOST_LETTERS = 80
"""Of words across that have room beside each other."""
_SHOWN = (50.0, 99.0, 99.9, 99.99, 99.9999)
_PLURALS = {"flush": "flushes"}
_IDENTITY = ("point", "run")
"""Columns that say which run a row is of, beside its keys."""
_DRIVE_WRITES = "drive_writes_per_cycle"


def rows(design: Design, done: Sequence[Done]) -> list[dict[str, Any]]:
    """Return a row a point and run: the keys, what was measured, and quantities as numbers."""
    columns = _measures()
    return _with_numbers(
        design,
        [
            _identity(design, it) | {name: measure(it.run) for name, measure in columns.items()}
            for it in done
        ],
    )


def tenant_rows(design: Design, done: Sequence[Done]) -> list[dict[str, Any]]:
    """Return a row a point, run and tenant: the keys, and how its requests were served."""
    columns: dict[str, _Measure] = {
        "tenant": lambda tenant: tenant.name,
        "seeds": lambda tenant: len(tenant.seeds),
        "requests": lambda tenant: tenant.data["requests"],
    }
    for latency_class in LATENCY_CLASSES:
        columns |= _measures_of(latency_class)
    return _with_numbers(
        design,
        [
            _identity(design, it) | {name: measure(tenant) for name, measure in columns.items()}
            for it in done
            for tenant in it.run.tenants
        ],
    )


def _identity(design: Design, done: Done) -> dict[str, Any]:
    """Return the columns that say what was run: the point, the run, and its keys."""
    which = (done.point.index + 1, done.run.data["name"])
    keys = {key: _plain(done.point.values[key]) for key in design.keys}
    return dict(zip(_IDENTITY, which, strict=True)) | keys


def _with_numbers(design: Design, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with quantities as numbers, too."""
    for key in design.keys:
        if known := quantity.of([row[key] for row in found]):
            for row in found:
                row[f"{key}_{known.unit}"] = known.numbers[row[key]]
    return found


def _plain(value: Any) -> Any:  # noqa: ANN401
    return value if isinstance(value, (bool, int, float, str)) else json.dumps(value)


def refuse_unknown_columns(design: Design) -> None:
    """Raise InputError where the picture is to show a column that the table will not have."""
    known = [*_IDENTITY, *design.keys, *_measures()]
    for name in (design.picture.x, design.picture.y, design.picture.by):
        if name is not None and name not in known:
            hint = did_you_mean(name, known)
            raise InputError(f"{design.name}: picture: no column {name!r} in the table{hint}")


_Measure = Callable[[Run], Any]


def _measures() -> dict[str, _Measure]:
    """Return how each column that is measured comes from a run."""
    found: dict[str, _Measure] = {
        "seeds": lambda run: len(run.seeds),
        "basis": lambda run: run.data["basis"],
        "digest": lambda run: run.data["digest"],
        "requests": lambda run: run.data["requests"],
        "overloaded": lambda run: bool(overload.found(run)),
        "of_first_state": first_state.decides,
        "waf": lambda run: run.data.get("waf"),
        **_bounds_of("waf"),
        "from_free_blocks": steadiness.from_free_blocks,
        "left_in_buffer": steadiness.left_in_buffer,
        "erases": lambda run: run.data.get("erases"),
        _DRIVE_WRITES: _drive_writes,
        "gc_blocked_fraction": lambda run: run.data.get("gc_blocked_fraction"),
    }
    for latency_class in LATENCY_CLASSES:
        found |= _measures_of(latency_class)
    return found


def _measures_of(latency_class: str) -> dict[str, _Measure]:
    found: dict[str, _Measure] = {
        _PLURALS.get(latency_class, f"{latency_class}s"): lambda run: run.samples(latency_class),
        f"{latency_class}_iops": lambda run: run.iops(latency_class),
        f"{latency_class}_mean_ns": lambda run: run.mean(latency_class),
    }
    if latency_class != "flush":
        found[f"{latency_class}_bytes_per_s"] = lambda run: run.bandwidth(latency_class)
    if latency_class in measures.CLASSES:
        for name in ("iops", "bytes_per_s", "mean_ns"):
            found |= _bounds_of(f"{latency_class}_{name}")
    for at in _SHOWN:
        found |= _measures_at(latency_class, at)
    return found


def _bounds_of(name: str) -> dict[str, _Measure]:
    """Return the columns of the interval of a number over seeds, empty where there are few."""

    def bound(run: Run, side: int) -> float | None:
        interval = measures.intervals(run).get(name)
        return interval[side] if interval else None

    low, high = _bounds(name)
    return {low: lambda run: bound(run, 0), high: lambda run: bound(run, 1)}


def _bounds(name: str) -> tuple[str, str]:
    """Return the columns of the bounds of a column: ``read_p99_low_ns`` of ``read_p99_ns``."""
    bare = name.removesuffix("_ns")
    unit = name[len(bare) :]
    return f"{bare}_low{unit}", f"{bare}_high{unit}"


def _measures_at(latency_class: str, at: float) -> dict[str, _Measure]:
    def bound(run: Run, side: int) -> int | None:
        interval = run.interval(latency_class, at)
        return interval[side] if interval else None

    name = f"{latency_class}_{percentiles.label(at)}"
    low, high = _bounds(f"{name}_ns")
    return {
        f"{name}_ns": lambda run: run.percentile(latency_class, at),
        low: lambda run: bound(run, 0),
        high: lambda run: bound(run, 1),
        f"{name}_beyond": lambda run: run.beyond(latency_class, at),
    }


def _drive_writes(run: Run) -> float | None:
    """Return how often a cycle of all its blocks lets the host write the drive full.

    Times the cycles that the flash is rated for it is the drive's life in drive writes, at
    this write amplification and with even wear. None for a stack, or without writes.
    """
    geometry = run.data["config"]["device"]["geometry"]
    if run.data["config"].get("stack"):
        return None
    amplification = wearing_amplification(run.data, geometry)
    if not amplification:
        return None
    return float(flash_bytes(geometry) / run.data["limits"]["capacity_bytes"] / amplification)


def save(design: Design, done: Sequence[Done], directory: Path) -> list[Path]:
    """Write the tables, as Parquet and as CSV, and the picture; return the files.

    Where there are tenants they have a table of their own.
    """
    written = []
    for (table, sheet), found in (
        (_TABLES, rows(design, done)),
        (_TENANTS, tenant_rows(design, done)),
    ):
        if found:
            _write(found, directory / table, directory / sheet)
            written += [directory / table, directory / sheet]
    with files.whole(directory / PICTURE) as place:
        picture(design, done).savefig(place, dpi=130)
    return [*written, directory / PICTURE]


def _write(found: Sequence[dict[str, Any]], table: Path, sheet: Path) -> None:
    from arro3.core import Array, Table

    columns = {name: _column([row[name] for row in found], Array) for name in found[0]}
    with files.whole(table) as place:
        write_table(place, Table.from_pydict(columns))
    with files.whole(sheet) as place, place.open("w", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, found[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


def _column(values: list[Any], array: Any) -> Any:  # noqa: ANN401
    from arro3.core import DataType

    known = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in known):
        words = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
        return array(words, DataType.utf8())
    if known and all(isinstance(value, bool) for value in known):
        return array(values, DataType.bool())
    if any(isinstance(value, float) for value in known) or not known:
        return array([None if v is None else float(v) for v in values], DataType.float64())
    signed, unsigned = DataType.int64(), DataType.uint64()
    large = max(map(int, known)) >= 2**63
    return array([None if v is None else int(v) for v in values], unsigned if large else signed)


def picture(design: Design, done: Sequence[Done]) -> Figure:
    """Return one column of the table against another, with a colour for each value of a third.

    What the file does not choose is: up, p99.9 of the main class; across, the first key; by
    colour, the second. Open marks have fewer than ten samples beyond the percentile.
    """
    from matplotlib.figure import Figure

    measured = rows(design, done)
    found = sweep_labels.shortened(design.keys, measured)
    main = main_class([it.run for it in done])
    x = design.picture.x or design.keys[0]
    y = design.picture.y or f"{main}_p99.9_ns"
    by = design.picture.by or next((key for key in design.keys if key != x), "run")
    across = quantity.of([row[x] for row in found]) if x in design.keys else None
    if across is not None:
        found = [row | {x: across.numbers[row[x]]} for row in found]
    shown = [key for key in (*design.keys, "run") if len({str(row[key]) for row in found}) > 1]
    # What no axis names is said by the points, of a line by its last.
    unnamed = [key for key in shown if key not in (x, y, by)]
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    values = list(dict.fromkeys(row[by] for row in found))
    marks = _marks_of(figure, axes, by if by in design.keys else _words(by), values)
    names: dict[tuple[Any, Any], list[str]] = {}
    for value in values:
        mark = marks[value]
        here = [row for row in found if row[by] == value and None not in (row[x], row[y])]
        for line in _lines(design, here, x) if design.has_order else []:
            places = [row[x] for row in line], [row[y] for row in line]
            axes.plot(*places, color=mark["color"], alpha=0.4)
            for row in (line[-1:] if x in design.keys else line) if unnamed else []:
                said = ", ".join(str(row[key]) for key in unnamed)
                names.setdefault((row[x], row[y]), []).append(said)
        for row in here:
            _mark(axes, row, x, y, mark)
    # Points may lie on each other, and those at the right need room for their names.
    for at, texts in names.items():
        said = " | ".join(dict.fromkeys(texts))
        axes.annotate(said, at, (5, 5), textcoords="offset points", fontsize="x-small")
    if names:
        axes.margins(x=0.15)
    if y.endswith("_ns"):
        axes.set_yscale("log")
        plots.latencies(axes.yaxis)
    if across is not None:
        _quantities(axes, across)
    elif len("".join({str(row[x]) for row in found})) > _MOST_LETTERS:
        axes.tick_params(axis="x", labelrotation=90)
    axes.set_xlabel(x if x in design.keys else _words(x))
    axes.set_ylabel(y if y in design.keys else _words(y))
    axes.grid(alpha=0.3)
    words = [*_left_out(found, x, y), *_marks(found, y)] + [
        sweep_labels.meaning(key) for key in sweep_labels.long_keys(shown, measured)
    ]
    if words:
        figure.supxlabel("\n".join(words), fontsize="small")
    kind = plots.workload_kind([it.run for it in done])
    figure.suptitle(f"{design.title} ({kind})")
    return figure


def _mark(axes: Axes, row: dict[str, Any], x: str, y: str, mark: dict[str, Any]) -> None:
    """Draw a point, with its interval and what there is to know of it."""
    low, high = (row.get(bound) for bound in _bounds(y))
    if low is not None and high is not None:
        axes.plot([row[x]] * 2, [low, high], color=mark["color"], alpha=0.6)
    # A percentile that many share is no guess.
    few = row.get(_beyond(y), FEW) < FEW and (low is None or low != high)
    axes.plot(row[x], row[y], **mark, mfc="white" if few else mark["color"])
    if _is_early(row):
        axes.plot(row[x], row[y], "+", color="black", markersize=9)
    if row["overloaded"]:
        axes.plot(row[x], row[y], "x", color="black", markersize=9)
    if row["of_first_state"]:
        axes.plot(row[x], row[y], "^", color="black", markersize=11, mfc="none")


def _beyond(name: str) -> str:
    """Return the column of the samples beyond a percentile."""
    return f"{name.removesuffix('_ns')}_beyond"


def _left_out(found: Sequence[dict[str, Any]], x: str, y: str) -> Iterable[str]:
    """Yield which points are in no picture, as they have nothing to show there."""
    for column in dict.fromkeys((x, y)):
        points = dict.fromkeys(str(row["point"]) for row in found if row[column] is None)
        if points:
            kind = "points" if len(points) > 1 else "point"
            named = len(points) <= _MOST_NAMED
            which = f"{kind} {', '.join(points)}" if named else f"{len(points)} {kind}"
            yield f"left out, without {_words(column)}: {which}"


def _marks(found: Sequence[dict[str, Any]], y: str) -> list[str]:
    """Return what the marks of a picture mean, a line for each that is in it."""
    words = []
    if any(_beyond(y) in row for row in found):
        words.append(f"open: fewer than {FEW} samples beyond; bars: 95 % intervals")
        if any(row["seeds"] < spread.FEWEST for row in found):
            words[-1] += f", which {spread.INDEPENDENT}"
    elif any(row.get(_bounds(y)[0]) is not None for row in found):
        words.append("bars: 95 % intervals by what seeds differ by")
    if any(row["overloaded"] for row in found):
        words.append("×: requests come faster than they are served")
    if any(map(_is_early, found)):
        words.append("+: write amplification is not yet the one that lasts")
    if any(row["of_first_state"] for row in found):
        words.append("△: what the drive held before is in the figures")
    return words


def _is_early(row: dict[str, Any]) -> bool:
    return steadiness.is_early(row["from_free_blocks"], row["left_in_buffer"])


def _lines(
    design: Design, found: Sequence[dict[str, Any]], x: str
) -> Iterable[Sequence[dict[str, Any]]]:
    """Return the rows that a line goes through: those in which no other key differs.

    Where no key is across, but what was measured, that is all of them.
    """
    others = [key for key in (*design.keys, "run") if key != x] if x in design.keys else []
    lines: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in found:
        lines.setdefault(tuple(row[key] for key in others), []).append(row)
    if x in design.keys and all(_is_number(row[x]) for row in found):
        return [sorted(line, key=lambda row: row[x]) for line in lines.values()]
    return lines.values()


def _is_number(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _quantities(axes: Axes, across: quantity.Quantity) -> None:
    """Scale and label an axis of quantities: each as it is written, where there are few."""
    places = {number: quantity.alone(text) for text, number in across.numbers.items()}
    low, high = min(places), max(places)
    if 0 < low * _DECADE <= high:
        axes.set_xscale("log")
    axes.minorticks_off()
    if len(places) > _MOST_TICKS:
        axes.xaxis.set_major_formatter(lambda number, _: across.shown(number))
    else:
        axes.set_xticks(list(places), list(places.values()), rotation=30, ha="right")


def _marks_of(
    figure: Figure, axes: Axes, name: str, values: Sequence[Any]
) -> dict[Any, dict[str, Any]]:
    """Return colour and shape of each value, and show them, of many numbers as a scale."""
    count = len(plots.RUN_COLOURS)
    numbers = [value for value in values if isinstance(value, (int, float))]
    if len(values) > count and len(numbers) == len(values):
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        scale = ScalarMappable(Normalize(min(numbers), max(numbers)), "viridis")
        figure.colorbar(scale, ax=axes, label=name)
        return {value: {"color": scale.to_rgba(value), "marker": "o"} for value in values}
    found = {value: plots.mark_of_run(index) for index, value in enumerate(values)}
    for value in values[: plots.MOST_MARKED]:
        axes.plot([], [], linestyle="", label=str(value), **found[value])
    if len(values) > plots.MOST_MARKED:
        axes.plot([], [], " ", label=f"and {len(values) - plots.MOST_MARKED} more")
    figure.legend(title=name, loc="outside right upper", frameon=False, fontsize="small")
    return found


def _words(column: str) -> str:
    words = {_DRIVE_WRITES: "drive writes for each cycle of the flash (more: lasts longer)"}
    return words.get(column, column.removesuffix("_ns").replace("_", " "))
