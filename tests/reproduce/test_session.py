"""Runs for figures: pooling, sharing, workers."""

from flashkeel.reproduce import Session
from flashkeel.reproduce.series import columns
from flashkeel.reproduce.session import amount
from flashkeel.run import Run
from reproduce.conftest import TINY, tiny


def test_seeds_are_added_until_ten_samples_lie_beyond():
    run = Session().run([tiny("a", ("read", 99.9), 16)])["a"]
    assert run.beyond("read", 99.9) >= 10
    # A thousand reads a seed, one of them beyond.
    assert 10 <= len(run.seeds) <= 12


def test_no_more_seeds_than_the_case_allows():
    run = Session().run([tiny("a", ("read", 99.9), most_seeds=3)])["a"]
    assert run.seeds == [1, 2, 3]


def test_as_many_seeds_as_the_case_wants_in_any_case():
    run = Session().run([tiny("a", least_seeds=3)])["a"]
    assert run.seeds == [1, 2, 3]


def test_quick_takes_one_seed():
    session = Session(quick=True, seed=5)
    for case in (tiny("a", ("read", 99.9)), tiny("b", least_seeds=3)):
        assert session.run([case])[case.name].seeds == [5]


def test_a_recorded_trace_is_replayed_once(tmp_path):
    trace = tmp_path / "t.csv"
    rows = (f"{at * 10_000},host,0,Read,{at % 3000 * 4096},4096,0" for at in range(2000))
    trace.write_text("\n".join(rows))
    recorded = {"policy": "trace", "path": str(trace), "fold": "wrap"}
    generated = TINY["workload.source"]

    def tenants(*sources):
        return [{"name": f"t{at}", "workload": {"source": s}} for at, s in enumerate(sources)]

    copies = {"judged": ("read", 99.9), "least_seeds": 2, "most_seeds": 3}
    runs = Session().run(
        [
            tiny("alone", workload__source=recorded, **copies),
            tiny("both", stack__tenants=tenants(recorded, recorded), **copies),
            tiny("beside", stack__tenants=tenants(recorded, generated), **copies),
        ]
    )
    assert runs["alone"].beyond("read", 99.9) < 10, "two, of which copies would make six"
    seeds = {name: run.seeds for name, run in runs.items()}
    assert seeds == {"alone": [1], "both": [1], "beside": [1, 2, 3]}


def test_equal_configurations_run_once():
    executed = []
    session = Session(progress=lambda phase, fraction: executed.append(phase))
    first = session.run([tiny("a"), tiny("same")])
    assert first["a"].data["digest"] == first["same"].data["digest"]
    assert set(executed) == {"run 1 of 1", "run 2 of 1"}
    executed.clear()
    session.run([tiny("b")])
    assert not executed


def test_results_do_not_depend_on_the_number_of_jobs():
    cases = [tiny("a", ("read", 99.9), 2), tiny("b", device__scheduler="fifo")]
    alone, together = (Session(jobs=jobs).run(cases) for jobs in (1, 2))
    for name in ("a", "b"):
        assert alone[name].data["digest"] == together[name].data["digest"]


def test_time_series_come_as_lists():
    found = columns(Session().run([tiny("a")])["a"])
    assert found.window_s == 0.1
    assert sum(found["reads"]) + sum(found["writes"]) == 2000
    assert found.start_s[1] == 0.1


def test_conditions_say_how_much_was_measured():
    def run(requests, *seeds):
        return Run(
            {"name": "made", "seed": seeds[0], "seeds": list(seeds), "requests": requests}, None
        )

    one = "60,000 requests measured in each run, one seed"
    assert amount([run(60_000, 1), run(60_000, 1)]) == one
    several = [run(2_000_000, 1, 2), run(4_000_000, 1, 2, 3, 4)]
    assert amount(several) == "1,000,000 requests measured with each of 2 to 4 seeds"
