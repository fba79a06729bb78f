"""What is said of runs whose figures say less than they seem to."""

import flashkeel
from flashkeel import steadiness
from flashkeel.output import cautions, units
from flashkeel.output.report import warnings
from small import SMALL

WORKLOAD = """\
[workload]
requests = 200
pacing = { policy = "closed", depth = 1 }
source = { policy = "synthetic", read_fraction = 0.0 }
"""


def said(**buffer):
    experiment = flashkeel.Experiment(SMALL.partition("[workload]")[0] + WORKLOAD, "small")
    for key, value in buffer.items():
        experiment = experiment.set(f"device.buffer.{key}", value)
    return [words for words in cautions.of(experiment.run().runs) if "flash page" in words]


def test_writes_that_wait_for_others_rather_than_for_flash_are_named():
    (words,) = said(kind="none", timeout="100ms")
    assert words.endswith(
        "% of the latency of writes is waiting for others to fill a flash page; "
        "the key `buffer.timeout` of the device ends that"
    )
    assert said(kind="none") == said(kind="back", timeout="100ms") == []


def test_reads_that_end_long_before_the_run_have_rates_over_all_of_it():
    source = "{ policy = 'synthetic', arrivals = { policy = 'poisson', iops = 20_000 } }"
    early = (
        SMALL.partition("[workload]")[0]
        + f"""\
[measure]
series_window = "10ms"
[workload]
duration = "1s"
[stack]
depth = 64
[[stack.tenants]]
name = "reader"
workload = {{ requests = 2000, source = {source} }}
[[stack.tenants]]
name = "writer"
workload = {{ source = {source.replace("'synthetic'", "'synthetic', read_fraction = 0.0")} }}
"""
    )
    (run,) = flashkeel.Experiment(early, "small").run().runs
    tenant, words = cautions.ended_early(run)
    assert tenant.startswith("tenant reader ends after ") and words.startswith(
        "its reads end after "
    )
    assert f"all of it: {units.rate(run.iops('read'))} a second is " in words
    assert any(it.endswith(words) for it in cautions.of([run]))
    assert ("rates", words) in [(it.kind, it.text) for it in warnings.found([run])]


def test_pages_that_a_tier_cannot_write_back_are_told():
    nvm = {"preset": "optane-p4800x", "capacity": "1MiB"}
    tier = {"preset": "write-back", "upper": {"nvm": nvm}, "lower": {"ssd": {}}}
    experiment = flashkeel.Experiment(SMALL.partition("[workload]")[0] + WORKLOAD, "small")
    (run,) = experiment.set("stack.devices", [{"tier": tier}]).run().runs
    assert list(cautions.not_written_back(run)) == []
    run.data["stack"]["tiers"]["0"]["failed_writebacks"] = 1200
    (words,) = [words for words in cautions.of([run]) if "write back" in words]
    assert words.startswith("run: tier 0 could not write back pages, 1,200 times"), words
    assert ("refused writes", words.partition(": ")[2]) in [
        (it.kind, it.text) for it in warnings.found([run])
    ]


def test_copies_that_take_no_writes_are_told():
    drive = {
        "geometry": {
            "channels": 1,
            "chips_per_channel": 2,
            "planes_per_chip": 1,
            "blocks_per_plane": 24,
            "pages_per_block": 8,
        },
        "logical_capacity": "2MiB",
        "map_cache": "all",
        "gc": {"start_below": 4, "stop_above": 6, "concurrent_victims": 2},
        "precondition": {"pattern": "none"},
    }
    worn = {
        "wear": {"policy": "rated", "rated_cycles": 2},
        "retirement": "read-only",
    }
    document = SMALL.partition("[device]")[0] + WORKLOAD.replace("200", "20_000")
    experiment = flashkeel.Experiment(document, "small")

    def said(second):
        mirror = {"devices": [{"ssd": drive}, {"ssd": {**drive, **second}}]}
        (run,) = experiment.set("stack.devices", [{"mirror": mirror}]).run().runs
        return [words for words in cautions.of([run]) if "mirror" in words]

    assert said({}) == []
    (words,) = said(worn)
    assert words.startswith("run: copies of mirror 0 refused writes, "), words


def test_a_few_requests_end_early_by_chance():
    def source(reads):
        arrivals = "arrivals = { policy = 'constant', iops = 20_000 }"
        return f"{{ policy = 'synthetic', read_fraction = {reads}, {arrivals} }}"

    def said(reads):
        few = (
            SMALL.partition("[workload]")[0]
            + f"""\
[measure]
series_window = "10ms"
[workload]
[stack]
depth = 64
[[stack.tenants]]
name = "reader"
workload = {{ requests = {reads}, source = {source("1.0")} }}
[[stack.tenants]]
name = "writer"
workload = {{ requests = 4000, source = {source("0.0")} }}
"""
        )
        (run,) = flashkeel.Experiment(few, "small").run().runs
        assert run.samples("read") == reads
        return [words.partition(" of the time")[0] for words in cautions.ended_early(run)]

    assert said(3) == said(30) == []
    assert said(31) == ["tenant reader ends after 0.781 %", "its reads end after 5.00 %"]


