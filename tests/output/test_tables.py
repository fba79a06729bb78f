"""Tables: what they say, and what they do not hide."""

import io

from flashkeel.output import cautions, probe_tables, sweep_tables, tables
from rich.console import Console


def text(table):
    stream = io.StringIO()
    Console(file=stream, width=120).print(table)
    return stream.getvalue()


def last_row(table):
    """Return the cells of the only row, with single spaces."""
    return " ".join(text(table).splitlines()[-2].split())


def test_run_table_has_human_units(known_run):
    row = last_row(tables.runs([known_run()]))
    assert row == "run 10.0 s 200 k 20.0 k 81.9 0 0 0"
    assert last_row(tables.costs([known_run()])) == "run – 12 1.23 % 500 ms 400 k"


def test_rates_of_slow_runs_are_no_nought(known_run):
    slow = known_run().data["read"] | {"iops": 0.3131, "bytes": 1_282_000}
    row = last_row(tables.runs([known_run(read=slow, simulated_s=259_200.0)]))
    assert row.startswith("run 72.0 h 200 k 0.313 ")


def test_requests_that_neither_read_nor_write_are_counted_apart(known_run):
    run = known_run(requests=200_030)
    assert last_row(tables.runs([run])).endswith("0 0 0 30")


def test_generated_input_is_called_synthetic(known_run):
    assert "recorded trace" in text(tables.runs([known_run()]))
    mixed = [known_run(), known_run("other", basis="synthetic")]
    assert "synthetic workload" in text(tables.runs(mixed))


def test_a_profile_is_named(known_run):
    source = {"policy": "profile", "name": "rad-as"}
    run = known_run(basis="synthetic", config={"workload": {"source": source}})
    assert "synthetic profile rad-as" in text(tables.runs([run]))
    other = known_run("other", basis="synthetic")
    assert "synthetic workload" in text(tables.runs([run, other]))


def test_tail_marks_percentiles_with_few_samples_beyond(known_run):
    shown = text(tables.tails([known_run()], "small_read"))
    row = next(line for line in shown.splitlines() if line.startswith("run ") and "µs" in line)
    assert " ".join(row.split()) == "run 1.50 µs 10.0 µs 100 µs 1.00 ms 10.0 ms *0"
    assert "* fewer than 10 samples beyond: how many" in shown


def test_intervals_of_few_seeds_say_what_they_take_for_granted(known_run):
    words = "intervals take requests for independent: fewer than 4 seeds"
    assert words in text(tables.tails([known_run(seeds=[1, 2, 3])], "small_read"))
    # Of one seed none is shown.
    assert words not in text(tables.tails([known_run()], "small_read"))


def test_a_tail_that_many_requests_share_is_no_guess(known_run):
    run = known_run()
    reads = run.data["small_read"]
    reads["ci95_bounded"] = dict.fromkeys(reads["ci95_bounded"], True)
    reads["ci95"] |= {at: [90, 90] for at, count in reads["beyond"].items() if count < 10}
    assert "*" not in text(tables.tails([run], "small_read"))


def test_pooled_runs_show_their_intervals(known_run):
    assert " … " not in text(tables.tails([known_run()], "small_read"))
    assert "90.0 … 110 ns" in text(tables.tails([known_run(seeds=[1, 2])], "small_read"))


def test_class_without_samples_is_all_dashes(known_run):
    shown = text(tables.tails([known_run()], "write"))
    assert shown.count("–") == 5
    assert "*" not in shown


def test_run_names_are_no_markup(known_run):
    assert "[red]x" in text(tables.runs([known_run("[red]x")]))


def test_a_sweep_of_three_keys_fits_a_terminal(known_run):
    keys = ("device.logical_capacity", "device.scheduler", "device.buffer.size")
    row = dict(zip(keys, ("90%", "priority", "1MiB"), strict=True))
    row |= {"point": 12, "run": "run", "waf": 10.525, "drive_writes_per_cycle": 0.106}
    shown = text(sweep_tables.sweep("Sensitivity", keys, [known_run()], [row]))
    assert max(map(len, shown.splitlines()[:5])) <= 80
    assert "logical " in shown.splitlines()[1]


def sweep_of(run, keys=("key",), width=80, **columns):
    row = dict.fromkeys(keys, "value") | {"point": 1, "run": "run", "waf": 2.5}
    row |= {"drive_writes_per_cycle": 0.4} | columns
    return text(sweep_tables.sweep("Sweep", keys, [run], [row], width))


def test_a_sweep_shows_throughput_and_leaves_out_what_is_empty(known_run):
    heads = sweep_of(known_run(), waf=None, drive_writes_per_cycle=None)
    assert "IOPS" in heads and "MB/s" in heads and "WAF" not in heads and "cycle" not in heads
    assert "WAF" in sweep_of(known_run())


def test_a_sweep_without_room_drops_what_tells_least_and_says_so(known_run):
    keys = [f"some.key_{index}" + 8 * "x" for index in range(4)]
    shown = sweep_of(known_run(), keys)
    assert max(map(len, shown.splitlines())) <= 80
    assert "no room here, but columns of sweep.parquet: writes/cycle, MB/s" in shown
    assert "no room" not in sweep_of(known_run(), keys, width=120)


