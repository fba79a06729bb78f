"""Rules by which claims are judged."""

import json
import math

import pytest
from flashkeel.reproduce import report, works
from flashkeel.reproduce.claims import (
    Claim,
    Finding,
    Outcome,
    Study,
    Verdict,
    at_least_half,
    beginnings,
    reduction,
    rises,
)
from flashkeel.reproduce.session import Session
from flashkeel.reproduce.ssdcheck import fig12


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


def test_the_beginning_of_a_trace_does_not_confirm_that_nothing_comes():
    found = {"a": Finding(1.0, False), "b": Finding(0.0, True, "none")}
    quick = beginnings(found, True, absent={"a", "b"})
    assert [each.holds for each in quick.values()] == [False, None]
    assert quick["b"].reason == "a run cut short by --quick cannot confirm it; none"


@pytest.mark.parametrize("is_cut_short", [False, True])
def test_a_part_of_the_cases_does_not_confirm_what_is_said_of_all(is_cut_short):
    findings = {"all": Finding(1.0, True, "of one"), "some": Finding(1.0, True)}
    findings["none"] = Finding(1.0, False)
    claims = tuple(
        Claim(name, "claim", "rule", None, "", is_of_all=name != "some") for name in findings
    )
    study = Study(
        "work/figure", "title", claims, lambda session: Outcome(findings, "trace", "none"),
        is_cut_short=is_cut_short,
    )  # fmt: skip
    quick = study.outcome(Session(quick=True)).findings
    # A case that denies it is enough, unless it is only the beginning of one.
    denied = None if is_cut_short else False
    assert [found.holds for found in quick.values()] == [None, True, denied]
    assert (
        quick["all"].reason == "--quick runs a part of its cases, which cannot confirm it; of one"
    )
    assert study.outcome(Session()).findings == findings


def test_claims_of_which_quick_runs_a_part_of_the_cases_are_marked():
    marked = {f"{it.id}/{c.name}" for it in works.STUDIES for c in it.claims if c.is_of_all}
    assert marked == {
        "autossd/outlook/steady", "autossd/sensitivity/plateau", "envm/week/days",
        "envm/week/weeks", "plmc/spread/hod-range", "ready/lifetime/ready-close",
        "ready/real/dt-between", "ready/real/guarantee", "ready/response/ready-better",
        "ssdcheck/fig15/initially", "ttflash/burst/rate",
    }  # fmt: skip


def test_nothing_is_judged_by_runs_in_which_requests_failed():
    session = Session()
    session.failed["an earlier figure"] = 5

    def measure(session):
        session.failed |= refused
        return Outcome({"a": Finding(1.0, True)}, "trace", "none")

    study = Study("work/figure", "title", (Claim("a", "claim", "rule", 1.0, ""),), measure)
    refused = {}
    assert study.outcome(session).findings["a"].holds
    refused = {"base": 1, "gc": 1200}
    found = study.outcome(session).findings["a"]
    assert (found.holds, found.measured) == (None, 1.0)
    assert found.reason == "requests failed, 1,200 with gc; they are in no percentile"


def test_what_is_no_number_is_not_known():
    nan, infinite = float("nan"), float("inf")
    assert Finding(nan, None).measured is Finding(infinite, None).measured is None
    assert Finding({"a": nan, "b": -infinite, "c": 0.0, "d": None}, None).measured == {
        "a": None, "b": None, "c": 0.0, "d": None,
    }  # fmt: skip
    assert Finding("3 of 4", True).measured == "3 of 4"
    assert Finding([1, 2.5], True).measured == [1, 2.5]


def test_a_reader_that_reads_nothing_leaves_a_verdict_that_json_can_hold():
    pairs = ["r+u", "s+v"]
    found = fig12.judge(
        dict.fromkeys(pairs, 1.7), {"r+u": 60.0, "s+v": float("nan")}, dict.fromkeys(pairs, 1.0), 0
    )
    outcome = Outcome(found, "trace", "none")
    verdicts = [Verdict(fig12.STUDY, each, found[each.name], outcome) for each in fig12._CLAIMS]
    tail = next(v for v in json.loads(report.to_json(verdicts)) if v["id"].endswith("/tail"))
    assert (tail["measured"], tail["holds"]) == (None, None)
    assert report.table(verdicts)


@pytest.mark.parametrize(
    ("measured", "holds", "reason"),
    [
        (3.4, False, ""),
        (3.5, True, ""),
        (11.0, True, ""),
        (33.0, True, "beyond twice the paper's: 6.4 times its effect"),
        (math.nan, None, "nothing was measured"),
    ],
)
def test_half_of_an_effect_is_enough_and_more_than_twice_is_said(measured, holds, reason):
    assert at_least_half(measured, 6.0, none=1) == (holds, reason)
