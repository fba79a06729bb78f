"""flashkeel list and show."""

import re
import tomllib
from pathlib import Path

from flashkeel import hierarchy
from flashkeel.sweep import design


def test_experiments_are_names_one_a_line(cli):
    assert "demo" in cli("list", "experiments").out.splitlines()


def test_every_listed_sweep_shows_as_a_file_to_begin_with(cli, tmp_path):
    names = cli("list", "sweeps").out.split()
    assert "over-provisioning" in names
    for name in names:
        mine = tmp_path / f"{name}.toml"
        mine.write_text(cli("show", name).out)
        assert design.read(str(mine)).points == design.read(name).points


def test_every_listed_preset_shows_as_toml(cli):
    names = cli("list", "presets").out.split()
    assert "autossd" in names
    for name in names:
        assert tomllib.loads(cli("show", name).out)


def test_every_set_of_policies_of_tiers_shows_as_toml_and_those_with_a_tier_below_are_planned(cli):
    documents = {
        name: tomllib.loads(cli("show", name).out) for name in cli("list", "tiers").out.split()
    }
    below = {name for name, document in documents.items() if "lower" in document}
    assert below == {"oc", "nlcwoip", "nlcwip"}
    assert set(hierarchy.POLICIES) == {hierarchy.BASE, *below} <= set(documents)


def test_policies_follow_what_they_decide(cli):
    lines = cli("list", "policies").out.splitlines()
    assert {f"scheduler {name}" for name in ("fifo", "priority", "fair", "debit")} <= set(lines)


def test_profiles_are_named_shown_and_documented(cli):
    names = cli("list", "profiles").out.split()
    assert {"rad-as", "lm-tbe", "tpce", "rw-mixed", "dapps", "tpcc"} <= set(names)
    page = Path(__file__).parents[2] / "docs/workloads.md"
    documented = set(re.findall(r"^\| `([a-z-]+)` \|", page.read_text(), re.MULTILINE))
    for name in names:
        source = tomllib.loads(cli("show", name).out)["workload"]["source"]
        assert source == {"policy": "profile", "name": name}
        assert name in documented


def test_version(cli):
    assert cli("--version").out.startswith("flashkeel 0.")
