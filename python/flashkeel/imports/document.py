"""What an import makes: an experiment as TOML, and notes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flashkeel import toml
from flashkeel._core import InputError
from flashkeel.experiment import Experiment

_LINE = 80
"""Characters of a line of a comment."""
_LARGER = {
    "B": [("KiB", 1024), ("MiB", 1024), ("GiB", 1024)],
    "ns": [("us", 1000), ("ms", 1000), ("s", 1000)],
}


def in_run(name: str, key: str) -> str:
    """Return a key of the run `name`, in the places of a document with several runs."""
    return f"{name}: {key}"


@dataclass
class Imported:
    """An experiment made from another tool's document."""

    source: str
    """What it was made from."""
    table: dict[str, Any]
    """The experiment."""
    notes: list[str] = field(default_factory=list)
    """What has no equal here, or only nearly one."""
    places: dict[str, str] = field(default_factory=dict)
    """Where what stands under a key came from, as errors say it; of several runs see `in_run`."""

    def experiment(self, name: str) -> Experiment:
        """Return the experiment, whose errors name what it was made from.

        Relative paths in it start at the folder of `name`.
        """
        return _Made(self, name)

    def explained(self, error: InputError) -> InputError:
        """Return an error about the document as one about what it was made from."""
        match = re.fullmatch(
            r'.*?:\d+: ([\w.-]+): (.*?)(?: \(in the run "(.*)"\))?', str(error), re.DOTALL
        )
        if match is None:
            return error
        key, why, run = match.groups()
        key = in_run(run, key) if run and self.table.get("runs") else key
        known = [it for it in self.places if key == it or key.startswith(f"{it}.")]
        if known:
            return InputError(f"{self.places[max(known, key=len)]}: {why}")
        return InputError(f"{self.source}, as an experiment: {key}: {why}")

    def to_toml(self) -> str:
        """Return the document, its notes as comments at the top."""
        head = [f"# Made from {self.source}."]
        for note in self.notes:
            head += textwrap.wrap(
                f"Note: {note}.",
                _LINE,
                initial_indent="# ",
                subsequent_indent="#   ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        lines: list[str] = []
        _write(self.table, "", lines)
        return "\n".join([*head, "", *lines]).rstrip() + "\n"


class _Made(Experiment):
    def __init__(self, imported: Imported, name: str) -> None:
        super().__init__(imported.to_toml(), name)
        self._imported = imported

    def plans(
        self, seed: int | None = None, progress: Callable[[str, float], object] | None = None
    ) -> list[dict[str, Any]]:
        try:
            return super().plans(seed, progress)
        except InputError as error:
            raise self._imported.explained(error) from None


def _write(table: dict[str, Any], path: str, lines: list[str]) -> None:
    inline = {key: value for key, value in table.items() if not _is_section(value)}
    lines += [f"{key} = {_value(value)}" for key, value in inline.items()]
    for key, value in table.items():
        if not _is_section(value):
            continue
        inner = f"{path}{key}"
        for part in value if isinstance(value, list) else [value]:
            own = any(not _is_section(it) for it in part.values())
            if isinstance(value, list):
                lines += ["", f"[[{inner}]]"]
            elif own:
                lines += ["", f"[{inner}]"]
            _write(part, f"{inner}.", lines)


def _is_section(value: Any) -> bool:  # noqa: ANN401
    """Say whether a value is written under a heading: a table without a policy, or several."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], dict)
    return isinstance(value, dict) and "policy" not in value


def _value(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, dict):
        pairs = ", ".join(f"{key} = {_value(it)}" for key, it in value.items())
        return f"{{ {pairs} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return toml.value(_in_large_units(value))


def _in_large_units(value: Any) -> Any:  # noqa: ANN401
    """Return a size or time, given in bytes or nanoseconds, in the largest unit that is whole."""
    match = re.fullmatch(r"(\d+)(B|ns)(/\d+)?", value) if isinstance(value, str) else None
    if match is None:
        return value
    number, unit = int(match[1]), match[2]
    for larger, factor in _LARGER[unit]:
        if number == 0 or number % factor:
            break
        number, unit = number // factor, larger
    return f"{number}{unit}{match[3] or ''}"
