"""The picture: axes, units, labels."""

from dataclasses import replace

import pytest
from flashkeel import Experiment, InputError, Result, Run
from flashkeel.output import plots, units
from flashkeel.reproduce import pictures


def test_picture_says_what_it_shows(small_result):
    figure = plots.tails(small_result)
    left, right, *_ = figure.axes
    assert figure.get_suptitle() == "Small: latency (synthetic workload)"
    assert [axes.get_title() for axes in figure.axes[::2]] == ["small reads", "writes"]
    assert "percentile" in left.get_xlabel()
    assert left.get_ylabel() == "latency"
    assert left.get_yscale() == "log"
    assert left.yaxis.get_major_formatter()(20_000, 0) == "20.0 µs"
    assert "p99.9, by cause" in right.get_xlabel()
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert [label.split(" (")[0] for label in labels] == ["fifo", "debit"]
    assert all("samples" in label for label in labels)


def test_names_of_many_runs_lie_over_no_line(small_result):
    runs = [run.data for run in small_result.runs] * 4
    many = Result(small_result.document | {"runs": runs}, small_result.files)
    figure = plots.tails(many)
    figure.draw_without_rendering()
    for axes in figure.axes[::2]:
        legend = axes.get_legend().get_window_extent()
        assert len(axes.get_legend().get_texts()) == 8
        assert legend.y1 < axes.xaxis.label.get_window_extent().y0 and legend.y0 > 0


def test_writes_are_drawn_first_where_reads_are_rare(known_run):
    reads = known_run().data["read"]
    few, small = reads | {"count": 80}, reads | {"count": 4}
    run = known_run(read=few, small_read=small, write=reads | {"count": 15_444})
    assert plots.shown_classes([run]) == ["write", "read"]
    run = known_run(write=reads)
    assert plots.shown_classes([run]) == ["small_read", "write"]
    none = reads | {"count": 0}
    only_trims = known_run(read=none, small_read=none, trim=reads)
    assert plots.shown_classes([only_trims]) == ["trim"]


def test_no_text_crosses_the_frame_of_its_axes_or_of_the_picture(small_result):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = plots.tails(small_result)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    width, height = figure.bbox.size
    for axes in figure.axes:
        assert not axes.texts
        # A logarithmic axis has labels beyond its ends, which are not drawn.
        names = axes.get_yticklabels() if axes.get_yscale() == "linear" else []
        for label in (*names, axes.title, axes.xaxis.label):
            box = label.get_window_extent(renderer)
            assert min(box.x0, box.y0) >= 0 and box.x1 <= width and box.y1 <= height
        for label in names:
            assert label.get_window_extent(renderer).x1 < axes.get_window_extent().x0


def test_latencies_that_hardly_differ_look_it(known_run):
    from matplotlib.figure import Figure

    run = known_run()
    known = run.data["small_read"]["percentile"]
    known.update(zip(known, (950, 960, 970, 980, 990, 1000), strict=True))
    run.data["small_read"]["ci95_bounded"] = dict.fromkeys(known, False)
    axes = Figure().subplots()
    plots._tails(axes, [run], "small_read")
    low, high = axes.get_ylim()
    assert high / low == pytest.approx(2)


@pytest.mark.parametrize(("low", "high"), [(999, 1001), (2.4e6, 9.3e6), (340e3, 341e3), (1, 1e9)])
def test_an_axis_of_latencies_has_several_ticks(low, high):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    axes.plot([low, high], [low, high])
    axes.set_yscale("log")
    plots.latencies(axes.yaxis)
    bottom, top = axes.get_ylim()
    assert sum(bottom <= tick <= top for tick in axes.yaxis.get_major_locator()()) >= 2


def test_bars_are_the_mean_latency(small_result):
    right = plots.tails(small_result).axes[1]
    for position, run in enumerate(small_result.runs):
        ends = [
            bar.get_x() + bar.get_width() for bars in right.containers for bar in [bars[position]]
        ]
        assert abs(max(ends) - run.explain(plots.ABOVE, "small_read").mean_ns) < 1


def test_bars_that_differ_by_far_are_shares_beside_their_means(small_result, monkeypatch):
    explain = Run.explain

    def slower(run, above, latency_class):
        found = explain(run, above, latency_class)
        by = 20 if run.name == "fifo" else 1
        shares = tuple(replace(it, mean_ns=by * it.mean_ns) for it in found.shares)
        return replace(found, mean_ns=by * found.mean_ns, shares=shares)

    monkeypatch.setattr(Run, "explain", slower)
    right = plots.tails(small_result).axes[1]
    for position in range(2):
        ends = [bars[position].get_x() + bars[position].get_width() for bars in right.containers]
        assert max(ends) == pytest.approx(100)
    assert right.get_xlabel() == "share of the latency (%) above p99.9, by cause"
    means = [units.duration(run.explain(99.9, "small_read").mean_ns) for run in small_result.runs]
    labels = [label.get_text() for label in right.get_yticklabels()]
    assert all(label.endswith(f", mean {it}") for label, it in zip(labels, means, strict=True))


def test_percentiles_with_few_samples_are_drawn_apart(known_run):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    plots._tails(axes, [known_run()], "small_read")
    sure, guessed = axes.get_lines()
    assert list(sure.get_ydata()) == [10**3, 10**4, 10**5, 10**6]
    assert list(guessed.get_ydata()) == [10**6, 10**7]
    assert guessed.get_linestyle() == ":"


def test_runs_of_one_colour_are_told_apart(known_run):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    runs = [known_run(f"run {n}") for n in range(2 * len(plots.RUN_COLOURS))]
    plots._tails(axes, runs, "small_read")
    lines = axes.get_lines()[::2]
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(runs)
    drawn = [axes.plot([0, 1], **plots.of_run(n))[0] for n in range(len(runs))]
    assert len({(line.get_color(), line.get_linestyle()) for line in drawn}) == len(runs)


def test_pictures_of_studies_draw_few_samples_apart_too(known_run):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    pictures.tails(axes, {"run": known_run()}, "small_read")
    sure, guessed = axes.get_lines()
    assert list(sure.get_xdata()) == [10**3, 10**4, 10**5, 10**6]
    assert list(guessed.get_xdata()) == [10**6, 10**7]
    assert (guessed.get_linestyle(), guessed.get_markerfacecolor()) == (":", "white")
    assert guessed.get_color() == sure.get_color()


def test_logarithmic_axes_have_plain_numbers():
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    axes.set_yscale("log")
    axes.set_ylim(0.75, 1.15)
    pictures.log_numbers(axes.yaxis)
    figure.draw_without_rendering()
    labels = [text.get_text() for text in axes.yaxis.get_ticklabels(which="both")]
    assert {"0.8", "0.9", "1"} <= set(labels)


def test_series_of_runs_that_never_end_their_warm_up_are_left_out(small_toml):
    experiment = Experiment.from_toml(small_toml).set("workload.warm_up", "10s")
    result = experiment.run()
    with pytest.raises(InputError, match="nothing was measured over time"):
        result.plot("series")
