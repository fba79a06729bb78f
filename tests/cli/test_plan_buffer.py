"""flashkeel plan buffer."""

import json

import pytest
from flashkeel import InputError, buffers

MIB = 1 << 20
PAGE = 4096

BURSTS = """\
[device]
preset = "autossd"
logical_capacity = "380MiB"
geometry = { blocks_per_plane = 16, pages_per_block = 64 }
gc = { movement = "none", start_below = 40, stop_above = 60 }
buffer = { size = "SIZE" }

[workload]
requests = 12000
warm_up = "100ms"

[workload.source]
policy = "synthetic"
read_fraction = 0.0
arrivals = { policy = "bursts", iops = 400_000, on = "5ms", off = "95ms" }
"""


def plan(cli, tmp_path, size, *arguments):
    path = tmp_path / "bursts.toml"
    path.write_text(BURSTS.replace("SIZE", size))
    return cli("plan", "buffer", path, *arguments)


def words(outcome):
    """Return what was printed, its lines joined."""
    return " ".join(outcome.out.split())


def found(cli, tmp_path, size, *arguments):
    outcome = plan(cli, tmp_path, size, *arguments, "--format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    return json.loads(outcome.out)


def test_the_smallest_is_between_one_that_keeps_the_tail_and_one_that_does_not(cli, tmp_path):
    answer = found(cli, tmp_path, "1MiB")
    (run,) = answer["runs"]
    kept = {tried["size_bytes"]: tried["keeps"] for tried in run["tried"]}
    # A burst of 2,000 pages of 4 KiB, of which some are programmed meanwhile.
    assert run["configured_bytes"] == MIB and not kept[MIB]
    assert MIB < run["smallest_bytes"] < 2000 * PAGE
    less = [size for size, keeps in kept.items() if not keeps]
    assert kept[run["smallest_bytes"]] and run["smallest_bytes"] < 1.1 * max(less)
    assert min(size for size, keeps in kept.items() if keeps) == run["smallest_bytes"]
    for tried in run["tried"]:
        assert tried["keeps"] == (tried["write_ns"] <= answer["max_write_ns"])
        assert tried["size_bytes"] % PAGE == 0


def test_a_bound_below_any_write_is_not_laid_on_the_load(cli, tmp_path):
    options = ("--percentile", "p50", "--max-write", "1ns")
    outcome = plan(cli, tmp_path, "4MiB", *options)
    assert outcome.status == 0
    assert "the bound is below what the drive takes" in words(outcome)
    assert "does not sustain the load" not in words(outcome)


def test_one_that_is_too_large_is_made_smaller(cli, tmp_path):
    sizes = [found(cli, tmp_path, size)["runs"][0]["smallest_bytes"] for size in ("1MiB", "16MiB")]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)


def test_a_longer_tail_takes_less(cli, tmp_path):
    sizes = [
        found(cli, tmp_path, "4MiB", "--max-write", tail)["runs"][0]["smallest_bytes"]
        for tail in ("100us", "5ms")
    ]
    assert sizes[1] < sizes[0]


def test_a_load_that_is_not_sustained_has_no_buffer(cli, tmp_path):
    arrivals = "workload.source.arrivals={ policy = 'poisson', iops = 400_000 }"
    steady = ("--set", arrivals, "--set", "workload.warm_up=1ms")
    run = found(cli, tmp_path, "4MiB", *steady)["runs"][0]
    assert run["smallest_bytes"] is None
    assert run["tried"][-1]["size_bytes"] == pytest.approx(12000 * PAGE / 4, rel=0.05)
    outcome = plan(cli, tmp_path, "4MiB", *steady)
    assert "does not sustain the load" in words(outcome)


def test_a_throttle_that_holds_writes_back_is_named_and_more_buffer_not_tried(cli, tmp_path):
    throttle = ("--set", "device.throttle={ policy = 'static-cap', rate = '20MB/s' }")
    outcome = plan(cli, tmp_path, "1MiB", *throttle)
    assert outcome.status == 0
    assert "`device.throttle` holds writes back" in words(outcome)
    assert "the bound is below what the drive takes" not in words(outcome)
    run = found(cli, tmp_path, "1MiB", *throttle)["runs"][0]
    assert run["smallest_bytes"] is None
    assert run["owner"]["cause"] == "throttle" and run["owner"]["share"] > 0.9
    unheld = found(cli, tmp_path, "1MiB")["runs"][0]
    assert unheld["owner"] is None and unheld["smallest_bytes"]


def test_more_buffer_is_not_tried_once_it_changes_nothing(cli, tmp_path):
    sleepy = ("--set", "device.power={ policy = 'idle-sleep', after = '10ms' }")
    run = found(cli, tmp_path, "4MiB", *sleepy, "--set", "workload.requests=48000")["runs"][0]
    assert run["owner"]["cause"] == "wake_up"
    assert run["tried"][-1]["size_bytes"] <= 16 * MIB < 48000 * PAGE / 4


