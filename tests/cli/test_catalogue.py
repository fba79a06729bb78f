"""flashkeel list and show."""

import tomllib


def test_experiments_are_names_one_a_line(cli):
    assert "demo" in cli("list", "experiments").out.splitlines()


def test_every_listed_preset_shows_as_toml(cli):
    names = cli("list", "presets").out.split()
    assert "autossd" in names
    for name in names:
        assert tomllib.loads(cli("show", name).out)


def test_policies_follow_what_they_decide(cli):
    lines = cli("list", "policies").out.splitlines()
    assert {f"scheduler {name}" for name in ("fifo", "priority", "fair", "debit")} <= set(lines)


def test_version(cli):
    assert cli("--version").out.startswith("flashkeel 0.")