def test_a_sweep_marks_points_whose_figures_are_the_first_states(known_run):
    assert "1 !^" in sweep_of(known_run(), overloaded=True, of_first_state=True)
    assert "^ what the drive held before" in sweep_of(known_run(), of_first_state=True)
    assert "^" not in sweep_of(known_run())


def test_evidence_of_a_probe_fits_a_terminal():
    flip = {"bit": 17, "p": 1e-30, "p_own": 0.25, "with_flushes": 0.123, "with_own_flushes": 1.0}
    evidence = {
        "allocation": [{"bit": 17, "relative_throughput": [0.512, 0.998]}],
        "collection": {"flip": [flip]},
    }
    assert max(map(len, text(probe_tables._evidence(evidence)).splitlines())) <= 80


def test_changed_input_is_told(known_run):
    folded = dict.fromkeys(known_run().data["workload"], 0) | {"folded": 1234}
    same = [known_run("a", workload=folded), known_run("b", workload=folded)]
    assert tables.notes(same) == ["Note: input: 1,234 requests moved by fold"]
    different = [known_run("a", workload=folded), known_run("b")]
    assert tables.notes(different) == ["Note: a: 1,234 requests moved by fold"]
    assert tables.notes([known_run()]) == []


def test_trims_that_were_left_out_are_said_to_be_for_either_reason(known_run):
    counts = dict.fromkeys(known_run().data["workload"], 0) | {"trims_dropped": 7}
    (note,) = tables.notes([known_run(workload=counts)])
    assert note.endswith("7 trims left out: too small, or of what is neither read nor written")


def test_rounded_requests_are_said_to_count_their_bytes_so(known_run):
    counts = dict.fromkeys(known_run().data["workload"], 0) | {"aligned": 3000}
    (note,) = tables.notes([known_run(workload=counts)])
    assert note.endswith("3,000 requests rounded to the alignment (bytes and MB/s count them so)")


def test_notes_are_told_once(known_run):
    runs = [
        known_run("a", notes=["time unit assumed"]),
        known_run("b", notes=["time unit assumed"]),
    ]
    assert tables.notes(runs) == ["Note: time unit assumed"]


def test_run_without_a_measured_request_is_told(known_run):
    assert tables.notes([known_run("a", requests=0)]) == ["Note: a: no request was measured"]


def test_requests_that_failed_are_told_and_counted_apart(known_run):
    failed = {"read_only": 32_850, "gone": 2}
    run = known_run("a", requests=240_000, invalid_requests=1200, failed_requests=failed)
    assert [text.partition(" (")[0] for text in cautions.failed(run)] == [
        "32,850 requests were refused, as the device takes only reads by now",
        "the device refused 1,200 requests",
        "for 2 requests the device was gone",
    ]
    assert last_row(tables.runs([run])).endswith("0 0 0 5,948 34.1 k")


def test_reads_of_lost_data_are_told(known_run):
    (text,) = cautions.failed(known_run("a", lost_requests=3))
    assert text.startswith("3 reads asked for data that failed flash has lost")


def test_runs_that_do_not_differ_are_told(known_run):
    alike = [known_run("a"), known_run("b", digest="a"), known_run("c")]
    (note,) = tables.notes(alike)
    assert note.startswith("Note: a, b: they did the same in every request")


def test_hosts_that_share_windows_have_a_row_each(known_run):
    assert tables.windows([known_run()]) is None
    host = {
        "windows": 900,
        "asked": 8000,
        "beyond": 1000,
        "tail_p50_ns": 100_000,
        "tail_p99_ns": 2_000_000,
    }
    silent = dict.fromkeys(host, 0) | dict.fromkeys(list(host)[3:])
    stack = {"coordinators": {"0": {"hosts": [host, silent]}}}
    shown = text(tables.windows([known_run(stack=stack, tenants=[])]))
    # Without names the hosts are all alike; nine windows beyond a percentile are few.
    assert " ".join(shown.splitlines()[3].split()) == ("all 900 8,000 12.5 % 100 µs 2.00 ms *9")
    assert " ".join(shown.splitlines()[4].split()) == "all 0 0 – – –"
    assert "* fewer than 10 windows beyond: how many" in shown
    pooled = text(tables.windows([known_run(stack=stack, tenants=[], seeds=[1, 2, 3, 4])]))
    assert "2.00 ms *2" in pooled
    assert "of several seeds the mean of theirs" in pooled


def test_a_class_of_few_requests_says_how_many(known_run):
    def shown(**changes):
        reads = known_run().data["small_read"] | changes
        return text(tables.tails([known_run(small_read=reads)], "small_read"))

    beyond = dict.fromkeys(known_run().data["small_read"]["beyond"], 0)
    assert "Requests in all: run 3" in shown(count=3, beyond=beyond)
    assert "Requests in all" not in shown()
