"""Studies of SSDcheck: what is judged, and what is not."""

import math
from itertools import product
from typing import ClassVar

import pytest
from flashkeel.explanation import Explanation, Share
from flashkeel.reproduce import Session
from flashkeel.reproduce.claims import Finding, Outcome
from flashkeel.reproduce.ssdcheck import fig3, fig11, fig12, fig14, fig15, table3
from flashkeel.reproduce.ssdcheck.drives import DRIVES, percentile, share_below
from flashkeel.ssdcheck import WORKLOADS

PAIRS = [f"{reader}+{writer}" for reader, writer in product("rst", "uvw")]


class Measured:
    """A run of which only the latencies and the rate are known."""

    def __init__(self, slow_ns=1000, slow=500, simulated_s=1.0):
        counts = [[100, 1000 - slow], [slow_ns, slow]]
        histogram = {"operation": "read", "counts": counts}
        self.data = {
            "detail": {"histograms": [histogram]}, "requests": 1000, "simulated_s": simulated_s,
        }  # fmt: skip

    def samples(self, operation):
        return 1000


def test_percentiles_come_from_the_histogram():
    run = Measured(slow_ns=900, slow=100)
    assert percentile(run, "read", 90.0) == 100
    assert percentile(run, "read", 90.1) == 900
    assert math.isnan(percentile(run, "write", 50))
    assert share_below(run, "read", 900) == 90.0
    assert share_below(run, "read", 901) == 100.0


def accuracies(slow, normal=99.5):
    return {drive: dict.fromkeys(WORKLOADS, (slow, normal, 50.0)) for drive in DRIVES}


def test_each_drive_is_judged_by_its_own_accuracy():
    found = fig11.judge(accuracies(73.0), 600_000).findings
    holds = [drive for drive in DRIVES if found[drive].holds]
    assert holds == ["ssd-c", "ssd-d", "ssd-e", "ssd-f"]
    assert "tpce" in found["ssd-a"].reason
    assert found["normal"].holds is False, "D and E have 99.7 % in the paper"
    assert "not on D, E" in found["normal"].reason
    assert fig11.judge(accuracies(90.0, 99.7), 600_000).findings["normal"].holds
    low = fig11.judge(accuracies(90.0, 99.05), 600_000).findings["normal"]
    assert low.holds is False and "not on D, E, F, G" in low.reason


def test_each_drive_may_be_called_slow_as_often_as_the_papers(monkeypatch):
    asked = {}

    class Asked:
        def __init__(self, drive):
            self.drive = drive

        def predict(self, model, workload, requests, seed, *, false_calls):
            asked[self.drive] = false_calls
            return {"slow_recall": 0.9, "normal_recall": 1 - false_calls, "precision": 0.5}

    monkeypatch.setattr(fig11, "diagnosis", lambda drive, seed: None)
    monkeypatch.setattr(fig11.Drive, "find", Asked)
    found = fig11.STUDY.measure(Session(quick=True))
    assert asked == {
        "sim:ssd-a": 0.01, "sim:ssd-b": 0.01, "sim:ssd-c": 0.01, "sim:ssd-d": 0.003,
        "sim:ssd-e": 0.003, "sim:ssd-f": 0.005, "sim:ssd-g": 0.009,
    }  # fmt: skip
    assert found.findings["normal"].holds
    assert "D 0.3, E 0.3, F 0.5, G 0.9 %" in found.conditions


def test_what_takes_longer_to_learn_is_not_failed_by_a_quick_run():
    found = fig11.judge(accuracies(73.0, 98.9), 30_000).findings
    assert found["ssd-c"].holds is True
    assert found["ssd-a"].holds is None and found["normal"].holds is None


def ratios(value, **others):
    return dict.fromkeys(PAIRS, value) | others


def test_isolation_needs_the_writer_unharmed_and_samples_in_the_tail():
    found = fig12.judge(ratios(1.7), ratios(60.0), ratios(1.0), 10)
    assert found["throughput"].holds and found["tail"].holds and found["writer"].holds
    assert not found["best-throughput"].holds and not found["best-tail"].holds
    slowed = fig12.judge(ratios(1.6), ratios(61.0), ratios(1.0) | {"r+u": 0.9}, 10)
    assert not slowed["throughput"].holds and not slowed["tail"].holds
    assert not slowed["writer"].holds and "r+u" in slowed["writer"].reason
    assert fig12.judge(ratios(1.7), ratios(60.0), ratios(1.0), 9)["tail"].holds is None


def schedulers(**by_system):
    usual = {"none": (1000, 1.0), "deadline": (900, 1.0), "fair": (900, 1.0), "ideal": (500, 0.8)}
    systems = usual | by_system
    return {
        (*key, system): Measured(slow_ns, 500, seconds)
        for key in fig14._JUDGED
        for system, (slow_ns, seconds) in systems.items()
    }


def test_pas_is_judged_by_tail_throughput_and_the_ideal(monkeypatch):
    good = fig14.judge(schedulers(pas=(520, 0.81)))
    assert all(finding.holds for finding in good.values())
    beaten = fig14.judge(schedulers(pas=(400, 0.81)))
    assert beaten["ssd-f-ideal"].holds is None and "not the paper's" in beaten["ssd-f-ideal"].reason
    assert fig14.judge(schedulers(pas=(450, 0.81)))["ssd-f-ideal"].holds, "as much as seeds differ"
    few = fig14.judge(schedulers(pas=(950, 1.0)))
    assert few["shortest"].holds is None and few["ssd-f-ideal"].holds is None
    monkeypatch.setattr(Measured, "samples", lambda self, operation: 5000)
    late = fig14.judge(schedulers(pas=(950, 1.0)))
    assert all(finding.holds is False for finding in late.values())
    assert "deadline on SSD F under exchange" in late["shortest"].reason


