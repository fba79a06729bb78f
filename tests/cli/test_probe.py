"""flashkeel probe and flashkeel predict."""

import json
import re
from io import StringIO

import pytest
from flashkeel.output import probe_tables
from flashkeel.ssdcheck import Diagnosis, Drive
from rich.console import Console

DEVICE = """\
[device]
preset = "ssd-g"
logical_capacity = "512MiB"

[device.geometry]
blocks_per_plane = 448
"""


@pytest.fixture
def device(tmp_path):
    path = tmp_path / "device.toml"
    path.write_text(DEVICE)
    return path


def test_a_probe_finds_what_the_preset_has(cli, tmp_path):
    found = json.loads(cli("probe", "sim:ssd-d", "--out", tmp_path / "d", "--format", "json").out)
    assert found["volume_bits"] == found["gc_volume_bits"] == [17]
    assert found["write_buffer"] == {"bytes": 131072, "type": "back", "flush": ["full"]}
    assert set(found["thresholds_ns"]) == {"read", "write"}
    assert found["undetermined"] == []
    assert json.loads((tmp_path / "d/model.json").read_text()) == found
    assert len(json.loads((tmp_path / "d/evidence.json").read_text())["allocation"]) > 10
    assert (tmp_path / "d/probe.svg").read_text().startswith("<?xml")


def test_a_probe_in_words(cli, device):
    outcome = cli("probe", device)
    assert outcome.status == 0
    for words in ("128 KiB, type fore", "full, read", "sleeps after", "buffer apart"):
        assert words in outcome.out


def test_predictions_from_a_saved_model(cli, device, tmp_path):
    cli("probe", device, "--out", tmp_path / "out", "--seed", 5)
    options = ("--workload", "rw-mixed", "--workload", "exchange", "--requests", 20000)
    outcome = cli(
        "predict", device, "--model", tmp_path / "out/model.json", *options, "--format", "json"
    )
    mixed, exchange = json.loads(outcome.out)["workloads"]
    assert mixed["workload"] == "rw-mixed"
    assert mixed["requests"] == 20000 == sum(mixed["score"].values())
    assert mixed["slow_recall"] > 0.8
    assert mixed["normal_recall"] > 0.95
    assert exchange["is_on"]
    table = cli("predict", device, "--model", tmp_path / "out/model.json", *options).out
    assert "normal" in table and all(len(line) <= 80 for line in table.splitlines()[1:])
    assert "mean" in table and "predictions (synthetic workload)" in " ".join(table.split())


def test_predictions_have_the_notes_of_their_workload(cli, device, tmp_path):
    cli("probe", device, "--out", tmp_path / "out")
    trace = tmp_path / "trace.txt"
    # Ticks of SSDsim, whose length nobody says, and addresses beyond the drive.
    trace.write_text("".join(f"{n * 1000} 0 {2**22 + n * 8} 8 0\n" for n in range(500)))
    experiment = tmp_path / "replay.toml"
    source = f'source = {{ policy = "trace", path = "{trace}", format = "ssdsim", fold = "wrap" }}'
    experiment.write_text(f"{DEVICE}[workload]\n{source}\n")
    options = ("predict", device, "--model", tmp_path / "out/model.json", "--workload", experiment)
    said = " ".join(cli(*options).out.split())
    assert f"Note: {experiment}: a tick of this SSDsim trace is assumed to be " in said
    assert f"Note: {experiment}: 500 requests moved by fold" in said
    (found,) = json.loads(cli(*options, "--format", "json").out)["workloads"]
    assert found["input"]["folded"] == 500 and len(found["notes"]) == 1


