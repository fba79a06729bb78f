"""What is written, where, and when it is refused."""

import json
from pathlib import Path

import flashkeel
import pytest
from flashkeel import InputError
from flashkeel.output import plots, replacing
from matplotlib.figure import Figure


@pytest.fixture
def undrawn(monkeypatch):
    """Leave the pictures of results empty: to draw them takes longer than all else."""
    monkeypatch.setattr(plots, "tails", lambda result: Figure())


def names(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_directory_holds_results_series_and_pictures(saved):
    assert names(saved) == [
        "result.json",
        "series",
        "series/debit.seed7.parquet",
        "series/fifo.seed7.parquet",
        "tails.png",
        "tails.svg",
    ]
    assert (saved / "tails.png").read_bytes().startswith(b"\x89PNG")
    assert "synthetic workload" in (saved / "tails.svg").read_text()


def test_nothing_else_is_left_beside_it(saved):
    assert names(saved.parent)[0] == saved.name
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_same_result_same_files(small_result, saved, tmp_path):
    small_result.save(tmp_path / "again")
    for name in ("result.json", "tails.svg", "tails.png", "series/fifo.seed7.parquet"):
        assert (tmp_path / "again" / name).read_bytes() == (saved / name).read_bytes(), name


def test_same_experiment_may_be_saved_again(small_result, saved, tmp_path):
    small_result.save(tmp_path / "out")
    (tmp_path / "out/tails.png").write_bytes(b"old")
    small_result.save(tmp_path / "out")
    assert names(tmp_path / "out") == names(saved)
    assert (tmp_path / "out/tails.png").read_bytes() == (saved / "tails.png").read_bytes()


@pytest.mark.parametrize("name", ["requests/vm1.csv", "series/a.seed1.parquet", "tails.png"])
def test_a_directory_without_a_result_has_to_be_empty(small_result, tmp_path, name):
    kept = tmp_path / name
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        small_result.save(tmp_path, overwrite=True)
    assert kept.read_text() == "mine"


@pytest.mark.usefixtures("undrawn")
def test_other_files_beside_the_tables_of_a_result_are_kept(small_result, tmp_path):
    small_result.save(tmp_path / "out")
    notes = tmp_path / "out/series/notes.txt"
    notes.write_text("mine")
    with pytest.raises(InputError, match=r"series/notes\.txt"):
        small_result.save(tmp_path / "out", overwrite=True)
    assert notes.read_text() == "mine"


@pytest.mark.usefixtures("undrawn")
def test_what_is_cut_short_leaves_the_old_result(small_result, tmp_path, monkeypatch):
    small_result.save(tmp_path / "out")
    before = (tmp_path / "out/result.json").read_bytes()
    rename, renamed = Path.rename, []

    def cut_short(self, target):
        if len(renamed) == 1:
            renamed.append(None)
            raise KeyboardInterrupt
        renamed.append(target)
        return rename(self, target)

    # Only where directories cannot be exchanged are there two steps.
    monkeypatch.setattr(replacing, "_exchange", lambda *_: False)
    monkeypatch.setattr(Path, "rename", cut_short)
    with pytest.raises(KeyboardInterrupt):
        small_result.save(tmp_path / "out")
    assert (tmp_path / "out/result.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_is_no_place_for_a_result(small_result, tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        small_result.save(tmp_path / "out", overwrite=True)
    assert (tmp_path / "out").read_text() == "mine"


def test_the_current_directory_and_the_root_are_refused(small_result, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="current directory"):
        small_result.save(".")
    with pytest.raises(InputError, match="holds other files"):
        small_result.save("/")


@pytest.mark.usefixtures("undrawn")
def test_another_experiments_result_stays(small_result, small_toml, tmp_path):
    small_result.save(tmp_path / "out")
    before = (tmp_path / "out/result.json").read_bytes()
    other = flashkeel.Experiment.from_toml(small_toml).set("workload.requests", 100).run()
    with pytest.raises(InputError, match="another experiment"):
        other.save(tmp_path / "out")
    assert (tmp_path / "out/result.json").read_bytes() == before
    other.save(tmp_path / "out", overwrite=True)
    assert flashkeel.load(tmp_path / "out")["fifo"].data["requests"] == 100


@pytest.mark.parametrize("overwrite", [False, True])
def test_directory_with_other_files_is_always_refused(small_result, tmp_path, overwrite):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match=r"thesis\.tex"):
        small_result.save(tmp_path, overwrite)
    assert names(tmp_path) == ["thesis.tex"]


@pytest.mark.usefixtures("undrawn")
def test_parents_are_created(small_result, tmp_path):
    small_result.save(tmp_path / "a/b/c")
    assert (tmp_path / "a/b/c/result.json").exists()


def test_path_through_a_file_is_refused(small_result, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="not a directory"):
        small_result.save(tmp_path / "file/out")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a result"),
        ("[1]", "no runs"),
        ('{"runs": 3}', "no runs"),
        ('{"schema": 99, "runs": []}', "schema 99"),
        ('{"schema": 1, "runs": [', "not a result"),
    ],
)
def test_file_that_is_no_result_is_refused(tmp_path, text, said):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(InputError, match=said):
        flashkeel.load(tmp_path)


def test_result_file_is_valid_strict_json(saved):
    def refuse(name):
        raise AssertionError(name)

    json.loads((saved / "result.json").read_text(), parse_constant=refuse)
