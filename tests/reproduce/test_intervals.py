"""Verdicts on numbers of which only an interval is known."""

import math

import pytest
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
