"""flashkeel map: what every chip does over time."""

from itertools import pairwise

import pytest
from flashkeel.experiment import Experiment
from flashkeel.output import chip_map
from small import SMALL

FROM_NS, TO_NS = 200_000_000, 300_000_000


def watched():
    document = SMALL.split("[[runs]]")[0]
    experiment = Experiment(document, "small").set("measure.chip_log.from", "200ms")
    return experiment.set("measure.chip_log.length", "100ms").run()


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    found = watched()
    found.save(tmp_path_factory.mktemp("map") / "out")
    return found


def rows(run):
    table = run.chips()
    names = ("chip", "doing", "start_ns", "end_ns")
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def test_a_chip_does_one_thing_at_a_time_within_the_window(result):
    (run,) = result.runs
    everything = rows(run)
    assert {doing for _, doing, _, _ in everything} >= {"host_read", "host_write", "read_waits"}
    assert all(FROM_NS <= start < end <= TO_NS for _, _, start, end in everything)
    work = sorted((c, s, e) for c, doing, s, e in everything if doing != "read_waits")
    pairs = list(pairwise(work))
    assert len(work) > 500
    assert all(a[2] <= b[1] for a, b in pairs if a[0] == b[0])
    # While a read waits its chip works.
    waits = [(c, s, e) for c, doing, s, e in everything if doing == "read_waits"]
    for chip, start, end in waits[:20]:
        busy = sum(max(0, min(e, end) - max(s, start)) for c, s, e in work if c == chip)
        assert busy == end - start


def test_watching_changes_nothing(result):
    (plain,) = Experiment(SMALL.split("[[runs]]")[0], "small").run().runs
    assert plain.data["digest"] == result.runs[0].data["digest"]


def test_a_map_is_drawn(cli, tmp_path):
    settings = ["--set", 'measure.chip_log={ from = "200ms", length = "100ms" }']
    (tmp_path / "small.toml").write_text(SMALL)
    out = tmp_path / "out"
    assert cli("run", tmp_path / "small.toml", *settings, "--out", out).status == 0
    picture = tmp_path / "map.png"
    outcome = cli("map", f"{out}:fifo", f"{out}:debit", "--length", "0.05", "-o", picture)
    assert (outcome.status, outcome.err) == (0, "")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_deterministic_windows_are_shaded(windowed, result):
    def labels(found):
        (legend,) = chip_map.draw(found.runs, chip_map.Window()).legends
        return [text.get_text() for text in legend.get_texts()]

    assert "deterministic window" in labels(windowed)
    assert "deterministic window" not in labels(result)


def test_a_part_of_the_window_is_shown(result):
    (axes,) = chip_map.draw(result.runs, chip_map.Window(0.22, 0.01)).axes
    assert axes.get_xlim() == pytest.approx((0.22, 0.23))


def test_a_window_beyond_the_run_is_told(cli, result, tmp_path):
    settings = ["--set", 'measure.chip_log={ from = "1h" }']
    (tmp_path / "small.toml").write_text(SMALL)
    cli("run", tmp_path / "small.toml", *settings, "--out", tmp_path / "out")
    outcome = cli("map", tmp_path / "out", "-o", tmp_path / "map.png")
    assert outcome.status == 2
    assert "the run may have ended before" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "map.txt"), "a picture ends in .png"),
        (("-o", "map.png"), 'set measure.chip_log = { from = "20s" }'),
    ],
)
def test_what_cannot_be_drawn_is_refused(cli, saved, arguments, words):
    outcome = cli("map", saved, *arguments)
    assert outcome.status == 2
    assert words in outcome.err


def test_a_window_too_long_is_refused(cli):
    outcome = cli("run", "demo", "--set", 'measure.chip_log={ from = "0s", length = "11s" }')
    assert outcome.status == 2
    assert "at most 10 s" in outcome.err
