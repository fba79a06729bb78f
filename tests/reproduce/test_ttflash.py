"""The studies of ttFlash: that their systems are what they say, and how they judge."""

import math
from pathlib import Path

import pytest
from flashkeel.experiment import Experiment
from flashkeel.reproduce import Session, pictures, recorded, reproduce
from flashkeel.reproduce.ttflash import (
    append_only,
    blocked,
    burst,
    composition,
    cost,
    filebench,
    latency,
    real,
    sizes,
)
from flashkeel.reproduce.ttflash.systems import PROFILES, SYSTEMS
from flashkeel.run import Run


def resolved(system):
    experiment = Experiment("", system)
    for key, value in SYSTEMS[system].items():
        experiment = experiment.set(key, value)
    source = {"policy": "profile", "name": "tpcc"}
    (plan,) = experiment.set("workload.source", source).plans()
    return plan["config"]["device"]


def test_each_technique_is_added_to_those_before_it():
    gc = {system: resolved(system)["gc"] for system in SYSTEMS}
    devices = {system: resolved(system) for system in SYSTEMS}
    movement = {system: gc[system]["movement"]["policy"] for system in SYSTEMS}
    assert list(movement.values())[:3] == ["channel-blocking", "semi-preemptive", "plane-blocking"]
    assert movement["nogc"] == "none"
    added = ["plane-blocking", "gc-tolerant-read", "rotating", "all"]
    assert {movement[system] for system in added} == {"plane-blocking"}
    reads = [devices[system]["read_path"]["policy"] for system in added]
    assert reads == ["plain", *["gc-tolerant"] * 3]
    turns = [gc[system]["rotation"]["policy"] for system in added]
    assert turns == ["none", "none", "plane-group", "plane-group"]
    updates = [devices[system]["redundancy"].get("update", {}).get("policy") for system in added]
    assert updates == [None, "cheaper", "cheaper", "gc-tolerant"]


def test_every_system_is_a_sixteenth_of_the_papers_with_a_tenth_of_its_flash_spare():
    # The document itself, not what was compiled of it.
    document = Path(__file__).parents[2] / "crates/experiment/experiments/ttflash.toml"
    experiment = Experiment.from_toml(document)
    for plan in experiment.plans():
        device = plan["config"]["device"]
        blocks = math.prod(
            device["geometry"][of]
            for of in ("channels", "chips_per_channel", "planes_per_chip", "blocks_per_plane")
        )
        flash_mib = blocks * device["geometry"]["pages_per_block"] * 4 / 1024
        capacity_mib = float(device["logical_capacity"].removesuffix("MiB"))
        has_parity = device["redundancy"]["policy"] == "logical"
        used = capacity_mib * (8 / 7 if has_parity else 1)
        assert flash_mib == 16 * 1024
        assert used == pytest.approx(201 * 1024 * 8 / 7 / 16, rel=1e-4), plan["name"]
        assert 1 - used / flash_mib == pytest.approx(0.10, abs=0.005)


class Canned(Session):
    """Gives every run the same figures, but for what `change` says of its name."""

    def __init__(self, change, quick=False):
        super().__init__(quick=quick)
        self.change = change

    def run(self, cases):
        return {case.name: Run(self.figures(case), None) for case in cases}

    def figures(self, case):
        points = ("99.000000", "99.900000", "99.990000", "99.999000", "99.999900")
        change = self.change(case.name)
        reads = {
            "count": 1_000_000,
            "mean_ns": 1000.0 * change.get("latency", 1),
            "percentile": {at: 1000 * change.get("latency", 1) for at in points},
            "beyond": dict.fromkeys(points, change.get("beyond", 1000)),
            "ci95": {at: [f * change.get("latency", 1) for f in (950, 1050)] for at in points},
            "ci95_bounded": dict.fromkeys(points, True),
        }
        return {
            "name": case.name,
            "seed": 1,
            "basis": change.get("basis", "synthetic"),
            "read": reads,
            "small_read": reads,
            "waf": 1.5,
            "write": reads | {"mean_ns": 10 * reads["mean_ns"]},
            "gc_blocked": change.get("blocked_requests", 10),
            "requests": 1000,
            "gc_blocked_fraction": change.get("blocked", 0.03),
            "erases": change.get("erases", 1000),
            "device": {
                "flash_operations": {"parity_write": 1, "host_write": 7},
                "moved_pages": change.get("erases", 1000) and 10,
                "gc_blocked_pages_read": 50,
                "host_bytes_read": 4096 * 5000,
                "collections_out_of_turn": change.get("out_of_turn", 0),
                "free_block_stalls": 0,
            },
            "config": {"device": {"logical_capacity": case.keys["device.logical_capacity"]}},
        }


