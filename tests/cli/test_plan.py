"""flashkeel plan lifetime."""

import json
import signal
import subprocess
import sys
import time

import pytest
from flashkeel import lifetime, policies

DRIVE = ("--capacity", "1GB", "--rated-cycles", "300")
FEW = ("--seeds", "2", "--target-years", "0.5")
ONE = ("--seeds", "1", "--target-years", "0.5")
JSON = ("--format", "json")


def plan(cli, *arguments):
    return cli("plan", "lifetime", *arguments)


def test_json_has_the_promised_shape(cli):
    outcome = plan(cli, *DRIVE, *FEW, "--gb-per-day", "2", "--waf", "2", "--format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    assert found.keys() >= {"years", "waf", "dwpd", "throttle"}
    years = found["years"]
    assert years["p5"] <= years["median"] <= years["p95"]
    # 1.07 GB of flash, 300 cycles, half of what is programmed: 160.5 GB.
    without = found["throttle"]["years_without"]["median"]
    assert without == pytest.approx(160.5 / 2 / 365, rel=0.01)
    assert years["median"] == pytest.approx(0.5, rel=0.01)
    assert found["throttle"]["needed"] and found["meets_target"]
    assert found["waf"] == 2 and found["waf_measured"] > 1
    assert found["dwpd"] == pytest.approx(160.5 / (0.5 * 365), rel=0.02)
    assert found["throttle"]["delay_ns"]["mean"] > 0


def test_an_easy_traffic_needs_no_throttle(cli):
    outcome = plan(cli, *DRIVE, *FEW, "--gb-per-day", "0.2", "--waf", "2")
    assert outcome.status == 0
    assert "lasts 0.5 years without a throttle" in outcome.out
    assert "synthetic" in outcome.out


def test_short_lives_have_digits_and_long_ones_a_bound(cli):
    def cells(row, per_day):
        arguments = ("--gb-per-day", per_day, "--waf", "2", "--throttle", "none")
        lines = plan(cli, *DRIVE, *ONE, *arguments).out.splitlines()
        return next(line for line in lines if line.startswith(row)).removeprefix(row).strip()

    # 1.07 GB of flash, 300 cycles, half of what is programmed: 160.5 GB.
    assert float(cells("lifetime, median (years)", "100")) == pytest.approx(1.605 / 365, rel=0.02)
    assert cells("lifetime, median (years)", "0.0001") == "over 100"
    assert cells("5 to 95 % of seeds", "0.0001") == "over 100"
    assert float(cells("drive writes per day", "0.0001")) == pytest.approx(0.0001)


def test_bytes_that_are_few_cycles_are_rounded_in_words(cli):
    options = ("--capacity", "1GB", "--waf", "2", "--gb-per-day", "1", "--throttle", "none")
    # 1.07 GB of flash, twice what is written: 5.6 cycles, and 561.
    said = " ".join(plan(cli, *options, *ONE, "--tbw", "3GB").out.split())
    assert "rounded to whole cycles of a block, 6: the lifetime may be off by 8.33 %" in said
    assert "rounded" not in plan(cli, *options, *ONE, "--tbw", "300GB").out
    assert "rounded" not in plan(cli, *options, *ONE, "--rated-cycles", "6").out


def test_the_first_worn_block_is_told(cli):
    hot = ("--pattern", "hot-cold", "--gb-per-day", "20", "--throttle", "none", "--seeds", "1")
    shares = []
    for levelled in ((), ("--wear-levelling", "5")):
        outcome = plan(cli, *DRIVE, *hot, *levelled, "--format", "json")
        found = json.loads(outcome.out)
        shares.append(found["blocks"]["first_worn_years"] / found["years"]["median"])
        assert shares[-1] == pytest.approx(1 / found["blocks"]["max_over_mean"])
    assert 0.7 < shares[0] < shares[1] < 1


def test_the_first_worn_block_is_told_though_the_mean_one_outlasts_everybody(cli, tmp_path):
    # A page every ten seconds, always the same one: 0.035 GB a day wear the spare blocks.
    trace = tmp_path / "page.csv"
    trace.write_text("".join(f"{n * 10**8},h,0,Write,0,4096,0\n" for n in range(61)))
    drive = ("--capacity", "1GB", "--seeds", "1", "--trace", trace, "--target-years", "50")
    told = plan(cli, *drive, "--throttle", "none", "--rated-cycles", "1500", *JSON)
    found = json.loads(told.out)
    assert found["years"]["median"] is None
    first = found["blocks"]["first_worn_years"]
    # 1.07 GB of flash, 1500 cycles.
    assert first * found["blocks"]["max_over_mean"] == pytest.approx(124, rel=0.05)
    assert first < 20
    text = plan(cli, *drive, "--throttle", "none", "--rated-cycles", "1500").out
    assert f"the first is worn out after {first:.2f} years" in " ".join(text.split())
    short = plan(cli, *drive, "--throttle", "none", "--rated-cycles", "20")
    assert "the first is worn out after" in " ".join(short.out.split()), "though the mean is, too"
    longer = plan(cli, *drive, "--throttle", "none", "--rated-cycles", "200000").out
    assert [line.split()[-2:] for line in longer.splitlines() if line.startswith("first")] == [
        ["over", "100"]
    ]


def test_a_drive_that_is_too_slow_is_told_once_with_the_speed_of_which_write_amplification(
    cli, tmp_path
):
    demand = tmp_path / "demand.csv"
    windows = "".join(f"vm,{n},{(2 + n % 5) * 10**10}\n" for n in range(200))
    demand.write_text(f"workload,window,write_bytes\n{windows}")
    arguments = ("--throttle", "none", "--demand", demand, "--workload", "vm", "--seeds", "3")
    notes = []
    for waf in ((), ("--waf", "2")):
        found = json.loads(plan(cli, *DRIVE, *arguments, *waf, *JSON).out)
        (note,) = [note for note in found["notes"] if "too slow" in note]
        notes.append(note)
    assert "not of the 2 that it wears by" in notes[1]
    assert "wears by" not in notes[0]


@pytest.mark.parametrize("throttle", policies.by_axis()["throttle"])
def test_every_throttle_is_planned_with(cli, throttle):
    outcome = plan(
        cli, *DRIVE, *ONE, "--gb-per-day", "2", "--waf", "2", "--throttle", throttle, *JSON
    )
    assert (outcome.status, outcome.err) == (0, "")
    # Two gigabytes a day wear this drive out in 40 days, unless something holds them back.
    assert json.loads(outcome.out)["meets_target"] == (throttle != "none")


@pytest.mark.parametrize("pattern", policies.by_axis()["access pattern"])
def test_write_amplification_is_measured_under_every_pattern(cli, pattern):
    bare = ("--gb-per-day", "2", "--throttle", "none", "--pattern", pattern)
    found = json.loads(plan(cli, *DRIVE, *ONE, *bare, *JSON).out)
    assert found["waf"] == found["waf_measured"] >= 1


def test_a_traffic_without_writes_lasts_for_ever(cli):
    outcome = plan(cli, *DRIVE, "--seeds", "1", "--gb-per-day", "0")
    assert (outcome.status, "infinite" in outcome.out) == (0, True)
    outcome = plan(cli, *DRIVE, "--seeds", "1", "--gb-per-day", "0", "--format", "json")
    found = json.loads(outcome.out)
    assert found["infinite"] and found["years"]["median"] is None
    assert any("for ever" in note for note in found["notes"])


def test_a_recorded_demand_and_a_picture(cli, tmp_path):
    demand = tmp_path / "demand.csv"
    windows = "".join(f"vm,{n},{(n % 5) * 10**7}\n" for n in range(200))
    demand.write_text(f"workload,window,write_bytes\n{windows}")
    picture = tmp_path / "wear.png"
    outcome = plan(
        cli, *DRIVE, *FEW, "--demand", demand, "--workload", "vm", "--waf", "2", "--out", picture
    )
    assert outcome.status == 0, outcome.err
    assert picture.stat().st_size > 1000
    assert "synthetic" not in outcome.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--capacity", "0GB", "--rated-cycles", "3", "--gb-per-day", "1"), "capacity is zero"),
        (("--capacity", "1GB", "--gb-per-day", "1"), "one of --rated-cycles, --tbw and --dwpd"),
        (("--capacity", "1GB", "--rated-cycles", "0", "--gb-per-day", "1"), "--rated-cycles"),
        ((*DRIVE, "--tbw", "5TB", "--gb-per-day", "1"), "given twice"),
        ((*DRIVE, "--wear-levelling", "999", "--gb-per-day", "1"), "--wear-levelling"),
        ((*DRIVE, "--gb-per-day", "1", "--out", "wear.xyz"), "use .png"),
        ((*DRIVE, "--gb-per-day", "1", "--out", "no/where/wear.png"), "no folder"),
        ((*DRIVE,), "the traffic is missing"),
        (("--gb-per-day", "1"), "give --drive or --capacity"),
        (("--gb-per-day", "1", "--drive", "qcl"), 'did you mean "qlc"'),
        (("--gb-per-day", "1", "--drive", "ssd-a"), "ssd-a,dwpd=0.3"),
        (("--gb-per-day", "1", "--drive", "ttflash,dwpd=1"), "for parity"),
        ((*DRIVE, "--gb-per-day", "1", "--profile", "map"), "given twice"),
        ((*DRIVE, "--gb-per-day", "-1"), "--gb-per-day"),
        ((*DRIVE, "--profile", "exchnge"), 'did you mean "exchange"'),
        ((*DRIVE, "--gb-per-day", "1", "--target-years", "0"), "--target-years"),
        ((*DRIVE, "--gb-per-day", "1", "--target-years", "nan"), "--target-years nan"),
        ((*DRIVE, "--gb-per-day", "1", "--target-years", "inf"), "--target-years inf"),
        ((*DRIVE, "--gb-per-day", "1", "--target-years", "0.0001"), "plans by epochs of up to 2h"),
        ((*DRIVE, "--gb-per-day", "1", "--target-years", "101"), "--target-years 101"),
        ((*DRIVE, "--gb-per-day", "nan"), "--gb-per-day nan"),
        ((*DRIVE, "--gb-per-day", "1", "--waf", "nan"), "--waf nan"),
        ((*DRIVE, "--gb-per-day", "1", "--over-provisioning", "nan"), "--over-provisioning nan"),
        (("--capacity", "1GB", "--dwpd", "nan", "--gb-per-day", "1"), "--dwpd nan"),
        ((*DRIVE, "--gb-per-day", "1", "--workload", "w03"), "--workload"),
        ((*DRIVE, "--profile", "map", "--interval", "1h"), "--interval"),
        ((*DRIVE, "--demand", "nowhere.csv"), "nowhere.csv"),
        ((*DRIVE, "--gb-per-day", "1", "--waf", "0"), "--waf"),
    ],
)
def test_bad_input_ends_with_status_2(cli, arguments, words):
    outcome = plan(cli, *arguments)
    assert outcome.status == 2
    assert words in outcome.err


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "seconds.csv"
    # MSR: half a second of writes to 2 MiB, each at an odd offset.
    lines = (f"{n * 50_000},h,0,Write,{n % 500 * 4096 + 512},4096,0\n" for n in range(100))
    path.write_text("".join(lines))
    return path


