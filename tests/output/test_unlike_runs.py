"""Runs of one experiment that have no class of requests in common: none is left out."""

import flashkeel
import numpy as np
import pytest
from flashkeel.output import notebook, plots
from small import SMALL

RUNS = {
    "reads": {"workload.source.read_fraction": 1.0},
    "large reads": {
        "workload.source.read_fraction": 1.0,
        "workload.source.block_sizes": ["128KiB"],
        "workload.requests": 2000,
        "workload.source.arrivals.iops": 1000,
    },
    "writes": {"workload.source.read_fraction": 0.0},
}


@pytest.fixture(scope="module", params=[list(RUNS), list(RUNS)[::-1]], ids=["first", "last"])
def unlike(request):
    runs = [{"name": name, "set": RUNS[name]} for name in request.param]
    small = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small").set("runs", runs)
    return small.set("measure.log_requests", True).run()


def rows(table):
    """Return the names of the runs in each table of latencies, and what owns them, in order."""
    found, here = {}, None
    for line in table.splitlines():
        if line.startswith(("Latency of ", "What owns ")):
            here = found.setdefault(line.strip(), [])
        elif here is not None and line.split("  ")[0].strip() in RUNS and "ms" not in here:
            here.append(line.split("  ")[0].strip())
    return found


def test_each_class_of_any_run_has_tables_with_the_runs_that_have_it(unlike, cli, monkeypatch):
    monkeypatch.setattr(flashkeel.Experiment, "run", lambda *_, **__: unlike)
    shown = cli("run", "demo").out
    found = rows(shown)
    assert found["Latency of small reads"] == ["reads"]
    assert found["Latency of writes"] == ["writes"]
    assert set(found["Latency of reads"]) == {"reads", "large reads"}
    for words, runs in {"small reads": ["reads"], "writes": ["writes"]}.items():
        assert found[f"What owns the latency of {words} above p99.9"] == runs
    # Below each plot in characters are the marks of the runs that are in it.
    marks = [line.split() for line in shown.splitlines() if line.startswith(" " * 11 + "o ")]
    marks += [line.split() for line in shown.splitlines() if line.startswith(" " * 11 + "+ ")]
    assert ["o" if unlike.runs[0].name == "writes" else "+", "writes"] in marks


def test_the_picture_has_a_row_for_each_class(unlike):
    figure = plots.tails(unlike)
    titles = {axes.get_title(): axes for axes in figure.axes[::2]}
    assert set(titles) == {"small reads", "reads", "writes"}
    drawn = [text.get_text().split(" (")[0] for text in titles["writes"].get_legend().get_texts()]
    assert drawn == ["writes"]
    causes = dict(zip(titles, figure.axes[1::2], strict=True))["writes"]
    assert [label.get_text().split("\n")[0] for label in causes.get_yticklabels()] == ["writes"]


def test_a_run_without_the_first_ones_class_is_drawn_with_its_own(unlike):
    figure = unlike.plot("blame")
    assert len(figure.axes) == 3 and all(axes.patches for axes in figure.axes)
    assert "writes: writes" in [axes.get_title(loc="left") for axes in figure.axes]
    legend = unlike.plot("cdf").axes[0].get_legend().get_texts()
    assert "writes (20.0 k writes)" in [text.get_text() for text in legend]
    # What was asked for is shown alone.
    (axes,) = unlike.plot("blame", latency_class="write").axes
    assert axes.get_title(loc="left") == "writes"


def test_over_time_each_run_has_a_class_that_it_has(unlike):
    figure = unlike.plot("series")
    latencies = figure.axes[1].get_lines()
    # The mean and the slowest of each.
    assert len(latencies) == 6 and all(np.isfinite(line.get_ydata()).any() for line in latencies)
    assert figure.axes[1].get_ylabel().startswith("requests: mean")
    names = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"writes: writes", "large reads: reads"} <= names
    assert unlike.plot("heat").axes[0].get_ylabel() == (
        f"latency of {'writes' if unlike.runs[0].name == 'writes' else 'reads'}"
    )
    drawn = unlike.plot("heat", latency_class="write")
    assert drawn.get_suptitle().startswith("Small: writes (")


@pytest.mark.parametrize("kind", ["cdf", "blame", "series"])
def test_what_a_picture_has_not_of_a_run_is_noted(unlike, cli, tmp_path, kind):
    unlike.save(tmp_path / "unlike")
    picture = ("plot", tmp_path / "unlike", "--kind", kind, "-o", tmp_path / "a.svg")
    said = cli(*picture).err
    assert said.startswith("note: shown are ") and "writes of writes" in said
    assert "--class shows one class" in said
    said = " ".join(cli(*picture, "--class", "write").err.split())
    others = ", ".join(run.name for run in unlike.runs if run.name != "writes")
    left = "their latency is not shown" if kind == "series" else "left out"
    assert said == f"note: no writes in {others}: {left}"


def test_a_notebook_shows_the_tails_of_each(unlike):
    page = notebook.runs(unlike.runs)
    for words in ("small reads", "reads", "writes"):
        assert f"<p>Latency of {words}: " in page