def test_the_tail_of_hybrid_pas_needs_samples_beyond_it():
    pressure = {drive: {"web": 15.0} for drive in fig15._PRESSURE}
    tails = {"all to NVM": 130.0, "Hybrid PAS": 100.0}
    assert fig15.judge(tails, pressure, 10)["tail"].holds
    assert fig15.judge(tails, pressure, 9)["tail"].holds is None
    short = {"all to NVM": 120.0, "Hybrid PAS": 100.0}
    assert fig15.judge(short, pressure, 10)["tail"].holds is False


def test_what_goes_to_an_nvm_with_room_is_not_judged():
    tails = dict.fromkeys(fig15._TIERS, 100.0)
    for less in (0.0, 14.0, 19.5, 20.0):
        pressure = {drive: {"web": less} for drive in fig15._PRESSURE}
        found = fig15.judge(tails, pressure, 10)
        for drive in fig15._PRESSURE:
            assert found[drive].holds is None and "follows from W" in found[drive].reason
            assert found[drive].measured["mean"] == less


def test_a_study_runs():
    outcome = table3.STUDY.measure(Session(quick=True))
    assert outcome.basis == "synthetic"
    assert set(outcome.findings) == {claim.name for claim in table3.STUDY.claims}


def test_a_share_of_slow_requests_is_judged_as_far_as_their_number_tells():
    def holds(slow, paper, count):
        return table3.judge({}, slow, paper, count).holds

    assert holds(1.0, 0.88, 100) is True
    assert holds(2.1, 0.88, 400) is False and holds(0.3, 0.88, 400) is False
    assert holds(2.1, 0.88, 30) is None, "1.76 lies within what 30 requests tell"
    assert holds(1.0, 0.88, 9) is None


def test_a_range_leaves_the_ideal_out():
    usual = {key: run for key, run in schedulers(pas=(520, 0.81)).items() if key[2] != "ideal"}
    assert set(fig14.judge(usual)) == set(fig14.STUDY.ranges[0].claims)
    assert fig14._draw(usual).axes


def test_with_three_outstanding_collection_reaches_the_tail():
    (depth,) = fig3.STUDY.ranges
    outcomes = [depth.measure(Session(quick=True), value) for value in (1, 3)]
    assert {outcome.basis for outcome in outcomes} == {"synthetic"}, "its writes are generated"
    one, three = (outcome.findings for outcome in outcomes)
    assert (one["tail"].holds, three["tail"].holds) == (False, True)
    assert (one["rare"].holds, three["rare"].holds) == (True, False)


class Waited:
    """Requests of which one in ten waits for a flush, and each as long for something else."""

    data: ClassVar = {"gc_blocked_fraction": 0.0024, "requests": 1000}

    def __init__(self, waits, simulated_s=1.0):
        self.waits = waits
        latency = {"operation": "write", "counts": [[100, 900], [1000 if waits else 100, 100]]}
        self.data = self.data | {"detail": {"histograms": [latency]}, "simulated_s": simulated_s}

    def explain(self, above, latency_class):
        # Of all requests, or of the tenth that are slow.
        flush_ns, mean_ns = {0.0: (90.0, 300.0), 90.0: (405.0, 1000.0)}[above]
        return Explanation(
            "", latency_class, above, 1, 1, mean_ns,
            (
                Share("behind_host_write", 0, flush_ns, 1), Share("behind_erase", 0, 9.0, 1),
                Share("controller", 0, 1.0, 1),
            ),
            1,
        )  # fmt: skip


def test_overhead_is_that_of_slow_requests_and_of_all():
    runs = {name: Waited(name == "All") for name in fig3._VERSIONS}
    found = fig3.judge(runs)
    assert found["overhead"].measured == pytest.approx(46), "holds by construction"
    assert found["overhead"].holds is None and "little else" in found["overhead"].reason
    assert found["overhead-flush"].measured == pytest.approx(45) and found["overhead-flush"].holds
    assert found["overhead-collection"].measured == pytest.approx(1)
    assert found["overhead-collection"].holds is False
    assert found["overhead-all"].measured == pytest.approx(49.5)
    assert found["overhead-all"].holds is True
    none = fig3.judge({name: Waited(False) for name in fig3._VERSIONS})
    for name in ("overhead", "overhead-flush", "overhead-collection"):
        assert none[name].holds is None and none[name].measured is None


@pytest.mark.parametrize(("seconds", "holds"), [(1.1, False), (1.3, True), (2.0, False)])
def test_flushes_take_some_of_the_throughput(seconds, holds):
    runs = {name: Waited(False) for name in fig3._VERSIONS}
    found = fig3.judge(runs | {"WB+Others": Waited(True, seconds)})["throughput"]
    assert found.measured == pytest.approx(100 / seconds) and found.holds is holds


@pytest.mark.parametrize(
    ("study", "measure"), [(fig3, "_measure_at"), (fig12, "_measure_at"), (fig14, "_run")]
)
def test_what_a_quick_run_does_not_confirm_is_open(monkeypatch, study, measure):
    found = Outcome({"a": Finding(0.9, False, "less"), "b": Finding(2.0, True)}, "device", "")
    monkeypatch.setattr(study, measure, lambda *_: found)
    quick, full = (study.STUDY.outcome(Session(quick=quick)).findings for quick in (True, False))
    assert (quick["a"].holds, quick["b"].holds) == (None, True)
    assert full == found.findings
