"""flashkeel predict --log: would prediction have worked on a drive of which there is a log?"""

import csv
import json
import random
import subprocess
from datetime import timedelta

import pytest
from flashkeel import Drive
from programs import require

DEVICE = """\
[device]
preset = "ssd-g"
logical_capacity = "512MiB"

[device.geometry]
blocks_per_plane = 448
"""
WORKLOAD = """
[workload]
requests = 20000
pacing = "think"

[workload.source]
policy = "synthetic"
read_fraction = 0.5
arrivals = { policy = "poisson", iops = 5000 }

[measure]
log_requests = true
"""


@pytest.fixture(scope="module")
def _served(tmp_path_factory):
    """Run a workload on a simulated drive, and keep its model and its log."""
    import flashkeel

    folder = tmp_path_factory.mktemp("served")
    drive = flashkeel.Drive(DEVICE, "device")
    model = drive.probe(5)
    (folder / "model.json").write_text(model.to_json())
    document = folder / "workload.toml"
    document.write_text(DEVICE + WORKLOAD)
    online = drive.predict(model, str(document))
    run = flashkeel.Experiment.find(str(document)).run(seed=1)
    names = ["submitted_ns", "completed_ns", "operation", "lba", "sectors"]
    run.save(folder / "saved")
    columns = run.runs[0].requests()
    with (folder / "log.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(zip(*(columns[name] for name in names), strict=True))
    return folder, online


def test_a_log_scores_as_the_drive_did_while_it_was_predicted(cli, _served):
    folder, online = _served
    arguments = ("--log", folder / "log.csv", "--model", folder / "model.json")
    found = json.loads(cli("predict", *arguments, "--format", "json").out)
    assert found["whole_log"] == online["score"]
    assert found["requests"] == online["requests"] == 2 * found["judged"]
    engine, depth, last, mean = found["methods"]
    assert [row["name"] for row in found["methods"]] == [
        "SSDcheck",
        "queue depth",
        "last latency",
        "exponential mean",
    ]
    assert engine["recall"] > 0.8
    assert engine["roc_auc"] > max(row["roc_auc"] for row in (depth, last, mean))
    assert engine["saved_fraction"] > 0.1
    assert not engine["undetermined"]
    assert not found["is_model_assumed"]


def test_a_log_of_our_own_is_read_as_it_is(cli, _served):
    folder, online = _served
    (log,) = (folder / "saved/requests").iterdir()
    arguments = ("--log", log, "--model", folder / "model.json")
    found = json.loads(cli("predict", *arguments, "--format", "json").out)
    assert (found["format"], found["whole_log"]) == ("parquet", online["score"])


def test_a_trace_with_response_times_scores_as_any_log(cli, _served, tmp_path):
    folder, _ = _served
    with (folder / "log.csv").open(newline="") as file:
        requests = list(csv.DictReader(file))
    columns, trace = tmp_path / "log.csv", tmp_path / "trace.csv"
    # Times of calendars count from the first.
    began = int(requests[0]["submitted_ns"]) // 100
    with columns.open("w") as log, trace.open("w") as msr:
        log.write("submitted_ns,operation,lba,sectors,latency_ns\n")
        for each in requests:
            # In ticks of 100 ns, those of the trace from 1601 on.
            submitted, completed = (
                int(each[f"{it}_ns"]) // 100 for it in ("submitted", "completed")
            )
            operation, lba, sectors = each["operation"], int(each["lba"]), int(each["sectors"])
            latency = completed - submitted
            log.write(f"{submitted - began}00,{operation},{lba},{sectors},{latency}00\n")
            msr.write(f"{128166372003061629 + submitted},usr,0,{operation.capitalize()},")
            msr.write(f"{512 * lba},{512 * sectors},{latency}\n")
    both = [cli("predict", "--log", log, "--format", "json") for log in (columns, trace)]
    as_columns, as_trace = (json.loads(outcome.out) for outcome in both)
    assert (as_columns.pop("format"), as_trace.pop("format")) == ("columns", "msr")
    assert as_columns.pop("log") != as_trace.pop("log")
    assert as_columns == as_trace


def test_a_model_of_another_drive_of_the_same_size_is_warned_of(cli, _served):
    folder, _ = _served
    model = json.loads((folder / "model.json").read_text())
    model["write_buffer"] |= {"bytes": 253952, "type": "back", "flush": ["full"]}
    (folder / "other.json").write_text(json.dumps(model))
    for name in ("model", "other"):
        outcome = cli("predict", "--log", folder / "log.csv", "--model", folder / f"{name}.json")
        assert outcome.status == 0
        warned = "does not behave as the model" in outcome.err
        assert warned == (name == "other"), outcome.err
    assert "a read right after a write is slow" in outcome.err


def test_without_a_model_what_is_slow_comes_from_the_log(cli, _served):
    folder, _ = _served
    outcome = cli("predict", "--log", folder / "log.csv")
    assert outcome.status == 0
    for words in ("would prediction have", "exponential", "three times the median"):
        assert words in outcome.out
    assert [line for line in outcome.out.splitlines()[1:] if len(line) > 80] == []


def test_a_log_says_what_its_requests_took(cli, tmp_path):
    log = tmp_path / "log.csv"
    rows = [
        f"{index * 1000 + index % 7},{'write' if index % 4 == 3 else 'read'},{index * 8},8,"
        f"{2000 if index % 100 == 0 else 101 + index % 3}"
        for index in range(8000)
    ]
    log.write_text("\n".join(["submitted_us,operation,lba,sectors,latency_us", *rows]) + "\n")
    found = json.loads(cli("predict", "--log", log, "--format", "json").out)
    read, write = found["read"], found["write"]
    assert (read["count"], write["count"], read["slow"], write["slow"]) == (6000, 2000, 80, 0)
    assert read["slow"] + write["slow"] == found["slow"] + found["slow_before"]
    assert read["percentile"]["50.000000"] == pytest.approx(102_000, rel=0.001)
    assert (read["max_ns"], read["beyond"]["99.000000"]) == (2_000_000, 0)
    assert read["mean_ns"] == pytest.approx((5920 * 102_000 + 80 * 2_000_000) / 6000, rel=0.001)
    out = cli("predict", "--log", log).out
    # Many reads share the tail, and that of the writes rests on a few.
    for operation, *cells in [
        ("reads  ", "6,000", "102 µs", "2.00 ms    2.00 ms  2.00 ms", "1.33 %"),
        ("writes  ", "2,000", "103 µs *0"),
    ]:
        (line,) = [line for line in out.splitlines() if line.strip().startswith(operation)]
        for cell in cells:
            assert cell in line, out
    assert max(map(len, out.splitlines()[1:])) <= 80


def test_of_a_coin_nothing_is_foreseen(cli, tmp_path):
    coin = random.Random(7)
    log = tmp_path / "coin.csv"
    at, rows = 0, []
    for _ in range(8000):
        latency = 3000 if coin.random() < 0.1 else 100
        rows.append(f"{at},read,{coin.randrange(1 << 20) * 8},8,{latency}")
        at += latency + 200
    log.write_text("\n".join(["submitted_us,operation,lba,sectors,latency_us", *rows]) + "\n")
    said = " ".join(cli("predict", "--log", log).out.split())
    assert "no better than chance: SSDcheck, queue depth, last latency, exponential mean" in said


def test_a_tick_of_a_log_may_be_another(cli, tmp_path):
    log = tmp_path / "us.csv"
    log.write_text("".join(f"{at * 900},usr,0,Read,0,4096,90\n" for at in range(200)))
    took = [
        json.loads(cli("predict", "--log", log, *unit, "--format", "json").out)["read"]["max_ns"]
        for unit in ((), ("--time-unit", "1us"))
    ]
    assert took == [9_000, 90_000]
    assert "--time-unit says what they are" in " ".join(cli("predict", "--log", log).out.split())
    refused = cli("predict", "--log", log, "--time-unit", "1")
    assert (refused.status, "--time-unit: " in refused.err) == (2, True)
    refused = cli("predict", "sim:ssd-d", "--time-unit", "1us")
    assert (refused.status, "--time-unit goes with --log" in refused.err) == (2, True)


def test_too_few_slow_requests_are_said_and_not_guessed(cli, tmp_path):
    log = tmp_path / "quiet.csv"
    rows = [f"{index * 1000},read,{index * 8},8,100" for index in range(400)]
    log.write_text("\n".join(["submitted_us,operation,lba,sectors,latency_us", *rows]) + "\n")
    found = json.loads(cli("predict", "--log", log, "--format", "json").out)
    for row in found["methods"]:
        assert [row[key] for key in ("recall", "precision", "roc_auc", "saved_fraction")] == [
            None
        ] * 4
        assert row["undetermined"]
    out = cli("predict", "--log", log).out
    assert "undetermined" in out
    assert "0 slow requests in the second half, fewer than 30" in out


@pytest.mark.parametrize("depth", [1, 4])
def test_logs_that_fio_writes(cli, tmp_path, depth):
    command = [
        require("fio"),
        "--name=job",
        f"--filename={tmp_path / 'file'}",
        "--size=4m",
        "--rw=randrw",
        "--bs=4k",
        "--fsync=16",
        "--ioengine=libaio",
        f"--iodepth={depth}",
        "--number_ios=400",
        "--write_lat_log=l",
        "--log_offset=1",
        "--write_iolog=io.log",
        "--output=out",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    log = ("predict", "--log", tmp_path / "l_lat.1.log", "--format", "json")
    alone = json.loads(cli(*log).out)
    assert alone["requests"] == 400
    assert "times in ms" in alone["notes"][0]
    both = json.loads(cli(*log, "--iolog", tmp_path / "io.log").out)
    assert (both["format"], both["requests"], both["notes"]) == ("fio", 400, [])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give either a drive"),
        (("sim:ssd-d", "--log", "x.log"), "give either a drive"),
        (("sim:ssd-d", "--iolog", "x.log"), "--iolog goes with --log"),
        (("--log", "x.log", "--workload", "web"), "--workload is of a simulated drive"),
        (("--log", "missing.log"), "missing.log: cannot read it: No such file"),
    ],
)
def test_bad_usage(cli, arguments, words):
    outcome = cli("predict", *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert words in outcome.err


def test_bad_logs(cli, tmp_path, _served):
    log = tmp_path / "log.csv"
    log.write_text("submitted_us,operation,lba,sectors\n0,read,0,8\n")
    outcome = cli("predict", "--log", log)
    assert outcome.status == 2
    assert f"{log}:1: no column latency_ns or completed_ns" in outcome.err
    log.write_text("submitted_us,operation,lba,sectors,latency_us\n0,read,9999999999,8,5\n")
    outcome = cli("predict", "--log", log, "--model", _served[0] / "model.json")
    assert outcome.status == 2
    assert f"{log}:2: a request to LBA 9999999999" in outcome.err


def test_what_was_learnt_is_saved_for_another_time(cli, _served):
    folder, online = _served
    known = folder / "known/model.json"
    arguments = ("--log", folder / "log.csv", "--model", folder / "model.json")
    told = cli("predict", *arguments, "--save-model", known, "--format", "json")
    assert (told.status, "learned" in told.out) == (0, False)
    # Of the same requests, from the drive or from its log, the same is learnt.
    assert json.loads(known.read_text()) == online["model"]
    assert known.read_text().count("\n") < 60, "what nobody reads stands in one line"
    again = json.loads(cli("predict", *arguments[:2], "--model", known, "--format", "json").out)
    first = json.loads(told.out)["whole_log"]
    assert again["whole_log"]["slow_missed"] < first["slow_missed"]
    broken = folder / "broken.json"
    broken.write_text(known.read_text().replace('"layout":7', '"layout":6'))
    refused = cli("predict", *arguments[:2], "--model", broken)
    assert refused.status == 2
    assert "learned.layout: 6, of another version" in refused.err


@pytest.fixture
def learnt_below(cli, _served, tmp_path):
    """Give a model of the log's requests below 256 MiB."""
    folder, _ = _served
    names, *lines = (folder / "log.csv").read_text().splitlines(keepends=True)
    low = [line for line in lines if int(line.split(",")[3]) < 1 << 19]
    (tmp_path / "low.csv").write_text("".join([names, *low]))
    known = tmp_path / "model.json"
    cli("predict", "--log", tmp_path / "low.csv", "--save-model", known)
    return known


def test_what_a_log_has_taught_is_for_logs_that_reach_further(cli, _served, learnt_below):
    folder, _ = _served
    known = learnt_below
    outcome = cli("predict", "--log", folder / "log.csv", "--model", known, "--save-model", known)
    assert (outcome.status, outcome.err) == (0, "")
    assert json.loads(known.read_text())["sectors"] > 1 << 19


def test_what_a_log_has_taught_is_for_drives_that_reach_further(cli, learnt_below):
    known = learnt_below
    reached = json.loads(known.read_text())["sectors"]
    asked = ("--workload", "web", "--requests", "2000", "--format", "json")
    outcome = cli("predict", "sim:ssd-d", "--model", known, *asked)
    assert outcome.status == 0
    noted = " ".join(outcome.err.split())
    assert f"was read off reached {reached} of this drive's 4194304 sectors" in noted


def test_a_saved_model_takes_the_place_of_a_model_only(cli, _served, tmp_path):
    folder, _ = _served
    (tmp_path / "trace.csv").write_text("0,0,Read,0,4096\n")
    outcome = cli("predict", "--log", folder / "log.csv", "--save-model", tmp_path / "trace.csv")
    assert (outcome.status, "no device model" in outcome.err) == (2, True)
    assert (tmp_path / "trace.csv").read_text() == "0,0,Read,0,4096\n"


def test_several_workloads_have_no_one_model_to_save(cli, tmp_path):
    refused = cli("predict", "sim:ssd-d", "--save-model", tmp_path / "model.json")
    assert refused.status == 2
    assert "one --workload" in refused.err


def test_a_model_does_not_replace_what_it_was_made_from(cli, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("time_us,op\n")
    drive = tmp_path / "drive.toml"
    drive.write_text(DEVICE)
    for option in (("--log", log), (drive, "--workload", "homes")):
        path = log if option[0] == "--log" else drive
        before = path.read_text()
        outcome = cli("predict", *option, "--save-model", path)
        assert outcome.status == 2
        assert "choose another name" in outcome.err
        assert path.read_text() == before


def test_a_workload_of_several_kinds_is_refused(cli, tmp_path):
    path = tmp_path / "two.toml"
    run = '[[runs]]\nname = "{}"\nset = {{ "workload.source.read_fraction" = {} }}\n'
    path.write_text(DEVICE + WORKLOAD + run.format("reads", 1.0) + run.format("writes", 0.0))
    model = tmp_path / "model.json"
    model.write_text(Drive.find("sim:ssd-a").probe(2, limit=timedelta(seconds=1)).to_json())
    outcome = cli("predict", "sim:ssd-a", "--model", model, "--workload", path)
    assert outcome.status == 2
    assert "leave one of reads, writes" in outcome.err