def test_a_recording_of_seconds_comes_with_a_warning(cli, recording):
    outcome = plan(cli, *DRIVE, "--seeds", "1", "--trace", recording)
    assert (outcome.status, outcome.err) == (0, "")
    words = "Warning: 495 ms were recorded, and 5 years are 319 M times as long"
    assert words in " ".join(outcome.out.split())
    one = plan(cli, *DRIVE, "--seeds", "1", "--target-years", "1", "--trace", recording)
    assert "recorded, and 1 year is 63.7 M times as long" in one.out
    assert "lasts 1 year" in one.out and "1 years" not in one.out
    assert "100 of its 100 writes do not begin and end at multiples of 4KiB" in outcome.out
    found = json.loads(plan(cli, *DRIVE, "--seeds", "1", "--trace", recording, *JSON).out)
    assert found["recorded_ns"] == 495_000_000
    # As many bytes as were asked for: 4 KiB each 5 ms.
    assert found["gb_per_day"]["demanded"] == pytest.approx(200 * 86_400 * 4096 / 1e9)
    # A stream to few pages: what is spare is theirs.
    assert found["waf"] == pytest.approx(1, abs=0.1)


def test_the_first_seed_takes_a_recording_as_it_is(cli, tmp_path):
    # A day of which one minute has all writes: 24 MB, which no draw of hours needs to have.
    path = tmp_path / "night.csv"
    minute = (f"{72_000_000_000 + n * 100_000},h,0,Write,{n * 4096},4096,0" for n in range(6_000))
    rest = (f"{hour * 36_000_000_000},h,0,Write,0,4096,0" for hour in (0, 24))
    path.write_text("\n".join(sorted([*minute, *rest], key=lambda line: int(line.split(",")[0]))))
    arguments = (*DRIVE, "--throttle", "none", "--trace", path)
    for seed in ("1", "2", "3"):
        found = json.loads(plan(cli, *arguments, "--seeds", "1", "--seed", seed, *JSON).out)
        assert found["gb_per_day"]["written"] == pytest.approx(0.0246, rel=0.01)
        assert found["recorded_years"] == found["years"]["median"]
    outcome = plan(cli, *arguments, "--seeds", "5")
    assert "lifetime as recorded (years)" in outcome.out
    assert "drawn anew with each seed but the first" in outcome.out


