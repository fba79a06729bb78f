"""Figure 15: writes that are predicted to be slow go to an NVM (Hybrid PAS)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

from flashkeel.reproduce import profiles, series
from flashkeel.reproduce.claims import (
    Claim,
    Finding,
    Outcome,
    Quantity,
    Range,
    Study,
    reduction,
)
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.reproduce.ssdcheck.drives import WRITE_INTENSIVE, beyond, letter, percentile
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PRESSURE = {"ssd-a": 16.7, "ssd-b": 27.8, "ssd-c": 28.7}
_W = 80
"""Share of the writes predicted to be normal that go to the NVM, in percent (Fig. 15)."""
_TIERS: dict[str, dict[str, Any]] = {
    "all to NVM": {"stack.tier": "write-back"},
    "Hybrid PAS": {"stack.tier": {"policy": "hybrid-pas", "nvm_weight": _W}},
}
_TAIL = 99.7
_GAIN = 2.1
_LEAST_GAIN = 1 + (_GAIN - 1) / 2
_WEIGHTS = (0, 20, 50, 80, 100)
"""Shares of the writes predicted to be normal that go to the NVM, tried at each load."""
_SEEDS = 3
"""Of each set-up in a range."""
_LOADS = (5_000, 10_000, 15_000, 20_000, 30_000)
_BURSTS = (20_000, 50_000, 100_000)
_CLAIMS = (
    Claim(
        "throughput",
        "in the steady state Hybrid PAS has up to 2.1 times the throughput of a tier that sends "
        "every write to the NVM",
        "at least half the gain on SSD C, over the time after the NVM of that tier is full",
        _GAIN,
        "times",
    ),
    Claim(
        "tail",
        "Hybrid PAS shortens the 99.7 % latency of Web on SSD C 1.46 times",
        "at least half the gain, over the whole run",
        1.46,
        "times",
    ),
    *(
        Claim(
            drive,
            f"Hybrid PAS sends {less} % less to the NVM on SSD {letter(drive)}",
            f"none: with room for every write it follows from W = {_W}, whatever is predicted",
            less,
            "%",
        )
        for drive, less in _PRESSURE.items()
    ),
)


def _tiered(session: Session, drive: str, nvm: str, seconds: float, source: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "device.preset": drive,
        "workload.duration": f"{seconds if session.quick else 4 * seconds}s",
        "workload.pacing": {"policy": "closed", "depth": 1},
        "workload.source": source,
        "stack.nvm": {"capacity": nvm},
    }


def _cases(session: Session) -> dict[tuple[str, str, str], Case]:
    cases = {}
    for name, tier in _TIERS.items():
        synthetic = {"policy": "synthetic", "read_fraction": 0.0}
        full = {
            "synthetic": _tiered(session, "ssd-c", "64MiB", 4, synthetic),
            "web": _tiered(session, "ssd-c", "64MiB", 4, profiles.source(session, "web")),
        }
        for what, keys in full.items():
            cases["full", what, name] = Case(f"{what} {name}", keys | tier)
        for drive, trace in product(_PRESSURE, WRITE_INTENSIVE):
            # Room for every write: what is compared is what the policies choose.
            keys = _tiered(session, drive, "1GiB", 1, profiles.source(session, trace))
            cases[drive, trace, name] = Case(f"{drive} {trace} {name}", keys | tier)
    return cases


def _measure(session: Session) -> Outcome:
    cases = _cases(session)
    by_name = session.run(list(cases.values()))
    runs = {key: by_name[case.name] for key, case in cases.items()}
    rates = {name: _rates(runs["full", "synthetic", name]) for name in _TIERS}
    web = {name: runs["full", "web", name] for name in _TIERS}
    tails = {name: percentile(run, "write", _TAIL) for name, run in web.items()}
    pressure = {
        drive: {
            trace: reduction(*(_to_nvm(runs[drive, trace, name]) for name in _TIERS))
            for trace in WRITE_INTENSIVE
        }
        for drive in _PRESSURE
    }
    samples = min(beyond(run, "write", _TAIL) for run in web.values())
    return Outcome(
        judge(rates, tails, pressure, samples),
        basis(by_name),
        f"4 KiB random writes and the write-intensive profiles, one request outstanding, W = {_W}, "
        "drained by 256 KiB every 10 ms; an NVM of 64 MiB, which fills, or of 1 GiB, which does "
        "not",
        partial(_draw, rates, web, pressure),
    )


def judge(
    rates: Mapping[str, Sequence[float]],
    tails: Mapping[str, float],
    pressure: Mapping[str, Mapping[str, float]],
    samples: int,
) -> dict[str, Finding]:
    """Judge the claims: rates by window, tails in ns, percentages less to the NVM."""
    plain, hybrid = (rates[name] for name in _TIERS)
    since = len(plain) // 2
    gain = fmean(hybrid[since:]) / fmean(plain[since:])
    tail = tails["all to NVM"] / tails["Hybrid PAS"]
    found = {
        "throughput": Finding(
            gain,
            gain >= _LEAST_GAIN,
            ""
            if gain >= _LEAST_GAIN
            else "whoever writes without pauses fills the NVM either way; from then on the SSD "
            "must take in what is written, directly or from the NVM, and its rate is that of both",
        ),
        "tail": Finding(tail, tail >= 1 + 0.46 / 2)
        if samples >= 10
        else Finding(tail, None, f"{samples} samples lie beyond p{_TAIL}"),
    }
    if found["tail"].holds is False:
        found["tail"] = Finding(
            tail,
            False,
            "with the NVM full, a write that would be slow goes to the SSD under both; and until "
            "then Hybrid PAS sends a fifth of the writes there, some of which are slow without "
            "having been predicted",
        )
    for drive, less in pressure.items():
        mean = fmean(less.values())
        found[drive] = Finding(dict(less) | {"mean": mean}, None, _FOLLOWS)
    return found


_FOLLOWS = (
    f"follows from W: all that is predicted to be slow goes to the NVM and {_W} % of the rest, so "
    f"that it is {100 - _W} % less with a predictor that calls nothing slow, the less the more one "
    "calls slow, and never what the paper has on B and C"
)


def _to_nvm(run: Run) -> float:
    """Return the share of the host's writes that went to the NVM."""
    (tier,) = run.data["stack"]["tiers"].values()
    to_nvm, to_ssd = tier["host_bytes_to_nvm"], tier["host_bytes_to_ssd"]
    return float(to_nvm / (to_nvm + to_ssd))


