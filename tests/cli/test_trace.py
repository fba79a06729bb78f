"""flashkeel trace."""

import json

import pytest

MSR = """\
128166372003061629,src1,0,Read,0,4096,511
128166372003071629,src1,0,Write,8192,8192,733
128166372003091629,src1,0,Write,16384,4096,611
"""


@pytest.fixture
def msr(tmp_path):
    path = tmp_path / "in" / "three.csv"
    path.parent.mkdir()
    path.write_text(MSR)
    return path


def test_info_counts(cli, msr):
    found = json.loads(cli("trace", "info", msr, "--format", "json").out)
    assert (found["requests"], found["reads"], found["writes"]) == (3, 1, 2)
    assert found["span_ns"] == 3_000_000
    assert found["footprint_bytes"] == 16384


def test_info_in_words(cli, msr):
    outcome = cli("trace", "info", msr)
    assert (outcome.status, outcome.err) == (0, "")
    words = " ".join(outcome.out.split())
    assert "span 3.00 ms" in words
    assert "read bytes 4.00 KiB" in words


def test_first_error_names_line_and_field(cli, msr):
    msr.write_text(MSR.replace("Write,8192", "Wrote,8192"))
    outcome = cli("trace", "info", msr)
    assert outcome.status == 2
    assert outcome.out == ""
    assert "three.csv:2:" in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_convert_there_and_back(cli, msr, tmp_path):
    there = cli("trace", "convert", msr, tmp_path / "there.log", "--to", "fio")
    assert (there.status, there.err) == (0, "")
    assert "requests" in there.out
    found = json.loads(cli("trace", "info", tmp_path / "there.log", "--format", "json").out)
    assert (found["requests"], found["write_bytes"]) == (3, 12288)


def test_failed_conversion_leaves_nothing(cli, msr, tmp_path):
    msr.write_text(MSR + "word\n")
    outcome = cli("trace", "convert", msr, tmp_path / "out.log", "--to", "fio")
    assert outcome.status == 2
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_what_cannot_be_converted_names_the_target(cli, tmp_path):
    source, target = tmp_path / "trim.log", tmp_path / "out.csv"
    source.write_text("fio version 3 iolog\n0 f write 0 4096\n1 f trim 0 4096\n")
    outcome = cli("trace", "convert", source, target, "--to", "msr")
    assert outcome.status == 2
    assert outcome.err == f"flashkeel: {target}: msr cannot express a trim; fio can\n"
    assert [path.name for path in tmp_path.iterdir()] == ["trim.log"]
    nowhere = tmp_path / "nowhere" / "out.log"
    outcome = cli("trace", "convert", source, nowhere, "--to", "fio")
    assert outcome.status == 2
    assert outcome.err == f"flashkeel: {nowhere}: cannot write it: No such file or directory\n"


def test_synth_writes_the_workload(cli, small_toml, tmp_path):
    out = tmp_path / "small.csv"
    done = cli("trace", "synth", small_toml, out, "--to", "msr", "--set", "workload.requests=50")
    assert (done.status, done.err) == (0, "")
    found = json.loads(cli("trace", "info", out, "--format", "json").out)
    assert found["requests"] == 50
