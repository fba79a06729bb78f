"""Latencies so much alike that no percentile tells them apart: said, and counted as they are."""

import json

import flashkeel
import pytest
from flashkeel.explanation import Explanation
from flashkeel.output import notebook
from flashkeel.output.report import tails
from small import SMALL


@pytest.fixture(scope="module")
def alike():
    """Of writes in order, nearly all of which take as long as any other."""
    experiment = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    for key, value in {
        "workload.source.read_fraction": 0.0,
        "workload.source.pattern": "sequential",
        "workload.source.block_sizes": ["128KiB"],
        "workload.pacing": {"policy": "closed", "depth": 64},
        "workload.requests": 4000,
        "device.precondition.pattern": "sequential",
    }.items():
        experiment = experiment.set(key, value)
    return experiment.run()


def test_bands_hold_what_their_names_say(alike):
    (run,) = alike.runs
    bands = tails.bands(run, "write")
    for band in bands:
        if band.name.startswith("above p"):
            share = 1 - float(band.name.removeprefix("above p")) / 100
            assert band.count == pytest.approx(share * run.samples("write"), rel=0.25, abs=1)
    assert sum(band.count for band in bands) == run.samples("write")


def explanation(count, above, total=10_000):
    return Explanation("run", "write", above, 1000, count, 1000.0, (), total)


@pytest.mark.parametrize(
    ("count", "above", "reached"),
    [
        (10, 99.9, "p99.9"), (12, 99.9, "p99.9"), (48, 99.9, "p99.52"), (4, 99.9, "p99.96"),
        (1, 99.9999, "p99.9999"), (9_920, 99.9, "p0.8"), (10_000, 99.9, "p0"), (10_000, 0.0, "p0"),
        (5_300, 50.0, "p50"),
    ],
)  # fmt: skip
def test_the_percentile_reached_is_the_one_asked_for_if_about_as_many_are_above(
    count, above, reached
):
    assert explanation(count, above).reached == reached


def test_explain_says_from_where_on_it_explains(alike, cli, tmp_path):
    alike.save(tmp_path / "alike")
    (found,) = json.loads(
        cli("explain", tmp_path / "alike", "--above", "p99.99", "--format", "json").out
    )
    assert found["count"] > 100 * found["total"] / 10_000
    words = " ".join(cli("explain", tmp_path / "alike", "--above", "p99.99").out.split())
    one = alike.runs[0].explain("p99.99")
    assert f"writes above {one.reached} (from " in words
    assert "; nothing nearer to p99.99 can be told apart), mean" in words
    assert "nothing nearer to p99.99 can be told apart" in notebook.explanation(one)
