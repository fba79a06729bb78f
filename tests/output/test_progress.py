"""Progress bars: only on a terminal, only for what lasts."""

import io

import pytest
from flashkeel.output import progress
from rich.console import Console


@pytest.fixture
def screen(monkeypatch):
    def make(terminal):
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=terminal, width=80)
        monkeypatch.setattr("rich.console.Console", lambda **_: console)
        return stream

    return make


@pytest.mark.parametrize(
    ("terminal", "delay_s", "shown"), [(True, 0, True), (True, 60, False), (False, 0, False)]
)
def test_bars(screen, monkeypatch, terminal, delay_s, shown):
    monkeypatch.setattr(progress, "DELAY_S", delay_s)
    stream = screen(terminal)
    with progress.Bars(["fifo", "debit"]) as bars:
        bars.update(1, "precondition", 0.5)
    written = stream.getvalue()
    assert ("debit" in written and "precondition" in written) == shown
    assert bool(written) == shown


def test_names_are_no_markup(screen, monkeypatch):
    monkeypatch.setattr(progress, "DELAY_S", 0)
    stream = screen(True)
    with progress.Bars(["a[/x]", "4k [debit]"]) as bars:
        bars.update(1, "[phase]", 0.5)
    assert all(word in stream.getvalue() for word in ("a[/x]", "4k [debit]", "[phase]"))
