"""flashkeel sweep: the same results on every executor, none lost, none run twice."""

import csv
import fcntl
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import time

import pytest
from arro3.io import read_parquet
from flashkeel.sweep import design, quantity, running
from flashkeel.sweep.outcome import picture, rows
from small import SMALL

BASE = SMALL.split("[[runs]]")[0].partition("[device]")[2].replace("[", "[experiment.")
SWEEP = f"""\
title = "Mine"
[experiment]
seed = 7
[experiment.device]
{BASE}
[set]
"workload.requests" = 2000
[grid]
"device.scheduler" = ["fifo", "debit"]
"workload.source.read_fraction" = [0.5, 0.9]
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SWEEP)
    return path


def sweep(cli, path, out, *options):
    outcome = cli("sweep", path, "-o", out, "--format", "json", *options)
    assert (outcome.status, outcome.err) == (0, "")
    return json.loads(outcome.out)


def runs(out):
    return {path.name: path.stat().st_mtime_ns for path in (out / "runs").iterdir()}


def test_executors_agree_to_the_byte(cli, mine, tmp_path):
    here = sweep(cli, mine, tmp_path / "a")
    two = sweep(cli, mine, tmp_path / "b", "--jobs", 2)
    dask = sweep(cli, mine, tmp_path / "c", "--executor", "dask", "--jobs", 2)
    assert here == two == dask
    assert len(here) == 4
    digests = {row["workload.source.read_fraction"]: row["digest"] for row in here}
    assert len(set(digests.values())) == 2
    assert set(runs(tmp_path / "a")) == set(runs(tmp_path / "b")) == set(runs(tmp_path / "c"))


def test_the_table_has_keys_and_measurements(cli, mine, tmp_path):
    rows = sweep(cli, mine, tmp_path / "a", "--seeds", 2)
    table = read_parquet(tmp_path / "a/sweep.parquet").read_all()
    assert table.column("workload.source.read_fraction").to_pylist() == [0.5, 0.9] * 2
    assert table.column("point").to_pylist() == [1, 2, 3, 4]
    for name in table.column_names:
        assert table.column(name).to_pylist() == [row[name] for row in rows]
    with (tmp_path / "a/sweep.csv").open() as sheet:
        written = list(csv.DictReader(sheet))
    assert [row["digest"] for row in written] == [row["digest"] for row in rows]
    assert [float(row["waf"]) for row in written] == [row["waf"] for row in rows]
    assert {"reads", "trims", "flushes"} < set(table.column_names)
    assert {row["seeds"] for row in rows} == {2}
    assert {row["basis"] for row in rows} == {"synthetic"}
    for row in rows:
        assert row["requests"] == 4000
        assert row["read_bytes_per_s"] > 4096 * row["read_iops"] * 0.999 > 0
        # 512 MiB of flash behind 380 MiB.
        assert row["drive_writes_per_cycle"] * row["waf"] == pytest.approx(512 / 380)
    assert (tmp_path / "a/sweep.png").read_bytes().startswith(b"\x89PNG")


def test_whole_runs_have_intervals_over_four_seeds(cli, mine, tmp_path):
    mine.write_text(SWEEP + '[picture]\ny = "waf"\n')
    rows = sweep(cli, mine, tmp_path / "four", "--seeds", 4)
    for name in ("waf", "read_iops", "write_bytes_per_s"):
        assert all(row[f"{name}_low"] < row[name] < row[f"{name}_high"] for row in rows)
    assert all(row["read_mean_low_ns"] < row["read_mean_ns"] for row in rows)
    first = rows[0]
    each = [
        sweep(cli, mine, tmp_path / f"{seed}", "--set", f"seed={seed}")[0]["waf"]
        for seed in range(7, 11)
    ]
    error = statistics.stdev(each) / 2
    assert first["waf_high"] - first["waf"] == pytest.approx(3.182 * error, rel=0.01)
    assert {row["waf_low"] for row in sweep(cli, mine, tmp_path / "few", "--seeds", 3)} == {None}


def test_equal_runs_are_told_from_those_that_are_there(cli, mine, tmp_path):
    mine.write_text(SWEEP.replace("[0.5, 0.9]", "[0.5, 0.50]"))
    fresh = cli("sweep", mine, "-o", tmp_path / "a")
    assert fresh.err.startswith("2 of 4 runs are equal to others, and not run twice; ")
    assert "already" not in fresh.err
    assert "2 of 2 runs are there already" in cli("sweep", mine, "-o", tmp_path / "a").err


@pytest.mark.parametrize("where", ["command", "file", "tables"])
def test_a_key_that_is_varied_is_not_set_in_all(cli, mine, tmp_path, where):
    options = ["--set", "device.scheduler=fair"] if where == "command" else []
    if where == "file":
        mine.write_text(SWEEP.replace("[set]", '[set]\n"device.scheduler" = "fair"'))
    if where == "tables":
        mine.write_text(SWEEP.replace("[set]", '[set]\ndevice.scheduler = "fair"'))
    outcome = cli("sweep", mine, "-o", tmp_path / "a", *options)
    assert outcome.status == 2
    assert "device.scheduler is varied, and cannot be set in every point" in outcome.err
    assert not (tmp_path / "a").exists()


def drawn(mine, tmp_path, text, seeds=1):
    """Return the axes of a sweep's picture, of points that were run as they are here."""
    mine.write_text(text)
    found = design.read(str(mine))
    store = running.Store(tmp_path / "drawn")
    points = running.points(found, seeds)
    running.run(running.work(points, store).wanted, store, "local", 1, None, None)
    return picture(found, running.finished(points, store)).axes


