"""Terminals of 80 columns, of ASCII, and those that go away; disks that are full."""

import os
import subprocess
import sys

import pytest
from flashkeel.cli import app
from flashkeel.output import storage


def commands(group=app, path=()):
    yield path
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_help_fits_and_cuts_no_sentence(cli, monkeypatch, path):
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli(*path, "--help").out.splitlines()
    assert max(map(len, lines)) <= 80
    cut = [line for line in lines if line.endswith("...") and not line.startswith("Usage")]
    assert not cut


@pytest.mark.parametrize(
    "arguments",
    [("compare", "{0}:fifo", "{0}:debit"), ("explain", "{0}:fifo"), ("run", "{1}")],
    ids=lambda arguments: arguments[0],
)
def test_tables_fit_80_columns(shell, saved, small_toml, arguments):
    outcome = shell(*(part.format(saved, small_toml) for part in arguments), COLUMNS="80")
    assert outcome.status == 0
    # But for titles, which a terminal folds.
    rows = [line.rstrip() for line in outcome.out.splitlines() if "workload" not in line]
    assert max(map(len, rows)) <= 80


def test_an_ascii_terminal_gets_ascii(saved):
    command = [sys.executable, "-m", "flashkeel", "compare", f"{saved}:fifo", f"{saved}:debit"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode("ascii")
    assert "B - A" in text and " us" in text and "..." in text


def test_all_of_a_trace_is_ascii_there(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("".join(f"{n * 50},a,0,Read,{n * 4096},4096,0\n" for n in range(9)))
    command = [sys.executable, "-m", "flashkeel", "trace", "info", str(path)]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert " us" in done.stdout.decode("ascii")


def test_no_standard_output_is_said(saved):
    command = f"{sys.executable} -m flashkeel explain {saved}:fifo >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "flashkeel: standard output is closed\n")


def test_who_reads_a_part_only_gets_no_traceback(saved):
    command = f"{sys.executable} -m flashkeel compare {saved}:fifo {saved}:debit | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("probe sim:ssd-d --out out", "model.json evidence.json probe.svg"),
        (
            "plan lifetime --capacity 1GB --rated-cycles 99 --gb-per-day 9 --waf 2 --seeds 1 "
            "--out out/life.png",
            "life.png",
        ),
        (
            "plan tier --profile systor-low --requests 3000 --drive qlc-1xnm --model 1GiB "
            "--policy base --seeds 1 --out out/tier.png",
            "tier.png",
        ),
        ("steady {0}:fifo -o out/steady.png", "steady.png"),
        ("run {1} --out out", "result.json tails.png"),
    ],
    ids=["probe", "plan lifetime", "plan tier", "steady", "run"],
)
def test_what_nobody_reads_on_is_saved(saved, small_toml, tmp_path, line, written):
    (tmp_path / "out").mkdir()
    words = [word.format(saved, small_toml) for word in line.split()]
    command = [sys.executable, "-m", "flashkeel", *words]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        running.stdout.close()
        said = running.stderr.read()
    assert (running.returncode, said) == (1, "")
    for name in written.split():
        assert (tmp_path / "out" / name).stat().st_size > 100


def test_a_disk_without_room_is_found_before_the_run(cli, small_toml, tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda _: usage)
    outcome = cli("run", small_toml, "--out", tmp_path / "out")
    # As of one that fills up later.
    assert outcome.status == 1
    assert "out: 1000 B are free" in outcome.err and "at least 2.00 MiB" in outcome.err
    assert not (tmp_path / "out").exists()


def test_a_disk_that_fills_up_loses_no_table(cli, small_toml, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.plots, "save", full)
    outcome = cli("run", small_toml, "--out", tmp_path / "out")
    assert outcome.status == 1
    assert outcome.err == f"flashkeel: {tmp_path / 'out'}: No space left on device\n"
    assert "Latency of small reads" in outcome.out and "Results" not in outcome.out
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_without_room_are_named(small_toml, tmp_path):
    """In a process of its own, whose errors are all that is printed."""
    script = f"""
import sys
from pathlib import Path
from flashkeel import arrow
from flashkeel.cli import main
def to_full(self, kind, run, seed):
    full = Path({str(tmp_path)!r}, kind, "full")
    full.parent.mkdir(exist_ok=True)
    full.unlink(missing_ok=True)
    full.symlink_to("/dev/full")
    return full
arrow.TableFiles.path = to_full
sys.argv = ["flashkeel", "run", {str(small_toml)!r}]
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    full = tmp_path / "series/full"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"flashkeel: {full}: No space left on device\n"


@pytest.mark.parametrize(
    ("reader", "message"),
    [("| true", ""), ("> /dev/full", "flashkeel: standard output: No space left on device\n")],
)
def test_who_reads_nothing_loses_no_result(small_toml, tmp_path, reader, message):
    command = f"{sys.executable} -m flashkeel run {small_toml} --out {tmp_path / 'out'} {reader}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == message
    assert len(storage.load(tmp_path / "out").runs) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("trace", "convert", "{trace}", "{out}", "--to", "mqsim"),
        ("export", "{saved}", "--format", "csv", "-o", "{out}"),
        ("report", "{saved}", "-o", "{out}.html"),
        ("plot", "{saved}", "-o", "{out}.png"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_full_disk_is_a_failure_and_a_wrong_name_is_not(cli, saved, tmp_path, arguments):
    trace = tmp_path / "t.csv"
    trace.write_text("100,hm,1,Read,0,4096,0\n")
    for suffix in ("", ".html", ".png"):
        (tmp_path / f"full{suffix}").symlink_to("/dev/full")
    for out, status, words in (
        ("full", 1, "No space left on device"),
        ("nowhere/out", 2, "No such file or directory"),
    ):
        places = {"saved": saved, "trace": trace, "out": tmp_path / out}
        outcome = cli(*(part.format(**places) for part in arguments))
        assert (outcome.status, outcome.out) == (status, "")
        assert outcome.err.startswith(f"flashkeel: {tmp_path / out}") and words in outcome.err


_STARTING = """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "flashkeel.{module}":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from flashkeel.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("_core", "flashkeel: interrupted\n"),
        ("cli", "flashkeel: interrupted\n"),
        ("cli.common", "flashkeel: interrupted\n"),
        # By then click is at work, which ends the terminal's line after ^C.
        ("cli.catalogue", "\nflashkeel: interrupted\n"),
    ],
)
def test_an_interrupt_while_it_starts_is_one(module, said):
    command = [sys.executable, "-c", _STARTING.format(module=module), "list", "presets"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, said)


def test_an_interrupt_of_code_made_of_text_is_one(tmp_path):
    """Once such an interrupt ended a probe by the signal, while it imported what shows bars."""
    (tmp_path / "click.py").write_text('exec("raise KeyboardInterrupt")\n')
    command = [sys.executable, "-m", "flashkeel", "list", "presets"]
    place = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=place)
    assert (done.returncode, done.stderr) == (130, "flashkeel: interrupted\n")


def test_words_on_an_error_stream_that_nobody_reads_do_not_decide_the_status():
    # What could not be written stays in the buffer, which is flushed at the end.
    code = (
        "import sys; from flashkeel import cli; cli._prepare(); sys.stdin.readline(); "
        "sys.stderr.write('cut short'); sys.exit(0)"
    )
    environment = {key: it for key, it in os.environ.items() if key != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stderr.close()
        process.stdin.write("go on\n")
        process.stdin.close()
        assert process.wait(30) == 0
