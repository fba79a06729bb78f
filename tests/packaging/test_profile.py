"""What wheels are trained on, and with which tool."""

import re

import debian
import flashkeel
import profile_guided
import pytest
from flashkeel import _core

LLVM = 22


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Return what makes the only programs that there are."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(debian, "install", lambda package: f"no {package}")

    def make(name, version):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho 'Debian LLVM version {version}'\n")
        path.chmod(0o755)
        return path

    make("rustc", "").write_text(f"#!/bin/sh\necho {tmp_path}\n")
    return make


@pytest.mark.parametrize(
    ("name", "version"),
    [("llvm-profdata-22", "22.1.8"), ("llvm-profdata-24", "24.0.0"), ("llvm-profdata", "22.1.2")],
)
def test_the_tool_is_of_the_compilers_llvm_or_later(programs, name, version):
    programs("llvm-profdata-21", "21.0.0")
    found = programs(name, version)
    assert profile_guided.profdata("x86_64-unknown-linux-gnu", LLVM) == found


def test_the_tool_that_comes_with_the_compiler_is_the_first(programs, tmp_path):
    programs("llvm-profdata-22", "22.1.8")
    path = tmp_path / "lib/rustlib/x86_64-unknown-linux-gnu/bin/llvm-profdata"
    path.parent.mkdir(parents=True)
    path.touch()
    assert profile_guided.profdata("x86_64-unknown-linux-gnu", LLVM) == path


def test_without_the_tool_there_is_a_reason(programs):
    programs("llvm-profdata", "14.0.6")
    words = "LLVM 22 or later is missing, .* the Debian package llvm-22: no llvm-22"
    with pytest.raises(profile_guided.NoProfileError, match=words):
        profile_guided.profdata("x86_64-unknown-linux-gnu", LLVM)


def test_what_is_trained_on_are_experiments():
    documents = sorted(profile_guided.TRAINING.glob("*.toml"))
    assert profile_guided.RECORDED in documents
    assert len(documents) > 5
    for document in documents:
        assert flashkeel.Experiment.from_toml(document).plans()


def test_the_version_says_how_it_is_built(cli):
    said = cli("--version").out
    assert re.fullmatch(rf"flashkeel {flashkeel.__version__} \({_core.BUILD}\)\n", said)
    assert _core.BUILD in ("debug", "release", "release, profile-guided")
