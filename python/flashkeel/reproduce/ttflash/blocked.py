"""How many I/Os garbage collection blocks, technique by technique."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from flashkeel.comparison import FEW
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.session import Session, basis, kind
from flashkeel.reproduce.ttflash import sizes
from flashkeel.reproduce.ttflash.systems import ALL, BASE, NOGC, PROFILES, SYSTEMS, compared, length
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Runs = Mapping[tuple[str, str], Run]

_PLANE = sizes.PLANE
_TECHNIQUES = (BASE, _PLANE, "gc-tolerant-read", "rotating", ALL)

_BASE = Claim(
    "base",
    "2 to 7 % of I/Os are blocked by GC in base",
    "between 1 and 14 %, a factor of two around it, in at least five of six traces",
    "2 to 7 %",
    "%",
)
_ONE = Claim(
    "plane-blocking",
    "with plane-blocking GC about 3 % are",
    "the mean over the traces is between 1.5 and 6 %",
    3.0,
    "%",
)
_ALL = Claim(
    "all",
    "with all techniques 0.003 to 0.05 % are",
    "at most 0.1 %, twice the paper's most, in every trace; ten blocked requests behind each",
    "0.003 to 0.05 %",
    "%",
)
_EACH = Claim(
    "each",
    "every technique takes its part",
    "on the mean of the traces each technique added blocks fewer I/Os than the ones before it",
    None,
    "%",
)


def _measure(session: Session) -> Outcome:
    runs = compared(session)
    named = {" ".join(key): run for key, run in runs.items()}
    share = {key: 100 * run.data["gc_blocked_fraction"] for key, run in runs.items()}
    by_system = {system: {p: share[p, system] for p in PROFILES} for system in SYSTEMS}
    mean = {s: sum(by_system[s].values()) / len(PROFILES) for s in _TECHNIQUES}
    pages = {key: _pages(run) for key, run in runs.items()}
    least = min(runs[p, ALL].data["gc_blocked"] for p in PROFILES)
    findings = {
        "base": Finding(
            _percent(by_system[BASE]),
            sum(1 <= value <= 14 for value in by_system[BASE].values()) >= len(PROFILES) - 1,
            "; ".join(filter(None, [_outside(by_system[BASE], 2, 7), _counted(pages, BASE)])),
        ),
        "plane-blocking": Finding(
            mean[_PLANE],
            1.5 <= mean[_PLANE] <= 6,
            f"{', '.join(f'{p} {by_system[_PLANE][p]:.3g} %' for p in PROFILES)}; "
            f"{_counted(pages, _PLANE)}",
        ),
        "all": Finding(
            _percent(by_system[ALL]),
            None if least < FEW else max(by_system[ALL].values()) <= 0.1,
            f"blocked requests behind each share: {least:,} or more",
        ),
        "each": Finding(
            _percent(mean),
            all(mean[b] < mean[a] for a, b in pairwise(_TECHNIQUES)),
        ),
    }
    return Outcome(
        findings,
        basis(named),
        f"{length(session)}; requests with any GC cause in their ledger",
        partial(_draw, by_system, kind(named)),
    )


def _pages(run: Run) -> float:
    """Return the share of pages read, in percent, whose own flash read collection delayed."""
    device = run.data["device"]
    return float(100 * 4096 * device["gc_blocked_pages_read"] / max(device["host_bytes_read"], 1))


def _counted(pages: Mapping[tuple[str, str], float], system: str) -> str:
    """Say what the same is by pages: a request of many is blocked if one of them is."""
    each = ", ".join(f"{p} {pages[p, system]:.3g} %" for p in PROFILES)
    return f"of pages read, which the slides may count: {each}"


def _percent(values: Mapping[str, float]) -> dict[str, float | None]:
    return {f"{name} (%)": value for name, value in values.items()}


def _outside(values: Mapping[str, float], low: float, high: float) -> str:
    found = [name for name, value in values.items() if not low <= value <= high]
    return f"outside the paper's own range: {', '.join(found)}" if found else ""


def _draw(by_system: Mapping[str, Mapping[str, float]], kind: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    shown = [system for system in SYSTEMS if system != NOGC]
    for index, system in enumerate(shown):
        places = [at + (index - (len(shown) - 1) / 2) * 0.14 for at in range(len(PROFILES))]
        axes.bar(places, list(by_system[system].values()), width=0.14, label=system)
    axes.set_yscale("log")
    axes.set_xticks(range(len(PROFILES)), [profile.upper() for profile in PROFILES])
    axes.set_ylabel("I/Os blocked by GC (%)")
    axes.set_title(f"I/Os blocked by garbage collection ({kind} traces)")
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=6, frameon=False)
    return figure


STUDY = Study(
    "ttflash/blocked",
    "I/Os blocked by GC",
    (_BASE, _ONE, _ALL, _EACH),
    _measure,
    (sizes.BLOCKED,),
    is_cut_short=True,
)
