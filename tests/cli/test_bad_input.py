"""Bad usage and bad input: status 2, one line, no traceback, nothing written."""

import re

import pytest
from small import SMALL

TIER = ("plan", "tier", "--drive", "qlc", "--profile", "homes", "--requests", "9")
USAGE = [
    ("frobnicate",),
    ("run",),
    ("run", "demo", "--format", "xml"),
    ("run", "demo", "--jobs", "0"),
    ("run", "demo", "--seeds", "0"),
    ("run", "demo", "--seeds", "many"),
    ("run", "demo", "--seed", "-1"),
    ("run", "demo", "--seed", str(2**64)),
    ("run", "demo", "--sed", "1"),
    ("run", "demo", "--set", "device.scheduler"),
    ("run", "demo", "--set", "=fifo"),
    ("run", "demo", "--set", "device.schduler=fifo"),
    ("run", "demo", "--set", "device.scheduler=fifi"),
    ("run", "demmo"),
    ("run", "no/such.toml"),
    # Endless, as drives are long: it is not read to its end.
    ("run", "/dev/zero"),
    ("sweep", "/dev/zero", "-o", "out"),
    ("explain", "/dev/zero"),
    ("compare", "/dev/zero", "/dev/zero"),
    ("import", "fio", "/dev/zero"),
    ("import", "mqsim", "/dev/zero"),
    ("predict", "sim:ssd-d", "--model", "/dev/zero"),
    (*TIER, "--prices", "/dev/zero"),
    # As of variables of a shell that are not set.
    ("run", ""),
    ("probe", "sim:ssd-d", "--out", ""),
    ("probe", "sim:ssd-d", "--out="),
    ("compare", "nowhere", "nothing"),
    ("explain", "nowhere"),
    ("list", "things"),
    ("show", "autosdd"),
    ("trace", "info", "no/such.csv"),
    ("trace", "synth", "demo", "-o", "out.csv", "--format", "msr", "--run", "nope"),
    ("trace", "synth", "demo", "-o", "no/such/out.csv", "--format", "msr"),
    ("trace", "synth", "rad-as", "-o", "out.csv", "--format", "etw"),
    ("trace", "synth", "rad-as", "-o", "out.csv"),
    ("trace", "synth", "rad-sa", "-o", "out.csv", "--format", "msr"),
    ("trace", "synth", "rad-as", "-o", "a.csv", "--format", "msr", "--set", "workload.requests=0"),
]


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_one_line_and_status_2(cli, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    outcome = cli(*arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert len(outcome.err.splitlines()) == 1, outcome.err
    assert outcome.err.startswith("flashkeel: ")
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_and_an_experiment_are_told_apart(cli, tmp_path, small_toml):
    sweep = tmp_path / "sweep.toml"
    sweep.write_text('experiment = "demo"\n[grid]\nseed = [1, 2]\n')
    assert f"a sweep, which `flashkeel sweep {sweep} -o DIR` runs" in cli("run", sweep).err
    refused = cli("sweep", small_toml, "-o", tmp_path / "out")
    assert refused.status == 2 and "an experiment, which `flashkeel run` runs" in refused.err


@pytest.mark.parametrize("line", ["{" + "x" * 1000, "[" + "x" * 1000])
def test_a_line_that_is_of_no_job_file_is_not_shown_whole(cli, tmp_path, line):
    path = tmp_path / "long.json"
    path.write_text(line)
    refused = cli("import", "fio", path)
    assert refused.status == 2 and "xxx…" in refused.err and len(refused.err) < 300


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("seed = 7", "sead = 7"), "small.toml:2: sead: unknown key"),
        (("seed = 7", 'seed = "x"'), "small.toml:2: seed"),
        (("[device.geometry]", "[device.geometri]"), "device.geometri: unknown key"),
        (('name = "debit"', 'name = "fifo"'), 'two runs are named "fifo"'),
        (("[[runs]]", "[[runs"), "small.toml:"),
        (
            ("blocks_per_plane = 16", "blocks_per_plane = 0"),
            "small.toml:9: device.geometry.blocks_per_plane",
        ),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else None,
)
def test_bad_document_names_its_place(cli, tmp_path, monkeypatch, change, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL.replace(*change))
    outcome = cli("run", "small.toml", "--out", "out")
    assert outcome.status == 2
    assert said in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


def test_misspelt_key_gets_a_suggestion(cli):
    assert 'did you mean "scheduler"?' in cli("run", "demo", "--set", "device.schduler=x").err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("run", "demoo"), 'did you mean "demo"?'),
        (("run", "demo.toml"), 'did you mean "demo"?'),
        (("list", "preset"), 'did you mean "presets"?'),
        (("run", "demo", "--format", "jsn"), 'did you mean "json"?'),
        (("trace", "synth", "demmo", "-o", "x", "--format", "msr"), 'did you mean "demo"?'),
        (("trace", "synth", "rad-sa", "-o", "x", "--format", "msr"), 'did you mean "rad-as"?'),
    ],
)
def test_misspelt_names_get_a_suggestion(cli, arguments, meant):
    said = cli(*arguments).err
    assert said.endswith(f"{meant}\n")
    assert said.count("did you mean") == 1