def test_bars_are_intervals_over_seeds(mine, tmp_path):
    text = SWEEP + '[picture]\ny = "waf"\n'
    for seeds, bars in ((4, 4), (3, 0)):
        axes, *_ = drawn(mine, tmp_path, text, seeds)
        shown = [line for line in axes.get_lines() if line.get_alpha() == 0.6]
        assert len(shown) == bars
        assert axes.figure.get_supxlabel().startswith("bars: 95 %") is bool(bars)


def test_lines_join_what_differs_in_one_key(mine, tmp_path):
    axes, *_ = drawn(mine, tmp_path, SWEEP + '"device.gc.start_below" = [40, 42]\n')
    assert axes.get_xlabel() == "device.scheduler"
    shown = [line for line in axes.get_lines() if line.get_alpha() == 0.4]
    # A line through fifo and debit for each of two fractions and two thresholds.
    assert [list(line.get_xdata()) for line in shown] == [["fifo", "debit"]] * 4
    # Each says at its end what no axis does.
    assert [it.get_text() for it in axes.texts if it.get_text()] == ["40", "42"] * 2


def test_values_of_one_colour_are_told_apart(mine, tmp_path):
    sizes = [f"{n}MiB" for n in range(1, 10)]
    keys = f'"device.scheduler" = ["fifo"]\n"device.buffer.size" = {sizes}\n'
    axes, *_ = drawn(mine, tmp_path, f"{SWEEP.partition('[grid]')[0]}[grid]\n{keys}")
    (legend,) = axes.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == sizes
    told = {(it.get_color(), it.get_marker()) for it in axes.get_lines()}
    assert len({mark for mark in told if mark[1] in ("o", "s")}) == len(sizes)


def test_lines_say_all_that_no_axis_does(mine, tmp_path):
    more = '"device.gc.start_below" = [40, 42]\n"device.buffer.size" = ["1MiB", "2MiB"]\n'
    axes, *_ = drawn(mine, tmp_path, SWEEP + more + '"device.gc.victim" = ["greedy"]\n')
    named = [f"{below}, {size}" for below in (40, 42) for size in ("1MiB", "2MiB")]
    # Lines that end at one place are named there together.
    told = " | ".join(it.get_text() for it in axes.texts if it.get_text()).split(" | ")
    assert told == named * 2
    axes.figure.draw_without_rendering()
    shown = axes.yaxis.get_ticklabels(which="both")
    boxes = [it.get_window_extent() for it in shown if it.get_text()]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_lines_of_several_runs_say_which(mine, tmp_path):
    both = "".join(
        f'[[experiment.runs]]\nname = "{name}"\nset = {{ "device.gc.start_below" = {below} }}\n'
        for name, below in (("early", 42), ("late", 40))
    )
    axes, *_ = drawn(mine, tmp_path, SWEEP + both)
    told = " | ".join(it.get_text() for it in axes.texts if it.get_text()).split(" | ")
    assert told == ["early", "late"] * 2


