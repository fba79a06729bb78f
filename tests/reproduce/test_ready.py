"""Studies of READY: what is judged, and what is not."""

import gzip

import pytest
from flashkeel import lifetime
from flashkeel.reproduce import Session, recorded
from flashkeel.reproduce.ready import demand, epochs, levelling, lives, real, response
from flashkeel.reproduce.ready.lives import PROFILES
from flashkeel.reproduce.ready.noisy import noisy

EVEN = dict.fromkeys(PROFILES, 1.0)
SWUNG = {"proxy": 0.1, "proj": 0.8, "exchange": 0.1, "map": 0.4, "msnfs": 0.1}
VARIED = {"ST": dict.fromkeys(PROFILES, 9.0), "DT": SWUNG, "READY": SWUNG}
HELD = {"DT": EVEN, "READY": EVEN}
IDLE_ON_PROJ = {"DT": EVEN, "READY": EVEN | {"proj": 0.001}}


def test_what_was_put_in_is_not_called_reproduced():
    found = demand.STUDY.measure(Session(quick=True)).findings
    assert found["cyclic"].holds is None and found["cyclic"].measured["proxy"] > 0.9
    assert found["plain"].holds is None and "formula" in found["plain"].reason
    assert found["recovery"].holds is None and "calibrated" in found["recovery"].reason


def test_the_factor_must_hold_where_writes_are_held_too():
    means = {"ST": dict.fromkeys(PROFILES, 20.0), "READY": dict.fromkeys(PROFILES, 10.0)}
    twice = dict.fromkeys(PROFILES, 2.0) | {"proj": 4000.0}
    found = response._factor(means, twice, IDLE_ON_PROJ["READY"])
    assert found.measured["geometric mean"] > 2.2
    assert found.holds is False
    assert response._factor(means, dict.fromkeys(PROFILES, 4.4), EVEN).holds is True


def test_dynamic_lies_between_only_where_it_is_faster_than_a_cap():
    means = {"ST": dict.fromkeys(PROFILES, 20.0), "READY": dict.fromkeys(PROFILES, 10.0)}
    assert response._between(means | {"DT": dict.fromkeys(PROFILES, 15.0)}).holds is True
    level = dict.fromkeys(PROFILES, 15.0) | {"proxy": 20.0}
    found = response._between(means | {"DT": level})
    assert found.holds is False and "on proxy" in found.reason
    assert response._between(means | {"DT": dict.fromkeys(PROFILES, 9.0)}).holds is False


def test_recorded_demands_decide_whether_dynamic_lies_between():
    between = {"a": [1.0, 1.8, 2.0], "b": [1.0, 1.9, 2.0]}
    assert real._between(between).holds is True
    assert real._between(between | {"c": [1.0, 0.9, 2.0]}).holds is False
    assert real._between({"a": [1.0, 2.0, 2.0]}).holds is False
    assert real._between({}).holds is None


def test_a_noisy_demand_is_as_irregular_as_asked_and_the_same_again(tmp_path):
    shares = []
    for noise in (0.1, 0.5):
        traffic = noisy("exchange", noise, 1, tmp_path)
        first = (tmp_path / "exchange.csv").read_text()
        shares.append(lifetime.similarity(traffic, 1800, 0.3))
        assert noisy("exchange", noise, 1, tmp_path) == traffic
        assert (tmp_path / "exchange.csv").read_text() == first
    assert shares[0] > 0.85 and shares[1] < 0.6
    total = sum(int(line.split(",")[1]) for line in first.splitlines()[1:])
    assert abs(total / (20.61e9 * 24) - 1) < 1e-6


def test_half_hours_must_be_most_alike():
    shares = {"1 min": 0.4, "30 min": 0.9, "1 h": 0.92, "2 h": 0.8}
    assert epochs._similar({"exchange": shares}).holds is None
    for other in ({"1 min": 0.95}, {"2 h": 0.96}):
        assert epochs._similar({"exchange": shares, "proxy": shares | other}).holds is False


