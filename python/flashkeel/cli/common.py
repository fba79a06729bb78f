"""What several commands share: what they print, and the options that they have in common."""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from flashkeel import seeds
from flashkeel.parsing import parse_toml

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 160
_NOT_TAKEN = 3
"""Exit status of an answer that is not what ``--check`` asks for: nothing has failed."""


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line, in the characters that the stream has.

    By itself click would write UTF-8 to a stream of ASCII.
    """
    click.echo(text, file=sys.stderr if err else sys.stdout, nl=nl)


def paragraph(text: str) -> str:
    """Return a text in lines no wider than a page, in which names of options stay whole."""
    from flashkeel.output.tables import PAGE

    return textwrap.fill(text, PAGE, break_long_words=False, break_on_hyphens=False)


def print_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error, no wider than a page."""
    for note in notes:
        echo(paragraph(f"note: {note}"), err=True)


@contextmanager
def saved_after(save: Callable[[], object]) -> Iterator[None]:
    """Save what is shown within, also where nobody reads on.

    It is shown first: what was found is not lost where it cannot be saved.
    """
    try:
        yield
        sys.stdout.flush()
    finally:
        save()


def show_with_picture(
    show: Callable[[], object], save: Callable[[Path], object], out: Path | None, form: str
) -> None:
    """Show what was found, save its picture if one was asked for, and say where it is."""
    if out is None:
        show()
        return
    with saved_after(lambda: save(out)):
        show()
    if form == "table":
        echo(f"Picture: {out}")


DESTROY = click.option(
    "--destroy", is_flag=True, help="The data of real drives may be destroyed; else it is kept."
)

_PICTURES = (".png", ".svg", ".pdf")

_Command = TypeVar("_Command", bound=Callable[..., Any])


def checked(refused: str) -> Callable[[_Command], _Command]:
    """Return the option ``--check``, for scripts; `refused` says which answers it does not take."""
    about = f"Exit with status {_NOT_TAKEN} if {refused}."
    return click.option("--check", is_flag=True, help=about)


def end(is_taken: bool) -> None:
    """End a command that was told to check its answer, which has been shown."""
    if not is_taken:
        raise click.exceptions.Exit(_NOT_TAKEN)


def out_file(about: str, *, required: bool = False) -> Callable[[_Command], _Command]:
    """Return the option ``-o``: the file to write, as ``path``."""
    return click.option(
        "-o",
        "--out",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        required=required,
        metavar="FILE",
        help=about,
    )


def refuse_no_picture(path: Path, or_else: str = "") -> None:
    """Raise BadParameter where a file's name is not that of a picture."""
    if path.suffix not in _PICTURES:
        raise click.BadParameter(f"{path}: a picture ends in .png, .svg or .pdf{or_else}")


def console(pipe_width: int = _PIPE_WIDTH) -> Console:
    """Return a console on standard output; without colour in a pipe, and of that width there."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else pipe_width)


def split_assignment(text: str, option: str) -> tuple[str, str]:
    """Return the two sides of ``KEY=VALUE``; UnicodeEncodeError where it is no UTF-8."""
    text.encode()
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise click.UsageError(f"{option} {text}: write KEY=VALUE")
    return key.strip(), value.strip()


def settings(sets: tuple[str, ...]) -> dict[str, Any]:
    """Return ``KEY=VALUE`` texts as settings; values as in ``run --set``."""
    return {key: _value(text) for key, text in (split_assignment(it, "--set") for it in sets)}


SOURCE = "workload.source."
"""Before a key of a trace or a profile, where an experiment is set over."""


def source_settings(sets: tuple[str, ...]) -> dict[str, Any]:
    """Return settings of a trace or a profile alone; UsageError where they are an experiment's."""
    found = settings(sets)
    for key in found:
        if key.startswith(SOURCE):
            raise click.UsageError(
                f"--set {key}: there is no experiment here; write {key.removeprefix(SOURCE)}"
            )
    return found


def _value(text: str) -> Any:  # noqa: ANN401
    try:
        found = parse_toml(f"value = {text}")["value"]
    except ValueError:
        return text
    return found if _is_plain(found) else text


def _is_plain(value: Any) -> bool:  # noqa: ANN401
    """Return whether JSON has a value, which has no dates and no numbers but finite ones."""
    match value:
        case dict():
            return all(map(_is_plain, value.values()))
        case list():
            return all(map(_is_plain, value))
        case float():
            return math.isfinite(value)
    return isinstance(value, (bool, int, str))


class Number(click.FloatRange):
    """A number within bounds, and one: click takes ``nan`` and ``inf`` for numbers, too."""

    name = "number"

    def convert(
        self,
        value: Any,  # noqa: ANN401
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number; click's refusal where it is none."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class Seed(click.types.IntParamType):
    """A seed; what is none is refused in the words in which a document's ``seed`` is."""

    name = "seed"

    def convert(
        self,
        value: Any,  # noqa: ANN401
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Return the seed that `value` is, or raise InputError."""
        place = param.opts[0] if param else self.name
        try:
            number: int = super().convert(value, param, ctx)
        except click.BadParameter:
            raise seeds.refused(place, f'"{value}"') from None
        return seeds.check(number, place)
