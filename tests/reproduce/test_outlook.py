"""The study of shares that go by expected idleness: how it judges."""

import json

from flashkeel.reproduce import recorded, report
from flashkeel.reproduce.autossd import outlook
from flashkeel.reproduce.claims import Verdict
from reproduce.test_autossd_rules import Canned, Made


def judged(monkeypatch, folder, tail, spread=0.0):
    """Judge foresight by its p99.9 in µs under each load, where feedback has 1000."""
    monkeypatch.setenv("FLASHKEEL_TRACES", str(folder))
    monkeypatch.setattr(recorded, "windows", lambda path, speed: [{}] * recorded.WINDOWS)

    def made(name):
        load, control = name.rsplit(" ", 1)
        return Made(p3=tail(load) if control == "foresight" else 1000, spread=spread)

    found = outlook.STUDY.measure(Canned(made)).findings
    return {name: finding.holds for name, finding in found.items()}


def test_foresight_must_shorten_the_tail_by_more_than_chance(monkeypatch, tmp_path):
    for file in recorded.FILES.values():
        (tmp_path / file).touch()
    less = judged(monkeypatch, tmp_path, lambda load: 900, 0.01)
    assert less == {"bursts": True, "steady": True, "recorded": True}
    more = judged(monkeypatch, tmp_path, lambda load: 1101)
    assert more == {"bursts": False, "steady": False, "recorded": False}
    # A tenth more is what steady loads may cost; windows that differ tell nothing.
    mixed = judged(monkeypatch, tmp_path, lambda load: 1090 if load[-1] in "0248" else 800)
    assert mixed["steady"] is True and mixed["recorded"] is None


def test_each_claim_says_what_it_rests_on(monkeypatch, tmp_path):
    for file in recorded.FILES.values():
        (tmp_path / file).touch()
    monkeypatch.setenv("FLASHKEEL_TRACES", str(tmp_path))
    monkeypatch.setattr(recorded, "windows", lambda path, speed: [{}] * recorded.WINDOWS)

    def made(name):
        run = Made()
        run.synthetic = name.startswith("bursts")
        return run

    outcome = outlook.STUDY.measure(Canned(made))
    verdicts = [
        Verdict(outlook.STUDY, claim, outcome.findings[claim.name], outcome)
        for claim in outlook.STUDY.claims
    ]
    assert {v["id"].split("/")[-1]: v["basis"] for v in json.loads(report.to_json(verdicts))} == {
        "bursts": "synthetic", "steady": "trace", "recorded": "trace",
    }  # fmt: skip


def test_recorded_traces_are_asked_for(monkeypatch, tmp_path):
    assert judged(monkeypatch, tmp_path, lambda load: 900)["recorded"] is None
