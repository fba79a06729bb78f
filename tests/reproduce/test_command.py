"""flashkeel reproduce."""

import json

import pytest
from flashkeel import reproduce as reproduction
from flashkeel.reproduce import profiles, report, works
from flashkeel.reproduce.claims import Claim, Finding, Outcome, Quantity, Range, Study, Verdict
from matplotlib.figure import Figure

KEYS = {"id", "claim", "rule", "unit", "paper", "measured", "holds", "reason", "basis"}


def test_json_has_the_promised_shape(cli, toy):
    outcome = cli("reproduce", "toy", "--quick", "--format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    mean, never = json.loads(outcome.out)
    assert mean.keys() >= KEYS
    assert (mean["id"], mean["paper"], mean["basis"]) == ("toy/fig1/mean", -10.0, "synthetic")
    assert (mean["unit"], never["unit"]) == ("ns", "")
    assert mean["measured"].keys() == {"fifo", "priority"}
    assert mean["holds"] is (mean["measured"]["priority"] < mean["measured"]["fifo"])
    assert (never["holds"], never["reason"]) == (None, "no samples")


def test_a_claim_can_be_asked_for_alone(cli, toy):
    outcome = cli("reproduce", "toy/fig1/never", "--quick", "--format", "json")
    assert [verdict["id"] for verdict in json.loads(outcome.out)] == ["toy/fig1/never"]


def test_table_says_what_holds_and_why_not(cli, toy):
    outcome = cli("reproduce", "toy/fig1", "--quick")
    assert outcome.status == 0
    for words in (
        "toy/fig1: A toy (synthetic)",
        "-10.0 ns",
        "unknown",
        "never → no samples",
        "2 claims",
    ):
        assert words in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_out_keeps_verdicts(cli, toy, tmp_path):
    outcome = cli("reproduce", "toy", "--quick", "--out", tmp_path / "out")
    assert f"Wrote {tmp_path / 'out' / 'verdicts.json'}" in outcome.out
    assert len(json.loads((tmp_path / "out/verdicts.json").read_text())) == 2


@pytest.mark.parametrize("form", ["table", "json"])
def test_a_place_that_takes_nothing_is_found_first_and_a_full_disk_loses_no_verdict(
    cli, toy, tmp_path, form, monkeypatch
):
    (tmp_path / "file").touch()
    with monkeypatch.context() as never:
        never.setattr(reproduction, "reproduce", lambda *_: pytest.fail("nothing is measured"))
        nowhere = cli("reproduce", "toy", "--out", tmp_path / "file/out", "--format", form)
    assert (nowhere.status, nowhere.out) == (2, "")
    assert nowhere.err == f"flashkeel: {tmp_path / 'file/out'}: Not a directory\n"
    (tmp_path / "full").mkdir()
    (tmp_path / "full/verdicts.json").symlink_to("/dev/full")
    full = cli("reproduce", "toy", "--quick", "--out", tmp_path / "full", "--format", form)
    assert full.status == 1 and "No space left on device" in full.err
    assert "no samples" in full.out


def _fails(session):
    raise ZeroDivisionError("division by zero")


def _known(session):
    return Outcome({"c": Finding(1.0, True)}, "synthetic", "none")


def _study(name, measure):
    claim = Claim("c", "a claim", "a rule", None, "")
    quantity = Quantity("load", (1,), 1, "not given")
    ranges = (Range(quantity, ("c",), lambda session, value: measure(session)),)
    return Study(f"toy/{name}", "A toy", (claim,), measure, ranges)


@pytest.mark.parametrize("option", [(), ("--range",)])
def test_a_figure_that_fails_loses_no_verdict_of_the_others(
    cli, toy, tmp_path, option, monkeypatch
):
    monkeypatch.setattr(works, "STUDIES", (_study("first", _fails), _study("second", _known)))
    both = cli("reproduce", *option, "--format", "json", "--out", tmp_path / "out")
    assert both.status == 1
    assert "not measured: toy/first" in both.err and "division by zero" in both.err
    assert [verdict["id"] for verdict in json.loads(both.out)] == ["toy/second/c"]
    assert len(json.loads((tmp_path / "out/verdicts.json").read_text())) == 1
    alone = cli("reproduce", "toy/first", *option)
    assert (alone.status, alone.out) == (1, "") and "ZeroDivisionError" in alone.err


@pytest.mark.parametrize("option", [(), ("--range",)])
@pytest.mark.parametrize(("end", "status"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143)])
def test_an_interrupt_shows_and_saves_what_was_measured(
    cli, tmp_path, option, end, status, monkeypatch
):
    def broken_off(session):
        raise end

    studies = (_study("a", _known), _study("b", broken_off), _study("c", _fails))
    monkeypatch.setattr(works, "STUDIES", studies)
    outcome = cli("reproduce", *option, "--format", "json", "--out", tmp_path / "out")
    assert outcome.status == status
    assert [verdict["id"] for verdict in json.loads(outcome.out)] == ["toy/a/c"]
    assert len(json.loads((tmp_path / "out/verdicts.json").read_text())) == 1
    assert "flashkeel: interrupted at toy/b" in outcome.err
    assert "goes on from there" in outcome.err
    early = cli("reproduce", "toy/b", *option, "--out", tmp_path / "none")
    assert (early.status, early.out) == (status, "")


