"""flashkeel plan tier."""

import json
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from flashkeel import InputError, hierarchy
from flashkeel.media import Medium
from flashkeel.output import hierarchy_tables, units

DRIVE = ("--drive", "qlc-1xnm", "--model", "1GiB")
FEW = ("--seeds", "2", "--policy", "base", "--policy", "nlcwip", "--size", "10%", "--size", "50%")
SHORT = ("--years", "0.0001")
"""So much traffic wears out any drive soon."""
JSON = ("--format", "json")


def plan(cli, *arguments):
    return cli("plan", "tier", *arguments)


def words(found):
    """Return what was printed, its lines joined."""
    return " ".join(found.out.split())


def recording(path, lines):
    """Write a trace, MSR: ticks of 100 ns, operation, offset, size."""
    path.write_text(
        "".join(f"{at},h,0,{what},{offset},{size},0\n" for at, what, offset, size in lines)
    )
    return path


@pytest.fixture
def trace(tmp_path):
    # Ten seconds: 4 and 64 KiB, written and read, over 8 MiB.
    lines = (
        (n * 50_000, "Read" if n % 3 else "Write", n * 37 % 128 << 16, 65536 if n % 5 else 4096)
        for n in range(2000)
    )
    return recording(tmp_path / "mixed.csv", lines)


def test_tables_fit_a_terminal_and_a_picture_is_written(cli, trace, tmp_path):
    picture = tmp_path / "tails.png"
    found = plan(cli, *DRIVE, *FEW, "--trace", trace, "--max-read", "1s", *SHORT, "--out", picture)
    assert (found.status, found.err) == (0, "")
    assert picture.stat().st_size > 1000
    assert sorted(tmp_path.iterdir()) == [trace, picture]
    tables = found.out[: found.out.index("Smallest NVM:")]
    assert max(map(len, tables.splitlines())) <= 80
    assert "Cheapest: " in found.out and "with prices of 2019-12-06" in words(found)
    # A path is as long as it is.
    assert max(map(len, found.out.partition("Picture: ")[0].splitlines())) <= 80
    assert "10.0 s of traffic over and over" in words(found)


def test_days_are_the_traffic_s_where_a_row_falls_behind(cli, tmp_path):
    # A second that the drive takes many for: reads from all over it, writes that stay in the NVM.
    lines = (
        (n * 200, "Write" if n % 4 == 0 else "Read", n * 7919 % 16384 << 12, 4096)
        for n in range(50_000)
    )
    fast = recording(tmp_path / "fast.csv", lines)
    few = ("--seeds", "1", "--policy", "base", "--policy", "nlcwip", "--size", "100%")
    outcome = plan(cli, *DRIVE, *few, "--dram", "1%", "--trace", fast, *SHORT)
    assert outcome.status == 0
    found = json.loads(plan(cli, *DRIVE, *few, "--dram", "1%", "--trace", fast, *SHORT, *JSON).out)
    behind = [one["behind"] for one in found["outcomes"]]
    assert min(behind) == 1 and max(behind) > 2
    seconds = found["duration_ns"] / 1e9
    assert f"{seconds:.3g}" in outcome.out.replace(",", "")
    base = found["outcomes"][0]
    written = base["ssd_bytes_per_day"] * seconds / 86_400
    assert 12_000 * 4096 * 0.5 < written < 12_600 * 4096
    assert "Some rows fall behind" in words(outcome)


def test_a_row_with_requests_that_failed_keeps_no_bound(cli, trace, monkeypatch):
    monkeypatch.setattr("flashkeel.failures.count", lambda run: 7)
    found = plan(cli, *DRIVE, *FEW, "--trace", trace, *SHORT)
    assert found.status == 0
    assert "Nothing that was tried keeps the bounds" in words(found)
    assert "beyond its bound: requests that failed" in words(found)
    assert "In some rows requests failed, up to 7" in words(found)
    outcomes = json.loads(plan(cli, *DRIVE, *FEW, *SHORT, *JSON, "--trace", trace).out)["outcomes"]
    assert all(one["misses"]["failed"] is None and one["failed"] == 7 for one in outcomes)


def test_waf_is_lower_or_higher_than_it_stays_by_the_sign_of_what_is_free():
    def said(*shares):
        return list(hierarchy_tables._free([SimpleNamespace(from_free=it) for it in shares]))

    lower = "In some rows WAF is lower than it stays: up to 35.0 % of what was programmed went into"
    higher = (
        "In some rows WAF is higher than it stays: up to 25.0 % more was erased than programmed"
    )
    assert said(0.2, 0.35, None) == [f"{lower} blocks that were free before."]
    assert said(-0.25, -0.2) == [f"{higher}."]
    assert said(0.35, -0.25) == [f"{lower} blocks that were free before.", f"{higher}."]
    assert said(0.05, -0.05) == said(None) == []


