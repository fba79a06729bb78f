"""flashkeel run with a stack."""

import csv
import io
import json
import tomllib

import flashkeel
import pytest

STACK = """\
title = "Shared"

[device]
preset = "ssd-d"
logical_capacity = "256MiB"
geometry.blocks_per_plane = 112

[workload]
duration = "300ms"
pacing = { policy = "closed", depth = 4 }

[stack]
volumes = { policy = "va-lvm", bits = [17] }

[[stack.tenants]]
name = "reader"
workload.source = { policy = "synthetic", read_fraction = 1.0 }

[[stack.tenants]]
name = "writer"
workload.source = { policy = "synthetic", read_fraction = 0.0 }
"""


@pytest.fixture
def stack_toml(tmp_path):
    path = tmp_path / "stack.toml"
    path.write_text(STACK)
    return path


def test_json_has_each_tenant(cli, stack_toml):
    (run,) = json.loads(cli("run", stack_toml, "--format", "json").out)["runs"]
    reader, writer = run["tenants"]
    assert (reader["name"], writer["name"]) == ("reader", "writer")
    assert reader["read"]["count"] == run["read"]["count"] > 0
    assert writer["write"]["count"] == run["write"]["count"] > 0
    assert reader["basis"] == "synthetic"
    assert "detail" not in reader
    assert run["stack"]["ssds"]["0"]["host_bytes_read"] > 0


def test_table_has_a_row_a_tenant_and_seeds_pool(cli, stack_toml):
    out = cli("run", stack_toml, "--seeds", 2).out
    assert "Tenants" in out
    assert "reader" in out


def test_tier_counts_what_the_nvm_got(cli, stack_toml):
    outcome = cli(
        "run", stack_toml, "--format", "json", "--set", "stack.tier=write-back",
        "--set", "stack.nvm={capacity = '4MiB'}",
    )  # fmt: skip
    (run,) = json.loads(outcome.out)["runs"]
    assert run["stack"]["tiers"]["0"]["host_bytes_to_nvm"] > 0
    assert run["blame_ns"]["nvm"] > 0


def test_wrong_stack_names_the_key(cli, stack_toml):
    outcome = cli("run", stack_toml, "--set", "stack.volumes.bits=[40]")
    assert outcome.status == 2
    assert "bit 40 repeats after 1024TiB, which no device holds" in outcome.err


def test_policies_and_nvm_presets_are_listed(cli):
    policies = cli("list", "policies").out.splitlines()
    assert {"I/O scheduler pas", "volume manager va-lvm", "placement hybrid-pas"} <= set(policies)
    assert "optane-p4800x" in cli("list", "presets").out.split()
    assert tomllib.loads(cli("show", "optane-p4800x").out)["capacity"] == "375GB"


def test_chips_behind_a_stack_are_drawn_and_counted_on(cli, stack_toml, tmp_path):
    memory = "upper = {dram = {capacity = '16MiB'}}"
    tier = f"{{tier = {{placement = 'write-back', {memory}, lower = {{ssd = {{}}}}}}}}"
    out, picture = tmp_path / "out", tmp_path / "map.png"
    outcome = cli(
        "run", stack_toml, "--out", str(out), "--set", f"stack.devices=[{{ssd = {{}}}}, {tier}]",
        "--set", 'measure.chip_log={ from = "0s", length = "20ms" }',
    )  # fmt: skip
    assert outcome.status == 0, outcome.err
    (run,) = flashkeel.load(out).runs
    geometry = run.data["config"]["device"]["geometry"]
    chips = geometry["channels"] * geometry["chips_per_channel"]
    seen = set(run.chips().column("chip").to_pylist())
    assert min(seen) < chips <= max(seen) < 2 * chips
    assert cli("map", str(out), "-o", str(picture)).status == 0
    assert picture.stat().st_size > 1000


def test_what_a_tenant_got_is_explained_exported_and_drawn(cli, stack_toml, tmp_path):
    saved = tmp_path / "out"
    assert cli("run", stack_toml, "--out", saved).status == 0
    (run,) = flashkeel.load(saved).runs
    reader, _ = run.tenants
    for name in ("reader", f"{run.name}:reader"):
        (found,) = json.loads(cli("explain", f"{saved}:{name}", "--format", "json").out)
        assert (found["run"], found["latency_class"]) == ("reader", "small_read")
        assert found["threshold_ns"] == reader.explain().threshold_ns
    rows = list(csv.DictReader(io.StringIO(cli("export", saved, "--format", "csv").out)))
    assert {(row["run"], row["tenant"]) for row in rows} == {
        (run.name, tenant) for tenant in ("", "reader", "writer")
    }
    alone = cli("export", f"{saved}:writer", "--format", "csv").out
    assert {row["class"] for row in csv.DictReader(io.StringIO(alone))} == {"write"}
    jobs = json.loads(cli("export", saved, "--format", "fio-json").out)["jobs"]
    assert [(job["jobname"], job["read"]["total_ios"]) for job in jobs] == [
        ("reader", run.samples("read")),
        ("writer", 0),
    ]
    picture = tmp_path / "tails.svg"
    assert cli("plot", f"{saved}:reader", "-o", picture).status == 0
    assert "reader" in picture.read_text()
    for command in (("plot", "--kind", "series", "-o", picture), ("steady",)):
        refused = cli(command[0], f"{saved}:reader", *command[1:])
        assert (refused.status, "of a whole run" in refused.err) == (2, True), refused.err
    refused = cli("explain", f"{saved}:nobody")
    assert (refused.status, "no run 'nobody' in the result" in refused.err) == (2, True)
