"""Claims over the quantities that their works leave open."""

import json
import os
import re
from dataclasses import replace
from functools import partial

import pytest
from flashkeel import InputError
from flashkeel.reproduce import Session, kept, range_report, sweep, works
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Quantity, Range, Study
from flashkeel.reproduce.kept import Kept
from flashkeel.reproduce.session import basis
from reproduce.conftest import tiny

LOAD = Quantity("load", (1000, 5000, 8000), 5000, "somewhere near", " requests/s")


def _measure_at(least, session, iops):
    arrivals = {"policy": "poisson", "iops": iops}
    source = {"policy": "synthetic", "read_fraction": 0.5, "arrivals": arrivals}
    runs = session.run([tiny("a", workload__source=source)])
    read = runs["a"].iops("read")
    findings = {"busy": Finding({"reads": read}, read > least), "never": Finding(None, None)}
    return Outcome(findings, basis(runs), "a tiny device")


@pytest.fixture
def swept(monkeypatch):
    claims = (Claim("busy", "it is busy", "over 2000 reads/s", None, "reads/s"),
              Claim("never", "nobody knows", "there is none", None, ""),
              Claim("fixed", "it has no range", "none", None, ""))  # fmt: skip
    range_ = Range(LOAD, ("busy", "never"), partial(_measure_at, 2000))
    study = Study("toy/load", "A toy", claims, lambda session: None, (range_,))
    monkeypatch.setattr(works, "STUDIES", (*works.STUDIES, study))
    return study


def test_the_verdict_is_the_one_nearest_to_the_text(swept):
    busy, never = sweep(["toy"], Session(quick=True))
    assert busy.finding.holds is True and never.finding.holds is None
    (found,) = busy.swept
    assert (found.where(True), found.where(False), found.turns) == ([5000, 8000], [1000], True)
    assert never.swept[0].where(None) == [1000, 5000, 8000] and not never.swept[0].turns


def test_what_is_cut_short_denies_nothing_over_a_range_either(monkeypatch, swept):
    short = replace(swept, is_cut_short=True)
    monkeypatch.setattr(works, "STUDIES", (short,))
    busy, _ = sweep(["toy"], Session(quick=True))
    assert busy.finding.holds is True
    assert (busy.swept[0].where(None), busy.swept[0].where(False)) == ([1000], [])
    assert "cut short by --quick" in busy.swept[0].findings[1000].reason
    whole, _ = sweep(["toy"], Session())
    assert whole.swept[0].where(False) == [1000]


def test_studies_that_leave_a_quick_verdict_open_do_so_over_their_ranges():
    for study in works.STUDIES:
        if study.is_cut_short:
            findings = dict.fromkeys((claim.name for claim in study.claims), Finding(1.0, False))
            denied = Outcome(findings, "synthetic", "")
            for each in study.ranges:
                known = replace(each, measure=lambda *_, denied=denied: denied)
                found = study.outcome_at(known, Session(quick=True), 1.0).findings
                assert {found[name].holds for name in each.claims} == {None}, study.id
    short = {study.id for study in works.STUDIES if study.is_cut_short}
    assert short >= {"ssdcheck/fig3", "ssdcheck/fig12", "ssdcheck/fig14", "ssdcheck/fig15"}
    assert short >= {"plmlight/collecting", "ttflash/blocked", "ttflash/cost", "autossd/fig5"}
    assert short >= {f"autossd/{name}" for name in ("fig1", "fig4b", "fig4c", "sensitivity")}
    assert short >= {
        "plmc/counts",
        "plmc/tails",
        "ssdcheck/table3",
        "ttflash/burst",
        "ready/epochs",
    }


def test_a_row_says_where_it_holds_and_where_not(cli, swept, tmp_path):
    outcome = cli("reproduce", "toy/load", "--quick", "--range", "--out", tmp_path / "out")
    assert outcome.status == 0, outcome.err
    words = " ".join(outcome.out.split())
    assert (
        "load (requests/s): holds at 5000, 8000; does not at 1000; the paper: somewhere near"
        in (words)
    )
    assert re.search(r"5000 requests/s \* holds reads [\d.]+ reads/s", words)
    pictures = sorted(path.name for path in (tmp_path / "out").glob("*.png"))
    assert pictures == ["toy-load-busy-load.png"], "one a claim that turned"


def test_json_has_the_range(cli, swept):
    outcome = cli("reproduce", "toy/load/busy", "--quick", "--range", "--format", "json")
    (verdict,) = json.loads(outcome.out)
    (found,) = verdict["range"]
    assert (found["quantity"], found["nearest"], found["fails_at"]) == ("load", 5000, [1000])
    assert [point["value"] for point in found["points"]] == [1000, 5000, 8000]
    assert verdict["holds"] is found["points"][1]["holds"] is True


def test_a_claim_without_an_open_quantity_is_refused(cli, swept):
    outcome = cli("reproduce", "toy/load/fixed", "--range")
    assert outcome.status == 2
    assert "toy/load/fixed: no quantity is left open there" in outcome.err
    assert "autossd/fig4c" in outcome.err


