"""Figure 15a: what a tier serves until its NVM is full, and after that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from statistics import fmean
from typing import TYPE_CHECKING, Any

from flashkeel.reproduce import series
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Quantity, Range
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

W = 80
"""Share of the writes predicted to be normal that go to the NVM, in percent (Fig. 15)."""
PLAIN = "all to NVM"
HYBRID = "Hybrid PAS"
_SEEDS = 3
_GAIN = 2.1
_LEAST_GAIN = 1 + (_GAIN - 1) / 2
_LASTING = 5
"""76 s, when the figure's baseline begins to collect, over 15 s, when its NVM is full."""
_NVM_MIB = 512
"""An eighth of the drive. The paper gives neither size, but 15 s to fill; an NVM that takes as
long here is two thirds of the drive, and most writes find their page in it."""
_BATCH_KIB = 256
_S_PER_MIB = 1 / 64
"""Simulated for each mebibyte, five times as long as a tier that gets every write takes to fill."""
_WRITES = 400_000
"""In a run whose load is given."""
_PAUSED_PER_S = 25_000
_PAUSED_MIB = 64
_PAUSED_S = 24
CLAIMS = (
    Claim(
        "initially",
        "at first a tier that sends every write to the NVM has a higher throughput than Hybrid PAS",
        "higher until its NVM is full, with each seed",
        None,
        "times",
        is_of_all=True,
    ),
    Claim(
        "throughput",
        "in the steady state Hybrid PAS has up to 2.1 times the throughput of a tier that sends "
        "every write to the NVM",
        "at least half the gain on SSD C while only the NVM of that tier is full, as it is in the "
        "figure from 15 s on",
        _GAIN,
        "times",
    ),
    Claim(
        "lasting",
        "Hybrid PAS stays level, at 76 s too, where the NVM of the other is full after 15 s",
        f"its NVM takes at least {_LASTING} times as long to fill",
        76 / 15,
        "times",
    ),
)


@dataclass(frozen=True)
class Line:
    """What one seed of a run wrote, by windows of 0.1 s."""

    rates: Sequence[float]
    """MB/s."""
    full: int | None
    """Windows after which the NVM was full for the first time; None if it never was."""


def measure(session: Session) -> tuple[dict[str, Finding], dict[str, Line], str]:
    """Return the findings of all claims, the lines of the first seed, and what was run."""
    lines, runs = _lines(session, _keys(_NVM_MIB))
    return judge(lines), {name: each[0] for name, each in lines.items()}, _told(runs, _NVM_MIB)


def _keys(
    nvm_mib: float, batch_kib: float = _BATCH_KIB, seconds: float | None = None
) -> dict[str, Any]:
    return {
        "device.preset": "ssd-c",
        "workload.duration": f"{round(1000 * (seconds or nvm_mib * _S_PER_MIB))}ms",
        "workload.pacing": {"policy": "closed", "depth": 1},
        "workload.source": {"policy": "synthetic", "read_fraction": 0.0},
        "stack.nvm": {"capacity": f"{round(nvm_mib)}MiB"},
        "stack.writeback": {
            "policy": "periodic", "period": "10ms", "batch": f"{round(batch_kib)}KiB",
        },
    }  # fmt: skip


def _lines(
    session: Session, keys: Mapping[str, Any], weight: float = W
) -> tuple[dict[str, list[Line]], dict[str, Run]]:
    """Return what each seed of both tiers wrote, and their runs."""
    tiers: dict[str, dict[str, Any]] = {
        PLAIN: {"stack.tier": "write-back"},
        HYBRID: {"stack.tier": {"policy": "hybrid-pas", "nvm_weight": round(weight)}},
    }
    runs = session.run([Case(name, {**keys, **t}, least_seeds=_SEEDS) for name, t in tiers.items()])
    return {name: [line(run, seed) for seed in run.seeds] for name, run in runs.items()}, runs


