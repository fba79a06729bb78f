"""Whether a run is in its steady state, by SNIA's criterion and by fio's.

SNIA's Solid State Storage Performance Test Specification calls a window of five rounds
steady where the values lie within 20 % of their average, from the largest to the smallest,
and the line fitted to them does not rise or fall by more than 10 % of it.
fio's ``ss=`` ends a job where all values of a window are within a limit of their mean
(``iops:10%``), or the slope of the line through them is (``iops_slope:0.3%``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flashkeel import amplification
from flashkeel._core import LOGICAL_PAGE_BYTES, InputError
from flashkeel.quantities import bytes_erased_at_once, bytes_programmed_at_once

if TYPE_CHECKING:
    import numpy as np

    from flashkeel.run import Run

ROUNDS = 25
"""Rounds of a run; a test after SNIA's specification ends after so many."""

WINDOW = 5
"""Rounds of SNIA's measurement window."""

_SECOND = 1.0
"""From one of fio's values to the next, in s, as its ``ss_interval`` is unless it is set."""

MOST_RANGE = 0.20
MOST_SLOPE = 0.10

MOST_FREE = 0.10
"""Share of what is programmed beyond which blocks that were free before decide what is."""

MOST_BUFFERED = 0.10
"""Share of what is written beyond which it counts that a buffer has it yet."""

_EVEN = ("poisson", "constant")

VARIABLES = ("iops", "bw", "lat", "waf")
"""What can be tracked; fio's criteria know all but the last."""


@dataclass(frozen=True)
class Point:
    """What was measured in one round."""

    start_s: float
    end_s: float
    value: float


@dataclass(frozen=True)
class Window:
    """Consecutive rounds, and how steady they are."""

    points: Sequence[Point]
    average: float
    range_share: float
    """Largest less smallest value, as a share of the average."""
    deviation_share: float
    """Largest distance of a value from the average, as a share of it."""
    excursion_share: float
    """What the fitted line rises or falls over the window, without sign, as a share."""
    slope_share_per_s: float
    """Its slope, as a share of the average in a second."""

    @property
    def is_steady(self) -> bool:
        """Whether it is by SNIA's criterion."""
        shares = self.range_share / MOST_RANGE, self.excursion_share / MOST_SLOPE
        return self.average > 0 and max(shares) <= 1


@dataclass(frozen=True)
class Criterion:
    """A criterion in fio's words."""

    variable: str
    is_slope: bool
    limit: float
    is_share: bool

    def is_met(self, window: Window) -> bool:
        """Return whether a window meets it."""
        if not window.average > 0:
            # Nothing happens; that is no state of the drive.
            return False
        return self.value(window) <= self.limit

    def value(self, window: Window) -> float:
        """Return what is compared with the limit, in its unit: a share, or that of the variable."""
        share = abs(window.slope_share_per_s) if self.is_slope else window.deviation_share
        return share if self.is_share else share * window.average

    def __str__(self) -> str:
        number = f"{self.limit * 100:g}%" if self.is_share else f"{self.limit:g}"
        return f"{self.variable}{'_slope' if self.is_slope else ''}:{number}"


def parse(text: str) -> Criterion:
    """Return the criterion that fio's ``ss=`` means; InputError where it is none."""
    found = re.fullmatch(r"(iops|bw|lat)(_slope)?:([0-9.]+)(%?)", text.strip())
    try:
        number = float(found[3]) if found else math.nan
    except ValueError:
        number = math.nan
    if found is None or not math.isfinite(number):
        raise InputError(
            f"ss={text}: write iops, bw or lat, with _slope or without, and a limit: "
            "iops:10%, lat_slope:0.3%"
        )
    is_share = bool(found[4])
    return Criterion(found[1], bool(found[2]), number / 100 if is_share else number, is_share)


