"""The ``flashkeel`` command: a thin layer over the Python package."""

from __future__ import annotations

import atexit
import errno
import os
import signal
import sys
import warnings
from collections import UserDict
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any, NoReturn

import click

import flashkeel
from flashkeel._core import BUILD, InputError
from flashkeel.cli.common import echo
from flashkeel.output import terminal
from flashkeel.suggest import did_you_mean

FAILURE = 1
BAD_INPUT = 2
INTERRUPTED = 130
_MISNAMED = {
    errno.EACCES,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}
"""What the system says of a file that cannot be where it was asked for."""


_PLACES = {
    "compare": "compare.compare",
    "explain": "explain.explain",
    "export": "export.export",
    "import": "imports.import_",
    "list": "catalogue.list_",
    "map": "map.map_",
    "plan": "plan.plan",
    "plot": "plot.plot",
    "predict": "predict.predict",
    "probe": "probe.probe",
    "report": "report.report",
    "reproduce": "reproduce.reproduce",
    "run": "run.run",
    "serve": "serve.serve",
    "show": "catalogue.show",
    "steady": "steady.steady",
    "sweep": "sweep.sweep",
    "trace": "trace.trace",
}
"""Module and function of each command."""


class _Commands(UserDict[str, Any]):
    """Commands by name. One is imported when it is asked for: all of them take longer than most."""

    def __getitem__(self, name: str) -> click.Command:
        found = super().__getitem__(name)
        if isinstance(found, str):
            module, function = found.split(".")
            found = self[name] = getattr(import_module(f"{__name__}.{module}"), function)
        command: click.Command = found
        return command


@click.group(
    commands=_Commands(_PLACES),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(
    flashkeel.__version__, prog_name="flashkeel", message=f"%(prog)s %(version)s ({BUILD})"
)
def app() -> None:
    """Simulate SSDs and the storage policies around them, tails first.

    Exit status: 0 success, 1 failure, such as of a full disk, 2 wrong usage or input, 3 an answer
    that --check does not take, 130 interrupted.
    """


def _prepare() -> None:
    terminal.prepare()
    # Names may be in any script; what a picture has no letters for it shows as boxes.
    warnings.filterwarnings("ignore", "Glyph .* missing from font")
    if sys.stdout is None:
        _fail("standard output is closed", FAILURE)
    atexit.register(_settle_errors)
    # Whoever ends the command lets it clear up, as an interrupt does. What ignores the end of
    # its terminal, as under nohup, goes on.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, lambda received, _: sys.exit(128 + received))


def main() -> NoReturn:
    """Run the command; exit status 0 success, 1 failure, 2 bad usage or bad input.

    What ``--check`` does not take has a status of its own, in ``flashkeel.cli.common``.
    """
    _prepare()
    _refuse_empty(sys.argv)
    try:
        status = app.main(prog_name="flashkeel", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(status if isinstance(status, int) else 0)
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.format_message(), err=True)
        sys.exit(BAD_INPUT)
    except click.ClickException as error:
        _fail(_what_is_misused(error), BAD_INPUT)
    except (InputError, UnicodeEncodeError) as error:
        _fail(_what_is_wrong(error), BAD_INPUT)
    except BrokenPipeError:
        # Whoever read standard output has gone.
        _close_output()
        sys.exit(FAILURE)
    except (KeyboardInterrupt, click.Abort) as error:
        # Where something was done by then that has to be said, it says so.
        said = error.__cause__ if isinstance(error, click.Abort) else error
        _fail(str(said or "") or "interrupted", INTERRUPTED)
    except ImportError as error:
        # An extension module that is interrupted while it is imported calls that a failure.
        if not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise
        _fail("interrupted", INTERRUPTED)
    except OSError as error:
        if error.filename == terminal.OUTPUT:
            _close_output()
        place = f"{error.filename}: " if error.filename else ""
        # A disk that is full or fails is no mistake of who named the file.
        status = BAD_INPUT if error.errno in _MISNAMED else FAILURE
        _fail(f"{place}{error.strerror or error}", status)
    except RuntimeError as error:
        _fail(str(error), FAILURE)
    except BaseException as error:
        _say_notes(error)
        if isinstance(error, SystemExit) or os.environ.get("FLASHKEEL_TRACEBACK"):
            raise
        hint = "an error of flashkeel itself; FLASHKEEL_TRACEBACK=1 shows where"
        _fail(f"{type(error).__name__}: {error} ({hint})", FAILURE)


def _refuse_empty(words: Sequence[str]) -> None:
    """Refuse an empty argument: as a path it would be the current directory."""
    for before, word in pairwise(("flashkeel", *words[1:])):
        option, equals, value = (
            word.partition("=") if word.startswith("--") else (before, "=", word)
        )
        if equals and not value:
            said = "what follows is empty, as a variable of a shell is that is not set"
            _fail(f"{option}: {said}", BAD_INPUT)


def _what_is_misused(error: click.ClickException) -> str:
    """Return what is said of wrong usage, with what may have been meant instead of a word."""
    import re

    said = " ".join(error.format_message().split())
    kind = error.param.type if isinstance(error, click.BadParameter) and error.param else None
    word = re.match(r"'(.*)' is not one of ", error.message)
    if not isinstance(kind, click.Choice) or word is None:
        return said
    meant = did_you_mean(word[1], [str(choice) for choice in kind.choices])
    return said.removesuffix(".") + meant if meant else said


def _what_is_wrong(error: InputError | UnicodeEncodeError) -> str:
    if isinstance(error, UnicodeEncodeError):
        # The system's names may be any bytes; what is in documents may not.
        shown = error.object.encode(errors="backslashreplace").decode()
        return f"{shown}: a name that is no UTF-8; choose another"
    return _without_quotation_marks(str(error)) or str(error)


def _without_quotation_marks(said: str) -> str | None:
    """Return what is said of an array or a table whose quotation marks a shell has taken away."""
    import re

    from flashkeel.parsing import parse_toml

    found = re.fullmatch(r'--set ([\w.-]+): .*[a-z] "([\[{].*[\]}])".*', said)
    if found is None:
        return None
    key, value = found.groups()
    meant = re.sub(
        r"(?!true|false)[A-Za-z0-9][\w./%-]*[A-Za-z%][\w./%-]*(?=\s*[],}])", r'"\g<0>"', value
    )
    try:
        parse_toml(f"value = {meant}")
    except ValueError:
        return None
    return (
        f"--set {key}: {value} has no quotation marks in it, as a shell takes them away; "
        f"write --set '{key}={meant}'"
    )


def _say_notes(error: BaseException) -> None:
    """Print what was left behind that has to be said, whatever ended the command."""
    for note in getattr(error, "__notes__", ()):
        echo(f"flashkeel: {note}", err=True)


def _settle_errors() -> None:
    """Let words that nobody hears not decide the exit status, as the interpreter would."""
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _close_output() -> None:
    """Let the interpreter not flush into what takes no more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, status: int) -> NoReturn:
    echo(f"flashkeel: {' '.join(message.splitlines())}", err=True)
    sys.exit(status)
