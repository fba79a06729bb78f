"""Figures that fail, without the loss of what others have cost hours to measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from flashkeel._core import InputError
from flashkeel.reproduce.claims import Verdict


class Unfinished(RuntimeError):
    """Some figures could not be measured; the verdicts on the others are at hand."""

    def __init__(self, verdicts: list[Verdict], failed: Mapping[str, Exception]) -> None:
        """Take the verdicts there are, and what went wrong by figure."""
        each = "; ".join(f"{name}: {_words(error)}" for name, error in failed.items())
        super().__init__(f"not measured: {each}")
        self.verdicts = verdicts
        self.failed = failed


class BrokenOff(KeyboardInterrupt):
    """An interrupt, or whatever else ended the program (its cause), with the verdicts by then."""

    def __init__(self, verdicts: list[Verdict], figure: str) -> None:
        """Take the verdicts there are, and the figure that was being measured."""
        super().__init__(f"interrupted at {figure}")
        self.verdicts = verdicts
        self.figure = figure


class Attempts:
    """Figures that are measured one after the other, whatever becomes of each."""

    def __init__(self) -> None:
        """Begin with none that failed."""
        self._failed: dict[str, Exception] = {}
        self._end: tuple[str, BaseException] | None = None

    @property
    def is_broken_off(self) -> bool:
        """Whether the program is to end, so that nothing further is measured."""
        return self._end is not None

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Go on after an error, which is kept under `name`, and so is an interrupt."""
        try:
            yield
        except Exception as error:
            self._failed[name] = error
        except (KeyboardInterrupt, SystemExit) as end:
            self._end = (name, end)

    def ended(self, verdicts: list[Verdict]) -> list[Verdict]:
        """Return the verdicts; Unfinished where some failed, their first error where all did.

        BrokenOff where it was interrupted.
        """
        if self._end is not None:
            figure, end = self._end
            raise BrokenOff(verdicts, figure) from end
        if not self._failed:
            return verdicts
        first = next(iter(self._failed.values()))
        if not verdicts:
            raise first
        raise Unfinished(verdicts, self._failed) from first


def _words(error: Exception) -> str:
    is_said = isinstance(error, (InputError, OSError, RuntimeError))
    return str(error) if is_said else f"{type(error).__name__}: {error}"
