"""Looking at results from Python."""

import copy
import gc
import json
import multiprocessing
import pickle
import subprocess
import sys
from itertools import accumulate

import flashkeel
import pytest
from flashkeel import Experiment, InputError, Run, percentiles
from flashkeel import run as run_module
from flashkeel.output import notebook
from small import SMALL


def test_percentile_takes_either_spelling(small_result):
    run = small_result["fifo"]
    assert run.percentile("read", 99.9) == run.percentile("read", "p99.9")


def test_percentiles_grow(small_result):
    for run in small_result:
        values = [run.percentile("read", p) for p in (50, 90, 99, 99.9, 99.9999)]
        assert values == sorted(values)


def test_unknown_percentile_names_the_known_ones(small_result):
    run = small_result["fifo"]
    plain = Run({key: run.data[key] for key in run.data if key != "detail"}, small_result.files)
    with pytest.raises(InputError, match=r"no percentile 77 .* p99\.9"):
        plain.percentile("read", 77)


def test_other_percentiles_are_those_of_the_histogram(small_result):
    run = small_result["fifo"]
    for latency_class in ("read", "small_read", "write"):
        values = [run.percentile(latency_class, p) for p in (99.9, 99.93, "p99.94", 99.95)]
        assert values == sorted(values)
        assert run.percentile(latency_class, 99.99999) == run.data[latency_class]["max_ns"]
        # Of those in the result the rank is the same.
        ranked = run_module._ranked(run.distribution(latency_class), "99.000000")
        assert ranked == run.percentile(latency_class, 99)
        assert run.percentile(latency_class, 0) <= run.percentile(latency_class, 0.01)
        beyond = [run.beyond(latency_class, p) for p in (99, 99.3, 99.5, 99.99999)]
        assert beyond == sorted(beyond, reverse=True)
        value = run.percentile(latency_class, 99.3)
        assert beyond[1] == sum(n for ns, n in run.distribution(latency_class) if ns > value)
        assert beyond[3] == 0
        # What its interval is has not been kept.
        with pytest.raises(InputError, match=r"no percentile 99\.3 .* p99\.9"):
            run.interval(latency_class, 99.3)
    assert (run.percentile("flush", 99.3), run.beyond("flush", 99.3)) == (None, 0)


@pytest.mark.parametrize("text", ["x", "100", "-1", "nan", ""])
def test_nonsense_percentile_is_refused(small_result, text):
    with pytest.raises(InputError, match="not a percentile"):
        small_result["fifo"].percentile("read", text)


def test_unknown_class_names_the_known_ones(small_result):
    with pytest.raises(InputError, match=r"no class 'reads'.*small_read"):
        small_result["fifo"].percentile("reads", 99)


def test_unknown_run_names_the_known_ones(small_result):
    with pytest.raises(InputError, match=r"no run 'x'.*fifo, debit"):
        small_result["x"]


def test_class_without_samples_has_no_latency(small_result):
    run = small_result["fifo"]
    assert run.samples("flush") == 0
    assert run.percentile("flush", 99) is None
    assert run.mean("flush") is None
    assert run.beyond("flush", 99) == 0
    assert run.interval("flush", 99) is None


def test_interval_holds_the_percentile(small_result):
    run = small_result["fifo"]
    low, high = run.interval("read", 50)
    assert low <= run.percentile("read", 50) <= high


def test_few_samples_have_no_interval(small_result):
    assert small_result["fifo"].beyond("read", 99.9999) == 0
    assert small_result["fifo"].interval("read", 99.9999) is None


def test_explanation_accounts_for_everything(small_result):
    found = small_result["fifo"].explain(above="p99", latency_class="read")
    assert found.count > 0
    assert sum(share.share for share in found.shares) == pytest.approx(1)
    assert sum(share.mean_ns for share in found.shares) == pytest.approx(found.mean_ns)
    assert all(0 < share.requests <= found.count for share in found.shares)


def test_explanation_of_all_requests_has_the_mean(small_result):
    run = small_result["fifo"]
    found = run.explain(above=0, latency_class="read")
    assert found.count == run.samples("read")
    assert found.mean_ns == pytest.approx(run.mean("read"))


def test_series_goes_into_pandas(small_result):
    import pandas

    table = small_result["fifo"].series()
    frame = pandas.DataFrame(table)
    assert list(frame.columns) == list(table)
    assert len(frame) == len(table) == table.num_rows
    assert frame["reads"].sum() == sum(table.column("reads").to_pylist())


