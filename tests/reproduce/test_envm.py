"""The study of DRAM, ENVM and SSD: its model, its rules, what they make of numbers."""

import math
import random
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from flashkeel import InputError
from flashkeel.experiment import Experiment
from flashkeel.prices import Prices
from flashkeel.reproduce import Session, sweep
from flashkeel.reproduce.envm import hierarchy, latency, locality, technologies, week, writes
from flashkeel.reproduce.envm.hierarchy import POLICIES, Day, Mean, Setting
from flashkeel.reproduce.intervals import Estimate

CURVE = [(10.0, 200.0), (30.0, 100.0)]


def day(memory_share=0.1, **of):
    shares = {"memory_share": memory_share, "upper_share": 0.5}
    blank = {one.name: 0.0 for one in fields(Day) if one.name != "runs"}
    return Day(**blank | shares | of, runs=[None])


def test_an_envm_absorbs_what_lies_between_two_sizes():
    assert technologies.absorbing_gb(300, CURVE, 300) == 0
    assert technologies.absorbing_gb(300, CURVE, 250) == 5
    assert technologies.absorbing_gb(300, CURVE, 150) == 20
    assert technologies.absorbing_gb(300, CURVE, 100) == 30
    assert math.isinf(technologies.absorbing_gb(300, CURVE, 99))


def test_an_envm_endures_what_its_rating_allows():
    # 32 GB may be written 100 GB a day.
    assert technologies.enduring_gb(210, 110) == 32
    assert technologies.enduring_gb(100, 110) == 0


def test_a_drive_may_be_written_what_the_dissertation_says():
    assert technologies._rating("qlc", "3xnm") == pytest.approx(110, rel=0.01)
    assert technologies._rating("tlc", "3xnm") == pytest.approx(252.5, rel=0.03)


def test_what_follows_from_the_cycles_chosen_is_not_judged(monkeypatch):
    def judged(ssd_gb):
        def days(session, settings, seeds):
            return {each: day(ssd_gb=ssd_gb / (1 + each.envm_gb / 100)) for each in settings}

        monkeypatch.setattr(technologies, "measure", days)
        return technologies.STUDY.measure(Session(quick=True)).findings

    monkeypatch.setattr(technologies, "basis", lambda runs: "synthetic")
    monkeypatch.setattr(technologies, "kind", lambda runs: "synthetic")
    found = judged(210.0)
    assert set(found) == {claim.name for claim in technologies.STUDY.claims}
    for name in ("bits", "process", "written", "cost"):
        assert found[name].holds is None
        assert found[name].reason.startswith("follows from the cycles chosen")
    assert found["written"].basis == "device" and found["bits"].basis is None
    assert found["written"].measured["PLC"] == pytest.approx(88, rel=0.01)
    assert found["process"].measured["SLC 1xnm"] == 0
    # What the runs decide is judged.
    assert [judged(gb)["absorbed"].holds for gb in (210.0, 1000.0)] == [True, False]


def test_a_technology_without_a_price_has_no_costs():
    prices = Prices("today", "EUR", {"qlc": 0.1})
    assert technologies._cost(prices, "qlc", 10) is None
    assert technologies._cost(Prices.load(), "qlc", 10) == pytest.approx(100 + 20)


def test_one_seed_of_a_drive_that_collects_is_judged_by_the_parts_of_its_day(monkeypatch):
    days = {"base": day(write_us=400.0), "III": day(write_us=200.0)}
    # Quick runs of five seeds gave a ratio of 0.5 to 1.2, each with an interval about as wide.
    for (low, high), holds in [((0.15, 0.83), True), ((0.1, 1.2), None), ((0.9, 1.4), False)]:
        found = Estimate(0.5, low, high)
        monkeypatch.setattr(latency.intervals, "response_ratio", lambda *_, found=found: found)
        assert latency._full(days).holds is holds


def test_tails_that_do_not_depend_on_the_size_are_not_found_to_rise_with_it():
    class Logged:
        def __init__(self, seed, growth):
            chance = random.Random(seed)
            sizes = [16, 64, 256] * 4000
            self.log = {
                "operation": np.array(["read"] * len(sizes)),
                "sectors": np.array(sizes),
                "latency_ns": np.array(
                    [round(1e5 * sectors**growth * chance.expovariate(1.0)) for sectors in sizes]
                ),
            }

        def requests(self):
            return self.log

    def found(growth):
        runs = {
            name: [Logged(10 * i + k, growth) for k in range(3)] for i, name in enumerate("ABC")
        }
        return latency._tail({name: SimpleNamespace(runs=each) for name, each in runs.items()})

    assert found(0.5).holds is True
    assert found(0.0).holds is not True