def test_the_length_chosen_must_be_nearly_the_best():
    varied = {"1 min": 0.5, "30 min": 0.2, "1 h": 0.3, "2 h": 0.4}
    lasted = dict.fromkeys((*varied, epochs.AUTOMATIC), 5.0)

    def judge(variation, years=5.0):
        ways = {epochs.AUTOMATIC: variation} | varied
        return epochs._chosen({"map": ways}, {"map": lasted | {epochs.AUTOMATIC: years}})

    assert judge(0.21).holds is True
    assert judge(0.3).holds is False and "on map" in judge(0.3).reason
    assert judge(0.2, 5.1).holds is False
    assert epochs._chosen({}, {}).holds is None


def test_no_one_length_suits_every_recorded_demand():
    short = {"30 min": 0.9, "1 h": 0.8, "2 h": 0.7}
    long = {"30 min": 0.5, "1 h": 0.6, "2 h": 0.8}
    found = real._epochs({"a": short, "b": long})
    assert found.holds is True and found.measured == {"30 min": 1, "1 h": 0, "2 h": 1}
    assert real._epochs(dict.fromkeys("abcd", short) | {"e": long}).holds is False


def test_levelling_must_help_on_the_small_drive_and_keep_both_even():
    helped, useless = {False: 0.8, True: 0.95}, {False: 0.97, True: 0.96}

    def judge(small, large):
        return levelling._judge({}, {"32 MiB": small, "480 GB": large})

    assert judge(helped, helped).holds is True and not judge(helped, helped).reason
    assert judge(helped, useless).holds is True and judge(helped, useless).reason
    assert judge(useless, helped).holds is False
    assert judge(helped, {False: 0.5, True: 0.8}).holds is False


def test_variation_is_judged_under_both_throttles():
    for judge in (response._swings, response._unpredictable):
        assert judge(VARIED, HELD).holds is True
        assert judge(VARIED, IDLE_ON_PROJ).holds is None
        assert "READY on proj" in judge(VARIED, IDLE_ON_PROJ).reason
    ready_swings_on_proxy = VARIED | {"READY": SWUNG | {"proxy": 20.0}}
    for judge in (response._swings, response._unpredictable):
        assert judge(ready_swings_on_proxy, IDLE_ON_PROJ).holds is False


def test_recorded_demands_are_judged_where_the_file_is_given(tmp_path):
    rows = [f"w{n},{k},{(1 + k % 3) * 2 * 10**10}" for n in range(5) for k in range(96)]
    text = "\n".join(["workload,window,write_bytes", *rows, ""])
    (tmp_path / recorded.DEMAND["demand"]).write_bytes(gzip.compress(text.encode()))
    found = real.STUDY.measure(Session(quick=True, traces=tmp_path)).findings
    assert found["guarantee"].measured["NT"] == 0
    assert found["guarantee"].holds is True
    # Demands of 1, 2, 3, 1 … differ by more than 30 % but for those from 2 to 3, at 50 %.
    assert found["cyclic"].measured == 0 and found["cyclic"].holds is False
    assert found["cost"].holds is not None


def test_without_the_file_recorded_demands_are_not_judged(tmp_path):
    findings = real.STUDY.measure(Session(traces=tmp_path)).findings
    assert all(
        found.holds is None and recorded.DEMAND["demand"] in found.reason
        for found in findings.values()
    )


def test_lives_that_are_kept_are_not_simulated_again(monkeypatch, tmp_path):
    monkeypatch.setenv("FLASHKEEL_CACHE", str(tmp_path / "cache"))
    session = Session(quick=True, keep=True)
    demand = tmp_path / "a.csv"
    demand.write_text("window,write_bytes\n0,1000000000\n1,3000000000\n")
    same = tmp_path / "b.csv"
    same.write_text(demand.read_text())

    def live(path):
        traffic = {"policy": "series", "path": str(path)}
        plan = lifetime.Plan({"capacity": "32GB", "rated_cycles": 100}, traffic)
        return lives.in_parallel([plan], 1, session)[0].years

    first = live(demand)
    monkeypatch.setattr(lifetime.Plan, "estimate", None)
    assert live(demand) == live(same) == first
    same.write_text(demand.read_text().replace("3000000000", "4000000000"))
    with pytest.raises(TypeError):
        live(same)