def test_what_an_endurance_in_bytes_leaves_out_is_said(cli):
    arguments = ("--capacity", "960GB", "--dwpd", "1", "--gb-per-day", "1920", "--waf")
    few, many = (plan(cli, *arguments, waf, "--seeds", "1").out for waf in ("3", "9"))
    assert "change the cycles that it means, not the lifetime" in " ".join(few.split())
    cycles, longer = (
        [line.split()[-2:] for line in out.splitlines() if line.startswith(row)]
        for out, row in ((few, "rated cycles"), (few, "time the traffic takes (times)"))
    )
    assert cycles and "rated cycles" in many and few != many
    assert float(longer[0][1]) == pytest.approx(2, rel=0.01)


def test_a_pattern_takes_the_place_of_a_traces_addresses(cli, recording):
    arguments = (*DRIVE, "--seeds", "1", "--trace", recording, "--pattern", "uniform", *JSON)
    assert json.loads(plan(cli, *arguments).out)["waf"] > 4


def test_an_interrupt_ends_it_at_once():
    command = [sys.executable, "-m", "flashkeel", "plan", "lifetime", *DRIVE]
    more = ["--gb-per-day", "0.0001", "--seeds", "500"]
    with subprocess.Popen([*command, *more], stderr=subprocess.PIPE, text=True) as running:
        time.sleep(1.5)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=10)
    assert (running.returncode, said.strip()) == (130, "flashkeel: interrupted")


