"""What ttFlash costs: average latency, erases, capacity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import nan
from typing import TYPE_CHECKING

from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.session import Session, basis, kind
from flashkeel.reproduce.ttflash import sizes
from flashkeel.reproduce.ttflash.systems import ALL, BASE, CLASS, NOGC, PROFILES, compared, length
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Runs = Mapping[tuple[str, str], Run]

_RANDOM = ("msnfs", "tpcc")
_LOW = ("dapps", "dtrs", "lmbe")
_OTHERS = tuple(profile for profile in PROFILES if profile not in _RANDOM)

_AVERAGE = Claim(
    "average",
    "on average ttFlash is 1.09 to 1.33 times as slow as NoGC without RAIN",
    "in every trace between 1 and 1.5",
    "1.09 to 1.33",
    "times",
)
_ERASES = Claim(
    "erases",
    "most traces take 15 to 18 % more P/E cycles",
    "DAPPS, DTRS, EXCH and LMBE take between 10 and 30 % more erases than base",
    "15 to 18 %",
    "%",
)
_RANDOM_ERASES = Claim(
    "erases-random",
    "TPCC and MSN, whose writes are random, take more than 53 %",
    "both take at least 40 % more erases than base, and more than DAPPS, DTRS and LMBE",
    53.0,
    "%",
)
_CAPACITY = Claim(
    "capacity",
    "parity costs one channel of eight",
    "none: what all addresses over what base does, with the same share of flash unused",
    0.875,
    "of the capacity",
)


def _measure(session: Session) -> Outcome:
    runs = compared(session)
    named = {" ".join(key): run for key, run in runs.items()}
    averages = {
        p: (runs[p, ALL].mean(CLASS) or 0) / (runs[p, NOGC].mean(CLASS) or 1) for p in PROFILES
    }
    extra = {p: _extra(runs, p) for p in PROFILES}
    capacity = _mib(runs[PROFILES[0], ALL]) / _mib(runs[PROFILES[0], BASE])
    findings = {
        "average": Finding(
            averages,
            all(1 <= value <= 1.5 for value in averages.values()),
        ),
        "erases": Finding(
            {p: extra[p] for p in _OTHERS},
            _known(extra, _OTHERS) and all(10 <= (extra[p] or 0) <= 30 for p in _OTHERS),
            f"{_unknown(extra, _OTHERS)}{_why(runs, _OTHERS)}; the EXCH profile writes 8 KB at "
            "random, two pages of a stripe's seven, and so costs what TPCC does",
        ),
        "erases-random": Finding(
            {p: extra[p] for p in _RANDOM},
            _known(extra, (*_RANDOM, *_LOW)) and _is_random_dearer(extra),
            f"{_unknown(extra, (*_RANDOM, *_LOW))}{_why(runs, _RANDOM)}",
        ),
        "capacity": Finding(capacity, None, "follows from the layout: one page of eight is parity"),
    }
    return Outcome(
        findings,
        basis(named),
        f"{length(session)}; {CLASS}s",
        partial(_draw, averages, extra, kind(named)),
    )


def _extra(runs: Runs, profile: str) -> float | None:
    """Return the further erases in percent; None where base erases too little to tell."""
    ours, base = (runs[profile, system].data["erases"] for system in (ALL, BASE))
    return None if base < sizes.FEWEST_ERASES else 100 * (ours / base - 1)


def _known(extra: Mapping[str, float | None], profiles: Sequence[str]) -> bool | None:
    """Return True where the further erases of all these traces are known, else None."""
    return None if any(extra[p] is None for p in profiles) else True


def _unknown(extra: Mapping[str, float | None], profiles: Sequence[str]) -> str:
    few = [p for p in profiles if extra[p] is None]
    if not few:
        return ""
    return f"base erases fewer than {sizes.FEWEST_ERASES} blocks under {', '.join(few)}; "


def _is_random_dearer(extra: Mapping[str, float | None]) -> bool:
    random = min(extra[p] or 0 for p in _RANDOM)
    return random >= 40 and all(random > (extra[p] or 0) for p in _LOW)


def _why(runs: Runs, profiles: Sequence[str]) -> str:
    """Return what the further erases come from: parity programs, and pages moved."""
    parts = []
    for profile in profiles:
        ours, base = (runs[profile, system].data["device"] for system in (ALL, BASE))
        programs = ours["flash_operations"]
        parity = _percent(programs["parity_write"], programs["host_write"])
        moved = _percent(ours["moved_pages"] - base["moved_pages"], base["moved_pages"])
        parts.append(f"{profile} {parity} and {moved}")
    return (
        "parity pages to data pages programmed (a seventh, 14.3 %, where whole stripes are "
        f"written), and more pages moved by GC than in base: {', '.join(parts)}"
    )


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.3g} %" if whole else "none of none"


def _mib(run: Run) -> float:
    written = str(run.data["config"]["device"]["logical_capacity"])
    return float(written[:-3]) * (1024 if written.endswith("GiB") else 1)


def _draw(averages: Mapping[str, float], extra: Mapping[str, float | None], kind: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = [profile.upper() for profile in PROFILES]
    left.bar(names, list(averages.values()), color="#009E73")
    left.axhline(1, color="black", linewidth=0.6)
    left.set_ylabel("mean of reads / NoGC's without RAIN")
    # What nobody knows leaves a gap.
    shown = [nan if value is None else value for value in extra.values()]
    right.bar(names, shown, color="#D55E00")
    right.set_ylabel("more erases than base (%)")
    for axes in (left, right):
        axes.grid(axis="y", alpha=0.3)
    figure.suptitle(f"What all of ttFlash costs ({kind} traces)")
    return figure


STUDY = Study(
    "ttflash/cost",
    "What ttFlash costs",
    (_AVERAGE, _ERASES, _RANDOM_ERASES, _CAPACITY),
    _measure,
    (sizes.WRITTEN,),
    is_cut_short=True,
)
