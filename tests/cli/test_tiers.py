"""flashkeel run with tiers: what is wrong is named, with status 2."""

import json

import pytest

TIER = """\
[device]
logical_capacity = "4MiB"
map_cache = "all"
gc = { start_below = 8, stop_above = 12, concurrent_victims = 4 }
geometry.channels = 2
geometry.chips_per_channel = 2
geometry.planes_per_chip = 1
geometry.blocks_per_plane = 24
geometry.pages_per_block = 8

[workload]
source = { policy = "synthetic", read_fraction = 0.5 }
pacing = "closed"
requests = 3000

[[stack.devices]]
tier.preset = "nlcwip"
tier.upper.dram = { capacity = "128KiB" }
tier.lower.tier.upper.nvm = { capacity = "512KiB" }
tier.lower.tier.lower.ssd = {}
"""

TOP = "stack.devices.0.tier"
NVM = f"{TOP}.lower.tier"
RATING = '{{ per_day = "{}", day = "1ms", week = "4ms", budget = "anchored" }}'


@pytest.fixture
def tier_toml(tmp_path):
    path = tmp_path / "tier.toml"
    path.write_text(TIER)
    return path


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (f"{NVM}.upper.nvm.capacity", "8MiB", ["lower.tier.upper", "8MiB", "4MiB"]),
        (f"{TOP}.upper.dram.capacity", "8MiB", ["tier.upper", "8MiB", "4MiB"]),
        (f"{NVM}.ratings.lower", RATING.format("0B"), ["ratings.lower.per_day", "0B", "4KiB"]),
        (f"{NVM}.ratings.upper", RATING.format("4095B"), ["ratings.upper.per_day", "4KiB"]),
        (
            f"{NVM}.ratings.lower",
            '{ per_day = "1MB", day = "2d", week = "1d" }',
            ["ratings.lower.week", "shorter than a day"],
        ),
        (
            f"{NVM}.ratings.lower",
            '{ per_day = "1MB", day = "2d", week = "5d" }',
            ["ratings.lower.week", "multiple"],
        ),
        (
            f"{NVM}.ratings.lower",
            '{ per_day = "1MB", day = "1us", week = "7us" }',
            ["ratings.lower.day", "1ms or longer"],
        ),
        (
            f"{NVM}.upper.nvm.capacity",
            "100001B",
            ["lower.tier.upper.nvm.capacity", "100001B", "96KiB"],
        ),
        (f"{TOP}.upper.dram.capacity", "6KiB", ["capacity", "6KiB", "4KiB"]),
        (f"{TOP}.upper.dram.capacity", "0B", ["capacity", "4KiB"]),
        (f"{NVM}.upper.nvm.capacity", "4KiB", ["no room for a block beside the journal"]),
        (f"{NVM}.upper.nvm.atomic_unit", "1000B", ["atomic_unit", "multiple of 512B"]),
        (
            f"{NVM}.writeback",
            '{ policy = "periodic", batch = "5000B" }',
            ["writeback.batch", "multiple of a page"],
        ),
        (f"{TOP}.preset", "nlcwp", ["nlcwip"]),
    ],
)
def test_what_is_wrong_is_named(cli, tier_toml, key, value, said):
    failed = cli("run", tier_toml, "--set", f"{key}={value}")
    assert (failed.status, failed.out) == (2, "")
    for word in said:
        assert word in failed.err, failed.err


def test_the_result_has_each_tier(cli, tier_toml):
    (run,) = json.loads(cli("run", tier_toml, "--format", "json").out)["runs"]
    nvm, memory = (run["stack"]["tiers"][number] for number in "01")
    assert memory["mean_kilobytes_at_risk"] == 0
    assert nvm["journal_bytes"] > 0
    for reads in (nvm["reads"], memory["reads"]):
        parts = reads["upper_share"] * reads["upper_ns"]
        parts += (1 - reads["upper_share"]) * reads["lower_ns"]
        assert parts + reads["added_ns"] == pytest.approx(reads["mean_ns"])


def test_a_table_shows_what_each_medium_was_written(cli, tier_toml):
    found = cli("run", tier_toml, "--set", 'runs=[{ name = "III" }]')
    assert found.status == 0
    lines = found.out.splitlines()
    first = lines.index("Tiers")
    assert "to NVM" in lines[first + 1] and "at risk" in lines[first + 1]
    assert lines[first + 3].split()[0] == "III" and lines[first + 3].split()[-2:] == ["0", "B"]