def test_a_trace_takes_its_keys(cli, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("".join(f"{n},W,{n * 4096},4096\n" for n in range(100)))
    drive = ("--capacity", "1GB", "--rated-cycles", 1000, "--seeds", 1, "--format", "json")
    columns = "columns=time=1,unit=s,op=2,offset=3,length=4"
    outcome = cli("plan", "lifetime", "--trace", path, "--set", columns, *drive)
    assert outcome.status == 0, outcome.err
    wrong = cli("plan", "lifetime", "--gb-per-day", 1, "--set", columns, *drive)
    assert "--set describes --trace, which is not given" in wrong.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--capacity", "x", "--rated-cycles", 1000), "--capacity: "),
        (("--capacity", "64MiB", "--rated-cycles", 20), "--over-provisioning is 0.07, too little"),
        (("--capacity", "1TB", "--tbw", "0TB"), "--tbw is not above zero"),
        (("--capacity", "1TB", "--dwpd", 1, "--waf", 0), "--waf is 0; it must lie"),
    ],
)
def test_what_is_wrong_is_named_by_its_option(cli, options, words):
    outcome = cli("plan", "lifetime", "--gb-per-day", 1, *options)
    assert outcome.status == 2
    assert outcome.err.startswith(f"flashkeel: {words}"), outcome.err


def test_what_is_wrong_with_traffic_is_named_by_its_option(cli, tmp_path):
    drive = ("--capacity", "1TB", "--dwpd", 1)
    series = tmp_path / "traffic.csv"
    series.write_text("window,write_bytes\n0,1\n")
    for options, words in (
        (("--profile", "prox"), "--profile: unknown write profile"),
        (("--demand", series, "--interval", "0s"), "--interval: a window lasts"),
        (("--demand", "traffic.none"), "traffic.none: cannot read it"),
        (("--trace", series, "--set", "align=3KiB"), "--set align: 3KiB is not a power"),
    ):
        outcome = cli("plan", "lifetime", *options, *drive)
        assert outcome.status == 2
        assert outcome.err.startswith(f"flashkeel: {words}"), outcome.err


