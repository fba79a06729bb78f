"""The design of a sweep: which keys get which values, in a grid or by chance."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any

from flashkeel import seeds, toml
from flashkeel._core import InputError
from flashkeel.experiment import Experiment
from flashkeel.output import files
from flashkeel.parsing import parse_toml, read_document
from flashkeel.suggest import did_you_mean

_KEYS = ("title", "experiment", "set", "grid", "random", "picture")
_RANDOM_KEYS = ("points", "seed", "keys")
_RANGE_KEYS = ("from", "to", "scale", "unit")
_PICTURE_KEYS = ("x", "y", "by")
_MOST_POINTS = 1_000_000
_AS_RANGE = '{ from = 1, to = 4, unit = "MiB" }'
_INDIVISIBLE = ("ns", "B", "B/s")
"""Units of which configuration takes whole numbers only."""
_LARGEST = 1e300


@dataclass(frozen=True)
class Picture:
    """What the picture of a sweep shows: columns of its table."""

    x: str | None = None
    y: str | None = None
    by: str | None = None
    """The column whose values have a colour each."""


@dataclass(frozen=True)
class Design:
    """A sweep as its file says."""

    name: str
    title: str
    base: str | Mapping[str, Any]
    """The experiment that keys are set over: its name or file, or all of it."""
    fixed: dict[str, Any]
    """Keys set in every point."""
    points: Sequence[Mapping[str, Any]]
    """For each point its keys and values."""
    picture: Picture = field(default_factory=Picture)
    has_order: bool = True
    """Whether points follow one another, as in a grid, and not by chance."""
    folder: Path = Path()
    """Where relative paths start."""
    given: dict[str, Any] = field(default_factory=dict)
    """Keys set in every point from outside; relative paths start where one is."""

    @property
    def keys(self) -> list[str]:
        """The keys that are varied, in the order of the file."""
        return list(self.points[0])

    def experiment(self, point: Mapping[str, Any]) -> Experiment:
        """Return the experiment with the keys of a point set over it."""
        if isinstance(self.base, str):
            made = Experiment.find(self.base)
        else:
            made = Experiment.from_table(self.base, self.name)
        for key, value in (*self.fixed.items(), *point.items()):
            made = made.set(key, toml.value(files.started_at(self.folder, value, key)))
        for key, value in self.given.items():
            # As TOML, in which a string stays one, whatever else it may look like.
            made = made.set(key, toml.value(value))
        return made

    def set_twice(self) -> str | None:
        """Return a key that is varied and set in every point, too."""
        fixed = [key for key, _ in _dotted({**self.fixed, **self.given})]
        found = (
            varied
            for varied in self.keys
            for key in fixed
            if f"{key}.".startswith(f"{varied}.") or f"{varied}.".startswith(f"{key}.")
        )
        return next(found, None)


def examples() -> list[str]:
    """Return the names of the sweeps that are built in."""
    folder = resources.files("flashkeel.sweep").joinpath("examples")
    return sorted(it.name.removesuffix(".toml") for it in folder.iterdir())


def example(name: str) -> str:
    """Return the document of a sweep that is built in."""
    folder = resources.files("flashkeel.sweep").joinpath("examples")
    return folder.joinpath(f"{name}.toml").read_text(encoding="utf-8")


def read(source: str) -> Design:
    """Return the sweep that is built in under a name, or in the TOML file of that name."""
    if source in examples():
        return parse(example(source), source, Path())
    path = Path(source)
    try:
        text = read_document(path)
    except OSError as error:
        known = ", ".join(examples())
        raise InputError(f"{path}: {error.strerror}; the sweeps built in are {known}") from error
    return parse(text, source, path.parent)


def parse(text: str, name: str, folder: Path) -> Design:
    """Return the sweep in a TOML document; relative paths start at `folder`."""
    try:
        document = parse_toml(text)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error
    place = _Place(name)
    if document.keys() & {"device", "workload", "stack", "runs"}:
        raise InputError(
            f"{name}: an experiment, which `flashkeel run` runs; a sweep names one, as in "
            f"experiment = {toml.value(Path(name).name)}, and says what is varied under [grid]"
        )
    place.refuse_others(document, _KEYS, "")
    base = document.get("experiment")
    if not isinstance(base, (str, dict)):
        raise InputError(
            f'{name}: experiment: name one or its file, as in experiment = "demo", '
            "or write it under [experiment]"
        )
    if isinstance(base, str) and (folder / base).is_file():
        base = str(folder / base)
    grid = place.table(document, "grid")
    drawn = place.table(document, "random")
    points = [
        dict(pairs) | chance
        for pairs in itertools.product(*_choices(grid, place))
        for chance in _drawn(drawn, place)
    ]
    if not points or not points[0]:
        raise InputError(f"{name}: nothing is varied; give keys and their values under [grid]")
    if twice := {key for key, _ in _dotted(grid)} & dict(_dotted(drawn.get("keys", {}))).keys():
        raise InputError(f"{name}: {min(twice)} is varied under [grid] and under [random.keys]")
    shown = place.table(document, "picture")
    place.refuse_others(shown, _PICTURE_KEYS, "picture.")
    return Design(
        name,
        str(document.get("title") or Path(name).stem),
        base,
        place.table(document, "set"),
        points,
        Picture(**{key: str(value) for key, value in shown.items()}),
        has_order=not drawn,
        folder=folder,
    )


@dataclass(frozen=True)
class _Place:
    """The file, as errors call it."""

    name: str

    def table(self, document: Mapping[str, Any], key: str) -> dict[str, Any]:
        found = document.get(key, {})
        if not isinstance(found, dict):
            raise InputError(f"{self.name}: {key}: expected a table, [{key}]")
        return found

    def refuse_others(self, table: Mapping[str, Any], known: Sequence[str], path: str) -> None:
        for key in table:
            if key not in known:
                raise InputError(
                    f"{self.name}: {path}{key}: unknown key, expected one of "
                    f"{', '.join(known)}{did_you_mean(key, known)}"
                )

    def values(self, path: str, found: Any) -> list[Any]:  # noqa: ANN401
        if isinstance(found, list) and found:
            return found
        if _is_range(found):
            raise InputError(
                f"{self.name}: {path}: a range is drawn from by chance, under [random.keys]; "
                "expected a list of values here, as [1, 2, 3]"
            )
        is_drawn = path.startswith("random.")
        raise InputError(
            f"{self.name}: {path}: expected a list of values, as [1, 2, 3]"
            f"{f', or a range, as {_AS_RANGE}' if is_drawn else ''}, found {found!r}"
        )


def _choices(grid: Mapping[str, Any], place: _Place) -> Iterator[list[tuple[str, Any]]]:
    for key, values in _dotted(grid):
        yield [(key, value) for value in place.values(f"grid.{key}", values)]


def _dotted(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Give keys and values; a key may be written with dots or in quotation marks."""
    for key, value in table.items():
        if isinstance(value, dict) and not _is_range(value):
            yield from _dotted(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _drawn(table: Mapping[str, Any], place: _Place) -> list[dict[str, Any]]:
    """Return points by chance; a longer design begins with the points of a shorter one."""
    if not table:
        return [{}]
    place.refuse_others(table, _RANDOM_KEYS, "random.")
    count, seed = table.get("points"), table.get("seed", 1)
    seeds.check(seed, f"{place.name}: random.seed")
    if type(count) is not int or not 1 <= count <= _MOST_POINTS:
        raise InputError(
            f"{place.name}: random.points: expected how many, from 1 to {_MOST_POINTS}"
        )
    keys = dict(_dotted(place.table(table, "keys")))
    if not keys:
        raise InputError(f"{place.name}: random.keys: expected keys and what they may be")
    # A stream for each key, so that another key changes the values of none.
    streams = {key: random.Random(f"{seed} {key}") for key in keys}
    return [
        {key: _value(keys[key], streams[key].random(), place, key) for key in keys}
        for _ in range(count)
    ]


def _value(choice: Any, share: float, place: _Place, key: str) -> Any:  # noqa: ANN401
    """Return what `share`, from 0 up to 1, stands for in a list or a range."""
    if not isinstance(choice, dict):
        values = place.values(f"random.keys.{key}", choice)
        return values[int(share * len(values))]
    place.refuse_others(choice, _RANGE_KEYS, f"random.keys.{key}.")
    low: Any = choice.get("from")
    high: Any = choice.get("to")
    if not _is_number(low) or not _is_number(high):
        raise InputError(
            f"{place.name}: random.keys.{key}: expected from and to, two numbers, as {_AS_RANGE}"
        )
    if low > high:
        raise InputError(f"{place.name}: random.keys.{key}: from is {low}, above to, {high}")
    scale = choice.get("scale", "linear")
    if scale not in ("linear", "log") or (scale == "log" and low <= 0):
        raise InputError(
            f'{place.name}: random.keys.{key}: scale is "linear", or "log" of numbers above 0'
        )
    whole = isinstance(low, int) and isinstance(high, int)
    if scale == "log":
        value = math.exp(math.log(low) + share * (math.log(high + whole) - math.log(low)))
    else:
        value = low + share * (high + whole - low)
    value = min(max(value, low), high)
    if not whole and choice.get("unit") in _INDIVISIBLE:
        low, high, whole = math.ceil(low), math.floor(high), True
        if low > high:
            raise InputError(
                f"{place.name}: random.keys.{key}: there is no whole number between them, and "
                f"{choice['unit']} has no fractions"
            )
        value = round(value)
    number: float = min(max(math.floor(value), low), high) if whole else _short(value, low, high)
    # Quantities are written without exponents.
    return f"{Decimal(str(number)):f}{choice['unit']}" if "unit" in choice else number


def _short(value: float, low: float, high: float) -> float:
    """Return a number of six digits, or of as many more as keep it within bounds."""
    found = (float(f"{value:.{digits}g}") for digits in range(6, 17))
    return next((it for it in found if low <= it <= high), value)


def _is_range(value: Any) -> bool:  # noqa: ANN401
    """Return whether it is a table with an end, and not one with keys of these names."""
    ends = [value[key] for key in ("from", "to") if key in value] if isinstance(value, dict) else []
    return any(not isinstance(end, (list, dict)) for end in ends)


def _is_number(value: Any) -> bool:  # noqa: ANN401
    # Beyond the largest lies what no quantity is, and what Python cannot divide.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and abs(value) <= _LARGEST
