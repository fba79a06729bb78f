"""The rules of the claims on PLMlight, and the search for where they are judged."""

from dataclasses import dataclass, field, replace

import pytest
from flashkeel.explanation import Explanation, Share
from flashkeel.reproduce import plmlight
from flashkeel.reproduce.plmlight import study, systems
from flashkeel.reproduce.plmlight.claims import JUDGED, Measured
from flashkeel.reproduce.plmlight.systems import (
    BASELINE,
    CLASSES,
    EQUAL,
    ONE_DRIVE,
    PLAIN,
    PRIORITISED,
    SYSTEMS,
    WORKLOADS,
)
from flashkeel.reproduce.session import Session


@dataclass
class Seen:
    """A run whose reads and writes take `ms` at every percentile."""

    ms: float
    beyond_all: int = 100
    kept: float = 1.0
    asked: float = 1.0
    tenants: list = field(default_factory=list)
    data: dict = field(default_factory=dict)

    def percentile(self, _kind, _at):
        return int(self.ms * 1e6)

    def interval(self, kind, at):
        return (self.percentile(kind, at),) * 2

    def beyond(self, _kind, _at):
        return self.beyond_all

    def iops(self, _kind):
        return self.asked * self.kept / 2

    def explain(self, above, latency_class):
        share = Share("behind_erase", 0.9, 1.0, 1)
        return Explanation("run", latency_class, above, 1, 1, 1.0, (share,), 1)


def seen(base_ms, ours_ms, beyond=100, one_drive_ms=None):
    """Return runs whose hosts take `ours_ms`, a time for each class, but on plain drives.

    One drive alone is as the mirror where nothing is said.
    """
    plain = {BASELINE: base_ms, ONE_DRIVE: base_ms if one_drive_ms is None else one_drive_ms}
    each = {system: [plain[system]] * len(CLASSES) for system in PLAIN}
    each |= dict.fromkeys((EQUAL, PRIORITISED), ours_ms)
    runs = {
        system: Seen(ms[0], tenants=[Seen(one, beyond) for one in ms])
        for system, ms in each.items()
    }
    return Measured(dict.fromkeys(WORKLOADS, runs))


def verdicts(measured):
    return {judged.claim.name: judged.finding(measured).holds for judged in JUDGED}


def test_half_of_a_reduction_is_enough():
    assert verdicts(seen(10, [5.8, 20, 20]))["III-prioritised"] is True
    assert verdicts(seen(10, [5.9, 20, 20]))["III-prioritised"] is False
    assert verdicts(seen(10, [7.4, 20, 20]))["I-high"] is True
    assert verdicts(seen(10, [7.6, 20, 20]))["I-high"] is False


@pytest.mark.parametrize(
    ("p99_ms", "p3_ms", "holds"), [(0.5, 2, True), (4.6, 6.6, False), (0.5, 0.9, False)]
)
def test_reads_take_microseconds_up_to_a_percentile(p99_ms, p3_ms, holds):
    class Tailed(Seen):
        def percentile(self, _kind, at):
            return int((p3_ms if at == 99.9 else p99_ms) * 1e6)

    run = Seen(1, tenants=[Tailed(1)] * len(CLASSES))
    found = verdicts(Measured(dict.fromkeys(WORKLOADS, dict.fromkeys((*SYSTEMS, ONE_DRIVE), run))))
    assert found["III-microseconds"] is holds


def test_classes_are_held_against_one_another_and_against_the_baseline():
    found = verdicts(seen(10, [5, 20, 20]))
    assert found["III-classes"] and found["I-others"]
    assert found["large-writes"] is False
    assert found["writes-alike"] is False
    alike = verdicts(seen(10, [5, 5, 5]))
    assert alike["writes-alike"] and alike["large-writes"]
    assert alike["III-classes"] is False
    assert alike["I-others"] is False


def test_reads_of_other_sizes_are_held_against_their_own_baseline():
    # Reads of IV take eight times as long as those of II; what they gain is compared.
    def others(gained_ms, of_two_ms=0.5):
        runs = seen(1, [of_two_ms] * 3).runs | {"IV": seen(8, [gained_ms] * 3).runs["IV"]}
        (judged,) = (j for j in JUDGED if j.claim.name == "IV-others")
        return judged.finding(Measured(runs))

    assert others(3).holds and others(5).holds is False
    assert others(9, of_two_ms=1.5).holds is False, "to lose less is no gain"
    assert others(3).measured == pytest.approx(
        {"II medium": 50, "II low": 50, "IV medium": 62.5, "IV low": 62.5}
    )


