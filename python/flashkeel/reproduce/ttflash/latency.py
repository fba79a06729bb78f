"""Latency from the 99th to the 99.99th percentile against a device without GC."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from statistics import geometric_mean
from typing import TYPE_CHECKING

from flashkeel.reproduce import pictures
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, few, too_few, with_interval
from flashkeel.reproduce.session import Session, basis, kind
from flashkeel.reproduce.ttflash.systems import (
    ALL,
    BASE,
    CLASS,
    NOGC,
    PROFILES,
    SYSTEMS,
    compared,
    length,
)
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Runs = Mapping[tuple[str, str], Run]

_PERCENTILES = (99.0, 99.9, 99.99)
_BEYOND = 99.999

_ALL = Claim(
    "all",
    "from p99 to p99.99 ttFlash is 1.0 to 2.6 times as slow as NoGC",
    "no ratio of any trace at p99, p99.9 or p99.99 is above 3.25, the paper's most and a quarter",
    "1.0 to 2.6",
    "times",
)
_BASE = Claim(
    "base",
    "base is 5.6 to 138.2 times as slow",
    "every ratio is at least 2.8, half of the paper's least, and none above 276, twice its most",
    "5.6 to 138.2",
    "times",
)
_CLOSER = Claim(
    "closer",
    "every technique brings the tail closer to NoGC's",
    "on the geometric mean of the traces p99.9 falls from base to plane-blocking, "
    "GC-tolerant read and rotating GC, and all are at most 5 % above the last",
    None,
    "times",
)


def _measure(session: Session) -> Outcome:
    runs = compared(session)
    named = {" ".join(key): run for key, run in runs.items()}
    sparse = [runs[key].beyond(CLASS, 99.99) for key in runs if few(runs[key], CLASS, 99.99)]
    missing = too_few(min(sparse)) if sparse else ""
    ratios = {s: _ratios(runs, s) for s in SYSTEMS}
    most = max(ratios[ALL].values())
    bases = ratios[BASE].values()
    means = {system: _mean(ratios[system], 99.9) for system in SYSTEMS}
    steps = [means[s] for s in (BASE, "plane-blocking", "gc-tolerant-read", "rotating")]
    thin = [run.beyond(CLASS, 99.9) for run in runs.values() if few(run, CLASS, 99.9)]
    closer = steps == sorted(steps, reverse=True) and means[ALL] <= 1.05 * steps[-1]
    far = too_few(min(thin)) if thin else "" if steps[0] > 1 else "base has no longer tail to cut"
    return Outcome(
        {
            "all": Finding(
                _ranges(ratios[ALL]),
                None if sparse else most <= 3.25,
                "; ".join(filter(None, [missing, _worst(runs, ratios[ALL]), _five(runs)])),
            ),
            "base": Finding(
                _ranges(ratios[BASE]),
                None if sparse else min(bases) >= 2.8 and max(bases) <= 276,
                "; ".join(filter(None, [missing, _worst(runs, ratios[BASE], BASE)])),
            ),
            "closer": Finding(
                {f"{s}, p99.9 / NoGC's": mean for s, mean in means.items()},
                None if far else closer,
                far,
            ),
        },
        basis(named),
        f"{length(session)}; {CLASS}s",
        partial(_draw, runs, kind(named)),
    )


def _ratios(runs: Runs, system: str) -> dict[tuple[str, float], float]:
    return {
        (p, at): (runs[p, system].percentile(CLASS, at) or 0)
        / (runs[p, NOGC].percentile(CLASS, at) or 1)
        for p, at in product(PROFILES, _PERCENTILES)
    }


def _mean(ratios: Mapping[tuple[str, float], float], percentile: float) -> float:
    return geometric_mean([ratios[p, percentile] for p in PROFILES])


def _ranges(ratios: Mapping[tuple[str, float], float]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for profile in PROFILES:
        values = [ratios[profile, at] for at in _PERCENTILES]
        found |= {f"{profile}, least": min(values), f"{profile}, most": max(values)}
    return found


def _worst(runs: Runs, ratios: Mapping[tuple[str, float], float], system: str = ALL) -> str:
    """Return where the largest ratio is, with the bounds that the percentiles' own leave it."""
    profile, at = max(ratios, key=ratios.__getitem__)
    bounds = [with_interval(runs[profile, s], CLASS, at) for s in (system, NOGC)]
    text = f"the largest, {ratios[profile, at]:.3g}, is {profile}'s p{at:g}"
    if bounds[0] is None or bounds[1] is None:
        return text
    (_, low, high), (_, other_low, other_high) = bounds[0], bounds[1]
    return f"{text} (from 95 % intervals {low / other_high:.3g} to {high / other_low:.3g})"


def _five(runs: Runs) -> str:
    """Return p99.999 against NoGC, which the paper does not give."""
    parts = []
    for profile in PROFILES:
        values = [runs[profile, system].percentile(CLASS, _BEYOND) or 0 for system in (ALL, NOGC)]
        sure = not any(few(runs[profile, system], CLASS, _BEYOND) for system in (ALL, NOGC))
        parts.append(f"{profile} {values[0] / max(values[1], 1):.3g}{'' if sure else '*'}")
    return f"at p99.999 (* fewer than ten samples beyond) {', '.join(parts)}"


def _draw(runs: Runs, kind: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7), layout="constrained")
    figure.suptitle(f"Response time of reads ({kind} traces)")
    for axes, profile in zip(figure.subplots(2, 3).flat, PROFILES, strict=True):
        pictures.tails(axes, {s: runs[profile, s] for s in SYSTEMS}, CLASS)
        axes.set_title(profile.upper())
        axes.get_legend().remove()
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False)
    return figure


STUDY = Study(
    "ttflash/latency", "Tails against NoGC", (_ALL, _BASE, _CLOSER), _measure, is_cut_short=True
)
