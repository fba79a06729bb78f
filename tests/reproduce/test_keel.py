"""The studies of the keel: what is compared, and how it is judged."""

import pytest
from flashkeel.experiment import Experiment
from flashkeel.reproduce import Session
from flashkeel.reproduce.keel import ablation, cost, reads, systems, writes
from flashkeel.reproduce.keel.systems import GREEDY, KEEL, NOGC, SHAPES, WORKLOADS
from flashkeel.run import Run

POINTS = ("99.900000", "99.990000", "99.999000", "99.999900")


def resolved(case):
    experiment = Experiment("", case.name)
    for key, value in case.keys.items():
        experiment = experiment.set(key, value)
    (plan,) = experiment.plans()
    return plan["config"]["device"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("system", systems.SYSTEMS)
def test_systems_differ_only_in_how_they_collect(shape, system):
    session = Session(quick=True)
    keel, other = (resolved(systems.case(session, shape, "mixed", s)) for s in (KEEL, system))
    differing = {key for key in keel if keel[key] != other[key]}
    assert differing <= {"gc", "scheduler"}
    assert keel["logical_capacity"] == other["logical_capacity"]


@pytest.mark.parametrize("left_out", ablation._LEFT_OUT)
def test_a_mechanism_can_be_left_out_of_every_shape(left_out):
    session = Session(quick=True)
    for shape in SHAPES:
        keys = ablation._LEFT_OUT[left_out][1]
        whole, without = (
            resolved(systems.case(session, shape, "mixed", **more)) for more in ({}, keys)
        )
        assert whole != without


class Canned(Session):
    """Gives every run the same figures, but for what `change` says of its name."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def run(self, cases):
        return {case.name: Run(self.figures(case.name), None) for case in cases}

    def figures(self, name):
        change = {"times": 1, "beyond": 1000, "erases": 1000, "takes": 1} | self.change(name)
        middle = 1_000_000 * change["times"]
        latencies = {
            "count": 1_000_000,
            "percentile": dict.fromkeys(POINTS, middle),
            "beyond": dict.fromkeys(POINTS, change["beyond"]),
            "ci95": {at: [middle * 0.99, middle * 1.01] for at in POINTS},
            "ci95_bounded": dict.fromkeys(POINTS, True),
        }
        geometry = {
            "channels": 1, "chips_per_channel": 1, "planes_per_chip": 1,
            "blocks_per_plane": 8, "pages_per_block": 1, "page_size": "4KiB",
        }  # fmt: skip
        return {
            "name": name,
            "seed": 1,
            "requests": 2_000_000,
            "basis": "synthetic",
            "small_read": latencies,
            "write": latencies,
            "erases": change["erases"],
            "simulated_s": change["takes"],
            "limits": {"capacity_bytes": 7 << 12},
            "config": {"device": {"geometry": geometry}},
        }


@pytest.fixture(autouse=True)
def no_ledgers(monkeypatch):
    for module in (reads, writes):
        monkeypatch.setattr(module, "gap", lambda *_: "nobody")


def judged(study, change=lambda name: {}):
    found = study.measure(Canned(change)).findings
    assert set(found) == {claim.name for claim in study.claims}
    return {name: finding.holds for name, finding in found.items()}


def test_a_keel_as_quick_as_nogc_holds():
    for study in (reads.STUDY, writes.STUDY, cost.STUDY):
        assert set(judged(study).values()) == {True}
    assert set(judged(ablation.STUDY).values()) == {False}


def test_reads_are_judged_by_shape_and_suspension():
    slow = systems.name("autossd", "bursts", KEEL, 0)
    found = judged(reads.STUDY, lambda name: {"times": 1.3} if name == slow else {})
    assert [name for name, holds in found.items() if not holds] == ["autossd-0"]
    unclear = judged(reads.STUDY, lambda name: {"times": 1.2} if name == slow else {})
    assert unclear["autossd-0"] is None
    few = judged(reads.STUDY, lambda name: {"beyond": 9} if name == slow else {})
    assert few["autossd-0"] is None


def test_writes_are_judged_where_the_load_is_sustained():
    slow = systems.name("ttflash", "write-bursts", KEEL)
    change = {slow: {"times": 3}}
    assert judged(writes.STUDY, lambda name: change.get(name, {}))["ttflash"] is False
    change[systems.name("ttflash", "write-bursts", GREEDY)] = {"takes": 1.1}
    assert judged(writes.STUDY, lambda name: change.get(name, {}))["ttflash"] is True


def test_erases_are_those_of_the_same_requests():
    names = [systems.name(shape, workload) for shape in SHAPES for workload in WORKLOADS]
    found = judged(cost.STUDY, lambda name: {"erases": 1100} if name == names[0] else {})
    assert found == {"capacity": True, "erases": False}


def test_a_mechanism_without_which_something_is_worse_is_worth_it():
    def change(name):
        return {"times": 2} if name.endswith("ttflash mixed keel 8 without budget") else {}

    found = judged(ablation.STUDY, change)
    assert [name for name, holds in found.items() if holds] == ["budget"]


def test_what_one_read_or_a_few_erases_say_decides_no_ablation():
    def found(**change):
        slow = "ttflash mixed keel 8 without budget"
        return judged(ablation.STUDY, lambda name: change if name == slow else {})["budget"]

    assert found(times=1.06) is None, "the interval of the ratio contains 1.05"
    assert found(times=2, beyond=9) is None
    assert found(erases=1060) is True
    assert judged(ablation.STUDY, lambda name: {"erases": 99})["budget"] is None


def test_nogc_has_the_same_freedom_and_no_collection():
    session = Session(quick=True)
    nogc = resolved(systems.case(session, "ttflash", "mixed", NOGC))
    assert nogc["gc"]["movement"]["policy"] == "none"
    assert nogc["allocation"]["policy"] == "dynamic"
