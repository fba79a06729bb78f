"""A window of a run as a trace for Perfetto's viewer: chips, requests, and what links them.

The format is Perfetto's ``Trace`` message, in the wire format of protocol buffers, of which
it takes few fields; their numbers are those of ``perfetto_trace.proto``.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from flashkeel._core import InputError
from flashkeel.output import files, units
from flashkeel.output.plots import workload_kind
from flashkeel.run import Run

SUFFIX = ".pftrace"

_BEGIN, _END = 1, 2
_EXPLICIT = 3
_VARINT, _FIXED, _LENGTH = 0, 1, 2
_SEQUENCE = 1
_CLEARED = 1
"""``SEQ_INCREMENTAL_STATE_CLEARED``, which a sequence begins with."""


def save(runs: Sequence[Run], path: Path, from_s: float | None, length_s: float | None) -> None:
    """Write what chips did and which requests were under way, of each run."""
    with files.whole(path) as place, place.open("wb") as out:
        for packet in _packets(runs, from_s, length_s):
            out.write(_bytes(1, packet))


def _packets(runs: Sequence[Run], from_s: float | None, length_s: float | None) -> Iterator[bytes]:
    tracks = _Tracks()
    for run in runs:
        rows = _chips(run, from_s, length_s)
        start_ns = min(row["start_ns"] for row in rows)
        end_ns = max(row["end_ns"] for row in rows)
        process = tracks.new(f"{run.name} ({workload_kind([run])})", is_process=True)
        requests = _requests(run, start_ns, end_ns)
        flows = _Flows(process, {request["id"] for request in requests})
        events = [*_chip_events(run, rows, process, tracks, flows)]
        events += _request_events(requests, process, tracks, flows)
        yield from tracks.told()
        # Of slices that meet at one time the first ends before the next begins; what takes
        # no time begins and ends between the two.
        events.sort(key=lambda event: event[:2])
        for time_ns, _, packet in events:
            yield _number(8, time_ns) + packet


class _Tracks:
    """Tracks, with what the viewer has to know of each before anything is on it."""

    def __init__(self) -> None:
        self._count = 0
        self._new: list[bytes] = []

    def new(
        self, name: str, parent: int | None = None, rank: int = 0, *, is_process: bool = False
    ) -> int:
        """Return the number of another track, `rank`-th below its parent."""
        self._count += 1
        track = _number(1, self._count) + _number(11, _EXPLICIT) + _number(12, rank)
        if is_process:
            track += _bytes(3, _number(1, self._count) + _text(6, name))
        else:
            track += _text(2, name)
        if parent is not None:
            track += _number(5, parent)
        sequence = _number(10, _SEQUENCE) + (_number(13, _CLEARED) if self._count == 1 else b"")
        self._new.append(_bytes(60, track) + sequence)
        return self._count

    def told(self) -> list[bytes]:
        """Return the packets of the tracks that are new."""
        new, self._new = self._new, []
        return new


class _Flows:
    """A flow a request, from its submission through what chips did for it."""

    def __init__(self, process: int, drawn: set[int]) -> None:
        self._process, self._drawn = process, drawn

    def of(self, requests: Iterable[int]) -> list[int]:
        """Return the numbers, unique among all runs, of those requests that are drawn."""
        return [self._process << 40 | number for number in requests if number in self._drawn]


_Event = tuple[int, int, bytes]
"""When, what goes first at that time, the packet."""
_ENDS, _INSTANT, _BEGINS = range(3)


def _chips(run: Run, from_s: float | None, length_s: float | None) -> list[dict[str, Any]]:
    table = run.chips()
    names = ("chip", "doing", "start_ns", "end_ns", "requests")
    columns = (table.column(name).to_pylist() for name in names)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    first = min((row["start_ns"] for row in rows), default=0)
    start_ns = first if from_s is None else round(from_s * 1e9)
    end_ns = max((row["end_ns"] for row in rows), default=0)
    if length_s is not None:
        end_ns = min(end_ns, start_ns + round(length_s * 1e9))
    found = [
        row | {"start_ns": max(row["start_ns"], start_ns), "end_ns": min(row["end_ns"], end_ns)}
        for row in rows
        if row["start_ns"] < end_ns and row["end_ns"] > start_ns
    ]
    if not found:
        raise InputError(f"run {run.name!r}: no chip does anything in that window")
    return found


def _chip_events(
    run: Run, rows: Sequence[Mapping[str, Any]], process: int, tracks: _Tracks, flows: _Flows
) -> Iterator[_Event]:
    chips: dict[int, int] = {}
    index = 0
    for channel, count in enumerate(run.data["channels"]):
        parent = tracks.new(f"channel {channel}", process, channel)
        for _ in range(count):
            chips[index] = tracks.new(f"chip {index}", parent, 2 * index)
            index += 1
    # What goes on beside the chip's work has tracks of its own below it.
    beside: dict[tuple[int, str], int] = {}
    for row in rows:
        doing, track = row["doing"], chips[row["chip"]]
        if doing in ("read_waits", "deterministic"):
            key = (row["chip"], doing)
            if key not in beside:
                beside[key] = tracks.new(f"chip {row['chip']}: {doing.replace('_', ' ')}", track)
            track = beside[key]
        name, served = doing.replace("_", " "), flows.of(row["requests"])
        yield from _slice(track, name, "chip", row["start_ns"], row["end_ns"], flows=served)


def _requests(run: Run, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
    """Return the logged requests under way in a window; none where no log was asked for."""
    if not run.has("requests"):
        return []
    table = run.requests()
    wanted = (table["submitted_ns"] < end_ns) & (table["completed_ns"] > start_ns)
    kept = {name: values[wanted].tolist() for name, values in table.items()}
    return [dict(zip(kept, row, strict=True)) for row in zip(*kept.values(), strict=True)]


def _request_events(
    requests: Sequence[Mapping[str, Any]], process: int, tracks: _Tracks, flows: _Flows
) -> Iterator[_Event]:
    """Give a slice a request, in as many lanes as there are requests under way at a time."""
    parents: dict[str, int] = {}
    lanes: dict[str, list[tuple[int, int]]] = {}
    counts: dict[str, int] = {}
    for request in sorted(requests, key=lambda it: (it["submitted_ns"], it["id"])):
        operation = str(request["operation"])
        if operation not in parents:
            parents[operation] = tracks.new(f"{operation}s", process, 1000 + len(parents))
            lanes[operation], counts[operation] = [], 0
        free = lanes[operation]
        if free and free[0][0] <= request["submitted_ns"]:
            _, track = heapq.heappop(free)
        else:
            counts[operation] += 1
            name = f"{operation} lane {counts[operation]}"
            track = tracks.new(name, parents[operation], counts[operation])
        heapq.heappush(free, (request["completed_ns"], track))
        yield from _request(request, operation, track, flows)


def _request(
    request: Mapping[str, Any], operation: str, track: int, flows: _Flows
) -> Iterator[_Event]:
    owned = {
        name.removesuffix("_ns"): ns
        for name, ns in request.items()
        if name not in ("submitted_ns", "completed_ns", "latency_ns")
        and name.endswith("_ns")
        and ns
    }
    about = {"id": request["id"], "lba": request["lba"], "sectors": request["sectors"]}
    notes = about | {f"{units.cause(cause)} (ns)": ns for cause, ns in owned.items()}
    largest = max(owned, key=lambda cause: owned[cause], default="nothing")
    name = f"{operation}: {units.cause(largest)}"
    start_ns, end_ns = request["submitted_ns"], request["completed_ns"]
    own = flows.of([request["id"]])
    yield from _slice(track, name, "request", start_ns, end_ns, notes, own)


def _slice(
    track: int,
    name: str,
    category: str,
    start_ns: int,
    end_ns: int,
    notes: Mapping[str, int] | None = None,
    flows: Iterable[int] = (),
) -> Iterator[_Event]:
    """Give the beginning and the end of what takes time."""
    event = _number(9, _BEGIN) + _number(11, track) + _text(22, category) + _text(23, name)
    for note, value in (notes or {}).items():
        event += _bytes(4, _text(10, note) + _number(3, value))
    for flow in flows:
        event += _fixed(47, flow)
    sequence = _number(10, _SEQUENCE)
    begins, ends = (_INSTANT, _INSTANT) if start_ns == end_ns else (_BEGINS, _ENDS)
    yield start_ns, begins, _bytes(11, event) + sequence
    end = _number(9, _END) + _number(11, track)
    yield end_ns, ends, _bytes(11, end) + sequence


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _fixed(field: int, value: int) -> bytes:
    return _varint(field << 3 | _FIXED) + value.to_bytes(8, "little")


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _LENGTH) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())
