"""The rules of the claims on PLMC."""

import pytest
from flashkeel.reproduce import plmc
from flashkeel.reproduce.plmc.systems import CLASSES, Shares, Tails, is_judged, middle


def shares(windows, p50):
    tails = {host: Tails(windows, p50, 2 * p50, 3 * p50, 4 * p50) for host in CLASSES}
    return Shares(windows, tails, {})


@pytest.mark.parametrize(("windows", "percentile", "beyond"), [(12_000, 99.9, 12), (298, 99, 2)])
def test_windows_beyond_a_percentile_are_counted(windows, percentile, beyond):
    assert Tails(windows, 1, 1, 1, 1).beyond(percentile) == beyond


def test_a_percentile_is_judged_where_ten_windows_of_every_class_lie_beyond_it():
    assert is_judged([shares(12_000, 1.0)], 99.9)
    assert not is_judged([shares(12_000, 1.0), shares(900, 1.0)], 99.9)


def test_seeds_meet_in_the_middle():
    assert middle([shares(10, 1.0), shares(10, 7.0), shares(10, 2.0)], "high", "p99") == 4.0


def test_every_claim_has_a_name_of_its_own():
    names = [f"{study.id}/{claim.name}" for study in plmc.STUDIES for claim in study.claims]
    assert len(names) == len(set(names))