def test_json_has_each_choice_under_each_seed(cli, trace):
    found = json.loads(plan(cli, *DRIVE, *FEW, *SHORT, *JSON, "--trace", trace).out)
    base, *others = found["outcomes"]
    assert [one["policy"] for one in found["outcomes"]] == ["base", "nlcwip", "nlcwip"]
    # Memory loses what is modified; policy III nothing.
    assert "risk" in base["misses"] and base["risk_bytes"] > 0
    for one in others:
        assert one["risk_bytes"] == 0
        assert one["bought_bytes"] >= one["nvm_bytes"]
        low, high = one["over_seeds"]["read_ns"]
        assert low <= one["read_ns"] <= high
    smallest, cheapest = (found["outcomes"][found[name]] for name in ("smallest", "cheapest"))
    assert smallest["bought_bytes"] == min(one["bought_bytes"] for one in others)
    assert cheapest["cost"] == min(one["cost"] for one in others)
    assert not found["synthetic"]


def test_wear_makes_the_nvm_larger_in_proportion(cli, trace):
    held, bought = [], []
    for years in ("1e-9", "10", "20"):
        arguments = ("--policy", "oc", "--size", "20%", "--seeds", "1", "--years", years)
        (one,) = json.loads(plan(cli, *DRIVE, *arguments, *JSON, "--trace", trace).out)["outcomes"]
        held.append(one["nvm_bytes"])
        bought.append(one["bought_bytes"])
    assert bought[0] == held[0] == held[1] == held[2]
    assert bought[2] == pytest.approx(2 * bought[1], abs=8192)
    assert bought[1] > held[1]


def test_bounds_that_nothing_keeps_name_what_comes_nearest(cli, trace):
    found = plan(cli, *DRIVE, *FEW, "--trace", trace, "--max-read", "1ns")
    assert found.status == 0
    assert "Nothing that was tried keeps the bounds under every seed." in words(found)
    assert "Nearest: " in found.out and "beyond its bound: read " in words(found)


def test_what_is_at_risk_where_nothing_may_be_is_told_in_bytes(cli, trace):
    found = plan(cli, *DRIVE, "--policy", "base", "--seeds", "1", *SHORT, "--trace", trace)
    assert re.search(r"beyond its bound: risk [0-9.]+ [KMG]iB of 0 B\.", words(found))


def test_without_a_price_there_are_no_costs(cli, trace, tmp_path):
    prices = tmp_path / "prices.toml"
    prices.write_text('date = 2026-01-01\ncurrency = "EUR"\nper_gb = { qlc = 0.05 }\n')
    found = plan(cli, *DRIVE, *FEW, "--trace", trace, "--prices", prices)
    assert found.status == 0
    assert "No price is known for optane-p4800x" in words(found)
    assert "Cheapest" not in found.out and "cost" not in found.out.split("Note:")[0]
    prices.write_text('date = 2026-01-01\ncurrency = "EUR"\nper_gb = { qlc = 0.05, optane = 1 }\n')
    found = plan(cli, *DRIVE, *FEW, "--trace", trace, "--prices", prices)
    assert "Costs are in EUR, with prices of 2026-01-01" in words(found)


@pytest.mark.parametrize("what", ["Read", "Write"])
def test_traffic_of_one_kind_and_huge_addresses(cli, tmp_path, what):
    lines = [(n * 100_000, what, (1 << 62) * (n % 2) + n * 4096, 4096) for n in range(40)]
    found = plan(cli, *DRIVE, *FEW, "--trace", recording(tmp_path / "one.csv", lines))
    assert (found.status, found.err) == (0, "")
    # No wear without writes, and few requests beyond any tail.
    assert ("endless" in found.out) or what == "Write"
    assert "A tail is a guess" in words(found)


