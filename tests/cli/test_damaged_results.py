"""Results that are not whole, or not results at all, are refused by every command in a line."""

import copy
import json
import shutil

import click
import pytest
from flashkeel import InputError
from flashkeel.cli import app
from flashkeel.cli.common import Number
from flashkeel.output import storage

READERS = (
    ("explain",),
    ("compare", "{0}"),
    ("steady",),
    ("report", "-o", "{1}/page.html"),
    ("plot", "-o", "{1}/picture.png"),
    ("export", "--format", "csv"),
    ("map", "-o", "{1}/map.png"),
)


def needed(tree, path=()):
    for key, kind in tree.items():
        yield from needed(kind, (*path, key)) if isinstance(kind, dict) else [(*path, key)]


def changed(saved, folder, change):
    """Copy a result, and change its document."""
    shutil.copytree(saved, folder)
    document = json.loads((folder / "result.json").read_text())
    change(document)
    (folder / "result.json").write_text(json.dumps(document))
    return folder


def refused(cli, result, words, tmp_path, readers=READERS):
    for name, *options in readers:
        outcome = cli(name, result, *(it.format(result, tmp_path) for it in options))
        assert outcome.status == 2, f"{name}: {outcome.err}"
        assert words in outcome.err and outcome.err.count("\n") == 1


@pytest.mark.parametrize("path", list(needed(storage._OF_A_RUN)), ids=".".join)
def test_what_a_run_lacks_is_named(cli, saved, tmp_path, path):
    for value in (None, "other", True):
        if isinstance(value, str) and path[-1] in ("name", "digest", "basis", "policy"):
            continue

        def change(document, value=value):
            place = document["runs"][1]
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = copy.copy(value)

        folder = tmp_path / str(value)
        where = changed(saved, folder, change)
        words = f"result.json: not a result of flashkeel: run 2 has no {'.'.join(path)}"
        refused(cli, where, words, tmp_path, READERS[:1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda it: it.update(runs=[]), "it has no runs"),
        (lambda it: it.update(runs=["a"]), "run 1 has no name"),
        (lambda it: it.update(schema=2), "schema 2, but this version reads 1"),
        (lambda it: it["runs"][0]["detail"].pop("blame"), "run 1 has no detail.blame"),
    ],
)
def test_every_reader_refuses_what_is_no_result(cli, saved, tmp_path, change, words):
    refused(cli, changed(saved, tmp_path / "changed", change), words, tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        "last_completion_s",
        "read.mean_ns",
        "write.ci95",
        "device.host_bytes_written",
        "config.device",
    ],
)
def test_a_key_that_is_looked_for_later_is_named_with_the_file(cli, saved, tmp_path, path):
    *outer, last = path.split(".")

    def change(document):
        place = document["runs"][0]
        for key in outer:
            place = place[key]
        del place[last]

    where = changed(saved, tmp_path / "changed", change)
    words = f"{where / 'result.json'}: damaged, or of another version of flashkeel: it lacks"
    (report,) = [it for it in READERS if it[0] == "report"]
    refused(cli, where, f"{words} {last!r}", tmp_path, [report])
    # Whoever asks for it in Python may take it for what dictionaries raise.
    with pytest.raises(KeyError, match="damaged"):
        storage.load(where).runs[0].data["nothing"]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("read.ci95", {"99.000000": [1]}, "read.ci95.99.000000 is [1], and not two whole numbers"),
        (
            "read.percentile",
            {"50.000000": "p"},
            "read.percentile.50.000000 is 'p', and not a whole",
        ),
        ("write.mean_ns", float("nan"), "write.mean_ns is nan, and not a number"),
        ("detail.histograms", [{"counts": [[1, 2], [3]]}], "histograms.0.counts is [[1, 2], [3]],"),
        ("detail.blame", [{"ns": {"erase": "x"}}], "detail.blame.0.ns.erase is 'x', and not a"),
        (
            "device.host_bytes_written",
            [],
            "device.host_bytes_written is [], and not a whole number",
        ),
        ("seeds", 3, "seeds is 3, and not a list"),
        ("blame_ns", {"own_flash": -1}, "blame_ns.own_flash is -1, and not a whole number of at"),
        ("config.device.precondition", {"fill": {}}, "precondition.fill is {}, and not a number"),
        ("config.workload.source.arrivals", 7, "source.arrivals is 7, and not an object"),
        ("notes", ["x" * 99, 1], "notes.1 is 1, and not a text"),
    ],
)
def test_a_value_of_another_kind_is_named_with_its_key(cli, saved, tmp_path, path, value, said):
    *outer, last = path.split(".")

    def change(document):
        place = document["runs"][1]
        for key in outer:
            place = place[key]
        place[last] = value

    where = changed(saved, tmp_path / "changed", change)
    words = f"{where / 'result.json'}: damaged, or of another version of flashkeel: runs.1."
    refused(cli, where, words, tmp_path, READERS[:2])
    with pytest.raises(InputError) as refusal:
        storage.load(where)
    assert said in str(refusal.value)


def test_every_reader_refuses_half_a_document(cli, saved, tmp_path):
    text = (saved / "result.json").read_text()
    (tmp_path / "result.json").write_text(text[: len(text) // 2])
    refused(cli, tmp_path, "not a result of flashkeel", tmp_path)


@pytest.mark.parametrize("left", [0, 3, 100, -1])
def test_half_a_table_is_refused(cli, saved, tmp_path, left):
    folder = tmp_path / "half"
    shutil.copytree(saved, folder)
    for path in (folder / "series").iterdir():
        path.write_bytes(path.read_bytes()[:left])
    readers = [it for it in READERS if it[0] in ("steady", "report")]
    series = ("plot", "--kind", "series", "-o", "{1}/picture.png")
    refused(cli, folder, "it is damaged, or no table of flashkeel", tmp_path, [*readers, series])
    assert not (tmp_path / "page.html").exists()


def test_a_table_damaged_within_is_refused(cli, saved, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(saved, folder)
    for path in (folder / "series").iterdir():
        whole = path.read_bytes()
        path.write_bytes(whole[:4] + bytes(len(whole) - 12) + whole[-8:])
    outcome = cli("steady", folder)
    assert outcome.status == 2
    assert "it is damaged, or no table of flashkeel" in outcome.err


def test_no_number_is_none():
    def options(command):
        yield from command.params
        for part in getattr(command, "commands", {}).values():
            yield from options(part)

    ranges = [it for it in options(app) if isinstance(it.type, click.FloatRange)]
    assert len(ranges) > 3
    for option in ranges:
        assert isinstance(option.type, Number), option.opts
        for text in ("nan", "inf", "-inf"):
            with pytest.raises(click.BadParameter):
                option.type.convert(text, option, None)
