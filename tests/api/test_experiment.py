"""Building and running experiments from Python."""

import tomllib
from pathlib import Path

import flashkeel
import numpy as np
import pytest
from flashkeel import Experiment, InputError, buffers, hierarchy
from flashkeel.arrow import TableFiles
from flashkeel.execution import Task, execute
from flashkeel.sweep import running
from small import SMALL


def without_clock(result):
    return [{k: v for k, v in run.data.items() if k != "wall_s"} for run in result.runs]


def test_text_and_file_are_the_same_experiment(small_toml):
    text, file = Experiment.from_toml(SMALL), Experiment.from_toml(str(small_toml))
    assert text.plans() == file.plans()


def test_a_file_may_have_what_text_has_in_its_name(tmp_path):
    file = tmp_path / "seed=1.toml"
    file.write_text(SMALL)
    assert Experiment.from_toml(str(file)).plans() == Experiment.from_toml(SMALL).plans()
    assert Experiment.from_toml("seed = 3" + " " * 5000).document.startswith("seed = 3")


def test_runs_come_in_document_order(small_result):
    assert [run.name for run in small_result.runs] == ["fifo", "debit"]


def test_set_reaches_every_run_and_the_last_wins():
    experiment = Experiment.from_toml(SMALL).set("workload.requests", 9)
    experiment = experiment.set("workload.requests", 11)
    assert [plan["config"]["workload"]["requests"] for plan in experiment.plans()] == [11, 11]


def test_set_takes_strings_as_the_command_line_does():
    plans = Experiment.from_toml(SMALL).set("device.scheduler", "priority").plans()
    assert {plan["config"]["device"]["scheduler"]["policy"] for plan in plans} == {"priority"}


def test_who_changes_plans_changes_nobody_elses():
    experiment = Experiment.from_toml(SMALL)
    experiment.plans().clear()
    experiment.plans()[0]["config"].clear()
    assert experiment.plans()[0]["config"]["workload"]


@pytest.mark.parametrize("value", [True, 3, 0.5, ["a", 1], {"policy": "fifo", "x y": [True]}])
def test_set_writes_other_values_as_toml(value):
    experiment = Experiment(SMALL, "small").set("device.scheduler", value)
    (_, text), *_ = experiment._sets
    assert tomllib.loads(f"value = {text}")["value"] == value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.float64(0.25), 0.25),
        (np.bool_(True), True),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        ([np.int64(1)], [1]),
        (Path("a b") / "c", "a b/c"),
        (['é😀\x7f\t"\\'], ['é😀\x7f\t"\\']),
        (float("inf"), float("inf")),
        (1e300, 1e300),
    ],
)
def test_set_writes_what_numpy_and_paths_have_as_toml(value, plain):
    (_, text), *_ = Experiment(SMALL, "small").set("device.scheduler", value)._sets
    assert tomllib.loads(f"value = {text}")["value"] == plain


def test_a_table_may_hold_any_letters():
    table = {**tomllib.loads(SMALL), "title": "Ärger 😀\x7f"}
    assert Experiment.from_table(table, "x").plans()[0]["config"]["title"] == table["title"]


def test_variants_of_an_experiment_have_none_of_each_others_keys():
    experiment = Experiment.from_toml(SMALL).set("workload.requests", 9)
    before = experiment.plans()
    shown = repr(experiment)
    others = [experiment.set("workload.requests", count) for count in (11, 12)]
    wrong = experiment.set("device.schedular", "fair")
    with pytest.raises(InputError, match="did you mean"):
        wrong.plans()
    for other, count in zip(others, (11, 12), strict=True):
        assert [plan["config"]["workload"]["requests"] for plan in other.plans()] == [count] * 2
    assert (experiment.plans(), repr(experiment)) == (before, shown)


@pytest.mark.parametrize("value", [None, b"ab", {"x": object()}])
def test_what_toml_has_no_equal_for_is_refused(value):
    with pytest.raises(InputError, match="has no TOML equal"):
        Experiment(SMALL, "small").set("device.scheduler", value).plans()


def test_seed_replaces_the_experiments_own():
    assert {plan["config"]["seed"] for plan in Experiment.from_toml(SMALL).plans(seed=99)} == {99}


def test_same_seed_same_result(small_result, small_toml):
    again = Experiment.from_toml(small_toml).run()
    assert without_clock(again) == without_clock(small_result)


def test_another_seed_another_result(small_result, small_toml):
    other = Experiment.from_toml(small_toml).run(seed=8)
    assert other["fifo"].data["digest"] != small_result["fifo"].data["digest"]


def test_result_does_not_depend_on_jobs(small_result, small_toml):
    parallel = Experiment.from_toml(small_toml).run(jobs=2)
    assert without_clock(parallel) == without_clock(small_result)


