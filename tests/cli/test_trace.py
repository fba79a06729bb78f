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
    why = "msr cannot express a trim; fio, columns, parquet can"
    assert outcome.err == f"flashkeel: {target}: {why}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["trim.log"]
    nowhere = tmp_path / "nowhere" / "out.log"
    outcome = cli("trace", "convert", source, nowhere, "--to", "fio")
    assert outcome.status == 2
    assert outcome.err == f"flashkeel: {nowhere}: cannot write it: No such file or directory\n"


def test_synth_takes_the_format_from_the_name_of_a_parquet_file(cli, small_toml, tmp_path):
    path = tmp_path / "synthetic.parquet"
    requests = ("--set", "workload.requests=50")
    assert cli("trace", "synth", small_toml, "-o", path, *requests).status == 0
    found = json.loads(cli("trace", "info", path, "--format", "json").out)
    assert (found["format"], found["requests"]) == ("parquet", 50)
    refused = cli("trace", "synth", small_toml, "-o", tmp_path / "synthetic.csv", *requests)
    assert refused.status == 2
    assert "--format says what to write; a file called .parquet needs none" in refused.err


def test_synth_writes_the_workload(cli, small_toml, tmp_path):
    out = tmp_path / "small.csv"
    done = cli(
        "trace", "synth", small_toml, "-o", out, "--format", "msr", "--set", "workload.requests=50"
    )
    assert (done.status, done.err) == (0, "")
    found = json.loads(cli("trace", "info", out, "--format", "json").out)
    assert found["requests"] == 50


def test_info_is_in_the_terms_of_published_tables(cli, msr):
    terms = json.loads(cli("trace", "info", msr, "--format", "json").out)["terms"]
    assert terms == {
        "hours": 3e6 / 3.6e12,
        "writes_millions": 2e-6,
        "reads_millions": 1e-6,
        "write_kb": 6.0,
        "read_kb": 4.0,
        "inter_arrival_mean_ms": 1.5,
        "inter_arrival_median_ms": pytest.approx(1.0, rel=1e-3),
        "write_percent": pytest.approx(200 / 3),
        "random_percent": pytest.approx(200 / 3),
    }
    words = cli("trace", "info", msr).out
    assert f"{msr} (recorded trace)" in words
    assert "inter-arrival, mean (ms)" in words


def test_etw_is_read(cli, tmp_path):
    path = tmp_path / "dtrs.csv"
    path.write_text(
        "BeginHeader\n  DiskRead, TimeStamp, DiskNum, ByteOffset, IOSize\nEndHeader\n"
        "  DiskRead, 10, 3, 0x1000, 0x2000\n  DiskReadInit, 11\n  DiskRead, 30, 3, 0x3000, 0x1000\n"
    )
    found = json.loads(cli("trace", "info", path, "--format", "json").out)
    assert (found["format"], found["reads"], found["not_io"]) == ("etw", 2, 4)
    path.write_text(path.read_text().replace("0x3000", "3000h"))
    outcome = cli("trace", "info", path)
    assert outcome.status == 2
    assert "dtrs.csv:6: field 4 (ByteOffset)" in outcome.err


@pytest.mark.parametrize("form", ["msr", "fio"])
def test_profile_becomes_a_trace_that_says_it_is_synthetic(cli, tmp_path, form):
    out = tmp_path / "rad-as"
    options = ("--format", form, "--set", "workload.requests=49153", "--seed", "3")
    done = cli("trace", "synth", "rad-as", "-o", out, *options)
    assert (done.status, done.err) == (0, "")
    assert "profile rad-as is synthetic" in done.out
    found = json.loads(cli("trace", "info", out, "--format", "json").out)
    assert (found["basis"], found["requests"]) == ("synthetic", 49153)
    terms = found["terms"]
    # AutoSSD's table 2.
    assert terms["write_kb"] == pytest.approx(9.9, rel=0.02)
    assert terms["inter_arrival_mean_ms"] == pytest.approx(24.9, rel=0.02)
    assert terms["inter_arrival_median_ms"] == pytest.approx(0.8, rel=0.02)
    assert "synthetic workload" in cli("trace", "info", out).out


def test_a_format_without_a_place_for_it_wants_the_name_to_say_synthetic(cli, tmp_path):
    options = ("--format", "mqsim", "--set", "workload.requests=200")
    plain, named = tmp_path / "rad-as.mqsim", tmp_path / "rad-as.synthetic.mqsim"
    refused = cli("trace", "synth", "rad-as", "-o", plain, *options)
    assert refused.status == 2
    assert refused.err == (
        f"flashkeel: {plain}: nothing in it would say that the trace is synthetic, for which "
        'mqsim has no place; choose a name with "synthetic" in it\n'
    )
    assert cli("trace", "synth", "rad-as", "-o", named, *options).status == 0
    assert "synthetic workload" in cli("trace", "info", named).out
    # Neither does a conversion lose the word.
    refused = cli("trace", "convert", named, plain, "--to", "mqsim")
    assert (refused.status, plain.exists()) == (2, False)
    kept = tmp_path / "kept.csv"
    assert cli("trace", "convert", named, kept, "--to", "msr").status == 0
    assert "synthetic workload" in cli("trace", "info", kept).out
    assert cli("trace", "convert", kept, plain, "--to", "mqsim").status == 2


def test_a_recorded_trace_needs_no_such_name(cli, msr, tmp_path):
    assert cli("trace", "convert", msr, tmp_path / "three.mqsim", "--to", "mqsim").status == 0


def test_progress_is_told_while_a_trace_is_read(cli, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(
        "flashkeel.output.progress.Bars.update", lambda _, *report: told.append(report)
    )
    out = tmp_path / "web.csv"
    cli("trace", "synth", "web", "-o", out, "--format", "msr", "--set", "workload.requests=40000")
    assert {phase for _, phase, _ in told} == {"write"}
    told.clear()
    cli("trace", "info", out)
    assert {phase for _, phase, _ in told} == {"read"}
    told.clear()
    cli("trace", "convert", out, tmp_path / "web.fio", "--to", "fio")
    assert {phase for _, phase, _ in told} == {"convert"}
    assert all(0 <= fraction <= 1 for _, _, fraction in told)


def test_of_many_devices_the_busiest_are_shown(cli, tmp_path):
    path = tmp_path / "many.csv"
    names = [f"vol{number:02}" for number in range(30) for _ in range(number + 1)]
    rows = [f"{at},read,0,4096,{name}" for at, name in enumerate(names)]
    path.write_text("\n".join(["time_us,op,offset,bytes,device", *rows, ""]))
    out = cli("trace", "info", path).out
    assert "busiest 20 of 30 devices\n" in out
    shown = [line.split(",")[0].split()[1] for line in out.splitlines() if "  name vol" in line]
    assert shown == [f"vol{number:02}" for number in range(29, 9, -1)]
    assert len(json.loads(cli("trace", "info", path, "--format", "json").out)["devices"]) == 30