def test_choices_stand_in_one_line(cli):
    outcome = cli("list")
    assert outcome.status == 2
    assert outcome.err.endswith(
        "Choose from: presets, tiers, policies, profiles, experiments, sweeps\n"
    )


@pytest.mark.parametrize(
    ("assignment", "meant"),
    [
        ("device.timing.read=[60us, 4us]", 'device.timing.read=["60us", "4us"]'),
        ("workload.source.pattern={policy=zipf, theta=0.9}", '{policy="zipf", theta=0.9}'),
    ],
)
def test_quotation_marks_that_a_shell_took_are_told(cli, assignment, meant):
    refused = cli("run", "demo", "--set", assignment)
    assert refused.status == 2 and f"{meant}'" in refused.err


def test_no_arguments_show_help(cli):
    outcome = cli()
    assert outcome.status == 2
    assert "Commands:" in outcome.err


def test_help_is_no_error(cli):
    for arguments in (("--help",), ("run", "-h"), ("trace", "convert", "--help")):
        outcome = cli(*arguments)
        assert (outcome.status, outcome.err) == (0, "")
        assert "Usage: flashkeel" in outcome.out


def test_internal_error_is_one_line_too(cli, monkeypatch):
    def fail(_name):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("flashkeel._core.show", fail)
    outcome = cli("show", "demo")
    assert outcome.status == 1
    assert len(outcome.err.splitlines()) == 1
    assert "ZeroDivisionError" in outcome.err


def test_interrupt_ends_without_traceback(cli, monkeypatch):
    def interrupt(_name):
        raise KeyboardInterrupt

    monkeypatch.setattr("flashkeel._core.show", interrupt)
    outcome = cli("show", "demo")
    assert (outcome.status, outcome.err.strip()) == (130, "flashkeel: interrupted")


NESTED = "[" * 5000
LONG = "1" * 5000


@pytest.mark.parametrize(
    ("document", "arguments"),
    [
        (NESTED, ("explain", "it")),
        (LONG, ("explain", "it")),
        (NESTED, ("predict", "sim:ssd-a", "--model", "it")),
        (LONG, ("predict", "sim:ssd-a", "--model", "it")),
        (f"x = {NESTED}", ("sweep", "it", "-o", "out")),
        (f"x = {LONG}", ("sweep", "it", "-o", "out")),
    ],
    ids=lambda it: it[-1] * 3 if isinstance(it, str) else it[0],
)
def test_what_is_nested_too_deep_or_too_long_a_number(
    cli, tmp_path, monkeypatch, document, arguments
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it").write_text(document)
    outcome = cli(*arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert re.match("flashkeel: it: .*(nested too deep|has too many digits)\n$", outcome.err)


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "a\udcff.toml"),
        ("run", "small.toml", "--set", "workload.source.path=a\udcff.csv"),
        ("serve", "nbd", "a\udcff.toml"),
        ("serve", "nbd", "sim:ssd-a", "--name", "a\udcff."),
        ("serve", "nbd", "sim:ssd-a", "--listen", "unix:a\udcff.socket"),
        ("serve", "nbd", "sim:ssd-a", "--data", "a\udcff.data"),
        ("serve", "nbd", "sim:ssd-a", "--metrics", "a\udcff.:80"),
        ("trace", "info", "small.toml", "--set", "format=a\udcff."),
    ],
    ids=ascii,
)
def test_a_name_that_no_document_can_hold(cli, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    for name in ("small.toml", "a\udcff.toml"):
        (tmp_path / name).write_text(SMALL)
    outcome = cli(*arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert "a\\udcff." in outcome.err
    assert outcome.err.endswith(": a name that is no UTF-8; choose another\n")


@pytest.mark.parametrize("value", ["2024-01-01", "07:32:00", "nan", "[2024-01-01]", "{ a = inf }"])
def test_what_toml_has_beyond_json_is_text_in_options(cli, tmp_path, value):
    path = tmp_path / "t.csv"
    path.write_text("100,hm,0,Read,0,4096,0\n")
    outcome = cli("trace", "info", path, "--set", f"format={value}")
    assert outcome.status == 2
    assert "format" in outcome.err and value in outcome.err
    assert "an error of flashkeel" not in outcome.err


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "lifetime", "--drive", "qlc", "--gb-per-day", "1", "--out", "OUT.png"),
        (*TIER, "--out", "OUT.png"),
        ("predict", "sim:ssd-d", "--save-model", "OUT.json", "--workload", "homes"),
        ("run", "homes", "--out", "OUT"),
    ],
    ids=lambda command: command[1],
)
def test_a_folder_that_takes_nothing_is_told_before_the_work(cli, tmp_path, command, monkeypatch):
    # Root may write anywhere but to a file system that takes nothing.
    monkeypatch.setattr("os.access", lambda *_: False)
    for name in ("lifetimes", "run", "probe"):
        monkeypatch.setattr(f"flashkeel._core.{name}", lambda *_: pytest.fail("nothing is done"))
    out = tmp_path / "found"
    outcome = cli(*(word.replace("OUT", str(out)) for word in command))
    assert (outcome.status, outcome.out) == (2, "")
    assert "cannot write in" in outcome.err and str(out) in outcome.err
