"""The rules of the claims on PLMC."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from flashkeel.reproduce import plmc
from flashkeel.reproduce.plmc import composition, copies, hedging, spread, systems, tails
from flashkeel.reproduce.plmc.systems import (
    ALONE,
    ALONE_IN_WINDOWS,
    BARE,
    CLASSES,
    COPIES,
    IN_TURN,
    IN_TURN_SHARED,
    SHIFTED,
    TOPPED_UP,
    UNSHARED,
    Reads,
    Shares,
    Tails,
    fewest,
    gains,
    gains_of_all,
    middle,
)
from flashkeel.reproduce.session import Session, _plan

MS = 1e6


def shares(windows, p50, p99=None, whole=1.0, in_windows=1.0):
    """Return a run whose tails within windows, and whose reads, are alike in all classes."""
    tails = Tails(windows, p50, p99 or 2 * p50, 3 * p50, 4 * p50)
    reads = Reads(in_windows, whole, 2 * whole, 3 * whole)
    hosts = {host: {"asked": 100, "beyond": 7, "given": 90} for host in CLASSES}
    return Shares(windows, dict.fromkeys(CLASSES, tails), hosts, dict.fromkeys(CLASSES, reads))


def at(p99_ms, whole_ms=1.0, windows=2000, p50_ms=0.1, in_windows=0.6):
    return [shares(windows, p50_ms * MS, p99_ms * MS, whole_ms * MS, in_windows)]


@pytest.mark.parametrize(("windows", "percentile", "beyond"), [(12_000, 99.9, 12), (298, 99, 2)])
def test_windows_beyond_a_percentile_are_counted(windows, percentile, beyond):
    assert Tails(windows, 1, 1, 1, 1).beyond(percentile) == beyond


def test_a_run_has_as_many_windows_beyond_as_its_poorest_seed():
    assert fewest([shares(2000, 1.0)]) == 20
    assert fewest([shares(2000, 1.0), shares(900, 1.0)]) == 9


def test_seeds_meet_in_the_middle():
    assert middle([shares(10, 1.0), shares(10, 7.0), shares(10, 2.0)], "high", "p99") == 4.0


def test_what_windows_gain_is_told_apart_from_what_a_host_sees():
    base, ours = at(10, whole_ms=2), at(1, whole_ms=3)
    assert gains(base, ours)["high"] == pytest.approx(90)
    assert gains_of_all(base, ours)["high, all reads"] == pytest.approx(-50)


def test_reads_that_come_outside_of_windows_are_counted_in_no_tail():
    host = {"class": "high", "windows": 5, "asked": 61} | {
        f"tail_{key}_ns": 1 for key in ("p50", "p99", "p99_9", "p99_99")
    }
    read = {"count": 100, "percentile": {key: 9 for key in systems._ALL_READS_AT}}
    data = {
        "stack": {"coordinators": {"0": {"windows": 5, "hosts": [host]}}},
        "tenants": [{"name": "high", "read": read}],
    }
    found = systems._shares(data)
    assert found.reads["high"] == Reads(0.61, 9, 9, 9)
    assert systems.in_windows({"exact": [found]}).endswith("exact 61.0 %")


def outcome(*apart_exact_ms, **changed):
    ways = {
        ALONE: at(5), BARE: at(10, whole_ms=2), ALONE_IN_WINDOWS: at(1), UNSHARED: at(6),
        "CoD strict": at(12, whole_ms=3), TOPPED_UP: at(4), "HoD strict": at(2, whole_ms=3),
        "CoD ratio": at(3), "HoD ratio": at(2),
    }  # fmt: skip
    seeds = apart_exact_ms or (0.1,)
    apart = {
        "CoD strict": at(1) * len(seeds),
        "HoD strict": [run for exact_ms in seeds for run in at(1, p50_ms=exact_ms)],
    }
    return tails.judged(ways | changed, apart)


def test_both_readings_of_expected_counts_are_judged_each_by_its_own_system():
    found = outcome().findings
    assert found["cod"].holds is False and found["cod"].measured["high"] == pytest.approx(-20)
    assert found["cod-topped"].holds and found["cod-topped"].measured["high"] == pytest.approx(60)
    at_spread = spread.judged_at(
        0.5, {BARE: at(10), "CoD strict": at(12), TOPPED_UP: at(4), "HoD strict": at(2)}
    ).findings
    assert {name: each.holds for name, each in at_spread.items()} == {
        "cod": False, "cod-topped": True, "hod": True,
    }  # fmt: skip
    assert set(at_spread) == set(spread.EVENNESS.claims) <= {c.name for c in tails.STUDY.claims}


def test_beside_each_row_stands_what_all_reads_took():
    found = outcome()
    hod = found.findings["hod"]
    assert hod.holds and hod.measured["high"] == pytest.approx(80)
    assert hod.measured["high, all reads"] == pytest.approx(-50)
    for name in (c.name for c in tails.STUDY.claims):
        assert "p99/p99.9/p99.99 of all reads, by class: " in found.findings[name].reason
    assert "which alone the tails are of: " in found.conditions
    assert "HoD strict 60.0 %" in found.conditions
    ranged = spread.judged({0.5: {name: at(10) for name in spread.WAYS}}, is_all=True)
    assert "spread 0.5, all reads" in ranged.findings["hod-range"].measured
    assert f"{TOPPED_UP} 0.5, all reads" in ranged.findings["cod-range"].measured
    assert "at 0.5 reads that came in windows" in ranged.conditions


def test_sharing_is_held_against_windows_whose_counts_nobody_shares_out():
    found = outcome().findings
    assert found["sharing"].measured == {"in windows": 6, "without windows": 2}
    assert found["sharing"].holds
    assert outcome(**{UNSHARED: at(3.4)}).findings["sharing"].holds is False
    far = outcome(**{UNSHARED: at(33)}).findings["sharing"]
    assert far.holds and far.reason.startswith("beyond twice the paper's: 6.4 times its effect; ")
    assert found["shared"].holds is False
    assert found["shared"].measured["CoD strict"] == pytest.approx(-100)
    assert outcome(**{"CoD strict": at(2.9)}).findings["shared"].holds


@pytest.mark.parametrize(
    ("exact_ms", "holds"),
    [((0.08, 0.13), True), ((0.07, 0.07), False), ((0.16, 0.06), False), ((0.08, 0.07), None)],
)
def test_where_peaks_lie_apart_expected_counts_must_do_as_well_as_exact_ones(exact_ms, holds):
    assert outcome(*exact_ms).findings["ds4-alike"].holds is holds


@pytest.mark.parametrize(
    ("high", "medium", "low", "holds"), [(2, 4, 6, True), (6, 4, 2, False), (12, 14, 16, False)]
)
def test_who_gains_most_must_gain(high, medium, low, holds):
    ms = {"high": high, "medium": medium, "low": low}
    run = at(1)[0]
    ours = [replace(run, tails={h: replace(run.tails[h], p99=ms[h] * MS) for h in CLASSES})]
    found = outcome(**{"CoD strict": ours, "HoD strict": ours}).findings
    assert found["order"].holds is holds


def test_nothing_is_judged_where_too_few_windows_lie_beyond():
    few = outcome(**{UNSHARED: at(6, windows=900)}).findings
    assert {finding.holds for finding in few.values()} == {None}
    on_copies = dict.fromkeys((COPIES, IN_TURN, *IN_TURN_SHARED), at(1, windows=900))
    assert {f.holds for f in copies.judged(on_copies).findings.values()} == {None}


def test_on_two_copies_all_reads_come_in_windows_and_are_judged():
    cod, hod = IN_TURN_SHARED
    found = copies.judged({COPIES: at(10), IN_TURN: at(1), cod: at(11), hod: at(4)}).findings
    assert {name: each.holds for name, each in found.items()} == {
        "cod": False, "hod": True, "unheld": True,
    }  # fmt: skip
    assert "beyond counts, and so to the copy at work, in %: high 7" in found["cod"].reason


def keys(name, data_set="DS1"):
    return systems._case(Session(), name, data_set, "2", systems.Situation()).keys


def test_who_does_not_coordinate_has_queues_by_class_and_windows_that_anyone_uses_up():
    for name in (BARE, UNSHARED, ALONE, ALONE_IN_WINDOWS, COPIES):
        assert keys(name)["stack.scheduler"] == "weighted-round-robin"
        assert keys(name)["stack.depth"] == 32
    (count,) = {
        each["coordinator"]["share"]["count"] for each in keys("CoD strict")["stack.devices"]
    }
    assert keys(UNSHARED)["device.window.reads_typical"] == count
    assert "stack.scheduler" not in keys("CoD strict")
    assert not any(key.startswith("device.window") for key in (*keys(BARE), *keys(COPIES)))
    assert keys("HoD strict", SHIFTED) != keys("HoD strict")


@pytest.mark.parametrize(
    "name",
    [
        ALONE, BARE, ALONE_IN_WINDOWS, UNSHARED, "CoD strict", TOPPED_UP,
        COPIES, IN_TURN, *IN_TURN_SHARED,
    ],
)  # fmt: skip
def test_every_way_is_a_run_that_can_be_made(name):
    assert _plan(systems._case(Session(), name, "DS1", "2", systems.Situation()))["config"]


def test_every_claim_has_a_name_of_its_own():
    names = [f"{study.id}/{claim.name}" for study in plmc.STUDIES for claim in study.claims]
    assert len(names) == len(set(names))


def test_hedging_that_asks_nothing_twice_is_no_bound():
    def mirrored(extra, reads=1000):
        report = {"hedged_bytes": 4096 * extra, "rewritten_bytes": 0, "reads": reads}
        return SimpleNamespace(data={"stack": {"mirrors": {"0": report}}})

    def judge(hedged, ours):
        return hedging._load(
            {"a": None}, [{"hedged a": mirrored(hedged), "ours a": mirrored(ours)}]
        )

    assert judge(0, 0).holds is judge(9, 9).holds is None
    assert judge(9, 9).reason.endswith("fewer than 10 reads are asked twice: a")
    assert judge(10, 10).holds is True
    assert judge(10, 11).holds is judge(0, 1).holds is False


def test_where_no_combination_keeps_up_there_is_none_to_compare():
    runs = dict.fromkeys(composition._IN_WINDOWS)
    best, alike = composition._best(runs, {}, []), composition._alike(runs, [])
    assert best.holds is alike.holds is None
    assert best.reason.startswith("writes do not keep up: fifo, priority")
    assert composition._alike(runs, ["fifo"]).holds is None
