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

MOST_TRIMMED = 0.05
"""Share of what is written, trimmed beside it, beyond which a load has trims."""

SETTLED, WARMED = 5, 3
"""Times the drive is written, and in the warm-up, by which a load with trims has its own WAF.

Of even writes with three trims in ten it was 2.43, 2.07, 1.83 and 1.74 in runs of 1, 2, 4 and 6
times the drive, and 1.70, 1.57 and 1.56 in the second, fourth and last of these times. (Ours.)"""

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
    written = run.data["device"]["host_bytes_written"] / len(run.seeds)
    return float((1 + _warm_up(run)) * written / logical_bytes(device))


def is_young(run: Run) -> bool:
    """Return whether too little was rewritten for write amplification to be this load's alone."""
    rewritten = rewritten_share(run)
    if rewritten is None or rewritten < 1:
        return rewritten is not None
    # What is trimmed is free, and what was written before becomes so but slowly.
    warmed = rewritten * (1 - 1 / (1 + _warm_up(run)))
    return has_trims(run) and rewritten < SETTLED and warmed < WARMED


def has_trims(run: Run) -> bool:
    """Return whether so much is trimmed that the drive holds less and less until it settles."""
    device = run.data["device"]
    gone = device["host_bytes_trimmed"] + device["host_bytes_zeroed"]
    return bool(gone > MOST_TRIMMED * device["host_bytes_written"])


def decides(run: Run) -> bool:
    """Return whether figures owe much to the state that the run began in, in any of these ways."""
    return is_young(run) or scatters_reads(run) or unwritten_share(run) > MOST_UNWRITTEN


def _warm_up(run: Run) -> float:
    """Return how long the warm-up is beside what is measured."""
    # Of all seeds together, as is what they wrote.
    measured_s = run.data["simulated_s"]
    warm_up_s = in_seconds(run.data["config"]["workload"]["warm_up"]) * len(run.seeds)
    return warm_up_s / measured_s if measured_s else 0.0


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
