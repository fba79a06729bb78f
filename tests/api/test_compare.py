"""Differences of percentiles and what they are worth."""

from dataclasses import replace
from pathlib import Path

import flashkeel
import pytest
from flashkeel import Run
from flashkeel.arrow import TableFiles
from flashkeel.output import comparison_tables
from flashkeel.percentiles import key

PERCENTILES = (50.0, 99.0, 99.9, 99.99, 99.9999)


def run_with(value_ns, low_ns, high_ns, beyond=100):
    """Return a run whose every read percentile is the same."""
    reads = {
        "count": 1_000_000,
        "mean_ns": float(value_ns),
        "percentile": {key(p): value_ns for p in PERCENTILES},
        "beyond": {key(p): beyond for p in PERCENTILES},
        "ci95": {key(p): [low_ns, high_ns] for p in PERCENTILES},
        "ci95_bounded": {key(p): True for p in PERCENTILES},
    }
    data = {"name": "run", "seed": 1, "read": reads}
    return Run(data, TableFiles(Path()))


def verdicts(a, b, over_seeds):
    """Return the verdicts, where intervals take in what seeds differ by or do not."""
    return {replace(row, over_seeds=over_seeds).verdict for row in flashkeel.compare(a, b)}


def test_clear_difference_has_a_sign():
    a, b = run_with(1000, 950, 1050), run_with(500, 480, 520)
    assert verdicts(a, b, over_seeds=True) == {"lower"}
    assert verdicts(b, a, over_seeds=True) == {"higher"}


def test_of_few_seeds_a_clear_difference_is_none():
    a, b = run_with(1000, 950, 1050), run_with(500, 480, 520)
    for rows in (flashkeel.compare(a, b), flashkeel.compare(b, a)):
        assert {(row.verdict, row.takes_seeds) for row in rows} == {("unknown", True)}
        assert {comparison_tables.verdict(row) for row in rows} == {"few seeds"}


@pytest.mark.parametrize("over_seeds", [True, False])
def test_overlapping_intervals_give_no_verdict(over_seeds):
    a, b = run_with(1000, 900, 1100), run_with(1050, 950, 1150)
    assert verdicts(a, b, over_seeds) == {"overlap"}


def test_interval_of_the_difference():
    row, *_ = flashkeel.compare(run_with(1000, 970, 1060), run_with(2000, 1960, 2080))
    # Below: hypot(2000 - 1960, 1060 - 1000); above: hypot(2080 - 2000, 1000 - 970).
    assert row.difference_ns == 1000
    assert row.interval_ns == (1000 - 73, 1000 + 86)


def test_few_samples_give_no_verdict():
    rows = flashkeel.compare(run_with(1000, 950, 1050, beyond=9), run_with(500, 480, 520))
    assert {(row.verdict, row.takes_seeds) for row in rows} == {("unknown", False)}
    assert {comparison_tables.verdict(row) for row in rows} == {"too few"}


def test_seeds_that_differ_too_much_to_bound_a_percentile_are_no_want_of_samples():
    rows = flashkeel.compare(run_with(1000, 950, 1050), run_with(500, 480, 520))
    unbounded = [replace(row, interval_ns=None, over_seeds=True) for row in rows]
    assert {row.verdict for row in unbounded} == {"unknown"}
    assert {comparison_tables.verdict(row) for row in unbounded} == {"seeds vary"}


def test_a_value_that_many_share_is_no_guess():
    constant = run_with(1000, 1000, 1000, beyond=0)
    assert verdicts(constant, run_with(500, 480, 520), over_seeds=True) == {"lower"}
    assert verdicts(constant, constant, over_seeds=True) == {"overlap"}


def test_a_difference_within_the_precision_of_histograms_is_none():
    def run(ns):
        found = run_with(ns, ns, ns)
        found.data["histogram_precision"] = 0.001
        return found

    base = run(100_000)
    assert verdicts(base, run(100_100), True) == verdicts(base, run(99_950), True) == {"overlap"}
    assert verdicts(base, run(100_102), True) == {"higher"}
    assert verdicts(base, run(99_899), True) == {"lower"}
    row, *_ = flashkeel.compare(base, run(100_100))
    # Either may have been rounded up.
    assert row.interval_ns == (100 - 101, 100 + 100)


def test_every_percentile_of_classes_with_samples():
    rows = flashkeel.compare(run_with(1, 1, 1), run_with(1, 1, 1))
    assert [(row.latency_class, row.percentile) for row in rows] == [
        ("read", p) for p in PERCENTILES
    ]


def test_run_against_itself_is_no_difference(small_result):
    rows = flashkeel.compare(small_result["fifo"], small_result["fifo"])
    assert {row.difference_ns for row in rows} == {0}
    assert {row.verdict for row in rows} <= {"overlap", "unknown"}


@pytest.mark.parametrize("name", ["fifo", "debit"])
def test_real_runs_compare(small_result, name):
    rows = flashkeel.compare(small_result["fifo"], small_result[name])
    assert {"read", "small_read", "write"} == {row.latency_class for row in rows}


def test_results_are_refused_in_words(small_result):
    with pytest.raises(flashkeel.InputError, match=r"takes runs, not a Result: result.runs\[0\]"):
        flashkeel.compare(small_result, small_result)