def test_means_that_are_near_are_not_told_apart():
    assert locality.below(1.0, 1.1) is True
    assert locality.below(1.1, 1.0) is False
    assert locality.below(1.0, 1.02) is None
    # Over seeds what counts is the interval of the difference, seed by seed.
    shared = (10.0, 20.0, 30.0)
    more = Mean(value + gap for value, gap in zip(shared, (0.1, 0.11, 0.09), strict=True))
    noisy = Mean(value + gap for value, gap in zip(shared, (0.5, -0.5, 0.1), strict=True))
    assert locality.below(Mean(shared), more) is True
    assert locality.below(more, Mean(shared)) is False
    assert locality.below(Mean(shared), noisy) is None
    assert locality.below(Mean(shared), 110.0) is True
    assert locality.rising([1, 2, 3]) is True
    assert locality.rising([1, 1, 2]) is None
    assert locality.rising([1, 1, 0.5]) is False


def test_the_profiles_own_skew_decides_and_the_others_are_told():
    swept = (0.5, hierarchy.OWN_SKEW)
    days = {
        Setting(policy, skew): day(memory_share=skew / 10, ssd_gb=100 * skew)
        for policy in ("base", "I")
        for skew in swept
    }

    def rule(at):
        return at(Setting("base")).ssd_gb > 60

    found = locality.judged(days, swept, rule, 1.0, "in GB")
    assert found.holds is True
    assert found.reason == "holds at 9/50 %; does not at 5/50 %; in GB"


def test_sizes_and_days_shrink_alike():
    whole, half = (hierarchy.rating(110, scale) for scale in (1, 2))
    assert int(whole["per_day"][:-1]) == pytest.approx(2 * int(half["per_day"][:-1]), abs=8192)
    assert (whole["day"], half["day"]) == ("86400000000us", "43200000000us")
    assert whole["week"] == "604800000000us"


@pytest.mark.parametrize("policy", POLICIES)
def test_every_hierarchy_is_a_valid_experiment(policy):
    for session in (Session(quick=True), Session()):
        for technology in ("qlc", "tlc"):
            case = hierarchy.case(session, Setting(policy, technology=technology))
            experiment = Experiment("", case.name)
            for key, value in case.keys.items():
                experiment = experiment.set(key, value)
            (plan,) = experiment.plans()
            assert "tier" in plan["config"]["stack"]["devices"][0]


def test_days_of_the_largest_seed_are_followed_by_those_of_the_first(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(week, "_requests", lambda name, seed, scale: asked.append(seed) or [])
    week._write(2**64 - 3, 1, 512, tmp_path / "days.csv")
    assert asked == [2**64 - 3, 2**64 - 2, 2**64 - 1, 0, 1, 2, 3]


def test_recorded_days_have_their_own_locality(tmp_path):
    session = Session(traces=tmp_path)
    assert not latency.STUDY.ranges[0].closed(session)
    (tmp_path / "systor-busy.csv").touch()
    with pytest.raises(InputError, match="envm/latency: recorded days have a locality of their"):
        sweep(["envm/latency", "envm/writes"], session)
    words = hierarchy.conditions(hierarchy.shrink(session), {})
    assert words.startswith("recorded days, whole, each replayed once") and "seeds" not in words
    several = {Setting("III"): replace(day(), runs=[None] * 3)}
    assert "means of 3 seeds" in hierarchy.conditions(256, several)
    assert "one seed" in hierarchy.conditions(256, {})


def test_a_picture_of_recorded_days_says_so():
    sizes = {
        Setting(policy, magnification=at): day(ssd_gb=1.0)
        for policy in writes._POLICIES
        for at in (1, 2)
    }
    assert "(recorded; " in writes._draw(sizes, "recorded").get_suptitle()


def test_a_small_busy_day_counts_what_each_level_has():
    """Of policy I what is at risk lies in memory, of policy III nothing is."""
    tiny = {"workload.requests": 4000}
    session = Session(quick=True)
    cases = {policy: hierarchy.case(session, Setting(policy)) for policy in ("base", "I", "III")}
    shorter = [type(case)(case.name, {**case.keys, **tiny}) for case in cases.values()]
    runs = session.run(shorter)
    days = {name: hierarchy.day(runs[case.name], 512) for name, case in cases.items()}
    assert days["base"].envm_gb == 0
    assert days["base"].memory_share == days["base"].upper_share
    assert days["I"].risk_kb > 0
    assert days["III"].risk_kb == 0
    assert all(day.ssd_gb > 0 and day.read_us > 0 for day in days.values())