def test_a_profile_is_synthetic(cli):
    source = ("--profile", "systor-low", "--requests", "3000")
    found = plan(cli, *DRIVE, "--policy", "base", "--seeds", "1", *JSON, *source)
    assert (found.status, found.err) == (0, "")
    assert json.loads(found.out)["synthetic"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--drive", "qcl"), 'did you mean "qlc"'),
        (("--drive", "ssd-a"), "ssd-a,dwpd=0.3"),
        (("--drive", "qlc,dwpd=0"), "dwpd is '0'"),
        (("--drive", "qlc,years=3"), "after the preset comes dwpd=X"),
        ((*DRIVE, "--drive", "qlc-1xnm"), "given twice"),
        ((*DRIVE, "--nvm", "optain"), '--nvm optain: unknown preset "optain"'),
        ((*DRIVE, "--size", "0%"), "--size 0%"),
        ((*DRIVE, "--size", "200%"), "--size 200%"),
        ((*DRIVE, "--size", "much"), "--size much"),
        ((*DRIVE, "--size", "infGiB"), "--size infGiB: write a size"),
        ((*DRIVE, "--dram", "1e400GiB"), "--dram 1e400GiB: write a size"),
        ((*DRIVE, "--size", "10TiB"), "10TiB"),
        ((*DRIVE, "--size", "5000B"), "--size 5000B: is 5KB, no multiple of a block of 4KiB"),
        ((*DRIVE, "--size", "4KiB", "--policy", "nlcwip"), "--size 4KiB: 4KiB has no room"),
        ((*DRIVE, "--dram", "1000B"), "--dram 1000B: is 1KB; at least 4KiB"),
        ((*DRIVE, "--dram", "-1%"), "--dram -1%"),
        (("--drive", "qlc", "--model", "big"), "--model big"),
        (("--drive", "qlc", "--model", "32"), "--model 32: write a size"),
        ((*DRIVE, "--max-read", "20"), "'20' is no time"),
        ((*DRIVE, "--max-risk", "x"), "'x' is no size"),
        ((*DRIVE, "--years", "0"), "--years 0"),
        ((*DRIVE, "--years", "nan"), "--years nan"),
        ((*DRIVE, "--percentile", "p98"), "p99"),
        ((*DRIVE, "--prices", "none.toml"), "none.toml: cannot read it: No such file"),
        ((*DRIVE, "--out", "tails.xyz"), "use .png"),
        ((*DRIVE, "--out", "no/where.png"), "no folder"),
        ((*DRIVE, "--policy", "hybrid"), "--policy"),
        ((*DRIVE, "--seed", "-1"), "--seed"),
        ((*DRIVE, "--profile", "systor-low"), "given twice"),
        (
            ("--drive", "keel,dwpd=1", "--model", "1GiB"),
            "the model of keel, for which a larger --model may do: logical_capacity: too little",
        ),
        (
            ("--drive", "qlc", "--model", "1MiB", "--size", "10TiB"),
            "give less, or a larger --model",
        ),
    ],
)
def test_bad_input_ends_with_status_2(cli, trace, arguments, words):
    found = plan(cli, "--trace", trace, *arguments)
    assert (found.status, found.out) == (2, "")
    assert words in found.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "the traffic is missing"),
        (("--trace", "nowhere.csv"), "nowhere.csv"),
        (("--profile", "systor-low"), "give --requests"),
        (("--profile", "systor", "--requests", "9"), "systor-low"),
        (("--trace", "-"), "--trace -: "),
    ],
)
def test_traffic_that_is_none_is_refused(cli, arguments, words):
    found = plan(cli, *DRIVE, *arguments)
    assert (found.status, found.out) == (2, "")
    assert words in found.err


@pytest.mark.parametrize("lines", ["0 f trim 0 4096\n1 f trim 8192 4096\n", "0 f sync 0 0\n"])
def test_nothing_is_planned_for_who_neither_reads_nor_writes(cli, tmp_path, lines):
    path = tmp_path / "none.log"
    path.write_text(f"fio version 3 iolog\n{lines}")
    found = plan(cli, *DRIVE, *FEW, "--trace", path)
    assert (found.status, found.out) == (2, "")
    assert "the traffic neither reads nor writes" in found.err


def test_a_trace_takes_its_keys(cli, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("".join(f"{n},W,{n * 4096},4096\n" for n in range(100)))
    source = ("--trace", path, "--set", "columns=time=1,unit=s,op=2,offset=3,length=4")
    arguments = (*DRIVE, "--policy", "base", "--seeds", "1", *JSON, *source)
    assert json.loads(plan(cli, *arguments).out)["footprint_bytes"] == 100 * 4096
    wrong = plan(cli, *arguments, "--set", "colums=1")
    assert wrong.status == 2 and "columns" in wrong.err


def test_traffic_beyond_the_model_is_refused(cli, tmp_path):
    far = recording(tmp_path / "far.csv", [(n, "Read", n << 32, 1 << 20) for n in range(9000)])
    found = plan(cli, "--drive", "qlc", "--model", "1MiB", "--trace", far)
    assert found.status == 2
    assert "give a larger --model" in found.err


def test_a_picture_never_takes_the_place_of_the_trace(cli, tmp_path):
    path = recording(tmp_path / "trace.png", [(0, "Read", 0, 4096)])
    before = path.read_bytes()
    found = plan(cli, *DRIVE, "--trace", path, "--out", path)
    assert found.status == 2 and path.read_bytes() == before


def test_an_interrupt_leaves_nothing_behind(trace, tmp_path):
    command = [sys.executable, "-m", "flashkeel", "plan", "tier", *DRIVE, "--trace", str(trace)]
    more = ["--seeds", "200", "--out", str(tmp_path / "tails.png")]
    with subprocess.Popen([*command, *more], stderr=subprocess.PIPE, text=True) as running:
        time.sleep(2.5)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=20)
    assert (running.returncode, said.strip()) == (130, "flashkeel: interrupted")
    assert list(tmp_path.iterdir()) == [trace]