def test_sizes_and_times_stand_where_they_are_on_a_scale(mine, tmp_path):
    keys = '"device.buffer.size" = ["4MiB", "512KiB", "1GiB"]\n'
    axes, *_ = drawn(mine, tmp_path, SWEEP.partition("[grid]")[0] + "[grid]\n" + keys)
    (line,) = [line for line in axes.get_lines() if line.get_alpha() == 0.4]
    assert list(line.get_xdata()) == [1 << 19, 1 << 22, 1 << 30]
    assert axes.get_xscale() == "log"
    assert [it.get_text() for it in axes.get_xticklabels()] == ["4MiB", "512KiB", "1GiB"]
    found, store = design.read(str(mine)), running.Store(tmp_path / "drawn")
    told = rows(found, running.finished(running.points(found, 1), store))
    assert [row["device.buffer.size"] for row in told] == ["4MiB", "512KiB", "1GiB"]
    assert [row["device.buffer.size_bytes"] for row in told] == [1 << 22, 1 << 19, 1 << 30]
    assert quantity.of(["1ms", "5us"]).numbers == pytest.approx({"1ms": 1e-3, "5us": 5e-6})
    assert quantity.of(["400MB/s"]).unit == "bytes_per_s"
    assert [quantity.of(it) for it in (["1ms", "1MiB"], ["fifo"], ["5"], [5], [])] == [None] * 5


def test_points_by_chance_are_not_joined_and_many_numbers_have_a_scale(mine, tmp_path):
    keys = """\
[random]
points = 9
[random.keys]
"workload.source.read_fraction" = { from = 0.1, to = 0.9 }
"device.gc.start_below" = { from = 30, to = 50 }
"""
    axes, scale = drawn(mine, tmp_path, SWEEP.partition("[grid]")[0] + keys)
    assert not [line for line in axes.get_lines() if line.get_alpha() == 0.4]
    assert (axes.get_xlabel(), scale.get_ylabel()) == (
        "workload.source.read_fraction",
        "device.gc.start_below",
    )
    assert axes.figure.legends == []


def test_what_was_run_is_not_run_again(cli, mine, tmp_path):
    out = tmp_path / "a"
    first = sweep(cli, mine, out)
    before = runs(out)
    lost = sorted(before)[1]
    (out / "runs" / lost).unlink()
    (out / "runs" / sorted(before)[2]).write_bytes(b"damaged")
    os.utime(out / "runs" / sorted(before)[2])
    outcome = cli("sweep", mine, "-o", out)
    assert "2 of 4 runs are there already" in outcome.err
    after = runs(out)
    assert {name for name in before if after[name] == before[name]} == {
        sorted(before)[0],
        sorted(before)[3],
    }
    assert sweep(cli, mine, out) == sweep(cli, mine, out, "--jobs", 2) == first
    # Another point needs its own runs only, another key all of them.
    mine.write_text(SWEEP.replace('["fifo", "debit"]', '["fifo", "debit", "fair"]'))
    assert "4 of 6 runs" in cli("sweep", mine, "-o", out).err
    assert "of" not in cli("sweep", mine, "-o", out, "--set", "workload.requests=1999").err


