"""The study of shares that go by expected idleness: how it judges."""

from flashkeel.reproduce.autossd import outlook
from reproduce.test_autossd_rules import Canned, Made


def judged(monkeypatch, folder, tails):
    monkeypatch.setenv("FLASHKEEL_TRACES", str(folder))
    found = outlook.STUDY.measure(Canned(lambda name: tails(*name.rsplit(" ", 1)))).findings
    return {name: finding.holds for name, finding in found.items()}


def test_foresight_must_shorten_the_tail_by_more_than_chance(monkeypatch, tmp_path):
    for file in outlook.FILES.values():
        (tmp_path / file).touch()

    def tail(load, control, spread=0.01):
        return Made(p3=900 if control == "foresight" and load != "dtrs" else 1000, spread=spread)

    assert judged(monkeypatch, tmp_path, tail) == {
        "bursts": True, "steady": True, "recorded": None,
    }  # fmt: skip
    longer = {"foresight": 1101, "feedback": 1000}
    assert judged(monkeypatch, tmp_path, lambda load, control: Made(p3=longer[control])) == {
        "bursts": False, "steady": False, "recorded": False,
    }  # fmt: skip


def test_recorded_traces_are_asked_for(monkeypatch, tmp_path):
    found = judged(monkeypatch, tmp_path, lambda load, control: Made())
    assert found["recorded"] is None
