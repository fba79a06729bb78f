"""What has to be known of runs whose figures say less than they seem to, in a line each."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from flashkeel import failures, first_state, overload, steadiness
from flashkeel.output import units
from flashkeel.overload import Overload
from flashkeel.quantities import in_seconds
from flashkeel.run import Run

_FAILED = {
    "invalid": "the device refused {} requests",
    "lost": "{} reads asked for data that failed flash has lost",
    "read_only": "{} requests were refused, as the device takes only reads by now",
    "no_space": "for {} requests there was no space",
    "media_error": "{} requests ended in an error of the medium",
    "gone": "for {} requests the device was gone",
    "aborted": "{} requests were cut off",
}
_NEARLY_ALL = 0.99
"""Share of the requests of a class by which it has ended."""
_EARLY = 0.8
"""Share of the time before which a class ends early, if that is of so many windows:"""
_WINDOWS = 10
_FEWEST = math.ceil(math.log(0.001, _EARLY))
"""Requests that, at random times, are all that early once in a thousand runs."""
_FEW_COUNTED = 1000
"""Requests of which p99 rests on fewer than ten."""
_NAMED = 8
"""Tenants that are named of those of which the same is said."""
_MOST_WAITING = 0.5
"""Share of the latency of writes beyond which what they wait for is no matter of the flash."""


def of(runs: Sequence[Run]) -> Iterator[str]:
    """Give a sentence for each caution of each run, or of all that it is the same for."""
    begun: dict[str, list[str]] = {}
    for run in runs:
        for text in (*failed(run), *not_written_back(run), *not_on_all_copies(run), *few(run)):
            yield f"{run.name}: {text}"
        found = (
            *overloaded(run),
            *ended_early(run),
            *waiting(run),
            *beginning(run),
            *trims(run),
            *not_logged(run),
        )
        for text in found:
            yield f"{run.name}: {text}"
        for text in of_the_first_state(run):
            begun.setdefault(text, []).append(run.name)
    yield from (f"{', '.join(names)}: {text}" for text, names in begun.items())
    if mixed := [run.name for run in runs if steadiness.mixes_states(run)]:
        yield f"{', '.join(mixed)}: two states are in it, as `flashkeel steady` tells"


def few(run: Run) -> Iterator[str]:
    """Give a sentence where the warm-up leaves out nearly all requests."""
    # Those that were refused have been counted, too.
    counted, came = run.data["requests"], run.data.get("workload", {}).get("delivered", 0)
    if _warm_up_s(run) and counted < min(_FEW_COUNTED, came / 2):
        which = f"all but {counted:,} of" if counted else "all"
        yield (
            f"the warm-up takes in {which} {came:,} requests, and they are not counted; "
            "`workload.warm_up` says how long it is"
        )


def failed(run: Run) -> Iterator[str]:
    """Give a sentence for each way in which requests failed."""
    for how, count in failures.of(run).items():
        share = units.share(count / run.data["requests"])
        text = _FAILED.get(how, f"{{}} requests ended as {how}").format(f"{count:,}")
        yield f"{text} ({share} of all): no distribution has them"


def not_written_back(run: Run) -> Iterator[str]:
    """Give a sentence for each tier that could not write pages back."""
    for name, tier in run.data.get("stack", {}).get("tiers", {}).items():
        if count := tier["failed_writebacks"]:
            yield (
                f"tier {name} could not write back pages, {count:,} times: its lower device "
                "refused them, and they are in the upper one alone"
            )


def not_on_all_copies(run: Run) -> Iterator[str]:
    """Give a sentence for each mirror of which a copy took no writes any more."""
    for name, mirror in run.data.get("stack", {}).get("mirrors", {}).items():
        # Earlier results do not count them.
        if count := mirror.get("changes_refused", 0):
            yield (
                f"copies of mirror {name} refused writes, {count:,} times, being full or "
                "read-only: what these wrote is on fewer copies"
            )


def ended_early(run: Run) -> Iterator[str]:
    """Give a sentence for reads, for writes, and for each tenant, that end long before the run.

    Of reads and writes it takes the time series, of which a pool has the first seed's.
    """
    for tenant in run.tenants:
        share = tenant.data.get("last_completion_s", 0.0) / (tenant.data["simulated_s"] or 1.0)
        if tenant.data["requests"] >= _FEWEST and 0 < share < _EARLY:
            yield (
                f"tenant {tenant.name} ends after {units.share(share)} of the time, and its IOPS "
                f"and MB/s count all of it: until then they are {1 / share:.3g} times as many"
            )
    if not run.has("series"):
        return
    series = run.series()
    for latency_class, column in (("read", "reads"), ("write", "writes")):
        ended = list(accumulate(int(count) for count in series[column]))
        if not run.samples(latency_class) or not ended or ended[-1] < _FEWEST:
            continue
        # A few stragglers are no reason to count what comes after them.
        windows = 1 + bisect_left(ended, _NEARLY_ALL * ended[-1])
        share = windows / len(ended)
        if len(ended) >= _WINDOWS and share < _EARLY:
            iops = run.iops(latency_class)
            yield (
                f"its {column} end after {units.share(share)} of the time, and IOPS and MB/s count "
                f"all of it: {units.rate(iops)} a second is {units.rate(iops / share)} until then"
            )


def waiting(run: Run) -> Iterator[str]:
    """Give a sentence where writes mostly wait for others."""
    if (share := _waiting_for_others(run)) > _MOST_WAITING:
        yield _aggregated(share)


def beginning(run: Run) -> Iterator[str]:
    """Give a sentence for each reason why write amplification is that of the beginning."""
    free = steadiness.from_free_blocks(run) or 0.0
    if abs(free) > steadiness.MOST_FREE:
        yield _of_the_beginning(free)
    buffered = steadiness.left_in_buffer(run) or 0.0
    if buffered > steadiness.MOST_BUFFERED:
        yield (
            f"WAF is lower than it stays: at the end {units.share(buffered)} of what was written "
            "was in the write buffer yet, and not programmed"
        )


def not_logged(run: Run) -> Iterator[str]:
    """Give a sentence where the request log was full before the run ended."""
    if missing := run.data.get("requests_not_logged", 0):
        yield (
            f"its request log was full: {missing:,} of {run.data['requests']:,} requests are not "
            "in it, nor in pictures made of it; `measure.log_rows` says how many it takes"
        )


def trims(run: Run) -> Iterator[str]:
    """Give a sentence where trims free nothing, as the parity of their stripes covers them."""
    is_striped = run.data["config"]["device"]["redundancy"]["policy"] == "logical"
    if is_striped and run.data.get("waf") is not None and run.samples("trim"):
        yield (
            'trims free nothing under redundancy = "logical": WAF is that of a drive that keeps '
            "what was trimmed until it is written again"
        )


def _warm_up_s(run: Run) -> float:
    config = run.data.get("config", {})
    tenants = (config.get("stack") or {}).get("tenants", [])
    workloads = [tenant["workload"] for tenant in tenants] or [config.get("workload", {})]
    return max(in_seconds(it.get("warm_up", "0s")) for it in workloads)


def _first_of(names: Sequence[str]) -> str:
    """Return names as words, and of many how many there are."""
    beyond = len(names) - _NAMED
    if beyond <= 0:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {beyond:,} more"


def _waiting_for_others(run: Run) -> float:
    """Return the share of the latency of writes in which they wait for others to come."""
    writes = run.samples("write") * (run.mean("write") or 0.0)
    return run.data.get("blame_ns", {}).get("aggregation", 0) / writes if writes else 0.0


def _aggregated(share: float) -> str:
    return (
        f"{units.share(share)} of the latency of writes is waiting for others to fill a flash page;"
        " the key `buffer.timeout` of the device ends that"
    )


def _of_the_beginning(share: float) -> str:
    if share > 0:
        was = f"{units.share(share)} was programmed into blocks that were free before"
        return f"WAF is lower than it stays: {was}"
    more = f"more blocks are free than before, by {units.share(-share)} of what was programmed"
    return f"WAF is higher than it stays: {more}"


def of_the_first_state(run: Run) -> Iterator[str]:
    """Give what figures owe to the state that the run began in."""
    if (unwritten := first_state.unwritten_share(run)) > first_state.MOST_UNWRITTEN:
        yield f"{units.share(unwritten)} of the pages read were never written: no flash is read"
    if first_state.scatters_reads(run):
        yield (
            "what is read in order was written at random, so that each page lies elsewhere; "
            'precondition.pattern = "sequential" lays it in order'
        )
    if first_state.is_young(run):
        written = units.share(first_state.rewritten_share(run) or 0.0)
        slowly = ", as trims take effect slowly" if first_state.has_trims(run) else ""
        yield (
            f"the host wrote {written} of the drive, which was written evenly before: WAF is still "
            f"that state's, too, not this load's alone{slowly}"
        )


def overloaded(run: Run) -> Iterator[str]:
    """Give that requests come faster than they are served, once for tenants that ask alike."""
    alike: dict[str, list[Overload]] = {}
    for one in overload.found(run):
        alike.setdefault(units.rate(one.asked), []).append(one)
    for asked, these in alike.items():
        names = [one.name for one in these]
        whose = "" if names == [run.name] else f"{_first_of(names)}: "
        least, most = (units.rate(pick(one.served for one in these)) for pick in (min, max))
        served = least if least == most else f"{least} to {most}"
        each = " each" if len(names) > 1 else ""
        yield (
            f"{whose}requests come faster than they are served: {asked} a second come{each}, "
            f"{served} are served; latencies say how long the run was"
        )
