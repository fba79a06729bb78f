"""What seeds differ by, in comparisons of pools."""

import math
import random
from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from pathlib import Path

import flashkeel
import pytest
from flashkeel import Run, spread
from flashkeel.arrow import TableFiles
from flashkeel.percentiles import key
from flashkeel.reproduce import intervals
from flashkeel.sweep import outcome

AT = (50.0, 99.0, 99.9, 99.99, 99.9999)
REQUESTS = 20_000


def run_of(latencies):
    """Return a run object of reads, with order-statistic intervals, without `by_seed`."""
    values = sorted(latencies)
    upto = list(accumulate(latencies[ns] for ns in values))
    n = upto[-1]

    def at(rank):
        return values[bisect_left(upto, min(max(rank, 1), n))]

    ranks = {p: math.ceil(n * p / 100) for p in AT}
    width = {p: 1.96 * math.sqrt(n * p / 100 * (1 - p / 100)) for p in AT}
    reads = {
        "count": n,
        "percentile": {key(p): at(ranks[p]) for p in AT},
        "beyond": {key(p): sum(latencies[ns] for ns in values if ns > at(ranks[p])) for p in AT},
        "ci95": {
            key(p): [at(math.floor(r - width[p])), at(math.ceil(r + width[p]))]
            for p, r in ranks.items()
        },
        "ci95_bounded": {key(p): ranks[p] + width[p] < n for p in AT},
    }
    counts = [[ns, latencies[ns]] for ns in values]
    histogram = {"operation": "read", "max_bytes": None, "counts": counts}
    return {"name": "run", "seed": 1, "read": reads, "detail": {"histograms": [histogram]}}


def pool_of(chance, seeds, slower=1.0):
    """Return a pool of seeds of which each has a burst of slow requests, long or short."""
    parts = []
    for _ in range(seeds):
        slow = round(6 * chance.lognormvariate(0, 0.4))
        fast = REQUESTS // 100 - slow
        # As many of each of a hundred latencies.
        part = Counter({round(1e5 * (1 + i / 100)): fast for i in range(100)})
        part.update({round(slower * 1e6 * (1 + i / 50)): slow for i in range(100)})
        parts.append(part)
    pooled = run_of(sum(parts, Counter()))
    spread.keep(pooled, [run_of(part) for part in parts])
    return Run(pooled, TableFiles(Path()))


def verdicts(pairs, seeds, slower=1.0):
    """Return the verdicts on p99 of pools that differ by nothing else."""
    chance = random.Random(1)
    found = []
    for _ in range(pairs):
        a, b = pool_of(chance, seeds), pool_of(chance, seeds, slower)
        found.append(next(it for it in flashkeel.compare(a, b) if it.percentile == 99.0))
    return found


def test_equal_systems_differ_in_one_of_twenty():
    found = verdicts(200, 4)
    assert all(it.over_seeds for it in found)
    assert sum(it.verdict in ("lower", "higher") for it in found) <= 16


def test_without_enough_seeds_they_differ_far_more_often_and_that_is_said():
    found = verdicts(60, 3)
    assert not any(it.over_seeds for it in found)
    assert {it.verdict for it in found} == {"overlap", "unknown"}
    assert sum(it.takes_seeds for it in found) >= 12


def test_what_is_far_slower_is_still_told():
    assert [it.verdict for it in verdicts(5, 4, slower=4.0)] == ["higher"] * 5


def test_a_pool_keeps_what_is_whose(small_toml):
    pooled = flashkeel.Experiment.from_toml(small_toml).run(seeds=4)["fifo"]
    for latency_class in ("read", "small_read", "write"):
        found = pooled.data[latency_class]
        assert sum(found["by_seed"]["count"]) == found["count"]
        sums = {at: sum(each) for at, each in found["by_seed"]["beyond"].items()}
        assert sums == found["beyond"]
        assert {len(each) for each in found["by_seed"]["beyond"].values()} == {4}


def test_a_pool_against_itself_is_no_difference(small_toml, tmp_path):
    result = flashkeel.Experiment.from_toml(small_toml).run(seeds=4)
    result.save(tmp_path / "saved")
    saved = flashkeel.load(tmp_path / "saved")
    for a, b in zip(result, saved, strict=True):
        rows = flashkeel.compare(a, b)
        assert {row.difference_ns for row in rows} == {0}
        assert {row.verdict for row in rows} <= {"overlap", "unknown"}


@pytest.mark.parametrize(("seeds", "is_wide"), [(4, True), (3, False)])
def test_one_interval_is_shown_and_judged_everywhere(seeds, is_wide):
    run = pool_of(random.Random(3), seeds)
    narrow, shown = run.order_interval("read", 99), run.interval("read", 99)
    assert (shown[0] < narrow[0] and shown[1] > narrow[1]) == is_wide
    assert (shown == narrow) == (not is_wide)
    judged = intervals.percentile(run, "read", 99.0).interval
    assert judged == pytest.approx([ns / 1e6 for ns in shown])
    bounds = outcome._measures_at("read", 99.0)
    assert (bounds["read_p99_low_ns"](run), bounds["read_p99_high_ns"](run)) == shown
    assert spread.is_missing([run], "read") == (not is_wide)
    assert run.interval("read", 99.9999) is None


def test_an_interval_over_seeds_is_no_narrower():
    chance = random.Random(2)
    a, b = pool_of(chance, 4), pool_of(chance, 4)
    wide = flashkeel.compare(a, b)
    for run in (a, b):
        del run.data["read"]["by_seed"]
    for one, other in zip(wide, flashkeel.compare(a, b), strict=True):
        if one.interval_ns is not None:
            assert one.interval_ns[0] <= other.interval_ns[0]
            assert one.interval_ns[1] >= other.interval_ns[1]


@pytest.mark.parametrize(
    ("freedom", "expected"), [(3, 3.182), (4, 2.776), (6, 2.447), (10, 2.228), (1e6, 1.960)]
)
def test_quantiles_of_students_t(freedom, expected):
    assert spread.t975(freedom) == pytest.approx(expected, rel=0.002)


def test_seeds_that_differ_by_equal_samples_alone_are_told_apart():
    def pool(*slow):
        parts = [Counter({10_000: REQUESTS - each}) for each in slow]
        for part, each in zip(parts, slow, strict=True):
            part.update({5_000_000: each} if each else {})
        pooled = run_of(sum(parts, Counter()))
        spread.keep(pooled, [run_of(part) for part in parts])
        return Run(pooled, TableFiles(Path()))

    equal, differing = pool(0, 0, 0, 0), pool(160, 0, 0, 0)
    assert differing.percentile("read", "p99.9") == 5_000_000
    bounds = spread.interval(differing, "read", "p99.9")
    assert bounds is None or bounds[0] == 10_000
    found = next(it for it in flashkeel.compare(equal, differing) if it.percentile == 99.9)
    assert found.verdict not in ("lower", "higher")
    # Where each has them they are all the same.
    assert spread.interval(pool(40, 41, 39, 40), "read", "p99.9") == (5_000_000, 5_000_000)