def test_a_notebook_tells_runs_of_one_colour_apart(small_result):
    many = [small_result.runs[0].called(f"run {index}") for index in range(9)]
    shown = notebook.runs(many)
    style = shown.partition("<style>")[2].partition("</style>")[0]
    for kind in ("line again", "line alone", "key again"):
        rule = f".flashkeel .{kind.replace(' ', '.')} {{ "
        assert style.count(rule) == 1
    assert shown.count('class="line again"') == shown.count('class="key again"') == 2


def test_results_show_what_they_are(small_result, small_toml):
    assert repr(small_result) == "<Result 'Small': 2 runs: fifo, debit>"
    shown = small_result._repr_html_()
    assert shown.count("<tr>") == 1 + 3 * len(small_result)
    assert "p99.9999" in shown and "synthetic workload" in shown and "small read" in shown
    assert shown.count("<table>") == shown.count("</table>") == 1
    assert shown.count("<svg") == 1 and shown.count("<polyline") >= len(small_result)
    assert "debit" not in small_result["fifo"]._repr_html_()
    explained = small_result["fifo"].explain(above="p99")
    assert explained._repr_html_().count("<tr>") == 1 + len(explained.shares)
    experiment = flashkeel.Experiment.from_toml(small_toml).set("seed", 3)
    assert repr(experiment) == f"<Experiment {str(small_toml)!r}, seed = 3>"
    assert "[device]" in experiment._repr_html_() and "# set: seed = 3" in experiment._repr_html_()
    table = small_result["fifo"].series()
    assert repr(table).startswith(f"<Table: {len(table)} rows of start_ns, ")
    assert "<th>start_ns</th>" in table._repr_html_()


def test_a_distribution_is_that_of_the_percentiles(small_result):
    run = small_result["fifo"]
    for latency_class in ("read", "small_read", "write"):
        found = run.distribution(latency_class)
        assert sum(count for _, count in found) == run.samples(latency_class)
        below = list(accumulate(count for _, count in found))
        median = next(
            ns
            for (ns, _), count in zip(found, below, strict=True)
            if 2 * count >= run.samples(latency_class)
        )
        assert median == pytest.approx(run.percentile(latency_class, 50), rel=0.002)
    assert run.distribution("flush") == []


def test_series_is_an_arrow_table(small_result):
    table = small_result["fifo"].series()
    assert table.num_rows > 0
    assert hasattr(table, "__arrow_c_stream__")


def test_series_of_another_seed_is_refused(small_result):
    with pytest.raises(InputError, match="has no seed 3"):
        small_result["fifo"].series(seed=3)


def test_request_log_must_have_been_asked_for(small_result):
    with pytest.raises(InputError, match=r"measure\.log_requests"):
        small_result["fifo"].requests()


def test_request_log_has_a_row_a_request(small_toml):
    experiment = flashkeel.Experiment.from_toml(small_toml).set("measure.log_requests", True)
    run = experiment.set("workload.requests", 500).run(jobs=2)["debit"]
    log = run.requests()
    assert log.num_rows == run.data["requests"] == 500


def test_saved_result_loads_as_it_was(small_result, saved):
    loaded = flashkeel.load(saved)
    assert loaded.document == json.loads(small_result.to_json(detail=True))
    assert loaded["debit"].series().num_rows == small_result["debit"].series().num_rows
    assert loaded["debit"].explain() == small_result["debit"].explain()


