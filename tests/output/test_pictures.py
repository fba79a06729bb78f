"""The other pictures of a result: whole distributions, causes, and what happens over time."""

import math
import warnings
from itertools import pairwise

import flashkeel
import pytest
from flashkeel import InputError, steadiness
from flashkeel.output import pictures, plots, steady_plots
from flashkeel.output.report import page
from small import SMALL


@pytest.fixture(scope="module")
def logged(small_toml):
    return flashkeel.Experiment.from_toml(small_toml).set("measure.log_requests", True).run()


@pytest.mark.parametrize("kind", pictures.KINDS)
def test_each_is_drawn_and_says_what_it_rests_on(logged, windowed, kind, tmp_path):
    figure = (windowed if kind == "windows" else logged).plot(kind)
    assert "synthetic workload" in figure.get_suptitle()
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


@pytest.mark.parametrize("kind", [it for it in pictures.KINDS if it != "windows"])
@pytest.mark.parametrize("number", [2, 6])
def test_long_names_leave_room_for_what_is_drawn(logged, kind, number, tmp_path):
    name = "debit-" + "x" * 188 + "-tail"
    result = flashkeel.Result(logged.document, logged.files)
    result.runs = [logged.runs[0].called(f"{name}{n}") for n in range(number)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = result.plot(kind)
        figure.savefig(tmp_path / "picture.png")
    assert figure.axes[0].get_position().width > 0.3


def test_a_cdf_goes_from_none_to_all_requests(small_result):
    axes, tail = small_result.plot("cdf", latency_class="write").axes
    for line in axes.get_lines():
        times, shares = line.get_xdata(), line.get_ydata()
        assert (shares[0], shares[-1]) == (0, pytest.approx(100))
        # The first value takes the line up from there.
        assert times[0] == times[1] < times[2]
    assert axes.get_xscale() == "log" and "writes" in axes.get_ylabel()
    for line, run in zip(tail.get_lines(), small_result.runs, strict=True):
        # The last step is of what is as slow as the slowest.
        assert min(line.get_ydata()) == pytest.approx(
            100 * run.distribution("write")[-1][1] / run.samples("write")
        )
    assert tail.get_yscale() == "log"


def test_equal_runs_are_both_seen(small_result):
    run = small_result.runs[0]
    same = flashkeel.Result(small_result.document | {"runs": [run.data] * 2}, small_result.files)
    for axes in same.plot("cdf").axes:
        first, second = axes.get_lines()
        assert first.get_linewidth() > second.get_linewidth() + 1
    for kind in ("cdf", "tails"):
        axes = same.plot(kind).axes[0]
        first, second = (text.get_text() for text in axes.get_legend().get_texts())
        assert first.startswith("fifo (") and second.startswith("fifo = fifo (")
    named = small_result.plot("tails").axes[0].get_legend().get_texts()
    assert not any(" = " in text.get_text() for text in named)


def test_blame_adds_up_to_all(small_result):
    figure = small_result.plot("blame")
    for axes in figure.axes:
        tops = {}
        for bar in axes.patches:
            tops[bar.get_x()] = max(tops.get(bar.get_x(), 0), bar.get_y() + bar.get_height())
        assert all(top == pytest.approx(100) for top in tops.values())


def test_blame_counts_the_requests_of_each_run_and_names_what_is_there(small_result):
    figure = small_result.plot("blame", latency_class="small_read")
    figure.draw_without_rendering()
    for axes, run in zip(figure.axes, small_result.runs, strict=True):
        labels = [it.get_text().split("\n") for it in axes.get_xticklabels() if it.get_visible()]
        counts = {above: count for above, count in labels}
        assert counts["above p99.9"] == str(run.explain(99.9, "small_read").count)
    assert plots.OTHERS in [it.get_text() for it in figure.legends[0].get_texts()]


def test_a_series_has_a_line_for_each_run(small_result):
    rates, latencies, amplified, blocks = small_result.plot("series").axes
    assert len(amplified.get_lines()) == 2
    assert len(rates.get_lines()) == len(latencies.get_lines()) == 4
    assert len(blocks.get_lines()) == 2
    with pytest.raises(InputError, match="not of 'trim'"):
        small_result.plot("series", latency_class="trim")


def test_gauges_are_drawn_where_they_were_read_and_say_of_which_drive(small_result):
    rates, latencies, _, blocks = small_result.plot("series").axes
    starts_s = [ns / 1e9 for ns in small_result.runs[0].series()["start_ns"]]
    window_s = starts_s[1] - starts_s[0]
    for axes, into in ((rates, 0.5), (latencies, 0.5), (blocks, 1)):
        found = list(axes.get_lines()[0].get_xdata())
        assert found == pytest.approx([start + into * window_s for start in starts_s])
    assert blocks.get_legend() is None
    two = flashkeel.Experiment(SMALL, "two").set("stack.devices", [{"ssd": {}}, {"ssd": {}}])
    *_, blocks = two.set("workload.requests", 2000).run().plot("series").axes
    assert [text.get_text() for text in blocks.get_legend().get_texts()] == ["ssd0", "ssd1"]
    assert len({line.get_linestyle() for line in blocks.get_lines()}) == 2


def test_heat_takes_the_log_of_requests(logged, small_result):
    axes, _ = logged.plot("heat", run="debit", latency_class="small_read").axes
    cells = axes.collections[0].get_array()
    assert cells.sum() == logged["debit"].samples("small_read")
    assert "log was full" not in axes.get_xlabel()
    with pytest.raises(InputError, match="log_requests"):
        small_result.plot("heat")
    with pytest.raises(InputError, match="has no trim"):
        logged.plot("heat", latency_class="trim")


def test_heat_of_a_log_that_was_full_says_so():
    small = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small").set("workload.requests", 500)
    full = small.set("measure.log_requests", True).set("measure.log_rows", 200)
    axes, _ = full.run().plot("heat").axes
    assert axes.get_xlabel().endswith("; the request log was full then")


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


def test_counts_stand_over_the_window_at_whose_end_they_were_read(windowed):
    _, _, counts = windowed.plot("windows").axes
    series = windowed.runs[0].series()
    lines = counts.get_lines()
    (given,) = [at for at, line in enumerate(lines) if line.get_label() == "medium, given"]
    line = lines[given + 1]
    assert line.get_drawstyle() == "steps-pre"
    at_ns = [round(1e9 * at_s) for at_s in line.get_xdata()]
    ends = dict(zip(at_ns, line.get_ydata(), strict=True))
    starts, used = list(series["start_ns"]), list(series["counts_used_medium"])
    assert len(set(used)) > 1
    assert [ends[end] for end in starts[1:]] == used[:-1]


def test_no_label_of_the_windows_runs_into_another(windowed):
    figure = windowed.plot("windows")
    figure.draw_without_rendering()
    boxes = [axes.yaxis.label.get_window_extent() for axes in figure.axes]
    assert not any(above.overlaps(below) for above, below in pairwise(boxes))
    _, lanes, _ = figure.axes
    assert boxes[1].height <= 1.2 * lanes.get_window_extent().height


def test_an_unknown_picture_names_the_known_ones(small_result):
    with pytest.raises(InputError, match="no picture 'tail'; the pictures are tails, cdf, blame"):
        small_result.plot("tail")


def test_an_option_that_a_picture_does_not_take_is_refused(small_result):
    with pytest.raises(InputError, match="'tails' takes no options, not latency_class"):
        small_result.plot("tails", latency_class="write")
    with pytest.raises(InputError, match="'heat' takes run and latency_class, not klass"):
        small_result.plot("heat", klass="write")


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    """Of two trims, and a read a second: its series has gaps around each."""
    trace = "fio version 3 iolog\n0 f read 0 4096\n1000000 f trim 0 4096\n2000000 f read 0 4096\n"
    path = tmp_path_factory.mktemp("trace") / "sparse.log"
    path.write_text(trace + "2500000 f trim 8192 4096\n")
    experiment = flashkeel.Experiment(SMALL.split("[workload]")[0], "small")
    experiment = experiment.set("workload.source", {"policy": "trace", "path": str(path)})
    return experiment.set("measure.series_window", "100ms").run()


def test_a_long_run_is_drawn_over_hours(tmp_path):
    reads = [f"{hour * 3_600_000_000} f read 0 4096" for hour in range(4)]
    (tmp_path / "day.log").write_text("\n".join(["fio version 3 iolog", *reads, ""]))
    experiment = flashkeel.Experiment(SMALL.split("[workload]")[0], "small")
    experiment = experiment.set(
        "workload.source", {"policy": "trace", "path": str(tmp_path / "day.log")}
    )
    experiment = experiment.set("measure.series_window", "60s").set("measure.log_requests", True)
    result = experiment.run()
    *_, blocks = result.plot("series", latency_class="read").axes
    assert blocks.get_xlabel() == "time (h)"
    assert max(blocks.get_lines()[0].get_xdata()) == pytest.approx(3, abs=0.05)
    assert result.plot("heat").axes[0].get_xlabel() == "completed at (h)"
    text = page.render(result.runs, "Day")
    assert ">2 h</text>" in text and '"clock":[3600.0,"h"]' in text
    run = result.runs[0]
    figure = steady_plots.convergence([run], [steadiness.assess(run, "lat")])
    assert figure.axes[0].get_xlabel().startswith("time (h);")


def test_pictures_over_time_say_which_seed_they_are_of(small_toml):
    result = flashkeel.Experiment.from_toml(small_toml).run(seeds=2)
    assert result.plot("series").get_suptitle().endswith("; the first of 2 seeds)")
    assert "; the first of 2 seeds.</p>" in page.render(result.runs, "Two")


def test_a_value_between_gaps_is_seen(sparse):
    _, latencies, *_ = sparse.plot("series", latency_class="read").axes
    assert [len(line.get_markevery()) for line in latencies.get_lines()] == [2, 2]


def test_latencies_have_units_however_alike_they_are(sparse):
    figure = sparse.plot("cdf", latency_class="trim")
    figure.draw_without_rendering()
    _, axes = figure.axes
    labels = [label.get_text() for label in axes.xaxis.get_ticklabels(which="both")]
    assert any(label.endswith(" ns") for label in labels)
    assert not any("10^" in label for label in labels)


def test_a_legend_names_no_others_where_there_are_none(sparse):
    (legend,) = sparse.plot("blame", latency_class="trim").legends
    assert [it.get_text() for it in legend.get_texts()] == ["controller"]


@pytest.mark.parametrize("kind", ["cdf", "blame"])
def test_a_class_without_a_request_is_no_picture(sparse, kind):
    with pytest.raises(InputError, match="no run has flushes"):
        sparse.plot(kind, latency_class="flush")


def test_no_rate_falls_where_a_run_ends(small_result):
    rates, *_ = small_result.plot("series").axes
    for line in rates.get_lines():
        values = line.get_ydata()
        assert math.isnan(values[-1])
        assert min(values[:-1]) > 0.7 * max(values[:-1])