def test_a_range_that_the_session_decides_is_left_out(monkeypatch, swept):
    (range_,) = swept.ranges
    settled = replace(range_, quantity=replace(LOAD, name="other"), closed=lambda _: "settled")
    monkeypatch.setattr(works, "STUDIES", (replace(swept, ranges=(range_, settled)),))
    busy, _ = sweep(["toy"], Session(quick=True))
    assert [each.quantity.name for each in busy.swept] == ["load"]
    monkeypatch.setattr(works, "STUDIES", (replace(swept, ranges=(settled,)),))
    with pytest.raises(InputError, match=r"^toy/load: settled$"):
        sweep(["toy"], Session(quick=True))


def test_list_names_the_quantities(cli, swept):
    assert "toy/load/busy: it is busy (over load)" in cli("reproduce", "--list").out


def test_runs_that_are_kept_are_not_run_again(monkeypatch, tmp_path):
    monkeypatch.setenv("FLASHKEEL_CACHE", str(tmp_path))
    cases = [tiny("a", least_seeds=3), tiny("b", device__scheduler="fifo")]
    first = Session(keep=True).run(cases)
    executed = []
    again = Session(keep=True, progress=lambda *_: executed.append(1)).run(cases)
    assert not executed
    assert {name: run.data for name, run in again.items()} == {
        name: run.data for name, run in first.items()
    }
    assert again["a"].series(3)["reads"].tolist() == first["a"].series(3)["reads"].tolist()
    Session(keep=True, seed=9, progress=lambda *_: executed.append(1)).run(cases[1:])
    assert executed, "another seed is another run"


def test_a_run_that_is_kept_has_its_log_of_requests(monkeypatch, tmp_path):
    monkeypatch.setenv("FLASHKEEL_CACHE", str(tmp_path))
    logged = tiny("a", measure__log_requests=True)
    first, again = (Session(keep=True).run([logged])["a"] for _ in range(2))
    assert again.requests()["latency_ns"].tolist() == first.requests()["latency_ns"].tolist()
    (log,) = (tmp_path / "runs").glob("*.requests.parquet")
    log.unlink()
    assert len(Session(keep=True).run([logged])["a"].requests()["latency_ns"]) == 2000


@pytest.mark.parametrize(
    "damaged",
    [
        lambda whole: whole[:-20],
        lambda whole: whole[:10] + bytes(100) + whole[110:],
        lambda whole: whole[:-8] + bytes(8),
        lambda whole: whole[:10] + b"\xff" + whole[11:],
    ],
)
def test_a_damaged_run_is_made_anew(monkeypatch, tmp_path, damaged):
    monkeypatch.setenv("FLASHKEEL_CACHE", str(tmp_path))
    first = Session(keep=True).run([tiny("a")])["a"]
    (path,) = (tmp_path / "runs").glob("*.json.gz")
    path.write_bytes(damaged(path.read_bytes()))
    again = Session(keep=True).run([tiny("a")])["a"]
    assert again.data["digest"] == first.data["digest"]


def test_runs_unused_for_longest_make_room(monkeypatch, tmp_path):
    monkeypatch.setenv("FLASHKEEL_CACHE", str(tmp_path))
    Session(keep=True).run([tiny("a")])
    (first,) = (tmp_path / "runs").glob("*.json.gz")
    for file in (tmp_path / "runs").iterdir():
        os.utime(file, (1, 1))
    used = sum(file.stat().st_size for file in (tmp_path / "runs").iterdir())
    monkeypatch.setattr(kept, "LIMIT_BYTES", used)
    Session(keep=True, seed=2).run([tiny("a")])
    (left,) = (tmp_path / "runs").glob("*.json.gz")
    assert left != first


def test_a_full_disk_loses_no_run(monkeypatch, tmp_path):
    (tmp_path / "runs").touch()
    monkeypatch.setenv("FLASHKEEL_CACHE", str(tmp_path))
    assert Session(keep=True).run([tiny("a")])["a"].data["requests"] == 2000


def test_what_is_kept_belongs_to_its_trace(tmp_path):
    trace = tmp_path / "t.csv"
    trace.write_text("a")
    plan = {"name": "a", "config": {"workload": {"source": {"path": str(trace)}}}}
    runs = Kept(tmp_path, None)
    former = runs._path(plan, 1)
    assert runs._path(plan, 1) == former != runs._path(plan, 2)
    trace.write_text("another")
    assert runs._path(plan, 1) != former


@pytest.mark.parametrize(
    "study", [study for study in works.STUDIES if study.ranges], ids=lambda study: study.id
)
def test_ranges_name_claims_of_their_study(study):
    known = {claim.name for claim in study.claims}
    for each in study.ranges:
        assert set(each.claims) <= known
        quantity = each.quantity
        assert quantity.nearest in quantity.values
        assert list(quantity.values) == sorted(set(quantity.values))


def test_a_picture_says_in_what_was_measured(swept):
    busy, _ = sweep(["toy"], Session(quick=True))
    (axes,) = range_report.draw(busy.swept[0], busy).axes
    assert axes.get_ylabel() == "measured (reads/s)"