def judged(study, change):
    found = study.measure(Canned(change)).findings
    assert set(found) == {claim.name for claim in study.claims}
    return {name: finding.holds for name, finding in found.items()}


def of_paper(name):
    """The paper's figures, about."""
    profile, system = name.split(" ")
    blocked_share = {
        "base": 0.05, "semi-preemptive": 0.04, "plane-blocking": 0.03, "gc-tolerant-read": 0.01,
        "rotating": 0.001, "all": 0.0003, "nogc": 0.0,
    }  # fmt: skip
    slower = {
        "base": 50, "semi-preemptive": 20, "plane-blocking": 20, "gc-tolerant-read": 5,
        "rotating": 2, "all": 1.2, "nogc": 1,
    }  # fmt: skip
    erases = (1550 if profile in {"tpcc", "msnfs"} else 1170) if system == "all" else 1000
    return {"blocked": blocked_share[system], "latency": slower[system], "erases": erases}


@pytest.mark.parametrize("study", [blocked.STUDY, latency.STUDY, cost.STUDY], ids=lambda s: s.id)
def test_the_papers_own_figures_hold(study):
    found = judged(study, of_paper)
    # Capacity follows from the layout, whatever is measured.
    assert found.pop("capacity", None) is None
    assert set(found.values()) == {True}


@pytest.mark.parametrize("study", [blocked.STUDY, cost.STUDY, latency.STUDY], ids=lambda s: s.id)
def test_what_ran_is_what_title_and_conditions_say(monkeypatch, tmp_path, study):
    monkeypatch.setattr(
        pictures, "tails", lambda axes, *_: axes.plot([1], label="a") and axes.legend()
    )
    for basis, kind, traces in (("synthetic", "synthetic", None), ("trace", "recorded", tmp_path)):
        session = Canned(lambda name, basis=basis: of_paper(name) | {"basis": basis})
        session.traces = traces
        outcome = study.measure(session)
        figure = outcome.picture()
        titles = [figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)]
        assert any(f"({kind} traces)" in title for title in titles)
        assert ("or all of a shorter recorded one" in outcome.conditions) is bool(traces)


def test_a_device_like_base_does_not():
    assert judged(blocked.STUDY, lambda _: {})["all"] is False
    assert judged(latency.STUDY, lambda _: {})["base"] is False
    assert judged(cost.STUDY, lambda _: {})["erases-random"] is False
    assert len(PROFILES) == 6


def test_where_collection_plays_no_part_nothing_is_confirmed():
    assert judged(latency.STUDY, lambda name: {})["closer"] is None
    assert judged(composition.STUDY, lambda name: {})["all"] is None


def test_tails_of_fewer_than_ten_samples_are_not_judged():
    found = judged(latency.STUDY, lambda name: of_paper(name) | {"beyond": 9})
    assert found == dict.fromkeys(found, None)


def test_few_blocked_requests_and_the_beginning_of_a_run_decide_nothing_rashly():
    def found(change, quick):
        findings = blocked.STUDY.outcome(
            Canned(lambda name: of_paper(name) | change, quick)
        ).findings
        return findings["all"].holds

    assert found({}, quick=True) is True
    for quick in (False, True):
        assert found({"blocked_requests": 9}, quick) is None
    above = {"blocked": 0.0033}
    assert (found(above, quick=False), found(above, quick=True)) == (False, None)


