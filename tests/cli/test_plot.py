"""flashkeel plot."""

import flashkeel
import numpy as np
import pytest
from small import SMALL


@pytest.mark.parametrize("kind", ["tails", "cdf", "blame", "series"])
def test_each_kind_is_drawn(cli, saved, tmp_path, kind):
    path = tmp_path / f"{kind}.svg"
    outcome = cli("plot", saved, "--kind", kind, "-o", path)
    assert (outcome.status, outcome.err) == (0, "")
    assert path.read_text().lstrip().startswith("<?xml")


def test_a_class_is_chosen(cli, saved, tmp_path):
    first, second = tmp_path / "a.png", tmp_path / "b.png"
    cli("plot", saved, "--kind", "cdf", "-o", first)
    cli("plot", saved, "--kind", "cdf", "--class", "write", "-o", second)
    assert first.read_bytes() != second.read_bytes()


def test_one_run_is_drawn_alone(cli, saved, tmp_path):
    outcome = cli("plot", f"{saved}:debit", "--kind", "cdf", "-o", tmp_path / "debit.svg")
    assert (outcome.status, outcome.err) == (0, "")
    drawn = {run.name for run in flashkeel.load(saved).only("debit").runs}
    assert drawn == {"debit"}
    outcome = cli("plot", f"{saved}:nope", "-o", tmp_path / "none.svg")
    assert outcome.status == 2 and "fifo, debit" in outcome.err


def test_no_legend_covers_a_line(small_result):
    figure = small_result.plot("series")
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)


@pytest.mark.parametrize("length", [5, 30, 100])
def test_a_legend_of_many_names_is_within_the_picture(small_result, length):
    (run, _) = small_result.runs
    many = [run.called(f"{n} {'a' * length}") for n in range(12)]
    result = small_result.only("fifo")
    result.runs = many
    figure = result.plot("series")
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box, whole = legend.get_window_extent(), figure.bbox
    assert whole.x0 <= box.x0 and box.x1 <= whole.x1
    assert min(axes.get_window_extent().height for axes in figure.axes) > 100


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "a.txt"), "a picture ends in .png"),
        (("-o", "a.png", "--class", "read"), "the picture `tails` has the requests it has"),
        (("-o", "a.png", "--kind", "heat"), "measure.log_requests"),
        (("-o", "a.png", "--kind", "pie"), "'pie'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(cli, saved, options, words):
    outcome = cli("plot", saved, *options)
    assert outcome.status == 2
    assert words in outcome.err


@pytest.mark.parametrize(
    ("devices", "drives"), [([{"mirror": {"devices": [{"ssd": {}}] * 2}}], 2), ([{"nvm": {}}], 0)]
)
def test_free_blocks_are_drawn_of_as_many_drives_as_there_are(devices, drives):
    experiment = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    result = experiment.set("workload.requests", 500).set("stack.devices", devices).run()
    amplified, blocks = result.plot("series").axes[2:]
    assert len(blocks.lines) == drives
    assert np.isfinite(amplified.lines[0].get_ydata()).any() == (drives > 0)