@pytest.mark.parametrize(("bound", "status"), [("1s", 0), ("1ns", 3)])
def test_check_tells_scripts_whether_anything_keeps_the_bounds(cli, trace, bound, status):
    found = plan(cli, *DRIVE, *FEW, *SHORT, "--trace", trace, "--max-read", bound, "--check", *JSON)
    assert (found.status, found.err) == (status, "")
    assert (json.loads(found.out)["smallest"] is None) == (status == 3)


def sparse(tmp_path, pages):
    """A trace of 2000 writes 20 ms apart, over 8 MiB, of so many pages of 4 KiB."""
    lines = ((n * 200_000, "Write", n * 37 % 128 << 16, pages << 12) for n in range(2000))
    return recording(tmp_path / f"{pages}.csv", lines)


BARE = ("--drive", "qlc", "--model", "2GiB", "--policy", "base", "--seeds", "1")


@pytest.mark.parametrize(("pages", "times"), [(1, 16), (16, 1)])
def test_flash_pages_that_are_not_full_are_in_the_waf_that_years_go_by(cli, tmp_path, pages, times):
    trace = sparse(tmp_path, pages)
    found = json.loads(plan(cli, *BARE, "--trace", trace, *JSON).out)
    (one,) = found["outcomes"]
    # Four planes of 16 KiB are programmed at once, and the buffer waits for 5 ms.
    assert one["padded"] == pytest.approx(times, rel=0.02)
    assert one["waf"] >= one["padded"]
    rated = 1000 * 4 * 2 * 4 * 1366 * 1536 * (16 << 10)
    assert one["ssd_years"] == pytest.approx(
        rated / one["waf"] / (365 * one["ssd_bytes_per_day"]), rel=0.001
    )
    table = plan(cli, *BARE, "--trace", trace)
    assert f" {units.significant(one['waf'])} " in table.out
    is_told = "does not wait until flash pages are full" in words(table)
    assert is_told == (times > 1)
    sold = plan(cli, "--drive", "qlc,dwpd=0.1", *BARE[2:], "--trace", trace)
    assert "does not wait until" not in words(sold) and "written at random" not in words(sold)


@pytest.mark.parametrize(("apart_s", "is_short"), [(1, True), (100, False)])
def test_years_do_not_follow_from_seconds(cli, tmp_path, apart_s, is_short):
    lines = [(n * apart_s * 10**7, "Write", n << 12, 4096) for n in range(2)]
    found = plan(cli, *BARE, "--trace", recording(tmp_path / "two.csv", lines))
    assert ("no year follows" in words(found)) == is_short
    assert "may never have been written to the SSD" in words(found)


def test_a_plan_without_drives_is_refused():
    source = {"policy": "trace", "path": "none.csv"}
    with pytest.raises(InputError, match="no drive is given"):
        hierarchy.Plan(source, [], Medium("optane-p4800x")).estimate()


@pytest.mark.parametrize("source", [{"name": "homes"}, {"policy": "trace"}])
def test_a_source_that_lacks_something_is_refused_as_a_workloads(source):
    with pytest.raises(InputError, match=r"no policy; one of|\"path\" is missing"):
        hierarchy.Plan(source, [Medium("qlc")], Medium("optane-p4800x")).estimate()


def test_a_size_that_is_given_in_two_ways_is_one(cli, trace):
    sizes = [part for size in ("5%", "5.0%", "1MiB", "1024KiB") for part in ("--size", size)]
    found = plan(cli, *BARE, "--policy", "nlcwip", *sizes, "--trace", trace, *JSON)
    assert [one["size"] for one in json.loads(found.out)["outcomes"]] == [None, "5%", "1MiB"]


def test_a_first_state_that_lasts_is_named_with_what_ends_it(cli, tmp_path):
    trace = sparse(tmp_path, 1)
    found = json.loads(plan(cli, *BARE, "--trace", trace, *JSON).out)
    (note,) = [note for note in found["notes"] if "written at random" in note]
    repeat = int(re.search(r"--set repeat=(\d+)", note)[1])
    assert repeat == pytest.approx(1 / found["outcomes"][0]["turned_over"], abs=1)
    longer = plan(cli, *BARE, "--trace", trace, "--set", f"repeat={repeat}", *JSON)
    later = json.loads(longer.out)
    assert not any("written at random" in note for note in later["notes"])
    assert later["outcomes"][0]["waf"] < 0.8 * found["outcomes"][0]["waf"]
    source = ("--profile", "systor-low", "--requests", "3000")
    made = words(plan(cli, *BARE, "--model", "32GiB", *source))
    assert re.search(r"With --requests \d+000 as much is programmed", made)
