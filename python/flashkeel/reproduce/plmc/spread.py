"""How evenly hosts must read for counts that are expected to bound tails: the range of a claim."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from flashkeel.comparison import FEW
from flashkeel.reproduce.claims import (
    Claim,
    Finding,
    Outcome,
    Quantity,
    Range,
    Study,
    reduction,
    too_few,
)
from flashkeel.reproduce.pictures import log_durations
from flashkeel.reproduce.plmc.systems import (
    BARE,
    CLASSES,
    DEVICE,
    HIGH,
    LOAD,
    TOPPED_UP,
    Shares,
    Situation,
    middle,
    shared,
)
from flashkeel.reproduce.session import Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPREADS = (0.1, 0.2, 0.3, 0.5)
"""Of the logarithm of the rate; the last is that of the other studies."""
WAYS = (BARE, "CoD strict", TOPPED_UP, "HoD strict")
_WINDOWS = 3_000
_KEY, _AT = "p99", 99.0

_EXACT = Claim(
    "hod-range",
    "with exact counts (strict) the tails are shorter than the bare drive's",
    "the 99th percentile over windows of the high class is shorter by half at least at every "
    "spread of the rate",
    87.2,
    "%",
)
_EXPECTED = Claim(
    "cod-range",
    "with expected counts (strict) too",
    "the same at one spread at least, whether hosts may ask for more within a window or not; the "
    "output says at which",
    81.7,
    "%",
)


def _measure(session: Session) -> Outcome:
    spreads = SPREADS[-1:] if session.quick else SPREADS
    runs = {
        spread: {
            name: shared(session, name, situation=Situation(spread, _WINDOWS)) for name in WAYS
        }
        for spread in spreads
    }
    fewest = min(
        run.tails[host].beyond(_AT)
        for found in runs.values()
        for r in found.values()
        for run in r
        for host in CLASSES
    )
    is_enough = fewest >= FEW
    gains = {
        name: {spread: _gain(found, name, HIGH) for spread, found in runs.items()}
        for name in WAYS[1:]
    }
    missing = "" if is_enough else f"{too_few(fewest)}, of the 99th over windows"
    exact, expected = gains["HoD strict"], {name: gains[name] for name in ("CoD strict", TOPPED_UP)}
    holds_at = [
        f"{name} at {spread:g}"
        for name, found in expected.items()
        for spread, gain in found.items()
        if gain >= _HALF
    ]
    # One spread alone cannot tell that it holds at none.
    tells = is_enough and (bool(holds_at) or not session.quick)
    return Outcome(
        {
            "hod-range": Finding(
                {f"spread {spread:g}": gain for spread, gain in exact.items()},
                all(gain >= _HALF for gain in exact.values()) if is_enough else None,
                missing,
            ),
            "cod-range": Finding(
                {
                    f"{name} {spread:g}": gain
                    for name, found in expected.items()
                    for spread, gain in found.items()
                },
                bool(holds_at) if tells else None,
                missing or f"holds for: {', '.join(holds_at) or 'none'}; {_classes(runs)}",
            ),
        },
        "synthetic",
        f"{DEVICE}, data set 1, configuration 2; {LOAD.replace('spread 0.5', 'spreads as given')}; "
        f"{_fewest(runs)} windows at least; the bare drive in windows of the same length",
        partial(_draw, runs),
    )


_HALF = 50.0


def measure_at(session: Session, spread: float) -> Outcome:
    """Judge expected and exact counts at one spread, where hosts may ask for more."""
    names = (BARE, TOPPED_UP, "HoD strict")
    found = {n: shared(session, n, situation=Situation(spread, _WINDOWS)) for n in names}
    fewest = min(
        run.tails[host].beyond(_AT) for r in found.values() for run in r for host in CLASSES
    )
    gains = {n: {host: _gain(found, n, host) for host in CLASSES} for n in names[1:]}
    missing = "" if fewest >= FEW else f"{too_few(fewest)}, of the 99th over windows"
    verdicts = {
        n: gain[HIGH] >= _HALF and all(value >= 0 for value in gain.values())
        for n, gain in gains.items()
    }
    return Outcome(
        {
            claim: Finding(gains[n], None if missing else verdicts[n], missing)
            for claim, n in (("cod", TOPPED_UP), ("hod", "HoD strict"))
        },
        "synthetic",
        f"{DEVICE}, data set 1, configuration 2; {LOAD.replace('spread 0.5', f'spread {spread:g}')}"
        f"; {_fewest({spread: found})} windows at least, the 99th percentile over them; with "
        "expected counts a host may ask for more within a window",
    )


EVENNESS = Range(
    Quantity(
        "spread of the rates",
        SPREADS,
        SPREADS[-1],
        "not given; each class is a part of the traces of Systor '17",
        " (of their logarithm)",
    ),
    ("cod", "hod"),
    measure_at,
)
"""What is swept for the claims about tails."""


def _gain(found: Mapping[str, list[Shares]], name: str, host: str) -> float:
    return reduction(middle(found[BARE], host, _KEY), middle(found[name], host, _KEY))


def _classes(runs: Mapping[float, Mapping[str, list[Shares]]]) -> str:
    """Return which spreads leave no class worse off than on the bare drive."""
    texts = []
    for name in WAYS[1:]:
        spared = [
            f"{spread:g}"
            for spread, found in runs.items()
            if all(_gain(found, name, host) >= 0 for host in CLASSES)
        ]
        texts.append(f"{name} {', '.join(spared) or 'none'}")
    return f"spreads at which no class is worse off: {'; '.join(texts)}"


def _fewest(runs: Mapping[float, Mapping[str, list[Shares]]]) -> int:
    return min(run.windows for found in runs.values() for r in found.values() for run in r)


def _draw(runs: Mapping[float, Mapping[str, list[Shares]]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots(1, len(CLASSES), sharey=True)
    for axis, host in zip(axes, CLASSES, strict=True):
        for name in WAYS:
            tails = [middle(found[name], host, _KEY) for found in runs.values()]
            axis.plot(list(runs), tails, marker="o", label=name)
        axis.set_title(host)
        axis.set_yscale("log")
        axis.set_xlabel("spread of the rate")
        axis.grid(alpha=0.3)
    log_durations(axes[0].yaxis)
    axes[0].set_ylabel("p99 over windows of their tails")
    axes[-1].legend(frameon=False, fontsize="small")
    return figure


STUDY = Study(
    "plmc/spread",
    "How evenly hosts must read for counts to bound their tails",
    (_EXACT, _EXPECTED),
    _measure,
)
"""Not in the dissertation, which has one trace a class."""
