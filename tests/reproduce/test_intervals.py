"""Verdicts on numbers of which only an interval is known."""

import math
import statistics
from random import Random

import pytest
from arro3.core import Array, DataType, Table
from flashkeel.reproduce import intervals
from flashkeel.reproduce.intervals import Estimate, above, at_most, every, exact

UNKNOWN = Estimate(5, 0, math.inf)


def test_the_interval_of_a_reduction_holds_it_and_narrows_with_its_parts():
    wide = intervals.reduction(Estimate(100, 80, 125), Estimate(50, 40, 62.5))
    narrow = intervals.reduction(Estimate(100, 99, 101), Estimate(50, 49.5, 50.5))
    assert wide.value == narrow.value == pytest.approx(50)
    assert wide.low < narrow.low < 50 < narrow.high < wide.high
    # Both parts spread by a factor of 1.25, so their quotient by 1.25 ** sqrt(2).
    assert wide.low == pytest.approx(100 * (1 - 0.5 * 1.25**2**0.5))


def test_exact_values_have_an_exact_reduction():
    assert intervals.reduction(exact(100), exact(25)) == pytest.approx((75, 75, 75))


def test_means_narrow_with_the_root_of_their_number():
    assert intervals.mean([Estimate(10, 8, 13)] * 4) == pytest.approx((10, 9, 11.5))
    found = intervals.geometric_mean([Estimate(10, 5, 40)] * 4)
    assert found == pytest.approx((10, 10 / 2**0.5, 20))


def test_what_is_unknown_stays_unknown():
    for found in (
        intervals.mean([exact(1), UNKNOWN]),
        intervals.ratio(exact(1), UNKNOWN),
        intervals.reduction(UNKNOWN, exact(1)),
        intervals.geometric_mean([exact(1), UNKNOWN]),
    ):
        assert found.interval is None and str(found) == "unknown"
        assert at_most(found, exact(1)) is None
    assert exact(1).interval == (1, 1)


def test_a_median_needs_six_values():
    assert intervals.median([3, 1, 2, 5, 4]) == (3, 0, math.inf)
    assert intervals.median([3, 1, 2, 5, 4, 6]) == (3.5, 1, 6)
    # Of twelve, the third and the tenth: 2 of 2 ** 12 × (1 + 12 + 66) lie outside.
    assert intervals.median(range(12)) == (5.5, 2, 9)


def test_a_correlation_is_known_as_far_as_its_pairs_are_independent():
    assert intervals.correlation([(1, 2)] * 9) is None and intervals.correlation([]) is None
    exactly = intervals.correlation([(at, -at) for at in range(100)])
    assert exactly == pytest.approx((-1, -1, -1))
    random = Random(3)
    alone = [(x, random.gauss(0.5 * x, 1)) for x in (random.gauss(0, 1) for _ in range(400))]
    found = intervals.correlation(alone)
    assert found.value == pytest.approx(statistics.correlation(*zip(*alone, strict=True)))
    z = math.atanh(found.value)
    assert found.low <= math.tanh(z - 1.959 / 397**0.5) < found.value
    assert found.low > 0.3
    # Each pair forty times over tells no more than it does once.
    alike = intervals.correlation([pair for pair in alone[:10] for _ in range(40)])
    assert alike.high - alike.low > 4 * (found.high - found.low)


def test_the_interval_of_a_correlation_contains_it_as_often_as_it_says():
    random, missed = Random(5), 0
    for _ in range(200):
        x = y = 0.0
        pairs = []
        # Each value is half the one before: of the 600 some 300 count.
        for _ in range(600):
            x, y = 0.5 * x + random.gauss(0, 1), 0.5 * y + random.gauss(0, 1)
            pairs.append((x, x + y))
        found = intervals.correlation(pairs)
        missed += not found.low <= 0.5**0.5 <= found.high
    assert missed <= 20


def test_overlapping_intervals_tell_nothing():
    ours = Estimate(10, 9, 11)
    assert at_most(ours, Estimate(12, 11, 13)) is True
    assert at_most(ours, Estimate(8, 7, 8.9)) is False
    assert at_most(ours, Estimate(12, 10.9, 13)) is None
    assert at_most(ours, Estimate(24, 22, 26), 0.5) is True
    assert at_most(ours, exact(10)) is None and at_most(exact(10), exact(10)) is True
    assert above(ours, exact(8)) is True and above(exact(10), exact(10)) is False
    assert above(ours, exact(10)) is None


