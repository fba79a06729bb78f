"""The picture: axes, units, labels."""

from flashkeel.output import plots
from flashkeel.reproduce import pictures


def test_picture_says_what_it_shows(small_result):
    figure = plots.tails(small_result)
    left, right = figure.axes
    assert figure.get_suptitle() == "Small: latency of small reads (synthetic workload)"
    assert "percentile" in left.get_xlabel()
    assert left.get_ylabel() == "latency"
    assert left.get_yscale() == "log"
    assert left.yaxis.get_major_formatter()(20_000, 0) == "20.0 µs"
    assert "p99.9, by cause" in right.get_xlabel()
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert [label.split(" (")[0] for label in labels] == ["fifo", "debit"]
    assert all("samples" in label for label in labels)


def test_bars_are_the_mean_latency(small_result):
    right = plots.tails(small_result).axes[1]
    for position, run in enumerate(small_result.runs):
        ends = [
            bar.get_x() + bar.get_width() for bars in right.containers for bar in [bars[position]]
        ]
        assert abs(max(ends) - run.explain(plots.ABOVE, "small_read").mean_ns) < 1


def test_percentiles_with_few_samples_are_drawn_apart(known_run):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    plots._tails(axes, [known_run()], "small_read")
    sure, guessed = axes.get_lines()
    assert list(sure.get_ydata()) == [10**3, 10**4, 10**5, 10**6]
    assert list(guessed.get_ydata()) == [10**6, 10**7]
    assert guessed.get_linestyle() == ":"


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