def test_the_table_says_what_was_tried(cli, tmp_path):
    outcome = plan(cli, tmp_path, "1MiB", "--percentile", "p99.99")
    assert outcome.status == 0
    assert "synthetic" in outcome.out and "1.00 MiB *" in outcome.out
    assert "the drive has 1.00 MiB" in words(outcome)
    assert "fewer than ten writes lie beyond p99.99" in words(outcome)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--max-write", "soon"), "is no time"),
        (("--percentile", "p99.7"), "p99.7"),
        (("--set", "workload.source.read_fraction=1.0"), "nothing is written"),
        (("--set", "workload.warm_up=1h"), "all writes come in the warm-up"),
        (("--set", "device.buffer.kind=none"), 'device.buffer.kind is "none"'),
        (("--set", "device.buffer.size=1KiB"), "needs at least"),
    ],
)
def test_bad_input_is_an_error(cli, tmp_path, arguments, words):
    outcome = plan(cli, tmp_path, "4MiB", *arguments)
    assert outcome.status == 2 and words in outcome.err


def test_a_stack_is_refused(cli, tmp_path):
    path = tmp_path / "stack.toml"
    path.write_text(
        '[[stack.devices]]\npreset = "autossd"\n[[stack.tenants]]\nrequests = 10\n'
        '[stack.tenants.source]\npolicy = "synthetic"\n'
    )
    outcome = cli("plan", "buffer", path)
    assert outcome.status == 2 and "stack" in outcome.err


def test_a_pipe_is_refused(shell, tmp_path):
    path = tmp_path / "bursts.toml"
    path.write_text(BURSTS.partition("[workload]")[0].replace("SIZE", "256KiB"))
    source = 'workload.source={ policy = "trace", path = "-", format = "mqsim" }'
    outcome = shell("plan", "buffer", path, "--set", source, stdin="0 0 0 8 0\n" * 100)
    assert outcome.status == 2
    assert "standard input can be read only once; save it to a file first" in outcome.err


def test_what_goes_wrong_with_a_size_is_no_size_that_is_too_little(cli, tmp_path, monkeypatch):
    execute, sizes = buffers.execute, []

    def failing(tasks, *rest):
        sizes.append(json.loads(tasks[0].plan)["config"]["device"]["buffer"]["size"])
        if len(sizes) == 2:
            raise InputError("t.csv:7: expected 7 fields")
        return execute(tasks, *rest)

    monkeypatch.setattr(buffers, "execute", failing)
    outcome = plan(cli, tmp_path, "16MiB")
    assert sizes == [f"{16 * MIB}B", f"{8 * MIB}B"]
    assert outcome.status == 2 and "t.csv:7: expected 7 fields" in outcome.err


def test_the_least_that_the_drive_takes_may_be_enough(cli, tmp_path):
    run = found(cli, tmp_path, "64KiB", "--max-write", "100s")["runs"][0]
    assert run["smallest_bytes"] == min(tried["size_bytes"] for tried in run["tried"])
    assert run["smallest_bytes"] < 64 << 10


@pytest.mark.parametrize(("beyond", "has_few"), [(10, False), (9, True)])
def test_few_are_counted_as_the_table_shows_them(cli, tmp_path, monkeypatch, beyond, has_few):
    execute = buffers.execute

    def with_beyond(*arguments):
        runs = execute(*arguments)
        for run in runs:
            run["write"]["count"] = 10_000
            run["write"]["beyond"]["99.900000"] = beyond
            run["write"]["ci95"]["99.900000"] = [1, 2]
        return runs

    monkeypatch.setattr(buffers, "execute", with_beyond)
    answer = found(cli, tmp_path, "32KiB", "--max-write", "100s")
    assert answer["runs"][0]["tried"][0]["beyond"] == beyond
    assert bool(answer["notes"]) == has_few


@pytest.mark.parametrize(("bound", "status"), [("100s", 0), ("100us", 3)])
def test_check_tells_scripts_whether_the_buffer_is_enough(cli, tmp_path, bound, status):
    outcome = plan(cli, tmp_path, "1MiB", "--max-write", bound, "--check")
    assert (outcome.status, outcome.err) == (status, "")
    assert "the drive has 1.00 MiB" in words(outcome)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--drive", "qlc"), "--drive: the drive is a key here, --set device.preset=qlc"),
        (("--trace", "t.csv"), "--trace: the trace is named alone here, plan buffer t.csv"),
        (("--profile", "oltp"), "--profile: the profile is named alone here, plan buffer oltp"),
    ],
)
def test_options_of_its_sisters_say_what_to_write_instead(cli, option, words):
    outcome = cli("plan", "buffer", *option)
    assert (outcome.status, outcome.out) == (2, "")
    assert words in " ".join(outcome.err.split())


def test_a_drive_that_refuses_writes_has_no_buffer_that_is_enough(cli, tmp_path):
    worn = ("device.wear={ policy = 'rated', rated_cycles = 1 }", "device.retirement='read-only'")
    keys = (*worn, "device.gc.movement='queued'", "workload.requests=400000")
    sets = [part for key in keys for part in ("--set", key)]
    outcome = plan(cli, tmp_path, "4MiB", *sets)
    assert outcome.status == 2 and outcome.out == ""
    assert "requests failed (read_only); they are in no percentile" in " ".join(outcome.err.split())
