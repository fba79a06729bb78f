"""How many more flash pages a drive programs than it would if all were full.

What a write buffer holds at the end of its timeout is programmed, and the rest of the flash
page is padding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flashkeel import _core
from flashkeel._core import LOGICAL_PAGE_BYTES
from flashkeel.experiment import Experiment, is_pipe
from flashkeel.media import Sold
from flashkeel.quantities import bytes_programmed_at_once, in_seconds, padded

LEAST = 1.25
"""Times as many flash pages from which there is something to say."""
_TIMEOUT = "100ms"
"""The device's own, where a preset has none; a test holds it against a device."""
_REQUESTS = 100_000
"""Of a recording, of which the first so many are replayed."""
_MODEL = 32 << 30
_FILL = 0.01
"""Of the model, the least that there is, nearly: nothing is to be collected."""


@dataclass(frozen=True)
class Padding:
    """What the timeout of a drive's write buffer comes to."""

    page_bytes: int
    """What is programmed at once."""
    timeout_ns: float
    least: float
    """Times as many flash pages as hold what is written."""
    most: float
    requests: int | None = None
    """Of the recording that they are counted in; None where they are the bounds of a rate."""


def _timeout_s(sold: Sold) -> float | None:
    """Return after which time the buffer does not wait any longer; None where it does."""
    buffer = sold.config["buffer"]
    return in_seconds(buffer.get("timeout", _TIMEOUT)) if "timeout" in buffer["flush"] else None


def of_rate(sold: Sold, bytes_per_second: float) -> Padding | None:
    """Return the bounds for writes of which no more is known than how much there is.

    None where there is nothing to say. A timeout leaves one flash page half empty at most, and
    in that is a logical page at least.
    """
    waits_s, page = _timeout_s(sold), bytes_programmed_at_once(sold.config["geometry"])
    if waits_s is None or not bytes_per_second:
        return None
    most = min(page / LOGICAL_PAGE_BYTES, 1 + page / (bytes_per_second * waits_s))
    return Padding(page, waits_s * 1e9, 1.0, most) if most >= LEAST else None


def of_trace(
    sold: Sold, source: Mapping[str, Any], progress: Callable[[str, float], object] | None = None
) -> Padding | None:
    """Return what the beginning of a recording comes to; None where there is nothing to say.

    It is replayed on a model of the drive that is nearly empty, where little else is programmed.
    """
    waits_s, geometry = _timeout_s(sold), sold.config["geometry"]
    if waits_s is None:
        return None
    device = sold.model(_MODEL) | {"precondition": {"fill": _FILL}}
    workload = {
        "source": {"policy": "trace", "fold": "wrap"} | dict(source),
        "requests": _REQUESTS,
    }
    experiment = Experiment("", "padding").set("device", device).set("workload", workload)
    (plan,) = experiment.plans()
    run = json.loads(_core.run(json.dumps(plan), 1, None, progress).json())
    times = padded(run["device"], geometry)
    if times is None or times < LEAST:
        return None
    page = bytes_programmed_at_once(geometry)
    return Padding(page, waits_s * 1e9, times, times, run["requests"])


def can_be_read(source: Mapping[str, Any]) -> bool:
    """Return whether a recording can be read once more."""
    return not is_pipe(source["path"])