def test_rotation_that_never_yields_or_always_does_is_told():
    assert judged(burst.STUDY, lambda _: {})["rate"] is False
    always = judged(burst.STUDY, lambda _: {"out_of_turn": 1})
    assert (always["rate"], always["grows"]) == (False, False)


def test_the_average_in_a_closed_loop_is_that_of_all_requests():
    quicker = {"latency": 0.5}
    assert judged(filebench.STUDY, lambda name: quicker if name == "all" else {})["average"] is True
    assert judged(filebench.STUDY, lambda _: {})["average"] is False
    found = filebench.STUDY.measure(Canned(lambda _: {})).findings["average"].measured
    assert found["base, all"] == pytest.approx(5.5 * found["base, reads"])


def combined(**changes):
    """All of ttFlash with suspension is quickest, whatever the scheduler; `changes` by ending."""
    usual = {"all-suspend": 1, "all": 3, "semi-preemptive": 25, "-suspend": 20}

    def change(name):
        slower = next((x for end, x in (changes | usual).items() if name.endswith(end)), 30)
        return {"latency": slower, "beyond": changes.get("beyond", 10)}

    return judged(composition.STUDY, change)


def test_every_combination_is_judged():
    first = combined()
    # Both of the limit's runs are named as those with the usual limit.
    assert first.pop("limit") is False
    assert set(first.values()) == {True}


def test_the_best_combination_must_be_best_by_more_than_chance():
    close = combined(**{"fair-semi-preemptive": 1.05})
    assert (close["best"], close["all"], close["suspension"]) == (False, False, False)
    assert combined(**{"fair-plane-blocking-suspend": 0.5})["best"] is False


def test_schedulers_may_differ_by_a_tenth():
    assert combined(**{"debit-all-suspend": 1.1})["scheduler"] is True
    assert combined(**{"debit-all-suspend": 1.11})["scheduler"] is False


def test_six_nines_of_every_combination_need_samples():
    assert set(combined(beyond=9).values()) == {None}


def of_windows(monkeypatch, tmp_path, slower=lambda part, system: 1, blocked=10):
    """Judge the study of recorded traces, of which only the windows are real."""
    for name in recorded.FILES.values():
        (tmp_path / name).touch()
    monkeypatch.setenv("FLASHKEEL_TRACES", str(tmp_path))
    parts = [{"policy": "trace", "window": at} for at in range(recorded.WINDOWS)]
    monkeypatch.setattr(recorded, "windows", lambda path: parts)

    def of(name):
        _, part, system = name.split(" ")
        return {
            "latency": slower(int(part), system),
            "blocked_requests": blocked if system == "base" else 0,
        }

    return real.STUDY.measure(Canned(of)).findings


def test_windows_of_a_trace_must_agree(monkeypatch, tmp_path):
    def slower(part, system):
        return {"base": 30, "all": 1.5 + 0.2 * (part % 2), "nogc": 1}[system]

    def uneven(part, system):
        return slower(part, system) if system != "all" else 1 if part % 2 else 9

    def judge(slower):
        return of_windows(monkeypatch, tmp_path, slower)["tail"]

    assert judge(slower).holds is True
    found = judge(uneven)
    assert found.holds is None and "over 6 windows each" in found.reason
    assert judge(lambda part, system: 5).holds is False


def test_a_base_that_blocks_nothing_blocks_not_twenty_times_as_much(monkeypatch, tmp_path):
    few = 9 // recorded.WINDOWS
    none, sparse, enough = (
        of_windows(monkeypatch, tmp_path, blocked=blocked)["blocked"] for blocked in (0, few, 10)
    )
    assert (none.holds, sparse.holds, enough.holds) == (None, None, True)
    assert none.reason == "base blocks 0 requests of a trace, 10 are needed"