def rounds(
    run: Run, variable: str, length_s: float | None = None, seed: int | None = None
) -> list[Point]:
    """Return a variable round by round, from the first complete round to the last.

    ``iops`` and ``bw`` count reads and writes, ``lat`` is their mean latency in ns, of rounds
    with any; ``waf`` is the write amplification of rounds with writes. Rounds are `length_s`
    long, without it a twenty-fifth of the run.
    """
    if variable not in VARIABLES:
        raise InputError(f"no variable {variable!r}; they are {', '.join(VARIABLES)}")
    series = run.series(seed)
    # The end of the run cuts the last window short.
    table = {name: series[name][:-1] for name in series}
    starts_s = [float(ns) / 1e9 for ns in table["start_ns"]]
    if len(starts_s) < WINDOW:
        return []
    window_s = starts_s[1] - starts_s[0]
    per_round = max(1, round(length_s / window_s if length_s else len(starts_s) / ROUNDS))
    total, by = _parts(run, table, variable)
    points = []
    for first in range(0, len(starts_s) - per_round + 1, per_round):
        part = slice(first, first + per_round)
        length = per_round * window_s
        # A mean is of something; a rate is of the time.
        count = length if by is None else float(by[part].sum())
        if count:
            value = float(total[part].sum()) / count
            points.append(Point(starts_s[first], starts_s[first] + length, value))
    return points


def _parts(run: Run, table: dict[str, Any], variable: str) -> tuple[Any, Any]:
    """Return what a variable adds up in each window, and what that is divided by but the time."""
    counts = table["reads"] + table["writes"]
    if variable == "iops":
        return counts, None
    if variable == "bw":
        return table["read_bytes"] + table["write_bytes"], None
    if variable == "lat":
        reads = _summed(table["read_mean_ns"], table["reads"])
        return reads + _summed(table["write_mean_ns"], table["writes"]), counts
    found = amplification.of_windows(table)
    if found is None:
        raise InputError(
            f"run {run.name!r} has no write amplification over time: its devices are no SSDs, "
            "or it was made before time series had what they program; run it again"
        )
    written, programmed = found
    return programmed, written


def windows(points: Sequence[Point], length: int = WINDOW) -> list[Window]:
    """Return each run of `length` consecutive rounds."""
    return [_window(points[end - length : end]) for end in range(length, len(points) + 1)]


@dataclass(frozen=True)
class Steadiness:
    """How steady a run was."""

    variable: str
    points: Sequence[Point]
    reached: Window | None
    """The first window that is steady; None where none is."""
    last: Window | None
    """The last window; None where there are too few rounds for one."""
    window_rounds: int = WINDOW
    """Rounds that a window takes."""

    @property
    def is_left(self) -> bool:
        """Whether the last rounds are further from the first steady ones than one state allows."""
        if self.reached is None or self.last is None:
            return False
        most = MOST_RANGE * self.reached.average
        return abs(self.last.average - self.reached.average) > most


def assess(
    run: Run,
    variable: str,
    criterion: Criterion | None = None,
    window_s: float | None = None,
    seed: int | None = None,
) -> Steadiness:
    """Return how steady a run was by SNIA's criterion, or by another one.

    A window is `window_s` long, or a fifth of the run: five rounds by SNIA's criterion; by one of
    fio's, which takes a value each second, rounds of a second, and at least five. InputError where
    it is shorter than five windows of the time series. Of a pool of seeds it is the first seed's
    unless `seed` says another.
    """
    length_s, count = _cut(run, criterion, window_s, seed)
    points = rounds(run, variable, length_s, seed)
    found = windows(points, count)
    first = next(
        (it for it in found if (criterion.is_met(it) if criterion else it.is_steady)), None
    )
    return Steadiness(variable, points, first, found[-1] if found else None, count)


def _cut(
    run: Run, criterion: Criterion | None, window_s: float | None, seed: int | None
) -> tuple[float | None, int]:
    """Return how long a round is, in s, if that is not a part of the run, and rounds a window."""
    if criterion is None and window_s is None:
        return None, WINDOW
    starts_ns = run.series(seed)["start_ns"]
    if len(starts_ns) < 2:
        return None, WINDOW
    least_s = float(starts_ns[1] - starts_ns[0]) / 1e9
    if window_s is not None and round(window_s / least_s, 6) < WINDOW:
        raise InputError(
            f"a window of {window_s:g} s is shorter than {WINDOW} windows of the time series of "
            f"run {run.name!r}, of {least_s:g} s each, which measure.series_window sets"
        )
    whole_s = window_s or (len(starts_ns) - 1) * least_s * WINDOW / ROUNDS
    if criterion is None:
        return whole_s / WINDOW, WINDOW
    length_s = max(1, round(min(_SECOND, whole_s / WINDOW) / least_s)) * least_s
    while round(whole_s / length_s) < WINDOW and length_s > 1.5 * least_s:
        length_s -= least_s
    return length_s, max(WINDOW, round(whole_s / length_s))


