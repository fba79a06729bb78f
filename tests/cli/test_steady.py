"""flashkeel steady: SNIA's criterion and fio's, as a table, as JSON, as a picture."""

import json

import flashkeel
import pytest
from flashkeel import steadiness
from flashkeel.output import steady_plots, units
from flashkeel.steadiness import assess
from small import SMALL


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """A result with enough windows for 25 rounds."""
    experiment = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    result = experiment.set("measure.series_window", "10ms").run()
    directory = tmp_path_factory.mktemp("steady") / "longer"
    result.save(directory)
    return directory


def test_a_table_says_from_when_on(cli, longer):
    outcome = cli("steady", longer, "--variable", "iops")
    assert (outcome.status, outcome.err) == (0, "")
    assert "SNIA's criterion" in outcome.out and "synthetic workload" in outcome.out
    assert "0 s" in outcome.out or "not steady" in outcome.out


def test_json_has_fios_object(cli, longer):
    (found,) = json.loads(cli("steady", longer, "--ss", "iops:90%", "--format", "json").out)
    state = found["steadystate"]
    assert (state["ss"], state["attained"]) == ("iops:90%", 1)
    assert len(state["data"]["values"]) == 5
    assert state["criterion"].endswith("%")
    (never,) = json.loads(cli("steady", longer, "--ss", "lat:0%", "--format", "json").out)
    assert never["steadystate"]["attained"] == 0


def test_a_window_is_as_long_as_asked_for(cli, longer):
    options = ("--ss", "iops:90%", "--ss-dur", "0.25", "--format", "json")
    (found,) = json.loads(cli("steady", longer, *options).out)
    assert found["steadystate"]["duration"] == pytest.approx(0.25)


def test_fios_criterion_takes_a_value_each_second(cli, tmp_path):
    arrivals = {"policy": "poisson", "iops": 300}
    small = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    small = small.set("workload.source.arrivals", arrivals).set("workload.requests", 3200)
    small.run().save(tmp_path / "s")
    options = ("--ss", "iops:1%", "--ss-dur", 7)
    (found,) = json.loads(cli("steady", tmp_path / "s", *options, "--format", "json").out)
    state = found["steadystate"]
    assert (state["attained"], state["duration"], state["interval_s"]) == (0, 7, 1)
    series = flashkeel.load(tmp_path / "s").runs[0].series()
    seconds = (series["reads"] + series["writes"])[:100].reshape(10, 10).sum(axis=1)[-7:]
    assert state["data"]["values"] == list(seconds)
    deviation = max(abs(seconds - seconds.mean())) / seconds.mean()
    assert float(state["criterion"].removesuffix("%")) == pytest.approx(100 * deviation, abs=1e-5)
    assert "a window has 7 rounds of 1.00 s" in cli("steady", tmp_path / "s", *options).out
    assert "a window has 5 rounds of 400 ms" in cli("steady", tmp_path / "s").out


def test_a_run_of_two_steady_states_is_marked(cli, longer, monkeypatch):
    values = [2e6] * 12 + [2e5] * 13
    points = [steadiness.Point(n, n + 1, value) for n, value in enumerate(values)]
    monkeypatch.setattr(steadiness, "rounds", lambda *_: points)
    said = cli("steady", longer).out
    assert "200 µs *" in said and "\nmixes two states" in said
    assert max(map(len, said.splitlines())) <= 80
    (found,) = json.loads(cli("steady", longer, "--format", "json").out)
    assert (found["steadystate"]["data"]["mean"], found["steadystate"]["last_mean"]) == (2e6, 2e5)
    runs = flashkeel.load(longer).runs
    (axes,) = steady_plots.convergence(runs, [assess(run, "lat") for run in runs]).axes
    assert "steady from 0 s on, and left that state later" in axes.get_title(loc="left")
    assert axes.get_ylim()[1] > 2e6


def test_a_picture_shows_rounds_and_window(cli, longer, tmp_path):
    path = tmp_path / "steady.png"
    assert cli("steady", longer, "-o", path).status == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    runs = flashkeel.load(longer).runs
    found = [assess(run, "iops") for run in runs]
    (axes,) = steady_plots.convergence(runs, found).axes
    points, *_ = axes.get_lines()
    assert list(points.get_ydata()) == [point.value for point in found[0].points]
    # About 25.
    assert 19 <= len(found[0].points) <= 37


def test_too_few_rounds_are_told(cli, longer):
    out = cli("steady", longer, "--ss", "lat:5%", "--ss-dur", "60").out
    assert "too few" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--ss", "speed:5%"), "write iops, bw or lat"),
        (("--ss", "iops:10%", "--variable", "waf"), "--ss names one of its own"),
        (("-o", "steady.txt"), "a picture ends in .png"),
        (("--ss-dur", "0.04"), "shorter than 5 windows of the time series of run 'run', of 0.01 s"),
    ],
)
def test_bad_input(cli, longer, options, words):
    outcome = cli("steady", longer, *options)
    assert outcome.status == 2
    assert words in outcome.err


@pytest.mark.parametrize(
    ("words", "key", "heading"),
    [
        ("iops:90%", None, "deviation"),
        ("iops:90000", "max_deviation", "deviation"),
        ("lat:1000000000", "max_deviation", "deviation"),
        ("iops_slope:90000", "slope", "slope/s"),
        ("iops_slope:90%", None, "slope/s"),
    ],
)
def test_the_criterion_is_in_the_unit_of_its_limit(cli, longer, words, key, heading):
    (found,) = json.loads(cli("steady", longer, "--ss", words, "--format", "json").out)
    state = found["steadystate"]
    # As fio: a share ends in %, anything else is in the unit of what is tracked.
    assert state["criterion"].endswith("%") == words.endswith("%")
    value = float(state["criterion"].removesuffix("%"))
    if key:
        assert value == pytest.approx(abs(state[key]), abs=1e-6)
    chosen = steadiness.parse(words)
    shown = units.share(value / 100) if chosen.is_share else units.count(value)
    if chosen.variable == "lat":
        shown = units.duration(value)
    said = " ".join(cli("steady", longer, "--ss", words).out.split())
    assert heading in said and f" {shown} " in said


@pytest.mark.parametrize(
    ("values", "status"),
    [([2e6] * 25, 0), ([2e6] * 12 + [2e5] * 13, 3), ([2e6, 2e5] * 13, 3), ([2e6] * 3, 3)],
)
def test_check_tells_scripts_whether_a_run_was_steady(cli, longer, monkeypatch, values, status):
    points = [steadiness.Point(n, n + 1, value) for n, value in enumerate(values)]
    monkeypatch.setattr(steadiness, "rounds", lambda *_: points)
    assert cli("steady", longer).status == 0
    outcome = cli("steady", longer, "--check")
    assert (outcome.status, outcome.err) == (status, "")
    assert "SNIA's criterion" in outcome.out