def test_what_is_found_against_one_drive_alone_stands_beside():
    # Reads take 10 ms on the mirror, 20 on one drive and 8 under PLMlight.
    measured = replace(seen(10, [8, 8, 8], one_drive_ms=20), unsustained=["I"])
    reasons = {j.claim.name: j.finding(measured) for j in JUDGED}
    assert reasons["III-prioritised"].holds is False
    assert "against one drive alone: 2.50 times: holds" in reasons["III-prioritised"].reason
    beside = "against one drive alone, which does not sustain I: p99.9 60.0 %: holds"
    assert beside in reasons["I-high"].reason
    assert "against one drive" not in reasons["III-classes"].reason
    assert "one drive 20.0 ms" in reasons["III-classes"].reason
    alike = {j.claim.name: j.finding(seen(10, [8, 8, 8])).reason for j in JUDGED}
    assert "against one drive" not in alike["III-prioritised"]


def test_one_drive_decides_no_intensity():
    runs = {system: Seen(1, asked=500) for system in SYSTEMS} | {ONE_DRIVE: Seen(30, asked=500)}
    assert systems.is_sustained(systems.judged_by(runs), 500)
    assert not systems.is_sustained(runs, 500)


def test_a_quick_run_searches_for_no_intensity(monkeypatch):
    asked = []

    class Drives(Session):
        def run(self, cases):
            asked.extend(cases)
            counts = {"hosts": [{"asked": 900}], "windows": 10}
            run = Seen(1, data={"stack": {"coordinators": {"0": counts}}})
            return {case.name: run for case in cases}

    found, _ = systems.sustained(Drives(quick=True), "collecting", "I")
    assert 0.05 < found.iops / WORKLOADS["I"].full_iops < 0.08
    requests = [case.keys["workload.requests"] for case in asked]
    # A search takes 18 runs of 50,000 and more.
    assert len(requests) == 5 and sum(requests) < 150_000


def test_nothing_is_judged_where_too_few_samples_of_a_host_lie_beyond():
    assert set(verdicts(seen(10, [5, 20, 20], beyond=9)).values()) == {None}
    assert None not in verdicts(seen(10, [5, 20, 20], beyond=10)).values()


def test_a_window_has_as_many_requests_as_the_dissertations():
    assert WORKLOADS["I"].full_iops == pytest.approx(310_693, abs=1)
    assert systems.window_ms("I", WORKLOADS["I"].full_iops) == 1
    assert systems.window_ms("I", WORKLOADS["I"].full_iops / 8) == 8


def test_what_the_nvm_has_not_passed_on_is_not_sustained():
    tier = {"host_bytes_to_nvm": 100, "drained_bytes": 97}
    lagging = Seen(1, asked=500, data={"stack": {"tiers": {"0": tier}}})
    assert not systems.is_sustained({"plmlight": lagging}, 500)
    tier["drained_bytes"] = 99
    assert systems.is_sustained({"plmlight": lagging}, 500)
    assert not systems.is_sustained({"slow": replace(lagging, ms=30)}, 500)


@pytest.mark.parametrize("most", [6_000, 40_000, 300_000])
def test_the_search_ends_below_what_is_sustained_and_near_it(most):
    class Drives(Session):
        def run(self, cases):
            iops = [float(case.name.split()[-1]) for case in cases]
            return {
                case.name: Seen(1, asked=asked, kept=min(1, most / asked))
                for case, asked in zip(cases, iops, strict=True)
            }

    found = systems.highest(Drives(), "collecting", "I") / 0.9
    assert most / 1.1 < found <= max(most, WORKLOADS["I"].full_iops / 64) * 1.03


@pytest.mark.parametrize(("quick", "tries"), [(True, 1), (False, 2)])
def test_what_other_seeds_do_not_sustain_is_lowered_but_not_for_ever(monkeypatch, quick, tries):
    full = WORKLOADS["I"].full_iops
    asked = []

    def measure(_session, _state, load):
        asked.append(load.iops)
        return dict.fromkeys((*SYSTEMS, ONE_DRIVE), Seen(30))

    monkeypatch.setattr(systems, "highest", lambda *_: full / 64)
    monkeypatch.setattr(systems, "load", lambda _s, _t, w, iops: systems.Load(w, iops, 1, 1))
    monkeypatch.setattr(systems, "measure", measure)
    found, _ = systems.sustained(Session(quick=quick), "collecting", "I")
    assert len(asked) == tries
    assert found.iops == asked[-1]


def test_every_claim_has_a_name_of_its_own():
    names = [f"{study.id}/{claim.name}" for study in plmlight.STUDIES for claim in study.claims]
    assert len(names) == len(set(names))


def test_a_quick_run_denies_nothing(monkeypatch):
    runs = seen(0.5, [0.5, 0.5, 0.5]).runs
    load = systems.full_load("I")
    monkeypatch.setattr(study, "sustained", lambda _session, _state, w: (load, runs[w]))
    monkeypatch.setattr(study, "_overload", lambda *_: "")

    def found(quick):
        findings = plmlight.STUDIES[0].outcome(Session(quick=quick)).findings
        return {name: finding.holds for name, finding in findings.items()}

    full, quick = found(quick=False), found(quick=True)
    assert full["baseline"] is False and full["I-writes"] is True
    assert quick == {name: holds or None for name, holds in full.items()}
