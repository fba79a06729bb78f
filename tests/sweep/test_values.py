"""Values of a sweep's keys keep their types, in experiments and in the table."""

import json
from pathlib import Path

import pytest
from arro3.io import read_parquet
from flashkeel.sweep import design
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
