"""flashkeel run."""

import json
import os
import subprocess
import sys

import pytest

PERCENTILES = 12
DISTRIBUTION = {"count", "iops", "bytes", "mean_ns", "max_ns", "percentile", "beyond", "ci95"}
RUN = {
    "name", "seed", "digest", "requests", "simulated_s", "wall_s", "waf", "erases",
    "gc_blocked_fraction", "read", "write", "small_read", "blame_ns",
}  # fmt: skip


@pytest.fixture
def printed(cli, small_toml):
    outcome = cli("run", small_toml, "--format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    return json.loads(outcome.out)


def test_json_has_the_promised_shape(printed):
    assert printed["schema"] == 1
    for run in printed["runs"]:
        assert run.keys() >= RUN
        assert "detail" not in run
        for latency_class in ("read", "write", "small_read"):
            assert run[latency_class].keys() >= DISTRIBUTION
            keys = run[latency_class]["percentile"].keys()
            assert len(keys) == PERCENTILES
            assert {"50.000000", "99.900000", "99.999900"} <= keys
            assert run[latency_class]["beyond"].keys() == keys
            assert run[latency_class]["ci95"].keys() == keys


def test_json_counts_agree(printed):
    for run in printed["runs"]:
        assert run["requests"] == run["read"]["count"] + run["write"]["count"] == 20000
        assert run["small_read"]["count"] <= run["read"]["count"]
        assert run["waf"] >= 1
        assert 0 <= run["gc_blocked_fraction"] <= 1


def test_blame_is_all_of_the_latency(printed):
    for run in printed["runs"]:
        total = sum(run[c]["count"] * run[c]["mean_ns"] for c in ("read", "write"))
        assert sum(run["blame_ns"].values()) == pytest.approx(total, rel=1e-9)


def test_json_carries_what_reproduces_it(printed):
    for run in printed["runs"]:
        assert run["seed"] == run["config"]["seed"] == 7
        assert run["version"] == printed["version"]
        assert run["basis"] == "synthetic"


def test_table_has_runs_tails_causes_and_plot(cli, small_toml):
    outcome = cli("run", small_toml)
    assert (outcome.status, outcome.err) == (0, "")
    for words in (
        "synthetic workload", "IOPS", "MB/s", "requests simulated/s", "WAF", "GC-blocked",
        "Latency of small reads", "Latency of writes", "p99.9999",
        "owns the latency of writes above p99.9", "o fifo  x debit", "*0",
    ):  # fmt: skip
        assert words in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 100


def test_pooled_seeds_show_an_interval(cli, small_toml):
    outcome = cli("run", small_toml, "--seeds", 2)
    assert " … " in outcome.out


def test_pipe_has_no_colour_and_no_progress(shell, small_toml):
    outcome = shell("run", small_toml)
    assert outcome.status == 0
    assert "\x1b" not in outcome.out
    assert outcome.err == ""


def test_a_cache_that_cannot_be_made_costs_no_run_where_nobody_can_be_told(small_toml):
    command = [sys.executable, "-m", "flashkeel", "run", str(small_toml), "--format", "json"]
    environment = os.environ | {"FLASHKEEL_CACHE": "/dev/null/cache"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=full, env=environment, check=False
        )
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["runs"]) == 2


def test_set_reaches_the_device(cli, small_toml):
    outcome = cli(
        "run", small_toml, "--format", "json",
        "--set", "device.scheduler=priority", "--set", "workload.requests=100",
    )  # fmt: skip
    for run in json.loads(outcome.out)["runs"]:
        assert run["config"]["device"]["scheduler"]["policy"] == "priority"
        assert run["requests"] == 100


def test_fio_json_has_fios_keys(cli, small_toml):
    document = json.loads(cli("run", small_toml, "--format", "fio-json").out)
    assert [job["jobname"] for job in document["jobs"]] == ["fifo", "debit"]
    for job in document["jobs"]:
        assert job["read"]["total_ios"] == job["read"]["clat_ns"]["N"]
        assert job["read"]["clat_ns"]["percentile"]["99.000000"] > 0
        assert job["trim"]["total_ios"] == 0


def test_out_saves_and_names_the_picture(cli, small_toml, tmp_path):
    outcome = cli("run", small_toml, "--out", tmp_path / "out")
    assert outcome.status == 0
    assert outcome.out.rstrip().endswith(f"Picture: {tmp_path / 'out' / 'tails.png'}")
    saved = json.loads((tmp_path / "out/result.json").read_text())
    assert all("detail" in run for run in saved["runs"])


def test_out_refuses_another_result_before_running(cli, small_toml, saved):
    before = (saved / "result.json").stat().st_mtime_ns
    outcome = cli("run", small_toml, "--seed", 1, "--out", saved)
    assert outcome.status == 2
    assert "--overwrite" in outcome.err
    assert (saved / "result.json").stat().st_mtime_ns == before


def test_demo_is_built_in(cli):
    outcome = cli("show", "demo")
    assert outcome.status == 0
    for name in ("fifo", "priority", "fair", "debit"):
        assert f'"{name}"' in outcome.out


def test_runs_whose_difference_is_set_over_are_told_to_be_alike(cli, small_toml):
    told = "Note: fifo, debit: they did the same in every request"
    said = cli("run", small_toml, "--set", "device.scheduler=fair").out
    assert told in said
    assert "what they differ in makes no difference here" in " ".join(said.split())
    assert max(len(line) for line in said.partition("Note: ")[2].splitlines()) <= 80
    assert told not in cli("run", small_toml).out
