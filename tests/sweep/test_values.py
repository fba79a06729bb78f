"""Values of a sweep's keys keep their types, in experiments and in the table."""

import csv
import json
import warnings
from pathlib import Path

import pytest
from arro3.io import read_parquet
from flashkeel.sweep import design, quantity, running
from flashkeel.sweep.outcome import picture, rows, tenant_rows
from small import SMALL

DEVICE = SMALL.partition("[device]")[2].partition("[workload]")[0]
SWEEP = f"""\
[experiment]
[experiment.device]
{DEVICE.replace("[", "[experiment.")}
[experiment.workload]
requests = 20
pacing = "closed"
source = {{ policy = "synthetic", read_fraction = 0.5 }}
[grid]
"""


@pytest.mark.parametrize("text", ["5", "true", "nan", "[x]", "2024-01-01", "{ a = 1 }", "é"])
def test_strings_stay_strings(text):
    found = design.parse(f'{SWEEP}title = ["{text}"]', "mine.toml", Path())
    (plan,) = found.experiment(found.points[0]).plans()
    assert plan["config"]["title"] == text


def test_a_string_that_is_set_stays_one(cli, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(f'{SWEEP}"device.buffer.timeout" = ["1ms"]')
    outcome = cli("sweep", path, "-o", tmp_path / "out", "--set", 'title="5"')
    assert outcome.status == 0, outcome.err


def test_booleans_are_booleans_in_the_table(cli, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(f'{SWEEP}"workload.fua" = [true, false]')
    assert cli("sweep", path, "-o", tmp_path / "out").status == 0
    table = read_parquet(tmp_path / "out" / "sweep.parquet").read_all()
    assert json.dumps(table["workload.fua"].to_pylist()) == "[true, false]"


def done(cli, tmp_path, keys):
    """Run a sweep; return its design, what came of it, and what was printed."""
    path = tmp_path / "mine.toml"
    path.write_text(SWEEP + keys)
    outcome = cli("sweep", path, "-o", tmp_path / "out")
    assert outcome.status == 0, outcome.err
    found = design.read(str(path))
    finished = running.finished(running.points(found, 1), running.Store(tmp_path / "out"))
    return found, finished, outcome


def test_percentages_stand_in_their_order_and_are_numbers_in_the_table(cli, tmp_path):
    found, finished, _ = done(cli, tmp_path, '"device.logical_capacity" = ["78%", "60%", "72%"]')
    measured = rows(found, finished)
    assert [row["device.logical_capacity_percent"] for row in measured] == [78, 60, 72]
    axes, *_ = picture(found, finished).axes
    (line,) = [line for line in axes.get_lines() if line.get_alpha() == 0.4]
    assert list(line.get_xdata()) == [60, 72, 78]
    assert [it.get_text() for it in axes.get_xticklabels()] == ["78%", "60%", "72%"]
    assert quantity.of(["60%", "1MiB"]) is None
    assert quantity.of(["5%"]).shown(7.5) == "7.5%"


def test_one_time_in_an_array_is_that_time(cli, tmp_path):
    keys = '"device.timing.read" = [["100us"], ["20us"]]'
    found, finished, _ = done(cli, tmp_path, keys)
    seconds = [row["device.timing.read_s"] for row in rows(found, finished)]
    assert seconds == pytest.approx([1e-4, 2e-5])
    axes, *_ = picture(found, finished).axes
    assert [it.get_text() for it in axes.get_xticklabels()] == ["100us", "20us"]
    assert quantity.of(['["20us"]', '["20us", "30us"]']) is None


def tenants(number):
    source = "{ policy = 'synthetic', pattern = 'uniform' }"
    return ", ".join(
        f"{{ name = '{it}', workload = {{ requests = 20, source = {source} }} }}"
        for it in "abcdef"[:number]
    )


def test_long_values_are_called_after_the_first_point_that_has_them(cli, tmp_path):
    counts = ", ".join(f"[{tenants(number)}]" for number in (1, 2, 6))
    keys = f'"stack.tenants" = [{counts}]\n"device.scheduler" = ["fifo", "debit"]'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, finished, outcome = done(cli, tmp_path, keys)
        axes, *_ = (figure := picture(found, finished)).axes
        figure.draw_without_rendering()
    table, *_ = outcome.out.partition("Wrote ")
    assert max(map(len, table.splitlines())) <= 80 and "policy" not in table
    assert "IOPS" in outcome.out and "tenants N: what point N of sweep.csv has" in outcome.out
    assert [it.get_text() for it in axes.get_xticklabels()] == [
        "tenants 1", "tenants 3", "tenants 5",
    ]  # fmt: skip
    assert "tenants N: what point N of sweep.csv has" in figure.get_supxlabel()
    # The files have them whole.
    assert len(json.loads(rows(found, finished)[4]["stack.tenants"])) == 6


def test_each_tenant_has_a_row_of_its_own(cli, tmp_path):
    keys = f'"stack.tenants" = [[{tenants(1)}], [{tenants(2)}]]'
    found, finished, outcome = done(cli, tmp_path, keys)
    assert f"Wrote {tmp_path / 'out' / 'tenants.csv'}" in outcome.out
    with (tmp_path / "out" / "tenants.csv").open() as sheet:
        read = list(csv.DictReader(sheet))
    assert [(row["point"], row["tenant"]) for row in read] == [("1", "a"), ("2", "a"), ("2", "b")]
    assert all(int(row["small_reads"]) + int(row["writes"]) == 20 for row in read)
    table = read_parquet(tmp_path / "out" / "tenants.parquet").read_all()
    (_, run) = (it.run for it in finished)
    assert table["small_read_p99_ns"].to_pylist()[1:] == [
        tenant.percentile("small_read", 99) for tenant in run.tenants
    ]
    assert [row["tenant"] for row in tenant_rows(found, finished)] == ["a", "a", "b"]