def test_reads_and_writes_that_last_as_long_as_the_run_have_no_such_note(small_result):
    assert not any(list(cautions.ended_early(run)) for run in small_result.runs)


def test_what_the_buffer_holds_at_the_end_was_not_programmed():
    def run(**settings):
        small = flashkeel.Experiment(SMALL.partition("[workload]")[0] + WORKLOAD, "small")
        small = small.set("device.buffer.size", "16MiB").set("device.buffer.flush", ["watermark"])
        for key, value in settings.items():
            small = small.set(f"workload.{key}", value)
        (found,) = small.run().runs
        return found, [words for words in cautions.beginning(found) if "buffer" in words]

    short, words = run(requests=8000)
    device = short.data["device"]
    assert not device["moved_pages"] and not device["padding_pages"]
    left = device["host_bytes_written"] - device["programmed_bytes"]
    assert steadiness.left_in_buffer(short) == left / device["host_bytes_written"]
    assert words == [
        "WAF is lower than it stays: at the end 44.0 % of what was written was in the write "
        "buffer yet, and not programmed"
    ]
    assert ("first state", words[0]) in [(it.kind, it.text) for it in warnings.found([short])]
    assert steadiness.is_early(0.0, steadiness.left_in_buffer(short))
    # A buffer that was as full before has passed all on.
    assert run(requests=40_000, warm_up="200ms")[1] == []
    assert run(requests=100_000)[1] == []


def test_a_request_log_that_was_full_is_told():
    small = flashkeel.Experiment(SMALL.partition("[workload]")[0] + WORKLOAD, "small")
    (run,) = small.set("measure.log_requests", True).set("measure.log_rows", 150).run().runs
    (words,) = cautions.not_logged(run)
    assert words.startswith("its request log was full: 50 of 200 requests are not in it")
    assert f"{run.name}: {words}" in cautions.of([run])
    assert ("request log", words) in [(it.kind, it.text) for it in warnings.found([run])]
    assert len(run.requests()) == 150
    (whole,) = small.set("measure.log_rows", 200).run().runs
    assert not list(cautions.not_logged(whole))


def test_trims_that_free_nothing_are_named():
    def words(redundancy, **settings):
        small = flashkeel.Experiment(SMALL.partition("[workload]")[0] + WORKLOAD, "small")
        striped = {
            "allocation": "striped",
            "redundancy": redundancy,
            "map_cache": "all",
            "buffer.rewrite": "coalesce",
            "logical_capacity": "256MiB",
        }
        for key, value in striped.items():
            small = small.set(f"device.{key}", value)
        for key, value in settings.items():
            small = small.set(f"workload.source.{key}", value)
        return [it for it in cautions.of(small.run().runs) if "trim" in it]

    (said,) = words("logical", trim_fraction=0.3)
    assert said.startswith('run: trims free nothing under redundancy = "logical"')
    assert words("none", trim_fraction=0.3) == words("logical") == []


def test_a_warm_up_that_leaves_few_to_count_is_named():
    def said(warm_up, requests=3000):
        experiment = flashkeel.Experiment(SMALL.partition("[workload]")[0] + WORKLOAD, "small")
        source = "{ policy = 'synthetic', arrivals = { policy = 'constant', iops = 10_000 } }"
        experiment = experiment.set("workload.pacing", "open").set("workload.source", source)
        experiment = experiment.set("workload.requests", requests)
        runs = experiment.set("workload.warm_up", warm_up).run().runs
        assert [it.text for it in warnings.found(runs) if it.kind == "warm-up"] == [
            text for run in runs for text in cautions.few(run)
        ]
        return [words for words in cautions.of(runs) if "warm-up" in words]

    (words,) = said("250ms")
    assert "the warm-up takes in all but 500 of 3,000 requests" in words
    (words,) = said("1s")
    assert "the warm-up takes in all 3,000 requests" in words
    assert said("150ms") == said("0s", 100) == []


def test_tenants_of_which_the_same_is_said_share_a_sentence():
    tenants = "".join(f'[[stack.tenants]]\nname = "t{n}"\n' for n in range(10))
    crowd = (
        SMALL.partition("[workload]")[0]
        + f"""\
[workload]
requests = 200
source = {{ policy = "synthetic", arrivals = {{ policy = "constant", iops = 100_000 }} }}
[stack]
depth = 4
{tenants}"""
    )
    (run,) = flashkeel.Experiment(crowd, "small").run().runs
    (words,) = [words for words in cautions.of([run]) if "faster than" in words]
    assert "t0, t1, t2, t3, t4, t5, t6, t7 and 2 more: requests come faster" in words
    (shown,) = [it.text for it in warnings.found([run]) if "faster than" in it.text]
    assert shown.startswith("t0, t1, ")
