"""flashkeel trace: pipes, parts, merging, Parquet, and traces like others."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from small import SMALL

MSR = """\
128166372003061629,src1,0,Read,0,4096,511
128166372003071629,src1,0,Write,8192,8192,733
128166372003091629,src1,0,Write,16384,4096,611
"""


@pytest.fixture
def msr(tmp_path):
    path = tmp_path / "three.csv"
    path.write_text(MSR)
    return path


def test_a_trace_comes_through_a_pipe(cli, msr, tmp_path):
    pipe = tmp_path / "trace.fifo"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_text, args=(MSR,), daemon=True).start()
    found = json.loads(cli("trace", "info", pipe, "--format", "json").out)
    assert found["requests"] == 3


def test_standard_input_is_a_trace(shell):
    outcome = shell("trace", "convert", "-", "-", "--to", "fio", stdin=MSR)
    assert outcome.out.splitlines()[3:5] == [
        "0 flashkeel read 0 4096",
        "1000 flashkeel write 8192 8192",
    ]
    assert "requests" in outcome.err
    assert outcome.status == 0


@pytest.fixture
def replay(tmp_path):
    """Write a small experiment that replays standard input, once for each name."""

    def write(*names):
        head, _, rest = SMALL.partition("[workload]")
        source = '[workload.source]\npolicy = "trace"\npath = "-"\n'
        runs = "".join(f'[[runs]]\nname = "{name}"\n' for name in names)
        assert "[[runs]]" in rest
        path = tmp_path / "replay.toml"
        path.write_text(head + source + runs)
        return path

    return write


def test_a_run_takes_a_trace_from_standard_input(shell, replay):
    outcome = shell("run", replay("one"), "--format", "json", stdin=MSR)
    assert outcome.status == 0, outcome.err
    assert json.loads(outcome.out)["runs"][0]["requests"] == 3


def test_only_one_run_can_have_standard_input(shell, replay):
    for names, options in [(("one", "two"), ()), (("one",), ("--seeds", "2"))]:
        outcome = shell("run", replay(*names), *options, stdin=MSR)
        assert outcome.status == 2
        assert "standard input can be read only once, and 2 runs read it" in outcome.err


def test_a_pipe_is_checked_before_it_is_read(shell, replay):
    outcome = shell("run", replay("one"), "--set", "workload.source.repeat=2", stdin=MSR)
    assert outcome.status == 2
    assert "workload.source.repeat" in outcome.err
    assert "a pipe cannot be" in outcome.err


def test_a_source_is_not_overwritten(cli, msr):
    outcome = cli("trace", "convert", msr, msr)
    assert outcome.status == 2
    assert "it is the trace that is read" in outcome.err
    assert msr.read_text() == MSR


def test_no_tool_overwrites_what_it_reads(shell, msr, tmp_path):
    document = tmp_path / "replay.toml"
    source = '{ policy = "trace", path = "three.csv" }'
    document.write_text(f'[device]\npreset = "autossd"\n[workload]\nsource = {source}\n')
    link, job = tmp_path / "link.csv", tmp_path / "j.fio"
    link.symlink_to(msr)
    job.write_text("[a]\nrw=read\nsize=1m\n")
    picture = tmp_path / "a.png"
    picture.write_text(MSR)
    before = {path: path.read_text() for path in (msr, document, job, picture)}
    to_msr, drive = ("--format", "msr"), ("--capacity", "1GB", "--tbw", "1TB")
    for arguments in [
        ("trace", "synth", msr, "-o", link, *to_msr),
        ("trace", "synth", document, "-o", msr, *to_msr),
        ("trace", "synth", document, "-o", document, *to_msr),
        ("import", "fio", job, "-o", job),
        ("plan", "lifetime", "--trace", picture, *drive, "--out", picture),
    ]:
        outcome = shell(*arguments)
        assert (outcome.status, outcome.out) == (2, ""), arguments
        assert "choose another name" in outcome.err
    assert {path: path.read_text() for path in before} == before
    assert link.is_symlink()


def test_standard_input_is_not_overwritten(msr):
    command = [sys.executable, "-m", "flashkeel", "trace", "convert", "-", str(msr), "--to", "fio"]
    with msr.open() as source:
        done = subprocess.run(command, stdin=source, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "it is the trace that is read" in done.stderr
    assert msr.read_text() == MSR


def test_a_file_called_partial_is_like_any_other(cli, msr, tmp_path):
    partial = tmp_path / "out.csv.partial"
    partial.write_text(MSR)
    assert cli("trace", "convert", partial, tmp_path / "out.csv", "--to", "mqsim").status == 0
    assert partial.read_text() == MSR
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3
    assert len(list(tmp_path.iterdir())) == 3


def test_parquet_goes_out_and_in(cli, msr, tmp_path):
    table = tmp_path / "t.parquet"
    assert cli("trace", "convert", msr, table).status == 0
    found = json.loads(cli("trace", "info", table, "--format", "json").out)
    assert (found["format"], found["requests"], found["span_ns"]) == ("parquet", 3, 3_000_000)
    again = tmp_path / "again.csv"
    assert cli("trace", "convert", table, again).status == 0
    assert [line.split(",")[4:6] for line in again.read_text().splitlines()] == [
        ["0", "4096"],
        ["8192", "8192"],
        ["16384", "4096"],
    ]


def test_parquet_of_other_columns_is_refused(cli, shell, tmp_path):
    from arro3.core import Array, DataType, Table
    from arro3.io import write_parquet

    path = tmp_path / "t.parquet"
    write_parquet(Table.from_pydict({"time": Array([1], DataType.int64())}), path)
    outcome = cli("trace", "convert", path, tmp_path / "o.csv")
    assert outcome.status == 2
    assert "has no column operation; a trace has time_ns, operation, offset, bytes" in outcome.err
    whole = path.read_bytes()
    piped = shell("trace", "info", "-", stdin="PAR1 and more of it")
    assert piped.status == 2
    assert "standard input: a Parquet file is read from its end" in piped.err
    for wrong in (b"PAR1 or not", whole[:-20]):
        path.write_bytes(wrong)
        assert "no Parquet file" in cli("trace", "convert", path, tmp_path / "o.csv").err


def test_parts_and_speeds(cli, msr, tmp_path):
    out = tmp_path / "out.log"
    window = ("--from", "1ms", "--until", "2ms")
    assert cli("trace", "slice", msr, out, *window, "--to", "fio").status == 0
    assert out.read_text().splitlines()[3:] == ["0 flashkeel write 8192 8192"]
    assert cli("trace", "scale", msr, out, "--intensity", "0.5", "--to", "fio").status == 0
    assert [line.split()[0] for line in out.read_text().splitlines()[3:]] == ["0", "2000", "6000"]
    assert cli("trace", "scale", msr, out).status == 2


def test_traces_are_merged(cli, msr, tmp_path):
    out = tmp_path / "out.log"
    options = ("--to", "fio", "--addresses", "merge")
    assert cli("trace", "merge", msr, msr, "-o", out, *options).status == 0
    assert [line.split()[0] for line in out.read_text().splitlines()[3:]] == [
        *("0", "0", "1000", "1000", "3000", "3000")
    ]


def test_a_trace_like_another(cli, msr, tmp_path):
    out = tmp_path / "made.log"
    outcome = cli("trace", "synth", msr, "-o", out, "--format", "fio", "--requests", "50")
    assert outcome.status == 0, outcome.err
    found = json.loads(cli("trace", "info", out, "--format", "json").out)
    assert (found["basis"], found["requests"]) == ("synthetic", 50)


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert", "long.csv", "-"),
        ("merge", "long.csv", "long.csv", "-o", "-"),
        ("synth", "long.csv", "-o", "-", "--format", "msr"),
        ("synth", "rad-as", "-o", "-", "--format", "msr", "--set", "workload.requests=200000"),
    ],
    ids=" ".join,
)
def test_whoever_has_seen_enough_may_go(arguments, tmp_path):
    long = tmp_path / "long.csv"
    long.write_text("".join(f"{n},a,0,Read,{n * 4096},4096,0\n" for n in range(200_000)))
    command = [sys.executable, "-m", "flashkeel", "trace", *arguments]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as running:
        assert running.stdout.readline().count(",") == 6
        running.stdout.close()
        assert running.wait(30) == 1
        assert running.stderr.read() == ""


def test_a_wait_for_a_pipe_can_be_interrupted():
    command = [sys.executable, "-m", "flashkeel", "trace", "info", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as running:
        running.stdin.write("100,a,0,Read,0,4096,0\n")
        running.stdin.flush()
        time.sleep(2)
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130
        assert running.stderr.read().strip() == "flashkeel: interrupted"


@pytest.mark.parametrize(
    "arguments",
    [("info", "ff"), ("convert", "ff", "x"), ("convert", "three.csv", "ff")],
    ids=" ".join,
)
def test_a_wait_for_the_other_end_can_be_interrupted(msr, arguments):
    os.mkfifo(msr.parent / "ff")
    command = [sys.executable, "-m", "flashkeel", "trace", *arguments]
    with subprocess.Popen(command, cwd=msr.parent, stderr=subprocess.PIPE, text=True) as running:
        time.sleep(2)
        running.send_signal(signal.SIGINT)
        try:
            assert running.wait(20) == 130
        finally:
            running.kill()
        assert running.stderr.read().strip() == "flashkeel: interrupted"


def converting(out, hangup):
    """Begin a conversion that waits for more of its input; `hangup` is what is done at SIGHUP."""
    command = [sys.executable, "-m", "flashkeel", "trace", "convert", "-", str(out)]
    # It begins with what is done here.
    here = signal.signal(signal.SIGHUP, hangup)
    running = subprocess.Popen(command, stdin=subprocess.PIPE)
    signal.signal(signal.SIGHUP, here)
    running.stdin.write(MSR.encode())
    running.stdin.flush()
    time.sleep(2)
    return running


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_ended_clears_up(msr, tmp_path, number):
    with converting(tmp_path / "out.csv", signal.SIG_DFL) as running:
        running.send_signal(number)
        assert running.wait(20) == 128 + number
    assert list(tmp_path.iterdir()) == [msr]


def test_a_command_that_ignores_the_end_of_its_terminal_goes_on(tmp_path):
    with converting(tmp_path / "out.csv", signal.SIG_IGN) as running:
        running.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        running.stdin.close()
        assert running.wait(20) == 0
    assert (tmp_path / "out.csv").exists()


def test_pipes_are_no_traces_to_measure(shell, msr):
    outcome = shell("trace", "synth", "-", "-o", msr.parent / "o", "--format", "msr", stdin=MSR)
    assert outcome.status == 2
    assert "a pipe cannot be; save it to a file first" in outcome.err


def test_names_need_not_be_text(shell, msr):
    name = msr.parent / os.fsdecode(b"t\xff.csv")
    name.write_text(MSR)
    outcome = shell("trace", "info", name, "--format", "json")
    assert json.loads(outcome.out)["requests"] == 3


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("scale", "{}", "o.csv", "--intensity", "nan"), "'nan' is not a number"),
        (("scale", "{}", "o.csv", "--intensity", "1e-300"), "1e-300 is not in the range"),
        (("slice", "{}", "o.csv", "--from", "-1ms"), "--from -1ms: a trace begins at 0s"),
        (("convert", "{}", "o.parquet.gz"), "a Parquet file is compressed in itself"),
    ],
)
def test_what_is_wrong_is_said_in_its_words(cli, msr, arguments, expected, monkeypatch):
    monkeypatch.chdir(msr.parent)
    outcome = cli("trace", *(part.format(msr) for part in arguments))
    assert outcome.status == 2
    assert expected in outcome.err


def test_names_from_files_move_no_cursor(cli, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("128166372003061629,a\x1b[2J,0,Read,0,4096,511\n")
    out = cli("trace", "info", path).out
    assert "\x1b[2J" not in out and "a\\x1b[2J" in out


@pytest.mark.parametrize(
    ("target", "form"), [("out.parquet", "msr"), ("out.csv", "parquet"), ("out.txt", "parquet")]
)
def test_a_name_that_contradicts_the_format_is_refused(cli, tmp_path, target, form):
    source, path = tmp_path / "in.csv", tmp_path / target
    source.write_text("0,h,0,Read,0,4096,0\n")
    for command in (
        ("convert", source, path, "--to", form),
        ("merge", source, "-o", path, "--to", form),
        ("synth", "homes", "-o", path, "--format", form, "--set", "workload.requests=5"),
        ("synth", source, "-o", path, "--format", form),
    ):
        outcome = cli("trace", *command)
        assert (outcome.status, outcome.out) == (2, ""), command
        assert outcome.err == (
            f"flashkeel: {path}: its name is not that of a trace as {form}; choose another\n"
        )
    assert not path.exists()
