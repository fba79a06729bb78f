"""Figure 15a of SSDcheck: which part of the time line is judged."""

import pytest
from flashkeel.reproduce.ssdcheck import fig15, timeline
from flashkeel.reproduce.ssdcheck.timeline import HYBRID, PLAIN, Line


def judged(hybrid, full, *, plain=None, seeds=1):
    lines = {
        PLAIN: [plain or Line([9.0] * 3 + [2.0] * 27, 3)] * seeds,
        HYBRID: [Line(hybrid, full)] * seeds,
    }
    return timeline.judge(lines)


def test_the_gain_is_that_while_only_the_baselines_nvm_is_full():
    found = judged([6.0] * 6 + [2.0] * 24, 6, seeds=3)
    assert found["throughput"].holds
    assert found["throughput"].measured == pytest.approx(
        {
            "only the baseline's NVM full": 3.0,
            "both full": 1.0,
            "since the baseline's is full": (3 * 6 + 24 * 2) / (27 * 2),
        }
    )
    assert "full after 0.3 s, with Hybrid PAS after 0.6 s" in found["throughput"].reason
    assert found["initially"].holds and found["initially"].measured == pytest.approx(1.5)
    little = judged([6.0] * 3 + [3.0] * 3 + [9.0] * 24, 6)
    assert little["throughput"].holds is False, "what comes after both are full is not judged"


def test_hybrid_pas_has_to_stay_level_as_long_as_in_the_figure():
    assert judged([6.0] * 30, 6)["lasting"].holds is False
    assert judged([6.0] * 30, 15)["lasting"].holds
    never = judged([6.0] * 30, None)["lasting"]
    assert never.holds and never.measured == pytest.approx(10), "as far as the run goes"
    short = judged([6.0] * 12, None)
    assert short["lasting"].holds is None and "not within 1.2 s" in short["lasting"].reason


def test_nothing_is_judged_of_an_nvm_that_is_never_full():
    found = judged([6.0] * 30, None, plain=Line([6.0] * 30, None))
    assert {each.holds for each in found.values()} == {None}
    assert "not full within 3 s" in found["throughput"].reason


def test_nothing_is_gained_where_both_are_full_at_once():
    found = judged([6.0] * 3 + [4.0] * 27, 3)["throughput"]
    assert found.holds is False
    assert found.measured["only the baseline's NVM full"] is None
    assert "nan" not in found.reason


class Tiered:
    """A run of five windows of 0.1 s over an NVM of 1,000 pages."""

    data = {"stack": {"tiers": {"0": {"upper_pages": 1000}}}}  # noqa: RUF012

    def series(self, seed):
        columns = {
            "start_ns": [i * 100_000_000 for i in range(5)],
            "write_bytes": [4_000_000, 4_000_000, None, 1_000_000, 7],
            "nvm_pages": [400, 743, 744, 1000, 1000],
        }

        class Column(list):
            def to_pylist(self):
                return list(self)

        class Table:
            column_names = tuple(columns)

            def column(self, name):
                return Column(columns[name])

        return Table()


def test_an_nvm_is_full_when_no_more_than_a_batch_is_missing():
    assert timeline.line(Tiered(), 1) == Line(pytest.approx([40.0, 40.0, 0.0, 10.0]), 3)


def test_every_claim_of_the_time_line_is_judged_and_swept():
    names = {claim.name for claim in timeline.CLAIMS}
    assert set(judged([6.0] * 30, 6)) == names
    assert names < {claim.name for claim in fig15.STUDY.claims}
    assert {each.quantity.nearest in each.quantity.values for each in timeline.RANGES} == {True}
