"""Numbers for people."""

import pytest
from flashkeel.output import units


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "–"),
        (0, "0 ns"),
        (1, "1.00 ns"),
        (999, "999 ns"),
        (999.96, "1.00 µs"),
        (1_234, "1.23 µs"),
        (12_340, "12.3 µs"),
        (999_600, "1.00 ms"),
        (1_500_000_000, "1.50 s"),
        (123_400_000_000, "123 s"),
        (600_000_000_000, "600 s"),
        (7_200_000_000_000, "2.00 h"),
    ],
)
def test_durations(ns, text):
    assert units.duration(ns) == text


@pytest.mark.parametrize(
    ("time_s", "text"),
    [(0, "0 s"), (0.25, "0.25 s"), (1_036, "1,036 s"), (10_360, "2.878 h"), (4e7, "11,110 h")],
)
def test_times_since_the_beginning_have_no_exponent(time_s, text):
    assert units.moment(time_s) == text


def test_spans_have_one_unit():
    assert units.span(0, 5) == "0 to 5 s"
    assert units.span(1_800, 27_612) == "0.5 to 7.67 h"


@pytest.mark.parametrize(("ns", "text"), [(1500, "+1.50 µs"), (-1500, "-1.50 µs"), (0, "0 ns")])
def test_differences_have_a_sign(ns, text):
    assert units.signed_duration(ns) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (9_999, "9,999"),
        (10_000, "10.0 k"),
        (999_499, "999 k"),
        (999_999, "1.00 M"),
        (1_234_567, "1.23 M"),
        (999_999_600, "1.00 G"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
    ],
)
def test_counts(value, text):
    assert units.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0"),
        (0.3131, "0.313"),
        (42.21, "42.2"),
        (99.97, "100"),
        (8_123.4, "8,123"),
        (81_234, "81.2 k"),
    ],
)
def test_rates_have_three_digits_where_they_are_small(value, text):
    assert units.rate(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.5, "0.5"), (2.0, "2"), (2_500, "2,500"), (20_000, "20.0 k")]
)
def test_ticks_have_the_decimals_of_their_number(value, text):
    assert units.tick(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(512, "512 B"), (4096, "4.00 KiB"), (3 * 2**30, "3.00 GiB")]
)
def test_sizes(value, text):
    assert units.size(value) == text


def test_shares():
    assert units.share(0.1234) == "12.3 %"
    assert units.share(0) == "0 %"


@pytest.mark.parametrize(
    ("number", "text"), [(0.5, "0.5 years"), (1, "1 year"), (1.5, "1.5 years"), (5, "5 years")]
)
def test_a_year_is_one(number, text):
    assert units.years(number) == text


def test_causes_are_words():
    assert units.cause("behind_gc_program") == "behind GC program"


@pytest.mark.parametrize(
    ("latency_class", "number", "text"),
    [("small_read", 0, "small reads"), ("flush", 2, "flushes"), ("flush", 1, "flush")],
)
def test_classes_of_requests_are_words(latency_class, number, text):
    assert units.requests(latency_class, number) == text


def test_nothing_has_no_sign():
    assert units.share(-0.0) == "0 %"