def from_free_blocks(run: Run) -> float | None:
    """Return which share of what was programmed went into blocks that were free before the run.

    For these nothing had to be collected, so write amplification is lower than it stays. It is
    below 0 where more blocks were free after it. None without writes, where a block's cells hold
    now one bit and now more, where collection takes no time and none of its erases is counted,
    and for a stack of drives that erase more or less at once than each other.
    """
    if not run.data.get("waf"):
        return None
    drives = list(_drives(run.data["config"]))
    if any(drive["slc_cache"]["policy"] != "none" for drive in drives):
        return None
    if any(drive["gc"]["movement"]["policy"] == "none" for drive in drives):
        return None
    sizes = {bytes_erased_at_once(drive["geometry"]) for drive in drives}
    if len(sizes) != 1:
        return None
    device = run.data["device"]
    return float(1 - device["erases"] * sizes.pop() / device["programmed_bytes"])


def _drives(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Give the SSDs of a run, those of a stack wherever they stand in it."""
    devices = (config.get("stack") or {}).get("devices")
    if not devices:
        yield config["device"]
        return

    def within(part: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            if key == "ssd":
                yield value
            elif isinstance(value, (dict, list)):
                yield from within(value)

    yield from within(devices)


def left_in_buffer(run: Run) -> float | None:
    """Return which share of what was written the buffer held at the end more than before, at least.

    None of it was programmed, so write amplification is lower than it stays. What was trimmed may
    have been in it. None for a stack, and without writes.
    """
    device, config = run.data["device"], run.data["config"]
    written = device.get("host_bytes_written", 0)
    if config.get("stack") or not written:
        return None
    geometry = config["device"]["geometry"]
    programmed = device["flash_operations"]["host_write"] * bytes_programmed_at_once(geometry)
    gone = device["host_bytes_trimmed"] + device["host_bytes_zeroed"]
    coalesced = device["coalesced_pages"] * LOGICAL_PAGE_BYTES
    return float(max(0, written - programmed - coalesced - gone) / written)


def is_early(from_free: float | None, in_buffer: float | None) -> bool:
    """Return whether either share is one by which write amplification is not the one that lasts."""
    return abs(from_free or 0.0) > MOST_FREE or (in_buffer or 0.0) > MOST_BUFFERED


def mixes_states(run: Run) -> bool:
    """Return whether a run's last rounds are of another state than the first steady ones.

    Only an even load tells that of the drive.
    """
    if not run.has("series"):
        return False
    workload = run.data["config"]["workload"]
    arrivals = workload["source"].get("arrivals", {}).get("policy", "")
    is_even = workload["source"]["policy"] == "synthetic" and (
        workload["pacing"]["policy"] == "closed" or arrivals in _EVEN
    )
    if not is_even:
        return False
    found = [assess(run, "lat", seed=seed) for seed in run.seeds]
    return any(it.last is not None and it.last.is_steady and it.is_left for it in found)


def _summed(means: np.ndarray[Any, Any], counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.asarray(np.nan_to_num(means.astype(float)) * counts)


def _window(points: Sequence[Point]) -> Window:
    times = [(point.start_s + point.end_s) / 2 for point in points]
    values = [point.value for point in points]
    average, middle = sum(values) / len(values), sum(times) / len(times)
    spread = sum((time - middle) ** 2 for time in times)
    moments = zip(times, values, strict=True)
    slope = sum((time - middle) * (value - average) for time, value in moments) / (spread or 1.0)
    unit = average or math.inf
    return Window(
        points,
        average,
        (max(values) - min(values)) / unit,
        max(abs(value - average) for value in values) / unit,
        abs(slope) * (times[-1] - times[0]) / unit,
        slope / unit,
    )
