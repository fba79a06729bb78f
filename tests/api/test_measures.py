"""What whole runs come to, compared over seeds."""

import statistics

import flashkeel
import pytest
from flashkeel import measures
from small import SMALL

NAMES = ["waf", "erases_per_seed"] + [
    f"{latency_class}_{what}"
    for latency_class in ("read", "write")
    for what in ("iops", "bytes_per_s", "mean_ns")
]


@pytest.fixture(scope="module")
def pooled(small_toml):
    return flashkeel.Experiment.from_toml(small_toml).run(seeds=4)


def test_each_measure_has_an_interval_by_what_seeds_differ_by(small_toml, pooled):
    experiment = flashkeel.Experiment.from_toml(small_toml)
    alone = [experiment.run(seed=seed) for seed in pooled["fifo"].seeds]
    found = measures.compare(pooled["fifo"], pooled["debit"])
    assert [row.measure for row in found] == NAMES
    a, b = ([result[name].waf for result in alone] for name in ("fifo", "debit"))
    low, high = found[0].interval
    error = ((statistics.variance(a) + statistics.variance(b)) / 4) ** 0.5
    # Student's t of three to six degrees of freedom.
    assert 2.44 <= (high - low) / 2 / error <= 3.19
    assert (low + high) / 2 == pytest.approx(found[0].difference)
    assert found[0].b == pooled["debit"].waf
    assert found[1].a == sum(result["fifo"].erases for result in alone) / 4
    whole = {row.measure: row for row in found}
    for latency_class in ("read", "write"):
        each = [result["fifo"].bandwidth(latency_class) for result in alone]
        value = whole[f"{latency_class}_bytes_per_s"].a
        assert value == pytest.approx(statistics.fmean(each), rel=0.01)


def test_a_verdict_takes_four_seeds_on_both_sides(small_toml, pooled):
    few = flashkeel.Experiment.from_toml(small_toml).run(seeds=3)
    for a, b in ((few, pooled), (pooled, few)):
        found = measures.compare(a["fifo"], b["debit"])
        assert {(row.interval, row.verdict) for row in found} == {(None, "unknown")}
    found = measures.compare(pooled["fifo"], pooled["fifo"])
    assert {row.verdict for row in found} == {"overlap"}


def test_a_longer_experiment_is_told_by_its_rate(small_toml, pooled):
    slower = flashkeel.Experiment.from_toml(small_toml)
    slower = slower.set("workload.source.arrivals.iops", 10000)
    found = measures.compare(pooled["fifo"], slower.run(seeds=4)["fifo"])
    verdicts = {row.measure: row.verdict for row in found}
    assert {verdicts["read_iops"], verdicts["write_bytes_per_s"]} == {"lower"}


def test_rates_of_the_same_arrivals_are_the_same(tmp_path):
    trace = tmp_path / "t.csv"
    lines = "".join(f"{ms},R,{ms % 7 * 4096},4096\n" for ms in range(0, 1000, 5))
    trace.write_text(f"time_ms,op,offset,bytes\n{lines}")
    device = SMALL.partition("[workload]")[0]
    source = f"policy = 'trace'\npath = '{trace}'\n"
    read = flashkeel.Experiment.from_toml(f"{device}[workload.source]\n{source}")
    # The last completion is later, by a microsecond of a second.
    slower = read.set("device.timing.read", ["51us"])
    found = measures.compare(read.run(seeds=4)["run"], slower.run(seeds=4)["run"])
    rows = {row.measure: row for row in found}
    for name in ("read_iops", "read_bytes_per_s"):
        row = rows[name]
        assert row.a > row.b
        assert (row.difference, row.interval, row.verdict) == (0, (0, 0), "overlap")
    assert rows["read_mean_ns"].verdict == "higher"


def test_what_neither_did_is_left_out(small_toml):
    reads = flashkeel.Experiment.from_toml(small_toml).set("workload.source.read_fraction", 1.0)
    run = reads.run(seeds=4)["fifo"]
    names = [row.measure for row in measures.compare(run, run)]
    assert names == ["read_iops", "read_bytes_per_s", "read_mean_ns"]
