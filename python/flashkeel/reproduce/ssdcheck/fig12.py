"""Figure 12: volumes that keep to internal volumes (VA-LVM) against linear ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING

from flashkeel.reproduce import profiles
from flashkeel.reproduce.claims import (
    Claim,
    Finding,
    Outcome,
    Quantity,
    Range,
    Study,
    at_least_half,
)
from flashkeel.reproduce.session import Case, Session, basis
from flashkeel.reproduce.ssdcheck.drives import (
    READ_INTENSIVE,
    SHORT,
    WRITE_INTENSIVE,
    beyond,
    diagnosis,
    percentile,
    throughput,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRIVE = "ssd-d"
_TAIL = 99.5
_PAPER = {"throughput": 2.38, "best-throughput": 4.29, "tail": 20.3, "best-tail": 6.53}
_CLAIMS = (
    Claim(
        "throughput",
        "the reader's throughput rises to 2.38 times in the mean",
        "by at least half as much in the mean of the nine pairs",
        _PAPER["throughput"],
        "times",
    ),
    Claim(
        "best-throughput",
        "the reader's throughput rises up to 4.29 times",
        "by at least half as much in the best pair",
        _PAPER["best-throughput"],
        "times",
    ),
    Claim(
        "tail",
        "the reader's 99.5 % latency falls to 20.3 % in the mean",
        "by at least half as much in the mean of the nine pairs",
        _PAPER["tail"],
        "%",
    ),
    Claim(
        "best-tail",
        "the reader's 99.5 % latency falls to 6.53 %",
        "by at least half as much in the best pair",
        _PAPER["best-tail"],
        "%",
    ),
    Claim(
        "writer",
        "the writer keeps its throughput",
        "at least 95 % of it in every pair",
        None,
        "times",
    ),
)

Ratios = Mapping[str, float]
"""By pair: a number under VA-LVM relative to linear volumes."""


def _cases(session: Session, pause: float) -> list[Case]:
    # As on a drive nobody knows: the bits are those that a probe finds.
    bits = diagnosis(_DRIVE, session.seed).model["volume_bits"]
    speed = 100 / pause if pause else 1.0
    cases = []
    for volumes, (reader, writer) in product(("linear", "va-lvm"), _PAIRS):
        keys = {
            "device.preset": _DRIVE,
            "workload.duration": "2s" if session.quick else "20s",
            "workload.warm_up": "200ms",
            "workload.pacing": "think" if pause else {"policy": "closed", "depth": 1},
            "stack.volumes": {"policy": volumes} | ({"bits": bits} if volumes == "va-lvm" else {}),
            "stack.tenants": [
                {"name": name, "workload": {"source": profiles.source(session, profile, speed)}}
                for name, profile in (("reader", reader), ("writer", writer))
            ],
        }
        cases.append(Case(f"{volumes} {reader}+{writer}", keys))
    return cases


_PAIRS = tuple(product(READ_INTENSIVE, WRITE_INTENSIVE))


def _measure(session: Session) -> Outcome:
    return _measure_at(session, _NEAREST)


def _measure_at(session: Session, pause: float) -> Outcome:
    runs = session.run(_cases(session, pause))
    rates, tails, writers, samples = {}, {}, {}, []
    for reader, writer in _PAIRS:
        pair = f"{reader}+{writer}"
        before, after = (runs[f"{volumes} {pair}"].tenants for volumes in ("linear", "va-lvm"))
        rates[pair] = throughput(after[0]) / throughput(before[0])
        tails[pair] = 100 * (
            percentile(after[0], "read", _TAIL) / percentile(before[0], "read", _TAIL)
        )
        writers[pair] = throughput(after[1]) / throughput(before[1])
        samples += [beyond(run[0], "read", _TAIL) for run in (before, after)]
    return Outcome(
        judge(rates, tails, writers, min(samples)),
        basis(runs),
        "SSD D halved between a reader and a writer, each with one request outstanding"
        + (f" and {pause:g} % of its recorded gaps between them" if pause else ""),
        partial(_draw, rates, tails),
    )


def judge(rates: Ratios, tails: Ratios, writers: Ratios, samples: int) -> dict[str, Finding]:
    """Judge the claims by the ratios, and by the fewest samples beyond the percentile."""
    slowed = {pair: ratio for pair, ratio in writers.items() if ratio < 0.95}
    is_enough = samples >= 10
    found = {
        name: Finding(value, *at_least_half(value, _PAPER[name], none))
        for name, value, none in (
            ("throughput", fmean(rates.values()), 1.0),
            ("best-throughput", max(rates.values()), 1.0),
            ("tail", fmean(tails.values()), 100.0),
            ("best-tail", min(tails.values()), 100.0),
        )
    } | {
        "writer": Finding(
            {"mean": fmean(writers.values()), "least": min(writers.values())},
            not slowed,
            f"slower in {', '.join(slowed)}: without pauses it fills what it gets, which is half "
            "of the drive now, and was more where the reader hardly writes"
            if slowed
            else "",
        ),
    }
    reason = (
        "the readers that write a good deal themselves wait for their own flushes and "
        "collections, which no volume manager keeps from them"
    )
    for name in ("tail", "best-tail"):
        finding = found[name]
        if not is_enough:
            found[name] = Finding(finding.measured, None, f"{samples} samples lie beyond p{_TAIL}")
        elif finding.holds is False:
            found[name] = Finding(finding.measured, False, reason)
    return found


def _draw(rates: Ratios, tails: Ratios) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    places = range(len(rates))
    axes.bar([at - 0.2 for at in places], list(rates.values()), 0.4, label="throughput")
    axes.axhline(1.0, color="black", linewidth=0.7)
    axes.set_ylabel("reader's throughput relative to linear")
    named = [pair.split("+") for pair in rates]
    labels = [f"{SHORT.get(reader, reader)}\n+ {writer}" for reader, writer in named]
    axes.set_xticks(list(places), labels, fontsize=8)
    right = axes.twinx()
    right.bar(
        [at + 0.2 for at in places], list(tails.values()), 0.4, color="tab:orange", label="p99.5"
    )
    right.set_ylabel("reader's 99.5 % latency, % of linear")
    figure.legend(frameon=False, loc="outside upper right", ncols=2)
    return figure


_NEAREST = 0
_PAUSES = Range(
    Quantity(
        "pauses",
        (0, 1, 3, 10, 30, 100),
        _NEAREST,
        "not said; a reader that is sped up 4.29 times waits for little but the drive",
        " % of the traces' assumed gaps",
    ),
    tuple(claim.name for claim in _CLAIMS),
    _measure_at,
)

STUDY = Study(
    "ssdcheck/fig12",
    "Volumes by internal volumes (VA-LVM)",
    _CLAIMS,
    _measure,
    (_PAUSES,),
    is_cut_short=True,
)