def test_result_does_not_depend_on_the_cache(small_result, small_toml):
    cold = Experiment.from_toml(small_toml).run(use_cache=False)
    assert without_clock(cold) == without_clock(small_result)


def test_seeds_are_consecutive_and_pooled(small_result, small_toml):
    pooled = Experiment.from_toml(small_toml).run(seeds=3, jobs=2)["fifo"]
    assert pooled.seeds == [7, 8, 9]
    counts = [pooled.data["requests"], pooled.samples("read"), pooled.samples("write")]
    alone = small_result["fifo"]
    assert counts[0] == 3 * alone.data["requests"]
    assert counts[1] + counts[2] == counts[0]


def test_progress_ends_with_everything_done(small_toml):
    last = {}

    def note(index, phase, fraction):
        assert 0 <= fraction <= 1
        last[index] = (phase, fraction)

    Experiment.from_toml(small_toml).run(jobs=2, progress=note)
    assert set(last) == {0, 1}


@pytest.mark.parametrize("seeds", [0, -1])
def test_no_seeds_are_refused(seeds):
    with pytest.raises(InputError, match="at least one"):
        Experiment.from_toml(SMALL).run(seeds=seeds)


def test_no_jobs_are_refused():
    with pytest.raises(InputError, match="jobs = 0: at least one"):
        Experiment.from_toml(SMALL).run(jobs=0)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.toml: No such file"):
        Experiment.from_toml(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("dmeo", r"no experiment is named 'dmeo'; there are demo, [^;]*$"),
        ("autossd", "no experiment is named 'autossd'"),
        ("rad-as", "it is a profile: with_profile takes it"),
    ],
)
def test_only_experiments_are_named_so(name, words):
    with pytest.raises(InputError, match=words):
        Experiment.named(name)


def test_binary_file_is_named(tmp_path):
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"x\.toml: not a text file"):
        Experiment.from_toml(tmp_path / "x.toml")


def test_error_in_a_worker_process_keeps_its_type():
    tasks = [Task(index, "broken", "not a plan", 1, None) for index in range(2)]
    with pytest.raises(InputError, match="not a run plan"):
        execute(tasks, 2, TableFiles.temporary(), None)


def test_version_is_one():
    assert flashkeel.__version__.count(".") == 2


def test_a_profile_says_in_every_result_what_it_rests_on():
    experiment = Experiment.from_toml(SMALL).set("workload.requests", 3000)
    experiment = experiment.set(
        "workload.source", {"policy": "profile", "name": "rad-as", "intensity": 2.0}
    )
    for run in experiment.run(seeds=2):
        assert (run.synthetic, run.profile, run.data["basis"]) == (True, "rad-as", "synthetic")
        notes = "\n".join(run.data["notes"])
        assert "profile rad-as is synthetic, no recorded trace: after AutoSSD" in notes
        assert "lies all over the device's" in notes
        # Two seeds of 3000 requests, 24.9 ms apart, twice as fast.
        assert run.data["simulated_s"] == pytest.approx(2 * 3000 * 0.0249 / 2, rel=0.3)


def test_an_experiment_on_the_default_device_has_room_for_a_profile():
    experiment = Experiment.with_profile("lm-tbe").set("workload.requests", 10)
    (plan,) = experiment.plans()
    assert plan["config"]["workload"]["source"]["name"] == "lm-tbe"


def test_a_trace_is_scanned_once_and_its_progress_told(tmp_path, monkeypatch):
    lines = (f"{n * 1000} 0 {n % 1000 * 8} 8 1\n" for n in range(40_000))
    (tmp_path / "t.mqsim").write_text("".join(lines))
    experiment = Experiment.from_toml(SMALL)
    experiment = experiment.set(
        "workload.source", {"policy": "trace", "path": str(tmp_path / "t.mqsim")}
    )
    told = []
    plans = experiment.plans(progress=lambda *report: told.append(report))
    assert {phase for phase, _ in told} == {"scan"}
    monkeypatch.setattr("flashkeel._core.resolve", None)
    assert experiment.plans() == plans


def test_tables_that_nobody_reads_are_not_written(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(TableFiles, "write", lambda _, kind, *rest: written.append(kind))
    experiment = Experiment(SMALL.split("[[runs]]")[0], "small").set("workload.requests", 200)
    experiment = experiment.set("measure.log_requests", True).set("device.buffer.size", "32KiB")
    experiment.run()
    assert written == ["series", "requests"]
    buffers.plan(experiment, buffers.Goal("p50", 1e12))
    plan = experiment.plans()[0]
    points = [running.Point(0, {}, plan, [1, 2])]
    store = running.Store(tmp_path)
    running.run(running.work(points, store).wanted, store, "local", 2, None, None)
    hierarchy._runs([plan], [1], 1, None)
    assert written == ["series", "requests"]