def test_an_interrupt_keeps_what_is_done(cli, mine, tmp_path):
    mine.write_text(SWEEP.replace("2000", "200000"))
    out = tmp_path / "a"
    command = [sys.executable, "-m", "flashkeel", "sweep", str(mine), "-o", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for _ in range(1200):
        if list(out.glob("runs/[0-9a-f]*.json.gz")):
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "points are kept in" in told and "goes on from there" in told
    kept = runs(out)
    assert 1 <= len(kept) < 4
    assert read_parquet(out / "sweep.parquet").read_all().num_rows == len(kept)
    rows = sweep(cli, mine, out)
    assert len(rows) == 4
    assert {name: runs(out)[name] for name in kept} == kept
    assert rows == sweep(cli, mine, tmp_path / "whole")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--set", "device.scheduler=fifi"), r'did you mean "fifo"'),
        (("--scheduler", "tcp://127.0.0.1:1"), "say --executor dask"),
    ],
)
def test_bad_input_is_told_before_anything_is_run(cli, mine, tmp_path, options, words):
    mine.write_text(SWEEP.replace('"device.scheduler" = ["fifo", "debit"]\n', ""))
    outcome = cli("sweep", mine, "-o", tmp_path / "a", *options)
    assert outcome.status == 2
    assert words in outcome.err
    assert not (tmp_path / "a").exists()


def test_the_point_that_is_wrong_is_named(cli, mine, tmp_path):
    mine.write_text(SWEEP.replace("0.9", "1.9"))
    outcome = cli("sweep", mine, "-o", tmp_path / "a")
    assert outcome.status == 2
    assert "point 2 (device.scheduler = fifo, workload.source.read_fraction = 1.9)" in outcome.err


def test_a_folder_with_other_files_is_refused(cli, mine, tmp_path):
    outcome = cli("sweep", mine, "-o", tmp_path)
    assert outcome.status == 2
    assert "holds other files, such as 'mine.toml'" in outcome.err


def test_what_a_killed_sweep_was_writing_does_not_stop_the_next(cli, mine, tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "runs").mkdir()
    left = [folder / f"{place}.flashkeel-12741-0.partial" for place in ("", "runs/")]
    for each in left:
        each.touch()
    with left[0].open() as held:
        # As who is writing it does.
        fcntl.flock(held, fcntl.LOCK_EX)
        outcome = cli("sweep", mine, "-o", folder)
        assert outcome.status == 0, outcome.err
        assert (folder / "sweep.png").exists()
    assert [each.exists() for each in left] == [True, False]


