"""What is at a place while a result takes that of another, whenever the process ends."""

import subprocess
import sys

import flashkeel
import pytest
from flashkeel import InputError, Result
from flashkeel.output import plots, replacing

# A process for each change of the file system, killed before it is made.
KILLED = """\
import os, shutil, signal, sys
from pathlib import Path

import flashkeel
from flashkeel.output import plots

old, new, place, refused = sys.argv[1:]
plots.save = lambda *_: None
result = flashkeel.load(new)
if refused:
    from flashkeel.output import replacing

    replacing._exchange = lambda *_: False


def save_until(step, out):
    left = [step]

    def changed(event, _):
        if event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir"):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(changed)
    result.save(out, overwrite=True)
    os._exit(0)


for step in range(100):
    out = Path(place, str(step), "out")
    out.parent.mkdir()
    if old:
        shutil.copytree(old, out)
    process = os.fork() or save_until(step, out)
    if os.waitpid(process, 0)[1] == 0:
        break
print(step + 1)
"""


def killed_at_each_step(old, new, place, refused=""):
    """Return a folder for each step: `out` in it was `old`, and its save was killed there."""
    command = [sys.executable, "-c", KILLED, old, new, place, refused]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    steps = int(done.stdout)
    assert 8 <= steps < 100, done.stderr
    return [place / str(step) for step in range(steps)]


def title(path):
    """Return the title of a result, all tables of which are there."""
    found = flashkeel.load(path)
    assert all(len(run.series()) for run in found)
    return found.title


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Leave pictures out: to draw them takes longer than all else."""
    monkeypatch.setattr(plots, "save", lambda *_: None)


@pytest.fixture
def titled(small_result, tmp_path):
    """Results of two experiments, called `old` and `new`."""
    for name in ("old", "new"):
        document = small_result.document | {"title": name, "identity": name}
        Result(document, small_result.files).save(tmp_path / name)
    return tmp_path


def test_killed_at_any_step_either_result_is_there(titled, tmp_path):
    places = killed_at_each_step(titled / "old", titled / "new", tmp_path)
    found = [title(place / "out") for place in places]
    changed = found.index("new")
    assert 0 < changed < len(found) - 1
    assert found == ["old"] * changed + ["new"] * (len(found) - changed)


def test_where_nothing_can_be_exchanged_both_are_left(titled, tmp_path):
    places = killed_at_each_step(titled / "old", titled / "new", tmp_path, "refused")
    missing = [place / "out" for place in places if not (place / "out").exists()]
    assert len(missing) == 1
    left = replacing.left(missing[0])
    assert [title(path) for path in left] == ["new", "old"]
    with pytest.raises(InputError, match=f"{left[0]} and {left[1]}; move one of them to") as error:
        flashkeel.load(missing[0])
    assert "No such file" in str(error.value)
    left[1].rename(missing[0])
    assert title(missing[0]) == "old"


def test_the_next_save_removes_what_is_left(titled, tmp_path):
    places = killed_at_each_step(titled / "old", titled / "new", tmp_path)
    left = [place for place in places if [*place.glob(".flashkeel-*.out")]]
    assert len(left) > 8
    for place in left:
        flashkeel.load(titled / "new").save(place / "out", overwrite=True)
        assert [path.name for path in place.iterdir()] == ["out"]


def test_the_only_copy_of_another_result_is_not_removed(titled, tmp_path):
    places = killed_at_each_step("", titled / "new", tmp_path)
    out = [place / "out" for place in places if [*place.glob("*/new/result.json")]][-1]
    (left,) = replacing.left(out)
    old = flashkeel.load(titled / "old")
    with pytest.raises(InputError, match=f"left {left}; move it to {out} .* say --overwrite"):
        old.save(out)
    assert title(left) == "new"
    old.save(out, overwrite=True)
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_what_is_being_written_is_not_taken_for_left(tmp_path):
    with replacing.whole(tmp_path / "out") as place:
        assert not replacing.left(tmp_path / "out")
        with replacing.whole(tmp_path / "out") as other:
            (other / "first").touch()
        (place / "second").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "second"]


def test_a_save_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), replacing.whole(tmp_path / "out"):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