def test_json_without_detail_explains_nothing(small_result, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(small_result.to_json())
    with pytest.raises(InputError, match="--out"):
        flashkeel.load(path)["fifo"].explain()


def test_run_names_may_hold_anything(small_result):
    files = small_result.files
    paths = {files.path("series", name, 1) for name in ("a/b", "a%2Fb", "..", "a b", "a")}
    assert len(paths) == 5
    assert {path.parent for path in paths} == {files.directory / "series"}


def test_temporary_tables_go_with_the_result(small_toml):
    result = flashkeel.Experiment.from_toml(small_toml).set("workload.requests", 100).run()
    directory = result.files.directory
    run = result["fifo"]
    del result
    assert run.series().num_rows > 0
    del run
    gc.collect()
    assert not directory.exists()


def run_small(requests):
    return flashkeel.Experiment.from_toml(SMALL).set("workload.requests", requests).run()


def test_results_of_other_processes_bring_their_tables():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (result,) = pool.map(run_small, [500])
    assert sum(result["fifo"].series()["reads"]) == result["fifo"].samples("read")


def test_a_copy_has_its_own_tables():
    result = run_small(500)
    copied = copy.deepcopy(result)
    rows = len(result["fifo"].series())
    del result
    gc.collect()
    assert len(copied["fifo"].series()) == rows


def test_a_saved_result_that_is_copied_stays_where_it_is(saved):
    loaded = flashkeel.load(saved)
    assert pickle.loads(pickle.dumps(loaded)).files.directory == loaded.files.directory


def test_a_forked_process_leaves_the_tables_of_its_parent(small_toml):
    script = f"""
import os, sys, flashkeel
result = flashkeel.Experiment.from_toml({str(small_toml)!r}).run()
child = os.fork()
if child == 0:
    sys.exit()
os.waitpid(child, 0)
print(len(result["fifo"].series()))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 0


def test_a_table_that_is_copied_keeps_what_was_added(small_result):
    table = small_result["fifo"].series()
    table["twice"] = 2 * table["reads"]
    for again in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        assert list(again) == list(table)
        assert list(again["twice"]) == list(table["twice"])
        assert again.num_rows == table.num_rows
        assert again.schema == table.schema


def test_a_number_that_is_missing_is_none_of_its_column():
    from arro3.core import Array, DataType
    from arro3.core import Table as ArrowTable
    from flashkeel import Table

    arrow = ArrowTable.from_pydict({"mean": Array([None, 2.5], DataType.float64())})
    column = Table(arrow)["mean"]
    assert column.dtype == float
    assert column[1] == 2.5
    assert column[0] != column[0]


def test_a_table_may_have_no_row():
    from arro3.core import DataType, Field, Schema
    from arro3.core import Table as ArrowTable
    from flashkeel import Table

    schema = Schema([Field("reads", DataType.uint64()), Field("mean", DataType.float64())])
    table = Table(ArrowTable.from_batches([], schema=schema))
    assert (len(table), table["reads"].tolist(), table["mean"].tolist()) == (0, [], [])
    assert "0 rows" in repr(table)


def test_a_tenant_has_the_tables_of_the_whole_run(small_toml):
    stack = {
        "devices": [{"ssd": {"preset": "ssd-a", "precondition": {"pattern": "none"}}}],
        "tenants": [
            {"name": name, "workload": {"requests": 50, "source": "synthetic", "pacing": "closed"}}
            for name in ("a", "b")
        ],
    }
    table = {"stack": stack, "measure": {"log_requests": True}}
    (run,) = Experiment.from_table(table, "two").run().runs
    tenant = run.tenants[1]
    assert (tenant.name, tenant.samples("read") + tenant.samples("write")) == ("b", 50)
    assert tenant.requests().num_rows == run.requests().num_rows == 100
    # Whose a row is says its number.
    assert sorted(run.requests()["tenant"].tolist()) == [0] * 50 + [1] * 50
    assert tenant.series().num_rows == run.series().num_rows
    assert tenant.called("c").series().num_rows == run.series().num_rows


def test_a_percentile_by_size_is_the_same_rank(small_toml):
    source = {"policy": "synthetic", "read_fraction": 1.0}
    experiment = Experiment.from_toml(small_toml).set("workload.requests", 1000)
    run = experiment.set("workload.source", source).run().runs[0]
    (by_size,) = run.percentile_by_size("read", 99.9).values()
    assert run.samples("read") == 1000
    assert by_size == run.percentile("read", 99.9)
    # A bar of the histogram may reach beyond the slowest request.
    for percentile in ("p99.9999", 99.95, 99.999):
        (by_size,) = run.percentile_by_size("read", percentile).values()
        assert by_size == run.percentile("read", percentile) == run.data["read"]["max_ns"]
    with pytest.raises(InputError, match="no operation 'reads'; the operations are read, write,"):
        run.percentile_by_size("reads", 50)


@pytest.mark.parametrize("text", ["p99.9999999", "99.99999951", "33.3333333"])
def test_a_percentile_has_six_decimals_at_most(small_result, text):
    with pytest.raises(InputError, match="six decimals"):
        small_result["fifo"].percentile("read", text)
    assert percentiles.parse(100 / 3) == 100 / 3
