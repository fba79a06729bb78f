"""flashkeel export, and what fio's own script reads of it."""

import csv
import io
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import flashkeel
import pytest
from flashkeel.output import fio_json, units
from programs import require
from small import SMALL


def export(cli, saved, form):
    outcome = cli("export", saved, "--format", form)
    assert (outcome.status, outcome.err) == (0, "")
    return outcome.out


def test_fios_script_reads_the_bins(cli, saved, tmp_path):
    require("fio")
    path = tmp_path / "fio.json"
    # It is the system's Python that has what the script needs, not one that is activated.
    own = str(Path(sys.executable).parent)
    others = [folder for folder in os.environ["PATH"].split(":") if folder != own]
    system = {**os.environ, "PATH": ":".join(others)}
    assert cli("export", saved, "--format", "fio-json", "-o", path).status == 0
    for options in ((), ("--validate",)):
        command = ["fio_jsonplus_clat2csv", path, tmp_path / "out.csv", *options]
        done = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, check=False, env=system
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "mismatch" not in done.stdout
    rows = list(csv.reader((tmp_path / "out_job0.csv").open()))
    (job, _) = json.loads(path.read_text())["jobs"]
    column = [name.strip() for name in rows[0]].index("read_clat_ns_count")
    counted = sum(int(row[column]) for row in rows[1:] if len(row) > column and row[column].strip())
    assert counted == job["read"]["total_ios"]


def test_fio_json_has_smallest_deviation_and_classes(cli, saved, small_result):
    for job, run in zip(
        json.loads(export(cli, saved, "fio-json"))["jobs"], small_result.runs, strict=True
    ):
        for name in ("read", "write"):
            latency = job[name]["clat_ns"]
            values = run.distribution(name)
            assert latency["min"] == values[0][0] <= latency["percentile"]["50.000000"]
            assert latency["N"] == sum(latency["bins"].values()) == run.samples(name)
            second = sum(int(ns) ** 2 * count for ns, count in latency["bins"].items())
            variance = second / latency["N"] - latency["mean"] ** 2
            assert latency["stddev"] ** 2 == pytest.approx(variance, rel=0.01)
            assert job[name]["slat_ns"] == {
                "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": run.samples(name),
            }  # fmt: skip
        classes = [job[f"latency_{unit}"] for unit in ("ns", "us", "ms")]
        assert sum(sum(each.values()) for each in classes) == pytest.approx(100)
        assert list(classes[2])[-2:] == ["2000", ">=2000"]
        assert job["trim"]["clat_ns"]["N"] == 0


def test_the_smallest_latency_is_no_larger_than_the_mean():
    experiment = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    result = experiment.set("workload.requests", 1).set("workload.source.read_fraction", 1).run()
    (job,) = json.loads(fio_json.render(result))["jobs"]
    latency = job["read"]["lat_ns"]
    assert latency["min"] <= latency["mean"] == latency["max"]


def test_keys_of_latencies_are_fios_own(cli, saved, tmp_path):
    command = [require("fio"), "--name=x", "--ioengine=null", "--size=1m", "--rw=randrw"]
    command += ["--output-format=json+", f"--output={tmp_path / 'own.json'}"]
    subprocess.run([*map(str, command)], check=True, capture_output=True)
    (own,) = json.loads((tmp_path / "own.json").read_text())["jobs"]
    (ours, _) = json.loads(export(cli, saved, "fio-json"))["jobs"]
    for name in ("slat_ns", "clat_ns", "lat_ns"):
        assert set(own["read"][name]) - {"bins", "percentile"} <= set(ours["read"][name])
    for unit in ("latency_ns", "latency_us", "latency_ms"):
        assert list(own[unit]) == list(ours[unit])


def test_biolatency_counts_every_request(cli, saved, small_result):
    text = export(cli, saved, "biolatency")
    assert "fifo: reads (synthetic workload)" in text
    blocks = re.split(r"\n\n", text.strip())
    assert len(blocks) == 4
    for block in blocks:
        name, kind = re.match(r"(\w+): (\w+)s ", block).groups()
        rows = re.findall(r"^ *(\d+) -> (\d+) +: (\d+) +\|(\**) *\|$", block, re.MULTILINE)
        assert sum(int(row[2]) for row in rows) == small_result[name].samples(kind)
        assert max(len(row[3]) for row in rows) == 40
        assert [int(row[0]) for row in rows[1:4]] == [2, 4, 8][: len(rows) - 1]
        assert all(int(b[0]) == int(a[1]) + 1 for a, b in itertools.pairwise(rows))


def test_csv_has_a_row_a_percentile(cli, saved, small_result):
    rows = list(csv.DictReader(io.StringIO(export(cli, saved, "csv"))))
    run = small_result["debit"]
    (row,) = [
        row
        for row in rows
        if (row["run"], row["class"], row["percentile"]) == ("debit", "small_read", "99.9")
    ]
    assert int(row["latency_ns"]) == run.percentile("small_read", 99.9)
    assert int(row["beyond"]) == run.beyond("small_read", 99.9)
    assert row["basis"] == "synthetic"
    assert {row["class"] for row in rows} == {"read", "small_read", "write"}


def test_csv_of_runs_has_a_row_a_run(cli, saved, small_result):
    rows = {row["run"]: row for row in csv.DictReader(io.StringIO(export(cli, saved, "runs-csv")))}
    assert list(rows) == ["fifo", "debit"]
    row, run = rows["debit"], small_result["debit"]
    assert (float(row["waf"]), int(row["erases"])) == (run.waf, run.erases)
    assert int(row["write_count"]) == run.samples("write")
    assert float(row["write_bytes_per_s"]) == run.bandwidth("write")
    assert float(row["read_iops"]) == run.iops("read")
    assert float(row["read_mean_ns"]) == run.mean("read")
    assert int(row["read_max_ns"]) == run.data["read"]["max_ns"]
    assert (row["trim_count"], row["trim_mean_ns"], row["basis"]) == ("0", "", "synthetic")


@pytest.mark.parametrize("name", ["{}", "{}:fifo", "{}/result.json"])
def test_a_result_is_not_overwritten(cli, saved, name):
    for command in (("export", "--format", "csv"), ("report",)):
        outcome = cli(*command, name.format(saved), "-o", saved / "result.json")
        assert outcome.status == 2
        assert "choose another name" in outcome.err


def test_one_run_is_exported_alone(cli, saved):
    outcome = cli("export", f"{saved}:debit", "--format", "csv")
    assert (outcome.status, outcome.err) == (0, "")
    assert {row.partition(",")[0] for row in outcome.out.splitlines()[1:]} == {"debit"}


def test_markdown_has_percentiles_down_and_runs_across(cli, saved, small_result):
    outcome = cli("export", saved, "--format", "markdown")
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "Small (synthetic workload)"
    head = lines.index("| reads | fifo | debit |")
    assert lines[head + 1] == "| --- | ---: | ---: |"
    row = next(line for line in lines[head:] if line.startswith("| p99.9 |"))
    expected = [units.duration(run.percentile("read", 99.9)) for run in small_result]
    assert [cell.strip() for cell in row.split("|")[2:-1]] == expected
    assert any(line.startswith("| p99.9999 |") and r"\*0" in line for line in lines)
