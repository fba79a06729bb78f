"""What a reader has to know before believing a result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flashkeel import _core, percentiles, steadiness
from flashkeel.comparison import FEW, is_guess
from flashkeel.output import cautions, tables, units
from flashkeel.output.plots import workload_kind
from flashkeel.quantities import bytes_per_second
from flashkeel.run import Run


@dataclass(frozen=True)
class Warning:
    """One thing to know, of which kind it is, and of which run."""

    kind: str
    run: str
    text: str


def found(runs: Sequence[Run]) -> list[Warning]:
    """Return all warnings, run by run."""
    each = [warning for run in runs for warning in _of(run)]
    notes = [Warning("note", "", note.removeprefix("Note: ")) for note in tables.notes(runs)]
    return [*each, *notes]


def _of(run: Run) -> Iterator[Warning]:
    if run.synthetic:
        yield Warning("synthetic", run.name, f"its input is generated: {workload_kind([run])}")
    # The main class is another where there is neither a read nor a write.
    for latency_class in run.classes() or [run.main_class()]:
        few = [at for at, _ in run.curve(latency_class) if is_guess(run, latency_class, at)]
        if few:
            yield Warning(
                "too few samples",
                run.name,
                f"of {units.count(run.samples(latency_class))} {units.requests(latency_class)} "
                f"fewer than {FEW} are beyond {percentiles.label(few[0])}: "
                "from there on the tail is a guess",
            )
    for text in cautions.few(run):
        yield Warning("warm-up", run.name, text)
    for text in cautions.failed(run):
        yield Warning("failed requests", run.name, text)
    for text in (*cautions.not_written_back(run), *cautions.not_on_all_copies(run)):
        yield Warning("refused writes", run.name, text)
    for text in cautions.waiting(run):
        yield Warning("waiting", run.name, text)
    for text in (*cautions.beginning(run), *cautions.of_the_first_state(run)):
        yield Warning("first state", run.name, text)
    for text in cautions.trims(run):
        yield Warning("trims", run.name, text)
    for text in cautions.ended_early(run):
        yield Warning("rates", run.name, text)
    for text in cautions.not_logged(run):
        yield Warning("request log", run.name, text)
    yield from _unsteady(run)
    yield from _overloaded(run)
    yield from _impossible(run)


def _unsteady(run: Run) -> Iterator[Warning]:
    """Give what is not steady over the last rounds, by SNIA's criterion."""
    if not run.has("series"):
        return
    by_seed = {seed: steadiness.assess(run, "lat", seed=seed) for seed in run.seeds}
    bad = [
        seed for seed, it in by_seed.items() if it.last and (not it.last.is_steady or it.is_left)
    ]
    if not bad:
        return
    found = by_seed[bad[0]]
    which = f"{len(bad)} of {len(by_seed)} seeds; seed {bad[0]}: " if len(by_seed) > 1 else ""
    if (last := found.last) and not last.is_steady:
        # `flashkeel steady` looks for the first window, at which measuring may end as SNIA has
        # it. What is reported here was measured to the end.
        first = found.reached
        once = (
            "; the first steady rounds, from "
            f"{units.span(first.points[0].start_s, first.points[-1].end_s)}, are those that "
            "`flashkeel steady` tells"
            if first
            else ""
        )
        yield Warning(
            "not steady",
            run.name,
            f"{which}in the last {steadiness.WINDOW} of {len(found.points)} rounds the mean "
            f"latency ranges over {units.share(last.range_share)} of its average and its trend "
            f"over {units.share(last.excursion_share)}; SNIA's criterion allows 20 % and 10 %"
            f"{once}",
        )
    elif found.is_left and found.reached and last:
        start, end = found.reached.points[0].start_s, found.reached.points[-1].end_s
        yield Warning(
            "not steady",
            run.name,
            f"{which}the mean latency was steady at {units.duration(found.reached.average)} from "
            f"{units.span(start, end)}, and is {units.duration(last.average)} in the last "
            f"{steadiness.WINDOW} of {len(found.points)} rounds: what is measured over the whole "
            "run mixes two states",
        )


def _overloaded(run: Run) -> Iterator[Warning]:
    peak = _peak(run)
    for text in cautions.overloaded(run):
        most = f" (at most {units.count(peak)} requests are in the device)" if peak else ""
        yield Warning("not steady", run.name, f"{text}{most}")


def _peak(run: Run) -> float:
    """Return how many requests were in the devices at most, at the ends of windows."""
    if not run.has("series"):
        return 0.0
    queues = [values for key, values in run.series().items() if key.endswith("requests_in_device")]
    return max((float(it) for it in sum(queues[1:], queues[0])), default=0.0) if queues else 0.0


def _impossible(run: Run) -> Iterator[Warning]:
    """Give rates that the flash of the device cannot have brought about."""
    config: dict[str, Any] = run.data["config"]
    if config.get("stack"):
        return
    seconds, device = run.data["simulated_s"], run.data["device"]
    geometry = config["device"]["geometry"]
    limit = geometry["channels"] * bytes_per_second(config["device"]["timing"]["channel_rate"])
    if not limit or not seconds:
        return
    for does, total, why in (
        ("reads", device["host_bytes_read"], _unread),
        ("writes", device["host_bytes_written"], _unprogrammed),
    ):
        if total / seconds > limit:
            yield Warning(
                "impossible rate",
                run.name,
                f"it {does} {units.size(total / seconds)}/s, and the channels carry "
                f"{units.size(limit)}/s: {why(device, total)}",
            )


def _unread(device: dict[str, Any], total: int) -> str:
    unmapped = device["unmapped_pages_read"] * _core.LOGICAL_PAGE_BYTES
    buffered = device["buffered_pages_read"] * _core.LOGICAL_PAGE_BYTES
    return (
        f"{units.share(unmapped / total)} of it was never written, "
        f"{units.share(buffered / total)} came from the buffer"
    )


def _unprogrammed(device: dict[str, Any], total: int) -> str:
    left = max(0.0, 1 - device["programmed_bytes"] / total)
    return f"{units.share(left)} of it is still in the write buffer, or was written over there"
