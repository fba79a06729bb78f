"""Progress bars on standard error, for what lasts and only on a terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

DELAY_S = 0.2


class Bars:
    """One bar a task, shown once a fifth of a second has passed.

    >>> with Bars(["fifo", "debit"]) as bars:
    ...     bars.update(0, "precondition", 0.5)
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._progress: Progress | None = None
        self._bars: list[TaskID] = []
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars and self._progress is not None:
            self._progress.stop()

    def update(self, index: int, phase: str, fraction: float) -> None:
        """Show the task at `index` in `phase`, with `fraction` of it done."""
        if self._progress is None:
            if time.monotonic() - self._started < DELAY_S:
                return
            self._begin()
        if self._bars and self._progress is not None:
            self._progress.update(self._bars[index], completed=fraction, phase=phase)

    def _begin(self) -> None:
        # Imported where something lasts: what takes no time need not wait for it.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[phase]}", markup=False),
            console=console,
            transient=True,
        )
        if console.is_terminal:
            self._bars = [
                self._progress.add_task(name, total=1.0, phase="") for name in self._names
            ]
            self._progress.start()
