"""What the state that a run began in has to do with its figures."""

from __future__ import annotations

from typing import Any

from flashkeel._core import LOGICAL_PAGE_BYTES
from flashkeel.quantities import in_bytes, in_seconds, logical_bytes
from flashkeel.run import Run

MOST_UNWRITTEN = 0.01
"""Share of the pages read beyond which it is said that they were never written."""

_SAME = 0.01
"""Share of the drive by which two regions may differ and be taken for the same."""

LEAST_WAF = 1.05
"""Below it there is nothing to amplify writes, whatever the state."""


def unwritten_share(run: Run) -> float:
    """Return the share of the pages read that were never written: no flash is read for them."""
    device = run.data["device"]
    # A drive that is no simulation does not tell.
    unwritten = device.get("unmapped_pages_read", 0) * LOGICAL_PAGE_BYTES
    return float(unwritten / max(1, device.get("host_bytes_read", 0)))


def scatters_reads(run: Run) -> bool:
    """Return whether what is read in order was written at random."""
    device, source = _even(run), run.data["config"]["workload"]["source"]
    pattern = source.get("pattern", {}).get("policy")
    return device is not None and pattern == "sequential" and run.samples("read") > 0


def rewritten_share(run: Run) -> float | None:
    """Return which share of the drive the host wrote, in the warm-up too, over an even state.

    None where it wrote as evenly to the same places itself, so that the state stays what it was,
    where nothing else was written than what the host wrote, and for a stack.
    """
    device, workload = _even(run), run.data["config"]["workload"]
    if device is None or (run.data.get("waf") or 0.0) < LEAST_WAF:
        return None
    if _goes_on(device, workload["source"]):
        return None
    # Of all seeds together, as is what they wrote.
    measured_s = run.data["simulated_s"]
    warm_up_s = in_seconds(workload["warm_up"]) * len(run.seeds)
    whole = 1 + (warm_up_s / measured_s if measured_s else 0.0)
    written = run.data["device"]["host_bytes_written"] / len(run.seeds)
    return float(whole * written / logical_bytes(device))


def decides(run: Run) -> bool:
    """Return whether figures owe much to the state that the run began in, in any of these ways."""
    rewritten = rewritten_share(run)
    is_young = rewritten is not None and rewritten < 1
    return is_young or scatters_reads(run) or unwritten_share(run) > MOST_UNWRITTEN


def _goes_on(device: dict[str, Any], source: dict[str, Any]) -> bool:
    """Return whether a source writes evenly to all that the device was written evenly in."""
    if source.get("pattern", {}).get("policy") != "uniform":
        return False
    if source["trim_fraction"] or source["zero_fraction"]:
        return False
    capacity = logical_bytes(device)
    first = in_bytes(source["region_offset"])
    size = in_bytes(source["region_size"]) if "region_size" in source else capacity - first
    apart = max(first, abs(size - device["precondition"]["fill"] * capacity))
    return bool(apart <= _SAME * capacity)


def _even(run: Run) -> dict[str, Any] | None:
    """Return the device if it is alone, and was written at random, evenly, before the run."""
    config = run.data["config"]
    device: dict[str, Any] = config["device"]
    if config.get("stack") or device["precondition"]["pattern"] != "random":
        return None
    return device if device["precondition"]["fill"] > 0 else None