def test_windows_cover_a_trace_once(tmp_path):
    trace = tmp_path / "t.csv"
    rows = [f"{at * 1000},host,0,Read,{at * 4096},4096,0" for at in range(0, 60_000, 7)]
    trace.write_text("\n".join(rows))
    found = [each["window"] for each in recorded.windows(trace)]
    assert [each["from"] for each in found][1:] == [each["to"] for each in found[:-1]]
    assert found[0]["from"] == "0ns" and "to" not in found[-1]


def test_recorded_traces_are_asked_for(monkeypatch):
    monkeypatch.delenv("FLASHKEEL_TRACES", raising=False)
    verdicts = reproduce(["ttflash/real"], Session(quick=True))
    assert all(v.finding.holds is None and "--traces" in v.finding.reason for v in verdicts)


def test_pages_are_counted_beside_requests():
    found = blocked.STUDY.measure(Canned(of_paper)).findings
    for name in ("base", "plane-blocking"):
        assert "of pages read, which the slides may count: dapps 1 %" in found[name].reason


def test_a_base_that_erases_nothing_leaves_the_cost_open():
    def found(study, base):
        outcome = study.measure(
            Canned(lambda name: of_paper(name) | ({"erases": base} if "base" in name else {}))
        )
        assert outcome.picture is None or outcome.picture().axes
        return {name: outcome.findings[name] for name in ("erases", "erases-random")}

    for erases in (0, 199):
        for finding in found(cost.STUDY, erases).values():
            assert finding.holds is None and set(finding.measured.values()) == {None}
            assert "base erases fewer than 200 blocks under" in finding.reason
    nothing = append_only.STUDY.measure(Canned(lambda _: {"erases": 0})).findings["erases"]
    assert nothing.holds is None and set(nothing.measured.values()) == {None}


def appended(erases=1100, latency=1.5, spread=1000, static=1600):
    """Append-only stripes beside static ones that take 60 % more erases than base's 1000."""

    def change(name):
        if "append-only" in name:
            return {"erases": erases, "latency": latency, "beyond": spread}
        return {"erases": static if name.endswith(" all") else 1000}

    return judged(append_only.STUDY, change)


def test_append_only_stripes_must_spare_half_and_keep_the_tail():
    assert appended() == {"erases": True, "tails": True}
    assert appended(erases=1310)["erases"] is False
    assert appended(erases=1000, static=1000)["erases"] is None, "there is nothing to halve"
    assert appended(erases=0)["erases"] is None, "a run too short to collect tells nothing"
    assert appended(latency=2.5)["tails"] is False
    # 5 % either way of both: 1.95 may be two.
    assert appended(latency=1.95)["tails"] is None
    assert appended(spread=9)["tails"] is None


def test_append_only_stripes_are_as_wide_as_ttflashs():
    for variant in append_only._VARIANTS:
        experiment = Experiment("", variant)
        for key, value in append_only._VARIANTS[variant].items():
            experiment = experiment.set(key, value)
        source = {"policy": "profile", "name": "tpcc"}
        (plan,) = experiment.set("workload.source", source).plans()
        redundancy = plan["config"]["device"]["redundancy"]
        assert redundancy["policy"] == "none" or redundancy["pages"] == 8


def test_sizes_are_judged_by_the_rule_of_one_trace():
    def blocked_at(share):
        found = sizes.BLOCKED.measure(Canned(lambda name: {"blocked": share}), 64).findings
        return found["base"].holds, found["plane-blocking"].holds

    assert blocked_at(0.03) == (True, True)
    assert blocked_at(0.10) == (True, False)
    assert blocked_at(0.20) == (False, False)

    def erases(ours, base=1000):
        session = Canned(lambda name: {"erases": ours if name == "all" else base})
        found = sizes.WRITTEN.measure(session, 8).findings
        return found["erases"].holds, found["erases-random"].holds

    assert erases(1180) == (True, False)
    assert erases(1600) == (False, True)
    assert erases(120, base=100) == (None, None), "a hundred erases tell little"
