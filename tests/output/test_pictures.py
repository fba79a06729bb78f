"""The other pictures of a result: whole distributions, causes, and what happens over time."""

import flashkeel
import pytest
from flashkeel import InputError
from flashkeel.output import pictures


@pytest.fixture(scope="module")
def logged(small_toml):
    return flashkeel.Experiment.from_toml(small_toml).set("measure.log_requests", True).run()


@pytest.mark.parametrize("kind", pictures.KINDS)
def test_each_is_drawn_and_says_what_it_rests_on(logged, windowed, kind, tmp_path):
    figure = (windowed if kind == "windows" else logged).plot(kind)
    assert "synthetic workload" in figure.get_suptitle()
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


def test_a_cdf_ends_at_all_requests(small_result):
    (axes,) = small_result.plot("cdf", latency_class="write").axes
    assert [line.get_ydata()[-1] for line in axes.get_lines()] == pytest.approx([100, 100])
    assert axes.get_xscale() == "log" and "writes" in axes.get_ylabel()


def test_blame_adds_up_to_all(small_result):
    figure = small_result.plot("blame")
    for axes in figure.axes:
        tops = {}
        for bar in axes.patches:
            tops[bar.get_x()] = max(tops.get(bar.get_x(), 0), bar.get_y() + bar.get_height())
        assert all(top == pytest.approx(100) for top in tops.values())


def test_a_series_has_a_line_for_each_run(small_result):
    rates, latencies, blocks = small_result.plot("series").axes
    assert len(rates.get_lines()) == len(latencies.get_lines()) == 4
    assert len(blocks.get_lines()) == 2
    with pytest.raises(InputError, match="not of 'trim'"):
        small_result.plot("series", latency_class="trim")


def test_heat_takes_the_log_of_requests(logged, small_result):
    axes, _ = logged.plot("heat", run="debit", latency_class="small_read").axes
    cells = axes.collections[0].get_array()
    assert cells.sum() == logged["debit"].samples("small_read")
    with pytest.raises(InputError, match="log_requests"):
        small_result.plot("heat")
    with pytest.raises(InputError, match="has no trim"):
        logged.plot("heat", latency_class="trim")


def test_windows_have_a_lane_for_each_set_and_counts_below(windowed, logged):
    reads, lanes, counts = windowed.plot("windows").axes
    (spans,) = lanes.collections
    table = windowed.runs[0].chips()
    names = ("chip", "doing", "start_ns", "end_ns")
    rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
    of_first = [
        (start, end) for chip, doing, start, end in rows if doing == "deterministic" and chip == 0
    ]
    assert len(spans.get_paths()) == len(of_first) > 1
    # A single set shades the reads above, too.
    assert len(reads.patches) == len(of_first)
    assert {line.get_label() for line in counts.get_lines()} >= {"medium, given"}
    with pytest.raises(InputError, match="chip"):
        logged.plot("windows")


def test_an_unknown_picture_names_the_known_ones(small_result):
    with pytest.raises(InputError, match="no picture 'tail'; the pictures are tails, cdf, blame"):
        small_result.plot("tail")