def test_predictions_that_are_none_are_told(cli, device, tmp_path):
    cli("probe", device, "--out", tmp_path / "out")
    path = tmp_path / "out/model.json"
    options = ("predict", device, "--model", path, "--workload", "web", "--requests", 5000)
    said = " ".join(cli(*options).out.split())
    assert "called at random: slow found = 1 - normal found, precision = slow" in said
    assert "no better than chance" not in said
    row = {"workload": "w", "notes": [], "input": {}}
    # Of 10,000 requests 9,110 are slow; of 1,000 that are called 911 are by chance, give or take 9.
    for found, is_chance in ((911, True), (930, True), (945, False)):
        normal, missed = 1000 - found, 9110 - found
        score = {"slow_found": found, "slow_missed": missed, "normal_missed": normal}
        score["normal_found"] = 10_000 - sum(score.values())
        told = probe_tables.notes([row | {"score": score}])
        assert [("than chance" in note and "91.1 %" in note) for note in told] == [True] * is_chance
    for score in ({"slow_found": 0, "normal_missed": 0}, {"slow_found": 1, "normal_missed": 0}):
        full = {"slow_missed": 0, "normal_found": 0} | score
        assert not probe_tables.notes([row | {"score": full}])


def test_predictions_from_guessed_thresholds_are_warned_of(cli, device, tmp_path):
    cli("probe", device, "--out", tmp_path / "out")
    path = tmp_path / "out/model.json"
    options = ("predict", device, "--model", path, "--workload", "web", "--requests", 2000)
    assert "guess" not in cli(*options).err
    model = json.loads(path.read_text())
    why = "thresholds_ns: reads took 303 us when these were measured"
    path.write_text(json.dumps(model | {"undetermined": ["sleep: no time", why]}))
    warnings = [line for line in cli(*options).err.splitlines() if "guess" in line]
    assert len(warnings) == 1 and why in warnings[0] and str(path) in warnings[0]
    console = Console(file=StringIO(), width=80)
    for part in probe_tables.diagnosis(Diagnosis.from_file(path)):
        console.print(part)
    assert "write, a guess" in console.file.getvalue()


def test_a_stack_is_probed_and_predicted_like_a_device(cli, device, tmp_path):
    stack = tmp_path / "stack.toml"
    cache = '[[stack.devices]]\ntier.preset = "base"\ntier.upper.dram.capacity = "256MiB"\n'
    stack.write_text(f"{DEVICE}{cache}tier.lower.ssd = {{}}\n")
    cli("probe", stack, "--out", tmp_path / "out")
    model = json.loads((tmp_path / "out/model.json").read_text())
    alone = json.loads(cli("probe", device, "--format", "json").out)
    assert model["sectors"] == alone["sectors"]
    # What was written just before is in memory.
    assert model["latencies_ns"]["read"] < alone["latencies_ns"]["read"] / 2
    options = ("--workload", "rw-mixed", "--requests", 2000, "--format", "json")
    outcome = cli("predict", stack, "--model", tmp_path / "out/model.json", *options)
    assert json.loads(outcome.out)["workloads"][0]["requests"] == 2000


def test_an_experiment_is_predicted_with_its_own_seed_and_requests(cli, device, tmp_path):
    mine = tmp_path / "mine.toml"
    source = '[workload.source]\npolicy = "profile"\nname = "web"\n'
    mine.write_text(f"seed = 7\n[workload]\nrequests = 2000\n{source}")
    cli("probe", device, "--out", tmp_path / "out")
    options = ("--model", tmp_path / "out/model.json", "--format", "json")

    def predicted(*more):
        (found,) = json.loads(cli("predict", device, *options, *more).out)["workloads"]
        return found

    own = predicted("--workload", mine)
    assert (own["seed"], own["requests"]) == (7, 2000)
    assert predicted("--workload", mine, "--seed", 7) == own
    other = predicted("--workload", mine, "--seed", 8)
    assert other["seed"] == 8 and other["score"] != own["score"]
    assert predicted("--workload", "web", "--requests", 1000)["seed"] == 1
    refused = cli("predict", device, *options, "--workload", mine, "--requests", 1000)
    assert refused.status == 2 and f"{mine}: requests are of a profile" in refused.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("probe", "ssd-d"), "write sim:PRESET"),
        (("probe", "sim:ssd-x"), 'unknown preset "ssd-x"'),
        (("probe", "sim:ssd-d", "--set", "device.gc.victm=fifo"), "victim"),
        (("predict", "sim:ssd-d", "--workload", "tpcee"), "tpcee"),
    ],
)
def test_bad_input(cli, arguments, words):
    outcome = cli(*arguments)
    assert outcome.status == 2
    assert words in outcome.err