def line(run: Run, seed: int) -> Line:
    """Return what one seed of a run wrote by window, and when its NVM was full."""
    columns = series.columns(run, seed)
    # The last window is cut short.
    rates = [(b or 0) / columns.window_s / 1e6 for b in columns["write_bytes"][:-1]]
    (tier,) = run.data["stack"]["tiers"].values()
    # Between two windows a batch may have been drained.
    full = tier["upper_pages"] - _FULL_WITHIN
    windows = enumerate(columns["nvm_pages"][:-1], 1)
    return Line(rates, next((after for after, pages in windows if pages >= full), None))


_FULL_WITHIN = 256
"""Pages, a batch of 1 MiB."""


def judge(lines: Mapping[str, Sequence[Line]]) -> dict[str, Finding]:
    """Judge the claims by the lines of each seed of both tiers."""
    pairs = list(zip(lines[PLAIN], lines[HYBRID], strict=True))
    if any(plain.full is None for plain, _ in pairs):
        reason = f"the NVM of the tier that gets every write is not full within {_length(pairs)}"
        return {claim.name: Finding(None, None, reason) for claim in CLAIMS}
    before = [1 / _ratio(pair, 0, (pair[0].full or 1) - 1) for pair in pairs]
    only, both, since = (
        [_ratio(pair, *_phase(pair, name)) for pair in pairs] for name in ("only", "both", "since")
    )
    times = [_end(pair) / (pair[0].full or 1) for pair in pairs]
    is_over = all(hybrid.full is not None for _, hybrid in pairs)
    lasts = fmean(times) >= _LASTING
    return {
        "initially": Finding(fmean(before), min(before) > 1, f"{_spread(before)} by seed"),
        "throughput": Finding(
            {
                "only the baseline's NVM full": fmean(only),
                "both full": fmean(both),
                "since the baseline's is full": fmean(since),
            },
            fmean(only) >= _LEAST_GAIN,
            f"{_spread(only)} by seed; {_when(pairs)}" if isfinite(sum(only)) else _when(pairs),
        ),
        "lasting": Finding(
            fmean(times),
            True if lasts else False if is_over else None,
            f"{_when(pairs)}; then both serve what the SSD takes in" if is_over else _when(pairs),
        ),
    }


_Pair = tuple[Line, Line]


def _end(pair: _Pair) -> int:
    """Return after how many windows the NVM of Hybrid PAS is full, or the run is over."""
    return pair[1].full or min(len(each.rates) for each in pair)


def _phase(pair: _Pair, phase: str) -> tuple[int, int | None]:
    """Return the windows of a phase; that in which Hybrid PAS's NVM becomes full is in neither."""
    full, end = pair[0].full or 0, _end(pair)
    return {"only": (full, end - 1), "both": (max(full, end), None), "since": (full, None)}[phase]


def _ratio(pair: _Pair, since: int, until: int | None) -> float:
    """Return the throughput of Hybrid PAS over the other's; NaN where there is none."""
    # Who is behind ends later.
    last = min(len(each.rates) for each in pair)
    plain, hybrid = (sum(each.rates[since : last if until is None else until]) for each in pair)
    return hybrid / plain if plain else float("nan")


def _when(pairs: Sequence[_Pair]) -> str:
    """Return when each NVM is full, in words."""
    plain = _spread([0.1 * (line.full or 0) for line, _ in pairs])
    hybrid = _spread([0.1 * (line.full or 0) for _, line in pairs])
    is_never = any(line.full is None for _, line in pairs)
    late = f"not within {_length(pairs)}" if is_never else f"after {hybrid} s"
    return f"the NVM is full after {plain} s, with Hybrid PAS {late}"


def _length(pairs: Sequence[_Pair]) -> str:
    return f"{0.1 * min(len(line.rates) for pair in pairs for line in pair):.3g} s"


def _spread(values: Sequence[float]) -> str:
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


def _told(runs: Mapping[str, Run], nvm_mib: float, what: str = "one outstanding") -> str:
    seeds = len(runs[PLAIN].seeds)
    return (
        f"4 KiB random writes on SSD C (4 GiB), {what}, an NVM of {nvm_mib:g} MiB, "
        f"{'one seed' if seeds == 1 else f'mean of {seeds} seeds'}"
    )


def draw(lines: Mapping[str, Line], axes: Any) -> None:  # noqa: ANN401
    """Draw the throughput of both tiers over time."""
    for name, each in lines.items():
        at = [i / 10 for i in range(len(each.rates))]
        axes.plot(at, each.rates, linewidth=0.8, label=name)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("MB/s written, 4 KiB random")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)