def test_an_interrupt_before_anything_is_done_leaves_no_folder(cli, mine, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run", interrupted)
    outcome = cli("sweep", mine, "-o", tmp_path / "a/b")
    assert outcome.err.strip() == "flashkeel: interrupted: no point was finished"
    assert not (tmp_path / "a").exists()


def test_a_run_is_made_from_its_traces_and_models(tmp_path):
    trace, model = tmp_path / "a.csv", tmp_path / "model.json"
    config = {
        "workload": {"source": {"policy": "trace", "path": str(trace)}},
        "stack": {"predictor": {"policy": "ssdcheck", "model": str(model)}},
    }
    point = running.Point(0, {}, {"name": "a", "config": config}, [1])
    names = set()
    for changed in (trace, model, model, trace):
        changed.write_text(changed.read_text() + "x" if changed.exists() else "x")
        names.add(running.Store(tmp_path).path(point, 1))
    assert len(names) == 4


def test_a_run_is_made_from_the_files_of_every_cpu(tmp_path):
    trace, other = tmp_path / "t.blktrace.0", tmp_path / "t.blktrace.1"
    trace.write_bytes(b"a")
    config = {"workload": {"source": {"policy": "trace", "path": str(trace)}}}
    point = running.Point(0, {}, {"name": "a", "config": config}, [1])
    names = set()
    for size in range(1, 4):
        other.write_bytes(b"x" * size)
        names.add(running.Store(tmp_path).path(point, 1))
    assert len(names) == 3


def test_a_file_that_is_not_there_names_the_sweeps(cli, tmp_path):
    outcome = cli("sweep", "nope", "-o", tmp_path / "a")
    assert outcome.status == 2
    assert "over-provisioning" in outcome.err


def test_what_most_points_have_is_shown(cli, mine, tmp_path):
    mine.write_text(SWEEP.replace("[0.5, 0.9]", "[0.0, 0.5, 0.9]"))
    outcome = cli("sweep", mine, "-o", tmp_path / "a")
    assert outcome.status == 0
    assert "small reads; writes/cycle" in outcome.out
    rows = [line.split() for line in outcome.out.splitlines() if line[:1].isdigit()]
    assert [row[3:5] == ["–", "–"] for row in rows] == [True, False, False] * 2
    assert "of points without small reads other classes are columns of sweep.parquet" in outcome.out


def test_points_that_a_picture_leaves_out_are_named(mine, tmp_path):
    text = SWEEP.replace("[0.5, 0.9]", "[0.5, 1.0]") + '[picture]\ny = "write_p99_ns"\n'
    axes, *_ = drawn(mine, tmp_path, text)
    said = axes.get_figure().get_supxlabel()
    assert said.startswith("left out, without write p99: points 2, 4\n")
    axes, *_ = drawn(mine, tmp_path, SWEEP)
    assert "left out" not in axes.get_figure().get_supxlabel()


def test_a_column_that_is_not_there_is_told_before_anything_is_run(cli, mine, tmp_path):
    mine.write_text(f'{SWEEP}[picture]\nx = "small_read_p99.9"\n')
    outcome = cli("sweep", mine, "-o", tmp_path / "a")
    assert outcome.status == 2
    hint = "no column 'small_read_p99.9' in the table; did you mean \"small_read_p99"
    assert hint in outcome.err
    assert not (tmp_path / "a").exists()


def test_another_title_and_more_seeds_pool_with_what_is_there(cli, mine, tmp_path):
    sweep(cli, mine, tmp_path / "out")
    before = runs(tmp_path / "out")
    mine.write_text(SWEEP.replace("[experiment]", '[experiment]\ntitle = "Another"'))
    table = sweep(cli, mine, tmp_path / "out", "--seeds", 2)
    assert {row["requests"] for row in table} == {4000}
    assert before.items() <= runs(tmp_path / "out").items()


def test_seeds_that_are_varied_are_run_once(cli, mine, tmp_path):
    mine.write_text(SWEEP.partition("[grid]")[0] + "[grid]\nseed = [1, 2, 18446744073709551615]\n")
    outcome = cli("sweep", mine, "-o", tmp_path / "out", "--seeds", 1)
    assert outcome.status == 0, outcome.err
    table = read_parquet(tmp_path / "out" / "sweep.parquet").read_all()
    assert table["seed"].to_pylist() == [1, 2, 2**64 - 1]
    mine.write_text(SWEEP.partition("[grid]")[0] + "[grid]\nseed = [1, 2]\n")
    one, two = sweep(cli, mine, tmp_path / "both", "--seeds", 2)
    assert len(runs(tmp_path / "both")) == 3
    assert one["requests"] == two["requests"] == 4000


def test_a_path_that_is_set_starts_where_one_is(cli, mine, tmp_path, monkeypatch):
    here, folder = tmp_path / "here", tmp_path / "folder"
    here.mkdir()
    folder.mkdir()
    (here / "disk.mqsim").write_text("0 0 0 8 1\n1000 0 8 8 0\n")
    path = folder / "mine.toml"
    path.write_text(SWEEP.replace('"workload.source.read_fraction" = [0.5, 0.9]\n', ""))
    monkeypatch.chdir(here)
    trace = 'workload.source={ policy = "trace", path = "disk.mqsim" }'
    assert {row["requests"] for row in sweep(cli, path, tmp_path / "out", "--set", trace)} == {2}
    (row,) = {row["digest"] for row in sweep(cli, path, tmp_path / "out", "--set", trace)}
    assert row


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP])
def test_a_batch_queues_end_keeps_a_table(mine, tmp_path, end):
    mine.write_text(SWEEP.replace("= 2000", "= 200000"))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "flashkeel", "sweep", mine, "-o", out]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (out / "runs").exists() or not list((out / "runs").glob("*.json.gz")):
        assert process.poll() is None, "it ended before it was told to"
        time.sleep(0.05)
    process.send_signal(end)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + end
    assert "are kept in" in said
    assert (out / "sweep.parquet").exists()
