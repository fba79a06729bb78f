"""Rules by which claims are judged."""

import pytest
from flashkeel.reproduce.claims import reduction, reduction_interval, rises


def test_a_reduction_is_in_percent_of_the_first():
    assert reduction(200.0, 50.0) == 75.0
    assert reduction(50.0, 200.0) == -300.0


def test_the_interval_of_a_reduction_holds_it_and_narrows_with_its_parts():
    wide = reduction_interval((100, 80, 125), (50, 40, 62.5))
    narrow = reduction_interval((100, 99, 101), (50, 49.5, 50.5))
    assert wide[0] < narrow[0] < reduction(100, 50) < narrow[1] < wide[1]
    # Both parts spread by a factor of 1.25, so their quotient by 1.25 ** sqrt(2).
    assert wide[0] == pytest.approx(100 * (1 - 0.5 * 1.25**2**0.5))


def test_exact_values_have_an_exact_reduction():
    assert reduction_interval((100, 100, 100), (25, 25, 25)) == pytest.approx((75, 75))


def test_rises_allows_what_it_is_told_to():
    assert rises([1, 2, 2, 3])
    assert not rises([1, 2, 1.9])
    assert rises([1, 2, 1.9], tolerance=0.06)
