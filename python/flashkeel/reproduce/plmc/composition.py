"""Windows with every scheduler, collector, parity scheme and throttle: no paper has it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from flashkeel import _core
from flashkeel.output import units
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, few, too_few, with_interval
from flashkeel.reproduce.pictures import log_durations
from flashkeel.reproduce.session import Case, Session, amount, basis
from flashkeel.reproduce.ttflash.systems import flat
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLASS = "small_read"
_SIX = 99.9999
_PERCENTILES = (99.9, 99.99, 99.999, _SIX)

_PLAIN: dict[str, Any] = {
    "device.redundancy": "none",
    "device.read_path": "plain",
    "device.gc.movement": "semi-preemptive",
    "device.gc.rotation": "none",
    "device.scheduler": "priority",
}
_AUTOSSD: dict[str, Any] = {
    "device.scheduler": "debit",
    "device.gc.movement": "queued",
    "device.allocation": "dynamic",
}
_KEEL: dict[str, Any] = {"device.preset": ["ttflash", "keel"]}
_SUSPENDS: dict[str, Any] = {"device.suspension": {}}
_PARITY: dict[str, Any] = {"device.redundancy.pages": 4}
"""As wide as a set has channels."""
_WORN: dict[str, Any] = {"device.wear": {"policy": "rated", "rated_cycles": 300_000}}
"""Cycles that last five years under this load, which so small a drive has not."""

_IN_WINDOWS: Mapping[str, Mapping[str, Any]] = {
    "fifo": _PLAIN | {"device.scheduler": "fifo"},
    "priority": _PLAIN,
    "fair": _PLAIN | {"device.scheduler": "fair"},
    "debit": _PLAIN | {"device.scheduler": "debit"},
    "queued": _PLAIN | {"device.gc.movement": "queued"},
    "channel-blocking": _PLAIN | {"device.gc.movement": "channel-blocking"},
    "plane-blocking": _PLAIN | {"device.gc.movement": "plane-blocking"},
    "page-copyback": _PLAIN | {"device.gc.movement": "page-copyback"},
    "suspension": _PLAIN | _SUSPENDS,
    "static-cap": _PLAIN | {"device.throttle": "static-cap"},
    "dynamic": _PLAIN | _WORN | {"device.throttle": "dynamic"},
    "ready": _PLAIN | _WORN | {"device.throttle": "ready"},
    "autossd": _PLAIN | _AUTOSSD,
    "ttflash": _PARITY,
    "logical parity": _PLAIN
    | {
        "device.redundancy": {"policy": "logical", "pages": 4},
        "device.read_path": "reconstruct",
    },
    "keel": _KEEL,
}
"""What is put together with windows: each a choice on one axis or several."""
_ALONE: Mapping[str, Mapping[str, Any]] = {
    "no collection": _PLAIN | {"device.gc.movement": "none"},
    "no collection, suspension": _PLAIN | _SUSPENDS | {"device.gc.movement": "none"},
    "base": _PLAIN | {"device.gc.movement": "channel-blocking"},
    "autossd": _PLAIN | _AUTOSSD,
    "autossd, suspension": _PLAIN | _AUTOSSD | _SUSPENDS,
    "ttflash": {},
    "ttflash, suspension": _SUSPENDS,
    "keel": _KEEL,
}
"""The same flash and usable capacity without windows; what windows give up for the copy is
spare here."""
_RIVALS = ("autossd", "autossd, suspension", "ttflash", "ttflash, suspension")

_USABLE = "5GiB"
_COPIES: dict[str, Any] = {
    "device.logical_capacity": "10GiB",
    "device.sets": 2,
    "device.window": {"policy": "commanded", "writes_typical": 512},
    "device.gc.start_below": 328,
    "device.gc.stop_above": 410,
    "device.gc.force_below": 164,
    "stack.depth": 64,
    "stack.devices": [
        {
            "mirror": {
                "devices": [{"ssd": {}}],
                "windows": {"policy": "alternate", "rest": "20ms"},
                "read": "window",
            }
        }
    ],
}

_BEST = Claim(
    "best",
    "windows over two copies bound six nines better than ttFlash or AutoSSD do alone on the same "
    "flash with the same usable capacity, suspended operations or not",
    "of the combinations with windows whose writes keep up, the lowest p99.9999 of small reads is "
    "below the lowest of those four, by more than the 95 % intervals leave open",
    None,
    "",
)
_ALIKE = Claim(
    "alike",
    "in a deterministic window schedulers, collectors and throttles do not matter for reads",
    "p99.999 of small reads of those combinations whose writes keep up differ by at most 10 %, but "
    "for parity and other ways of allocation",
    None,
    "µs",
)
_ADDS = Claim(
    "parity",
    "parity beside a copy adds nothing to reads",
    "ttFlash's parity with windows has a longer p99.999 of small reads than windows alone",
    None,
    "µs",
)
_ALLOCATES_ALIKE = tuple(
    name for name in _IN_WINDOWS if name not in ("autossd", "ttflash", "logical parity", "keel")
)


def _measure(session: Session) -> Outcome:
    cases = [
        _case(session, f"windows, {name}", {**keys, **_COPIES})
        for name, keys in _IN_WINDOWS.items()
    ]
    usable = {"device.logical_capacity": _USABLE}
    cases += [_case(session, name, {**keys, **usable}) for name, keys in _ALONE.items()]
    runs = session.run(cases)
    inside = {name: runs[f"windows, {name}"] for name in _IN_WINDOWS}
    alone = {name: runs[name] for name in _ALONE}
    keeping_up = [name for name, run in inside.items() if _keeps_up(run)]
    return Outcome(
        {
            "best": _best(inside, alone, keeping_up),
            "alike": _alike(inside, [name for name in _ALLOCATES_ALIKE if name in keeping_up]),
            "parity": _parity(inside),
        },
        basis(runs),
        "1/16 of the slides' device (16 GiB in 64 chips), 5 GiB of it usable in all: with windows "
        "two sets of 5 GiB have a copy each, and without them the room is spare; 6,000 requests a "
        "second, 70 % reads, four of five 4 KiB and the others 16 KiB, Poisson, all over the "
        "device, from its steady state on; " + amount(runs.values()),
        partial(_draw, inside, alone),
    )


def _case(session: Session, name: str, keys: Mapping[str, Any]) -> Case:
    document = tomllib.loads(_core.show("composition"))
    common = flat(document["device"], "device") | flat(document["workload"], "workload")
    requests = 150_000 if session.quick else 2_000_000
    seed = {"device.precondition.seed": 1, "workload.requests": requests}
    return Case(name, {**common, **keys, **seed}, (CLASS, _SIX), most_seeds=10)


def _tail(run: Run, percentile: float) -> float:
    return float(run.percentile(CLASS, percentile) or 0)


def _keeps_up(run: Run) -> bool:
    """Return whether writes do not wait for one another without end."""
    return float(run.percentile("write", 99.0) or 0) < _WAITING_NS


_WAITING_NS = 100e6
_LATE = "writes do not keep up"


def _unknown(runs: Sequence[Run], percentile: float) -> str:
    sparse = [run.beyond(CLASS, percentile) for run in runs if few(run, CLASS, percentile)]
    return too_few(min(sparse)) if sparse else ""


def _best(
    inside: Mapping[str, Run], alone: Mapping[str, Run], keeping_up: Sequence[str]
) -> Finding:
    if not keeping_up:
        return Finding(None, None, f"{_LATE}: {', '.join(inside)}")
    first = min(keeping_up, key=lambda name: _tail(inside[name], _SIX))
    rival = min(_RIVALS, key=lambda name: _tail(alone[name], _SIX))
    ours, theirs = inside[first], alone[rival]
    measured = {
        f"windows, {first}, p99.9999 (µs)": _tail(ours, _SIX) / 1e3,
        f"{rival}, p99.9999 (µs)": _tail(theirs, _SIX) / 1e3,
        "times shorter": _tail(theirs, _SIX) / max(_tail(ours, _SIX), 1),
    }
    bounds = [with_interval(run, CLASS, _SIX) for run in (ours, theirs)]
    unknown = _unknown([*inside.values(), *alone.values()], _SIX)
    if unknown or bounds[0] is None or bounds[1] is None:
        return Finding(measured, None, unknown)
    return Finding(measured, bounds[0][2] < bounds[1][1], _rows(inside, alone))


def _rows(inside: Mapping[str, Run], alone: Mapping[str, Run]) -> str:
    """Return percentiles, write amplification, and what was spent of the flash."""
    named = {f"windows, {name}": run for name, run in inside.items()} | dict(alone)
    rows = []
    for name, run in named.items():
        tails = ", ".join(units.duration(_tail(run, at)) for at in _PERCENTILES)
        late = "" if _keeps_up(run) else f", {_LATE}"
        rows.append(f"{name} {tails}, WAF {run.data['waf']:.2f}{late}")
    spent = "each spends 11 of 16 GiB"
    return f"p99.9, p99.99, p99.999, p99.9999 ({spent}): {'; '.join(rows)}"


def _alike(inside: Mapping[str, Run], names: Sequence[str]) -> Finding:
    if len(names) < 2:
        return Finding(
            None, None, f"{_LATE}: all of {', '.join(_ALLOCATES_ALIKE)} but {len(names)}"
        )
    tails = {name: _tail(inside[name], 99.999) for name in names}
    unknown = _unknown([inside[name] for name in names], 99.999)
    left_out = [name for name in _ALLOCATES_ALIKE if name not in names]
    return Finding(
        {name: value / 1e3 for name, value in tails.items()},
        None if unknown else max(tails.values()) <= 1.1 * min(tails.values()),
        unknown or (f"{_LATE}: {', '.join(left_out)}" if left_out else ""),
    )


def _parity(inside: Mapping[str, Run]) -> Finding:
    pair = {name: inside[name] for name in ("priority", "ttflash")}
    late = [name for name, run in pair.items() if not _keeps_up(run)]
    tails = {name: _tail(run, 99.999) for name, run in pair.items()}
    unknown = _unknown(list(pair.values()), 99.999)
    return Finding(
        {name: value / 1e3 for name, value in tails.items()},
        None if unknown or late else tails["ttflash"] > tails["priority"],
        unknown or (f"{_LATE}: {', '.join(late)}" if late else ""),
    )


def _draw(inside: Mapping[str, Run], alone: Mapping[str, Run]) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    named = {f"windows, {name}": run for name, run in inside.items()} | dict(alone)
    figure = Figure(figsize=(8, 8), layout="constrained")
    axes = figure.subplots()
    places = range(len(named), 0, -1)
    for percentile, marker in zip(_PERCENTILES, ("|", "x", "d", "o"), strict=True):
        tails = [_tail(run, percentile) for run in named.values()]
        axes.plot(tails, places, marker, color="black", label=f"p{percentile:g}")
    axes.set_yticks(list(places), list(named))
    axes.axhspan(len(alone) + 0.5, len(named) + 0.5, color="#E8F1E8", zorder=0)
    axes.set_xscale("log")
    log_durations(axes.xaxis)
    axes.xaxis.set_major_locator(LogLocator(10))
    axes.set_ylim(0.5, len(named) + 0.5)
    axes.set_xlabel("latency of small reads")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="best")
    return figure


STUDY = Study(
    "plmc/composition",
    "Windows with every scheduler, collector, parity scheme and throttle",
    (_BEST, _ALIKE, _ADDS),
    _measure,
)
"""Not in the dissertation, which has one drive."""