def _replays(name):
    def measure(session):
        found = profiles.source(session, name)
        return Outcome({"c": Finding(found["policy"], None)}, "synthetic", "none")

    return measure


def test_a_folder_of_traces_that_serves_nothing_is_refused(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(works, "STUDIES", (_study("first", lambda _: pytest.fail("it runs")),))
    empty = cli("reproduce", "--traces", tmp_path)
    assert (empty.status, empty.out) == (2, "")
    assert f"{tmp_path}: no file is named after a profile" in empty.err
    (tmp_path / "WEB.csv").touch()
    outcome = cli("reproduce", "--traces", tmp_path, "--out", tmp_path / "out")
    assert outcome.status == 2 and not (tmp_path / "out").exists()
    assert 'is WEB.csv meant for "web"?' in outcome.err


def test_profiles_without_a_file_are_told(cli, tmp_path, monkeypatch):
    (tmp_path / "exch.csv").touch()
    (tmp_path / "Web.csv").touch()
    studies = (_study("a", _replays("web")), _study("b", _replays("exch")), _study("c", _known))
    monkeypatch.setattr(works, "STUDIES", studies)
    both = cli("reproduce", "--traces", tmp_path)
    assert both.status == 0
    assert "no file NAME.* for web: generated requests instead" in both.err
    assert 'is Web.csv meant for "web"?' in both.err and "exch" not in both.err
    assert cli("reproduce", "toy/b", "--traces", tmp_path).err == ""
    assert "nothing of it was replayed" in cli("reproduce", "toy/c", "--traces", tmp_path).err


def test_runs_are_kept_for_the_next_time(cli, toy, tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHKEEL_CACHE", str(tmp_path))
    first = cli("reproduce", "toy", "--quick", "--format", "json")
    assert first.status == 0
    monkeypatch.setattr("flashkeel.reproduce.session.execute", lambda *_: pytest.fail("it runs"))
    assert cli("reproduce", "toy", "--quick", "--format", "json") == first


def test_a_picture_says_what_it_rests_on(tmp_path):
    claim = Claim("c", "a claim", "a rule", None, "")
    figure = Figure()
    outcome = Outcome({"c": Finding(1.0, True)}, "synthetic", "none", lambda: figure)
    study = Study("toy/drawn", "A toy", (claim,), lambda session: outcome)
    files = report.save([Verdict(study, claim, outcome.findings["c"], outcome)], tmp_path)
    assert [file.name for file in files] == ["verdicts.json", "toy-drawn.png"]
    assert [text.get_text() for text in figure.texts] == ["basis: synthetic"]


def test_an_unknown_id_is_refused_with_a_suggestion(cli):
    outcome = cli("reproduce", "autosd/fig1")
    assert outcome.status == 2
    assert 'did you mean "autossd/fig1"?' in outcome.err


def test_list_names_everything(cli):
    outcome = cli("reproduce", "--list")
    assert outcome.status == 0
    for study in works.STUDIES:
        assert f"{study.id}: " in outcome.out
        for claim in study.claims:
            assert f"{study.id}/{claim.name}: " in outcome.out


def test_list_is_json_where_that_is_asked_for(cli):
    outcome = cli("reproduce", "plmc/tails", "--list", "--format", "json")
    (study,) = works.select(["plmc/tails"])
    listed = json.loads(outcome.out)
    assert [each["id"] for each in listed] == [f"{study.id}/{c.name}" for c in study.claims]
    assert all(each["claim"] and each["rule"] for each in listed)
    over = {each["id"]: each["over"] for each in listed}
    assert (over["plmc/tails/sharing"], len(over["plmc/tails/cod"])) == ([], 1)


def test_list_has_a_claim_alone(cli):
    outcome = cli("reproduce", "plmc/tails/cod", "--list")
    named = [line.split(":")[0].strip() for line in outcome.out.splitlines()]
    assert named == ["plmc/tails", "plmc/tails/cod"]


@pytest.mark.parametrize("study", works.STUDIES, ids=lambda study: study.id)
def test_claims_are_complete_and_named_once(study):
    names = [claim.name for claim in study.claims]
    assert names and len(set(names)) == len(names)
    assert all(claim.claim and claim.rule for claim in study.claims)


@pytest.mark.parametrize("study", works.STUDIES, ids=lambda study: study.id)
def test_the_numbers_of_a_work_have_their_unit(study):
    for claim in study.claims:
        assert claim.unit or claim.paper is None or isinstance(claim.paper, str), claim.name


@pytest.mark.parametrize(("holds", "status"), [(True, 0), (None, 0), (False, 3)])
def test_check_tells_scripts_whether_claims_hold(cli, tmp_path, monkeypatch, holds, status):
    claims = tuple(Claim(name, "a claim", "a rule", None, "") for name in ("a", "b"))
    found = {"a": Finding(1.0, True), "b": Finding(1.0, holds)}
    study = Study("toy/checked", "A toy", claims, lambda _: Outcome(found, "synthetic", "none"))
    monkeypatch.setattr(works, "STUDIES", (study,))
    outcome = cli("reproduce", "--check", "--out", tmp_path)
    assert (outcome.status, outcome.err) == (status, "")
    assert "2 claims" in outcome.out and (tmp_path / "verdicts.json").exists()
    assert cli("reproduce", "toy/checked/a", "--check").status == 0
    assert cli("reproduce").status == 0
