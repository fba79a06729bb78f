"""Figure 15: writes that are predicted to be slow go to an NVM (Hybrid PAS)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

from flashkeel.reproduce import profiles, series
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, reduction
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.reproduce.ssdcheck.drives import WRITE_INTENSIVE, beyond, letter, percentile
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PRESSURE = {"ssd-a": 16.7, "ssd-b": 27.8, "ssd-c": 28.7}
_TIERS: dict[str, dict[str, Any]] = {
    "all to NVM": {"stack.tier": "write-back"},
    "Hybrid PAS": {"stack.tier": {"policy": "hybrid-pas", "nvm_weight": 80}},
}
_TAIL = 99.7
_CLAIMS = (
    Claim(
        "throughput",
        "in the steady state Hybrid PAS has up to 2.1 times the throughput of a tier that sends "
        "every write to the NVM",
        "at least half the gain on SSD C, over the time after the NVM of that tier is full",
        2.1,
    ),
    Claim(
        "tail",
        "Hybrid PAS shortens the 99.7 % latency of Web on SSD C 1.46 times",
        "at least half the gain, over the whole run",
        1.46,
    ),
    *(
        Claim(
            drive,
            f"Hybrid PAS sends {less} % less to the NVM on SSD {letter(drive)}",
            "at least half as much less in the mean of the three write-intensive traces",
            less,
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
        "4 KiB random writes and the write-intensive profiles, one request outstanding, W = 80, "
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
            gain >= 1 + 1.1 / 2,
            ""
            if gain >= 1 + 1.1 / 2
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
        found[drive] = Finding(dict(less) | {"mean": mean}, mean >= _PRESSURE[drive] / 2)
    return found


def _to_nvm(run: Run) -> float:
    """Return the share of the host's writes that went to the NVM."""
    (tier,) = run.data["stack"]["tiers"].values()
    to_nvm, to_ssd = tier["host_bytes_to_nvm"], tier["host_bytes_to_ssd"]
    return float(to_nvm / (to_nvm + to_ssd))


def _rates(run: Run) -> list[float]:
    columns = series.columns(run)
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


STUDY = Study("ssdcheck/fig15", "Slow writes to an NVM (Hybrid PAS)", _CLAIMS, _measure)
