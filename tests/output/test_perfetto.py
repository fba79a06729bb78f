"""A window for Perfetto, read back with its published schema."""

from collections import defaultdict

import flashkeel
import pytest
from flashkeel import InputError
from flashkeel.output import perfetto
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
from small import SMALL


@pytest.fixture(scope="module")
def watched():
    experiment = flashkeel.Experiment(SMALL, "small").set("measure.log_requests", True)
    return experiment.set("measure.chip_log", {"from": "200ms", "length": "50ms"}).run()


def read(path):
    """Return tracks by number, and slices as {track: [(name, start, end, notes)]}."""
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    tracks, slices, began, last = {}, defaultdict(list), defaultdict(list), defaultdict(int)
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            continue
        event = packet.track_event
        assert event.track_uuid in tracks, "a track is described before anything is on it"
        assert packet.timestamp >= last[event.track_uuid]
        last[event.track_uuid] = packet.timestamp
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            began[event.track_uuid].append((packet.timestamp, event))
        else:
            assert event.type == TrackEvent.TYPE_SLICE_END
            start, first = began[event.track_uuid].pop()
            notes = {note.name: note.uint_value for note in first.debug_annotations}
            slices[event.track_uuid].append((first.name, start, packet.timestamp, notes))
    assert not any(began.values())
    return tracks, slices


@pytest.fixture(scope="module")
def written(watched, tmp_path_factory):
    path = tmp_path_factory.mktemp("perfetto") / "window.pftrace"
    perfetto.save(watched.runs, path, None, None)
    return read(path)


def named(tracks, process):
    """Return the tracks of a run by name."""
    children = defaultdict(list)
    for track in tracks.values():
        children[track.parent_uuid].append(track)
    found, left = {}, [process]
    while left:
        for track in children[left.pop()]:
            found[track.name] = track.uuid
            left.append(track.uuid)
    return found


def test_every_chip_is_a_track_with_what_it_did(watched, written):
    tracks, slices = written
    processes = [track for track in tracks.values() if track.HasField("process")]
    assert [it.process.process_name for it in processes] == [
        "fifo (synthetic workload)",
        "debit (synthetic workload)",
    ]
    for run, process in zip(watched.runs, processes, strict=True):
        names = named(tracks, process.uuid)
        assert [name for name in names if name.startswith("channel")]
        table = run.chips()
        expected = defaultdict(list)
        columns = [table.column(it).to_pylist() for it in ("chip", "doing", "start_ns", "end_ns")]
        for chip, doing, start, end in zip(*columns, strict=True):
            place = f"chip {chip}: read waits" if doing == "read_waits" else f"chip {chip}"
            expected[place].append((doing.replace("_", " "), start, end))
        for place, rows in expected.items():
            got = [it[:3] for it in slices[names[place]]]
            assert sorted(got, key=lambda it: it[1:]) == sorted(rows, key=lambda it: it[1:])


def test_requests_are_slices_with_their_ledgers(watched, written):
    tracks, slices = written
    run = watched["fifo"]
    process = next(it.uuid for it in tracks.values() if it.process.process_name.startswith("fifo"))
    names = named(tracks, process)
    lanes = [uuid for name, uuid in names.items() if " lane " in name]
    shown = {it[3]["id"]: it for lane in lanes for it in slices[lane]}
    table = run.requests()
    log = {
        int(table["id"][row]): row
        for row in range(len(table))
        if table["submitted_ns"][row] < 250_000_000 and table["completed_ns"][row] > 200_000_000
    }
    assert len(shown) > 100
    assert set(shown) <= set(log)
    for number, (name, start, end, notes) in shown.items():
        row = log[number]
        assert (start, end) == (table["submitted_ns"][row], table["completed_ns"][row])
        assert name.startswith(f"{table['operation'][row]}: ")
        assert sum(ns for note, ns in notes.items() if note.endswith("(ns)")) == end - start


