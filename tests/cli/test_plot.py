"""flashkeel plot."""

import pytest


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