def test_a_drive_that_wears_out_while_it_is_probed_is_said(cli, tmp_path):
    path = tmp_path / "worn.toml"
    worn = 'retirement = { policy = "read-only" }\nwear = { policy = "rated", rated_cycles = 1 }\n'
    path.write_text(f'[device]\npreset = "ssd-a"\n{worn}')
    outcome = cli("probe", path, "--format", "json")
    assert (outcome.status, outcome.out) == (2, "")
    assert "it is worn out, has become smaller, or is gone" in outcome.err


def test_a_place_that_takes_nothing_is_found_before_a_drive_is_overwritten(cli, tmp_path):
    drive = tmp_path / "drive"
    drive.write_bytes(bytes(16 << 20))
    (tmp_path / "file").write_text("")
    place = tmp_path / "file/out"
    outcome = cli("probe", drive, "--destroy", "--limit", 5, "--out", place)
    assert outcome.status != 0
    assert "file" in outcome.err
    assert not any(drive.read_bytes())


def test_an_interrupt_leaves_no_folder(cli, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Drive, "probe", interrupted)
    assert cli("probe", "sim:ssd-a", "--out", tmp_path / "a/b").status == 130
    assert not (tmp_path / "a").exists()


def test_a_damaged_or_foreign_model_is_refused(cli, device, tmp_path):
    model = tmp_path / "model.json"
    model.write_text("{}")
    outcome = cli("predict", device, "--model", model, "--workload", "web")
    assert (outcome.status, "missing field" in outcome.err) == (2, True)
    cli("probe", "sim:ssd-f", "--out", tmp_path / "f")
    outcome = cli("predict", device, "--model", tmp_path / "f/model.json", "--workload", "web")
    assert outcome.status == 2
    assert "sectors" in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "sim:ssd-a", "--workload", "build-servr"),
        ("trace", "synth", "build-servr", "-o", "out.csv", "--format", "msr"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_misspelt_profile_is_told_its_name(cli, arguments):
    outcome = cli(*arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert 'did you mean "build-server"?' in outcome.err


def test_what_a_document_says_of_runs_is_named_as_unused(cli, device, tmp_path):
    experiment = tmp_path / "experiment.toml"
    more = (
        '[workload]\nrequests = 10\n[[runs]]\nname = "a"\nset = { "device.gc.victim" = "fifo" }\n'
    )
    experiment.write_text(f"seed = 9\n{DEVICE}{more}")
    of_runs = ("--set", "measure.series_window=1s", "--set", "device.gc.victim=greedy")
    outcome = cli("probe", experiment, *of_runs, "--format", "json")
    unused = "seed, workload, runs, measure.series_window"
    said = f"note: {experiment}: not used, as it says nothing of the drive: {unused}\n"
    assert (outcome.status, outcome.err) == (0, said)
    assert outcome.out == cli("probe", device, *of_runs[2:], "--format", "json").out
    stack = tmp_path / "stack.toml"
    stack.write_text('[[stack.devices]]\nssd = {}\n[[stack.tenants]]\nname = "t"\n')
    assert Drive.find(stack).unused == ("stack.tenants",)
    sets = [("stack.tenants", '[{ name = "a" }]'), ("stack.depth", "8")]
    assert Drive.find(device, sets).unused == ("stack.tenants",)
    assert Drive.find(device).unused == Drive.find("sim:ssd-g").unused == ()


def test_the_picture_of_a_probe_has_whole_bits_and_times_with_units(cli, tmp_path):
    cli("probe", "sim:ssd-d", "--out", tmp_path)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", (tmp_path / "probe.svg").read_text())
    assert "bit of the LBA" in texts and "read latency" in texts
    assert not [text for text in texts if re.fullmatch(r"\d+\.[1-9]", text) and float(text) > 2]
    assert any(text.endswith((" µs", " ms")) for text in texts)