def _rates(run: Run, seed: int | None = None) -> list[float]:
    columns = series.columns(run, seed)
    # The last window is cut short.
    return [(b or 0) / columns.window_s / 1e6 for b in columns["write_bytes"][:-1]]


def _draw(
    rates: Mapping[str, Sequence[float]],
    web: Mapping[str, Run],
    pressure: Mapping[str, Mapping[str, float]],
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    timeline, tail, bars = figure.subplots(1, 3)
    for name, windows in rates.items():
        timeline.plot([i / 10 for i in range(len(windows))], windows, linewidth=0.8, label=name)
    timeline.set_xlabel("time (s)")
    timeline.set_ylabel("MB/s written, 4 KiB random")
    timeline.set_ylim(bottom=0)
    timeline.legend(frameon=False)
    for name, run in web.items():
        points = [90 + i / 10 for i in range(100)]
        tail.plot([percentile(run, "write", at) / 1e3 for at in points], points, label=name)
    tail.set_xscale("log")
    tail.set_xlabel("write latency of Web (us)")
    tail.set_ylabel("percentile")
    for offset, trace in enumerate(WRITE_INTENSIVE):
        at = [i + (offset - 1) * 0.25 for i in range(len(pressure))]
        bars.bar(at, [100 - pressure[drive][trace] for drive in pressure], 0.25, label=trace)
    bars.set_xticks(range(len(pressure)), [f"SSD {letter(drive)}" for drive in pressure])
    bars.set_ylabel("written to the NVM, % of all to NVM")
    bars.legend(loc="lower right")
    for axes in (timeline, tail, bars):
        axes.grid(alpha=0.3)
    return figure


def _over(
    session: Session,
    what: str,
    *,
    nvm: str = "64MiB",
    batch: str = "256KiB",
    arrivals: Mapping[str, Any] | None = None,
) -> Outcome:
    """Judge the throughput at one set-up, with W = 80, the best W there, and W by the load."""
    source: dict[str, Any] = {"policy": "synthetic", "read_fraction": 0.0}
    if arrivals is not None:
        source["arrivals"] = arrivals
    keys = _tiered(session, "ssd-c", nvm, 4, source)
    keys["workload.pacing"] = {"policy": "closed", "depth": 1} if arrivals is None else "open"
    keys["stack.writeback"] = {"policy": "periodic", "period": "10ms", "batch": batch}
    tiers = {"all": {"stack.tier": "write-back"}} | {
        f"W = {weight}": {"stack.tier": {"policy": "hybrid-pas", "nvm_weight": weight}}
        for weight in _WEIGHTS
    }
    cases = [Case(name, keys | tier, least_seeds=_SEEDS) for name, tier in tiers.items()]
    by_name = session.run(cases)
    rates = {name: [_rates(run, seed) for seed in run.seeds] for name, run in by_name.items()}
    return Outcome(
        {"throughput": judge_steady(rates)},
        basis(by_name),
        f"4 KiB random writes on SSD C, {what}; the second half of the run, mean of "
        f"{len(rates['all'])} seeds; W by the load is the best of {len(_WEIGHTS)} on the first of "
        "them, judged on the others",
        partial(_draw_rates, {name: seeds[0] for name, seeds in rates.items()}),
    )


def judge_steady(rates: Mapping[str, Sequence[Sequence[float]]]) -> Finding:
    """Judge the throughput of each W over that of a tier which sends all to the NVM.

    `rates` are those of each seed by window, in MB/s. The best W is so on all seeds; W by the load
    is found on the first seed and judged on the others, where there are any.
    """
    steady = {
        name: [fmean(windows[len(windows) // 2 :]) for windows in seeds]
        for name, seeds in rates.items()
    }
    plain = steady.pop("all")
    gains = {
        name: [rate / other for rate, other in zip(each, plain, strict=True)]
        for name, each in steady.items()
    }
    mean = {name: fmean(each) for name, each in gains.items()}
    best = max(mean, key=lambda name: mean[name])
    chosen = max(gains, key=lambda name: gains[name][0])
    gain = mean["W = 80"]
    found = {"W = 80": gain, "best W": mean[best]}
    if others := gains[chosen][1:]:
        found["W by the load"] = fmean(others)
    return Finding(found, gain >= _LEAST_GAIN, f"{best} is the best")


def _draw_rates(rates: Mapping[str, Sequence[float]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.subplots()
    for name, windows in rates.items():
        axes.plot([i / 10 for i in range(len(windows))], windows, linewidth=0.8, label=name)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("MB/s written, 4 KiB random")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    return figure


def _over_nvm(session: Session, mib: float) -> Outcome:
    return _over(session, f"one outstanding, an NVM of {mib:g} MiB", nvm=f"{round(mib)}MiB")


def _over_batch(session: Session, kib: float) -> Outcome:
    what = f"one outstanding, {kib:g} KiB drained every 10 ms"
    return _over(session, what, batch=f"{round(kib)}KiB")


def _over_load(session: Session, iops: float) -> Outcome:
    return _over(session, f"{iops:g} a second", arrivals={"policy": "poisson", "iops": round(iops)})


def _over_bursts(session: Session, iops: float) -> Outcome:
    bursts = {"policy": "bursts", "iops": round(iops), "on": "200ms", "off": "800ms"}
    return _over(session, f"{iops:g} a second for 200 ms, then 800 ms of silence", arrivals=bursts)


_THROUGHPUT = ("throughput",)
_RANGES = (
    Range(
        Quantity("NVM", (16, 64, 256), 64, "not given; it is full after 15 s", " MiB"),
        _THROUGHPUT,
        _over_nvm,
    ),
    Range(
        Quantity("drained every 10 ms", (64, 256, 1024), 256, "not given", " KiB"),
        _THROUGHPUT,
        _over_batch,
    ),
    Range(
        Quantity(
            "writes arriving",
            _LOADS,
            _LOADS[-1],
            "not given; as its NVM fills, more than is drained",
            " a second",
        ),
        _THROUGHPUT,
        _over_load,
    ),
    Range(
        Quantity("writes in a burst", _BURSTS, _BURSTS[-1], "not given", " a second"),
        _THROUGHPUT,
        _over_bursts,
    ),
)

STUDY = Study(
    "ssdcheck/fig15",
    "Slow writes to an NVM (Hybrid PAS)",
    _CLAIMS,
    _measure,
    _RANGES,
    is_cut_short=True,
)