def test_requests_flow_to_what_chips_did_for_them(watched, written, tmp_path):
    perfetto.save(watched.runs, tmp_path / "w.pftrace", None, None)
    trace = Trace()
    trace.ParseFromString((tmp_path / "w.pftrace").read_bytes())
    tracks, _ = written
    requests, served = {}, defaultdict(list)
    for packet in trace.packet:
        event = packet.track_event
        for flow in event.flow_ids:
            if event.categories == ["request"]:
                assert flow not in requests, "a flow begins with one request"
                requests[flow] = (packet.timestamp, event.name)
            else:
                assert event.categories == ["chip"]
                served[flow].append((packet.timestamp, event.name, tracks[event.track_uuid].name))
    assert set(served) <= set(requests)
    kinds = defaultdict(int)
    for flow, slices in served.items():
        submitted, name = requests[flow]
        kinds[name.partition(":")[0]] += 1
        wanted = "host read" if name.startswith("read") else "host write"
        for start, doing, chip in slices:
            assert start >= max(submitted, 200_000_000)
            assert doing == wanted and chip.startswith("chip ")
    assert kinds["read"] > 50 and kinds["write"] > 50

    # Nothing is missing: a read whose flash page was read in the window has its chip.
    for run in watched.runs:
        log, found = run.requests(), run.chips()
        on_chips = {number for numbers in found["requests"] for number in numbers}
        inside = (log["submitted_ns"] > 200_000_000) & (log["completed_ns"] < 250_000_000)
        from_flash = inside & (log["operation"] == "read") & (log["own_flash_ns"] > 0)
        assert set(log["id"][from_flash].tolist()) <= on_chips
        reads = found["doing"] == "host_read"
        assert {len(numbers) for numbers in found["requests"][reads]} == {1}
        others = {"gc_read", "gc_program", "erase", "read_waits", "map_read"}
        rest = [row for row, doing in enumerate(found["doing"]) if doing in others]
        assert rest and not any(found["requests"][row] for row in rest)


def test_behind_a_stack_requests_keep_their_numbers(tmp_path):
    stack = "[[stack.devices]]\nmirror.devices = [{ ssd = {} }, { ssd = {} }]\n"
    base = SMALL.split("[[runs]]")[0] + stack
    experiment = flashkeel.Experiment(base, "small").set("measure.log_requests", True)
    run = experiment.set("measure.chip_log", {"from": "200ms", "length": "20ms"}).run().runs[0]
    log, found = run.requests(), run.chips()
    place = {number: row for row, number in enumerate(log["id"].tolist())}
    served = [
        (int(found["chip"][row]), str(found["doing"][row]), place[number])
        for row, numbers in enumerate(found["requests"])
        for number in numbers
    ]
    assert {doing for _, doing, _ in served} == {"host_read", "host_write"}
    for _, doing, row in served:
        assert f"host_{log['operation'][row]}" == doing
    # A write is programmed on chips of both copies, a read is read on one.
    chips = sum(run.data["channels"])
    sides = {
        side: {
            row
            for chip, doing, row in served
            if doing == "host_write" and chip // (chips // 2) == side
        }
        for side in (0, 1)
    }
    assert sides[0] & sides[1]


def test_requests_that_take_no_time_begin_before_they_end(tmp_path):
    experiment = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    experiment = experiment.set("measure.log_requests", True)
    experiment = experiment.set("measure.chip_log", {"from": "200ms", "length": "20ms"})
    for delay in ("lookup", "host_generation"):
        experiment = experiment.set(f"device.controller.{delay}", {"min": "0ns", "max": "0ns"})
    run = experiment.run()
    perfetto.save(run.runs, tmp_path / "w.pftrace", None, None)
    tracks, slices = read(tmp_path / "w.pftrace")
    instant = [
        it
        for lane in slices.values()
        for it in lane
        if it[0].startswith("write") and it[1] == it[2]
    ]
    assert len(instant) > 10
    lanes = [track.name for track in tracks.values() if track.name.startswith("write lane")]
    assert len(lanes) < 10, "one that takes no time leaves its lane free"


def test_the_command_writes_a_part_of_it(cli, watched, tmp_path):
    watched.save(tmp_path / "out")
    path = tmp_path / "window.pftrace"
    part = ("--from", "0.21", "--length", "0.01")
    outcome = cli("map", f"{tmp_path / 'out'}:fifo", "-o", path, *part)
    assert (outcome.status, outcome.err) == (0, "")
    tracks, slices = read(path)
    chips = {uuid for uuid, it in tracks.items() if it.name.startswith("chip")}
    times = [at for uuid in chips for it in slices[uuid] for at in it[1:3]]
    assert min(times) >= 210_000_000 and max(times) <= 220_000_000


def test_a_window_with_nothing_in_it_is_told(watched, tmp_path):
    with pytest.raises(InputError, match="no chip does anything"):
        perfetto.save(watched.runs, tmp_path / "w.pftrace", 5.0, 1.0)
    assert not list(tmp_path.iterdir())
