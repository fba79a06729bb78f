"""Figure 15: writes that are predicted to be slow go to an NVM (Hybrid PAS)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

from flashkeel.reproduce import profiles
from flashkeel.reproduce.claims import (
    Claim,
    Finding,
    Outcome,
    Study,
    reduction,
)
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.reproduce.ssdcheck import timeline
from flashkeel.reproduce.ssdcheck.drives import WRITE_INTENSIVE, beyond, letter, percentile
from flashkeel.reproduce.ssdcheck.timeline import HYBRID, PLAIN, W
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PRESSURE = {"ssd-a": 16.7, "ssd-b": 27.8, "ssd-c": 28.7}
_TIERS: dict[str, dict[str, Any]] = {
    PLAIN: {"stack.tier": "write-back"},
    HYBRID: {"stack.tier": {"policy": "hybrid-pas", "nvm_weight": W}},
}
_TAIL = 99.7
_CLAIMS = (
    *timeline.CLAIMS,
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
            f"none: with room for every write it follows from W = {W}, whatever is predicted",
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
        keys = _tiered(session, "ssd-c", "64MiB", 4, profiles.source(session, "web"))
        cases["full", "web", name] = Case(f"web {name}", keys | tier)
        for drive, trace in product(_PRESSURE, WRITE_INTENSIVE):
            # Room for every write: what is compared is what the policies choose.
            keys = _tiered(session, drive, "1GiB", 1, profiles.source(session, trace))
            cases[drive, trace, name] = Case(f"{drive} {trace} {name}", keys | tier)
    return cases


def _measure(session: Session) -> Outcome:
    cases = _cases(session)
    by_name = session.run(list(cases.values()))
    runs = {key: by_name[case.name] for key, case in cases.items()}
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
    found, lines, told = timeline.measure(session)
    return Outcome(
        found | judge(tails, pressure, samples),
        basis(by_name),
        f"{told}, W = {W}, drained by 256 KiB every 10 ms; the write-intensive profiles with one "
        "seed, on an NVM of 64 MiB, which fills, or of 1 GiB, which does not",
        partial(_draw, lines, web, pressure),
    )


def judge(
    tails: Mapping[str, float],
    pressure: Mapping[str, Mapping[str, float]],
    samples: int,
) -> dict[str, Finding]:
    """Judge the claims but those of the time line: tails in ns, percentages less to the NVM."""
    tail = tails[PLAIN] / tails[HYBRID]
    found = {
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
    f"follows from W: all that is predicted to be slow goes to the NVM and {W} % of the rest, so "
    f"that it is {100 - W} % less with a predictor that calls nothing slow, the less the more one "
    "calls slow, and never what the paper has on B and C"
)


def _to_nvm(run: Run) -> float:
    """Return the share of the host's writes that went to the NVM."""
    (tier,) = run.data["stack"]["tiers"].values()
    to_nvm, to_ssd = tier["host_bytes_to_nvm"], tier["host_bytes_to_ssd"]
    return float(to_nvm / (to_nvm + to_ssd))


def _draw(
    lines: Mapping[str, timeline.Line],
    web: Mapping[str, Run],
    pressure: Mapping[str, Mapping[str, float]],
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    over_time, tail, bars = figure.subplots(1, 3)
    timeline.draw(lines, over_time)
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
    for axes in (tail, bars):
        axes.grid(alpha=0.3)
    return figure


STUDY = Study(
    "ssdcheck/fig15",
    "Slow writes to an NVM (Hybrid PAS)",
    _CLAIMS,
    _measure,
    timeline.RANGES,
    is_cut_short=True,
)
