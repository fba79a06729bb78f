"""Rules by which claims are judged."""

from flashkeel.reproduce.claims import Finding, beginnings, reduction, rises


def test_a_reduction_is_in_percent_of_the_first():
    assert reduction(200.0, 50.0) == 75.0
    assert reduction(50.0, 200.0) == -300.0


def test_rises_allows_what_it_is_told_to():
    assert rises([1, 2, 2, 3])
    assert not rises([1, 2, 1.9])
    assert rises([1, 2, 1.9], tolerance=0.06)


def test_the_beginning_of_a_trace_denies_nothing():
    found = {"a": Finding(1.0, False, "few"), "b": Finding(1.0, True), "c": Finding(None, None)}
    quick = beginnings(found, quick=True)
    assert [each.holds for each in quick.values()] == [None, True, None]
    assert quick["a"].reason.endswith("; few") and quick["a"].measured == 1.0
    assert beginnings(found, quick=False) == found