@pytest.mark.parametrize(("throttle", "status"), [("ready", 0), ("none", 3)])
def test_check_tells_scripts_whether_a_drive_lasts(cli, throttle, status):
    short = (*DRIVE, *ONE, "--gb-per-day", "2", "--waf", "2", "--throttle", throttle)
    assert plan(cli, *short).status == 0
    outcome = plan(cli, *short, "--check", *JSON)
    assert (outcome.status, outcome.err) == (status, "")
    assert json.loads(outcome.out)["meets_target"] == (status == 0)


def test_a_preset_is_a_drive_as_for_tiers(cli, monkeypatch):
    planned = []

    def noted(plans, *rest):
        planned.append(plans[-1].drive)
        return estimates(plans, *rest)

    estimates = lifetime.estimates
    monkeypatch.setattr(lifetime, "estimates", noted)
    for options in (
        ("--drive", "qlc"),
        ("--drive", "qlc,dwpd=0.1"),
        ("--drive", "ssd-a", "--tbw", "1TB", "--capacity", "1GB", "--over-provisioning", "0.3"),
    ):
        outcome = plan(cli, *options, "--gb-per-day", "200", "--throttle", "none", "--seeds", "1")
        assert (outcome.status, outcome.err) == (0, ""), options
    spare = pytest.approx(1024**4 / (932 * 1024**3) - 1, abs=1e-3)
    size = f"{932 * 1024**3}B"
    assert planned == [
        {"capacity": size, "over_provisioning": spare, "rated_cycles": 1000},
        {"capacity": size, "over_provisioning": spare, "dwpd": 0.1},
        {"capacity": "1GB", "over_provisioning": 0.3, "tbw": "1TB"},
    ]


def sparse(tmp_path, pages):
    """Write a trace of 1000 writes 20 ms apart, of so many pages of 4 KiB."""
    path = tmp_path / f"{pages}.csv"
    lines = (f"{n * 200_000},h,0,Write,{n % 64 << 16},{pages << 12},0\n" for n in range(1000))
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize(("pages", "times"), [(1, 16), (4, 4), (16, None)])
def test_a_buffer_that_does_not_wait_for_full_flash_pages_is_named(cli, tmp_path, pages, times):
    arguments = ("--drive", "qlc", *ONE, "--throttle", "none", "--trace", sparse(tmp_path, pages))
    found = json.loads(plan(cli, *arguments, *JSON).out)
    said = " ".join(plan(cli, *arguments).out.split())
    if times is None:
        assert found["padding"] is None and "take up to" not in said
        return
    # Four planes of 16 KiB are programmed at once.
    assert found["padding"]["page_bytes"] == 64 << 10
    assert found["padding"]["most"] == pytest.approx(times, rel=0.02)
    assert f"the first 1,000 requests recorded take {times}" in said
    assert any("take" in note for note in found["notes"])


def test_of_traffic_without_requests_the_bounds_of_padding_are_told(cli):
    def padding(per_day, *more):
        options = ("--throttle", "none", "--gb-per-day", per_day, *more)
        return json.loads(plan(cli, "--drive", "qlc", *ONE, *options, *JSON).out)["padding"]

    # 64 KiB in 5 ms are 1,132 GB a day; at the most a page is begun each 5 ms.
    assert (padding("10")["least"], padding("10")["most"]) == (1, 16)
    assert padding("1132.5")["most"] == pytest.approx(2, rel=0.01)
    assert padding("10000") is None
    assert padding("10", "--waf", "3") is None
    assert padding("10", "--tbw", "300TB") is None
    said = plan(cli, "--drive", "qlc", "--gb-per-day", "100", "--seeds", "1").out
    assert "Whether it then lasts 5 years is not told" in " ".join(said.split())
    assert "take up to" not in plan(cli, *DRIVE, *ONE, "--gb-per-day", "0.1").out


def test_of_a_drive_whose_buffer_is_not_known_padding_is_said_to_be_none(cli):
    def is_said(*options):
        outcome = plan(cli, *DRIVE, *ONE, "--gb-per-day", "0.1", "--throttle", "none", *options)
        return "pages are taken to be full" in " ".join(outcome.out.split())

    assert is_said() and is_said(*JSON)
    assert not is_said("--waf", "2")


def test_less_programmed_than_written_is_named(cli):
    def is_named(waf):
        outcome = plan(cli, *DRIVE, *ONE, "--gb-per-day", "0.1", "--waf", waf, *JSON)
        return any(
            "only where a drive compresses" in note for note in json.loads(outcome.out)["notes"]
        )

    assert is_named("0.5") and not is_named("1")