def test_one_that_does_not_hold_decides():
    assert every([True, True]) is True
    assert every([True, None]) is None
    assert every([None, False, True]) is False


def test_intervals_in_words():
    text = intervals.words({"rain": Estimate(2, 1, 3.1234), "qosfc": UNKNOWN}, "ms")
    assert text == "95 % intervals: rain 1 … 3.12 ms, qosfc unknown"


class Windows:
    """A run of which the time series is known, by seed; latencies in µs."""

    def __init__(self, *seeds):
        self.means = seeds
        self.seeds = list(range(len(seeds)))

    def mean(self, latency_class):
        return 1e3 * statistics.fmean(us for seed in self.means for us in seed)

    def series(self, seed):
        columns = {
            "start_ns": [i * 10**8 for i in range(len(self.means[seed]))],
            "reads": [100] * len(self.means[seed]),
            "read_mean_ns": [round(us * 1e3) for us in self.means[seed]],
        }
        return Table.from_pydict({k: Array(v, DataType.int64()) for k, v in columns.items()})


def independent(seed, count=640):
    random = Random(seed)
    return [random.gauss(100, 10) for _ in range(count)]


def test_a_mean_has_the_interval_of_independent_windows():
    found = intervals.response(Windows(independent(1)), "read")
    # 10 µs / sqrt(640), twice.
    assert 0.0005 < (found.high - found.low) / 2 < 0.0012
    assert found.low < 0.1 < found.high
    more = intervals.response(Windows(*map(independent, range(4))), "read")
    assert more.high - more.low < 0.7 * (found.high - found.low)


def test_slow_times_that_last_widen_the_interval_of_a_mean():
    # 30 µs more for 8 s of 16, and for every other window: the same in all.
    lasting, apart = (
        Windows([us + 30 * (i // length % 2) for i, us in enumerate(independent(3))])
        for length in (80, 1)
    )
    wide, narrow = (intervals.response(each, "read") for each in (lasting, apart))
    assert wide.value == pytest.approx(narrow.value, rel=0.02)
    assert wide.high - wide.low > 4 * (narrow.high - narrow.low)


def test_windows_that_agree_narrow_and_few_say_nothing():
    found = intervals.over_windows([2, 2.2, 1.8, 2.1, 1.9, 2])
    assert 1.8 < found.low < found.value < found.high < 2.2
    assert intervals.over_windows([1, 4] * 3).interval[1] > 4
    assert intervals.over_windows([2] * 5).interval is None
    assert intervals.over_windows([2, 2, 2, 2, 2, 0]).interval is None


def test_the_mean_of_a_few_windows_has_no_interval():
    assert intervals.response(Windows([100] * 7), "read").interval is None
    assert intervals.response(Windows([100] * 8), "read").interval == pytest.approx((0.1, 0.1))


def test_a_ratio_of_means_leaves_out_what_the_load_does_to_both():
    load = [us + 300 * (i // 80 % 2) for i, us in enumerate(independent(5))]
    shorter = [0.9 * us + random for us, random in zip(load, independent(6), strict=True)]
    a, b = Windows(shorter), Windows(load)
    found = intervals.response_ratio(a, b, "read")
    apart = intervals.ratio(*(intervals.response(each, "read") for each in (a, b)))
    assert found.value == pytest.approx(a.mean("read") / b.mean("read"))
    assert found.high - found.low < 0.3 * (apart.high - apart.low)
    # One that ends later has what is left in its last part.
    longer = intervals.response_ratio(Windows([*shorter, 100]), b, "read")
    assert longer.value == pytest.approx(found.value, rel=0.02)


def test_a_ratio_to_a_run_without_requests_is_not_known():
    class Nothing(Windows):
        def mean(self, latency_class):
            return None

    some, none = Windows(independent(1)), Nothing([0] * 640)
    for a, b in [(none, some), (some, none), (none, none)]:
        found = intervals.response_ratio(a, b, "read")
        assert found.interval is None
        assert intervals.at_most(found, intervals.exact(0.5)) is None


def test_a_fall_within_the_intervals_is_neither_a_rise_nor_a_fall():
    def near(*values):
        return [Estimate(value, value - 1, value + 1) for value in values]

    assert intervals.rises(near(1, 2, 2, 9)) is True
    assert intervals.rises(near(1, 9, 8, 10)) is None
    assert intervals.rises(near(1, 9, 8, 5)) is False