def _draw(lines: Mapping[str, Line]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.2), layout="constrained")
    draw(lines, figure.subplots())
    return figure


def _over(
    session: Session,
    keys: Mapping[str, Any],
    what: str,
    *,
    nvm_mib: float = _NVM_MIB,
    weight: float = W,
) -> Outcome:
    """Judge the claims of a range at one set-up."""
    lines, runs = _lines(session, keys, weight)
    found = judge(lines)
    return Outcome(
        {name: found[name] for name in _SWEPT},
        basis(runs),
        _told(runs, nvm_mib, what),
        partial(_draw, {name: each[0] for name, each in lines.items()}),
    )


def _over_nvm(session: Session, mib: float) -> Outcome:
    return _over(session, _keys(mib), "one outstanding", nvm_mib=mib)


def _over_weight(session: Session, weight: float) -> Outcome:
    return _over(session, _keys(_NVM_MIB), f"one outstanding, W = {weight:g}", weight=weight)


def _over_batch(session: Session, kib: float) -> Outcome:
    what = f"one outstanding, {kib:g} KiB drained every 10 ms"
    return _over(session, _keys(_NVM_MIB, kib), what)


def _arriving(arrivals: Mapping[str, Any], pacing: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    source = {**keys["workload.source"], "arrivals": dict(arrivals)}
    return {**keys, "workload.source": source, "workload.pacing": pacing}


def _over_load(session: Session, iops: float) -> Outcome:
    keys = _keys(_NVM_MIB, seconds=_WRITES / iops)
    arrivals = {"policy": "poisson", "iops": round(iops)}
    return _over(session, _arriving(arrivals, "open", keys), f"{iops:g} a second")


def _over_bursts(session: Session, iops: float) -> Outcome:
    bursts = {"policy": "bursts", "iops": round(iops), "on": "200ms", "off": "800ms"}
    # Of each second, a fifth.
    keys = _keys(_NVM_MIB, seconds=5 * _WRITES / iops)
    what = f"{iops:g} a second for 200 ms, then 800 ms of silence"
    return _over(session, _arriving(bursts, "open", keys), what)


def _over_paused(session: Session, kib: float) -> Outcome:
    arrivals = {"policy": "poisson", "iops": _PAUSED_PER_S}
    keys = _keys(_PAUSED_MIB, kib, _PAUSED_S)
    what = f"40 us in the mean after the one before, {kib:g} KiB drained every 10 ms"
    return _over(session, _arriving(arrivals, "think", keys), what, nvm_mib=_PAUSED_MIB)


_SWEPT = ("throughput", "lasting")
_NOT_GIVEN = "not given"
RANGES = (
    Range(
        Quantity(
            "NVM",
            (128, 256, 512, 1024, 1536, 2048, 3072),
            _NVM_MIB,
            "not given, nor the drive's size, here 4 GiB; it is full after 15 s",
            " MiB",
        ),
        _SWEPT,
        _over_nvm,
    ),
    Range(
        Quantity("W", (0, 20, 50, 80, 100), W, "80", " %"),
        _SWEPT,
        _over_weight,
    ),
    Range(
        Quantity("drained every 10 ms", (64, 256, 512, 1024), _BATCH_KIB, _NOT_GIVEN, " KiB"),
        _SWEPT,
        _over_batch,
    ),
    Range(
        Quantity(
            "writes arriving",
            (10_000, 20_000, 30_000, 50_000),
            50_000,
            "not given; more than is drained, and more than the SSD takes in",
            " a second",
        ),
        _SWEPT,
        _over_load,
    ),
    Range(
        Quantity("writes in a burst", (70_000, 100_000, 200_000), 200_000, _NOT_GIVEN, " a second"),
        _SWEPT,
        _over_bursts,
    ),
    Range(
        Quantity(
            "drained every 10 ms, for a writer that pauses for 40 us",
            (256, 512, 768, 1024),
            _BATCH_KIB,
            "no pauses are mentioned",
            " KiB",
        ),
        _SWEPT,
        _over_paused,
    ),
)
