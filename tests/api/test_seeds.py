"""Seeds: one range and one error text, wherever a seed is given."""

import numpy
import pytest
from flashkeel import Drive, Experiment, InputError, lifetime, reproduce
from flashkeel.seeds import consecutive
from small import SMALL

LARGEST = 2**64 - 1
DRIVE = {"capacity": "128GB", "rated_cycles": 3000}
TRAFFIC = {"policy": "profile", "name": "proxy"}

CALLS = {
    "Experiment.run": lambda seed: Experiment.from_toml(SMALL).run(seed=seed),
    "document": lambda seed: Experiment.from_toml(f"seed = {seed}\n{SMALL_UNSEEDED}").plans(),
    "Experiment.set": lambda seed: Experiment.from_toml(SMALL).set("seed", seed).plans(),
    "Drive.probe": lambda seed: Drive.find("sim:ssd-d").probe(seed),
    "Drive.predict": lambda seed: Drive.find("sim:ssd-d").predict(None, "tpce", seed=seed),
    "Plan.run": lambda seed: lifetime.Plan(DRIVE, TRAFFIC).run(seed),
    "Plan.estimate": lambda seed: lifetime.Plan(DRIVE, TRAFFIC).estimate(1, seed),
    "similarity": lambda seed: lifetime.similarity(TRAFFIC, 3600, 0.1, seed),
    "Session.seeds": lambda seed: reproduce.Session(seed=seed).seeds(1),
}
SMALL_UNSEEDED = SMALL.replace("seed = 7\n", "")
COMMANDS = {
    "run": ("run", "demo"),
    "trace synth": ("trace", "synth", "rad-as", "-o", "out.csv", "--format", "msr"),
    "plan lifetime": (
        "plan", "lifetime", "--capacity", "128GB", "--rated-cycles", "3000", "--profile", "proxy",
    ),
    "probe": ("probe", "sim:ssd-d"),
    "predict": ("predict", "sim:ssd-d"),
    "reproduce": ("reproduce", "autossd/fig4a", "--quick"),
}  # fmt: skip
REFUSED = {-1: "the integer -1", LARGEST + 1: "an integer beyond 64 bits"}


@pytest.mark.parametrize(("seed", "found"), REFUSED.items())
@pytest.mark.parametrize("call", CALLS)
def test_a_seed_outside_64_bits_is_refused(call, seed, found):
    with pytest.raises(InputError) as refused:
        CALLS[call](seed)
    assert str(refused.value).endswith(f"seed: expected a whole number, 0 or more, found {found}")


@pytest.mark.parametrize("seed", ["x", 1.5, None, True])
@pytest.mark.parametrize("call", ["Drive.probe", "Plan.run", "similarity", "Session.seeds"])
def test_what_is_no_whole_number_is_refused_by_its_name(call, seed):
    with pytest.raises(InputError) as refused:
        CALLS[call](seed)
    assert str(refused.value) == f"seed: expected a whole number, 0 or more, found {seed!r}"


@pytest.mark.parametrize("count", ["2", 1.5, None, True])
@pytest.mark.parametrize("name", ["seeds", "jobs"])
def test_how_many_is_a_whole_number(name, count):
    with pytest.raises(InputError, match=f"^{name}: expected a whole number, 1 or more, found"):
        Experiment.from_toml(SMALL).run(**{name: count})
    with pytest.raises(InputError, match=r"^seeds: expected a whole number"):
        lifetime.Plan(DRIVE, TRAFFIC).estimate(seeds=count)
    assert consecutive(numpy.uint64(LARGEST), numpy.int64(2)) == [LARGEST, 0]


@pytest.mark.parametrize(("seed", "found"), [*REFUSED.items(), ("x", '"x"'), ("1.5", '"1.5"')])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_it_in_the_same_words(cli, command, seed, found):
    outcome = cli(*COMMANDS[command], "--seed", seed)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == f"flashkeel: --seed: expected a whole number, 0 or more, found {found}\n"


def test_after_the_largest_seed_comes_0():
    assert consecutive(LARGEST - 1, 3) == [LARGEST - 1, LARGEST, 0]
    result = Experiment.from_toml(SMALL).set("workload.requests", 100).run(LARGEST, seeds=2)
    assert [run.seeds for run in result.runs] == [[LARGEST, 0]] * 2
    lives = lifetime.Plan(DRIVE, TRAFFIC).estimate(2, LARGEST).lives
    assert [life["seed"] for life in lives] == [LARGEST, 0]


def test_more_seeds_than_can_be_run_are_refused(cli):
    outcome = cli("run", "demo", "--seeds", 10**9)
    assert outcome.status == 2
    assert "1000000000 seeds; at most 1000000 at a time" in outcome.err


@pytest.mark.parametrize("seed", [0, LARGEST])
def test_a_drive_of_the_first_and_of_the_last_seed_is_probed_and_predicted(seed):
    drive = Drive.find("sim:ssd-d")
    found = drive.predict(drive.probe(seed), "tpce", requests=1000, seed=seed)
    assert found["requests"] == 1000
