"""SNIA's and fio's steady states."""

import json

import flashkeel
import pytest
from flashkeel import InputError, amplification, steadiness
from flashkeel.steadiness import Point
from small import SMALL


def points(*values):
    return [Point(float(at), at + 1.0, float(value)) for at, value in enumerate(values)]


def test_a_flat_line_is_steady_and_a_steep_one_is_not():
    (flat,) = steadiness.windows(points(100, 100, 100, 100, 100))
    assert flat.is_steady
    assert (flat.range_share, flat.excursion_share, flat.slope_share_per_s) == (0, 0, 0)
    # By 12 % in four steps: within the range, not within the slope.
    (steep,) = steadiness.windows(points(94, 97, 100, 103, 106))
    assert steep.range_share == pytest.approx(0.12)
    assert steep.excursion_share == pytest.approx(0.12)
    assert steep.slope_share_per_s == pytest.approx(0.03)
    assert not steep.is_steady
    # By 24 % in no direction: within the slope, not within the range.
    (wide,) = steadiness.windows(points(88, 112, 100, 112, 88))
    assert wide.range_share == pytest.approx(0.24)
    assert wide.excursion_share == pytest.approx(0)
    assert not wide.is_steady


def test_the_limits_belong_to_the_steady_state():
    # 20 % from the largest to the smallest, and a line that rises by 10 %.
    (limit,) = steadiness.windows(points(90, 110, 100, 110, 90))
    assert limit.range_share == pytest.approx(0.20)
    assert limit.is_steady
    (rising,) = steadiness.windows(points(95, 97.5, 100, 102.5, 105))
    assert rising.excursion_share == pytest.approx(0.10)
    assert rising.is_steady


def test_the_first_steady_window_counts(monkeypatch):
    found = points(300, 200, 150, 100, 100, 100, 100, 100, 100)
    monkeypatch.setattr(steadiness, "rounds", lambda *_: found)
    assert steadiness.assess(None, "lat").reached.points[0].start_s == 3
    monkeypatch.setattr(steadiness, "rounds", lambda *_: found[:6])
    assert steadiness.assess(None, "lat").reached is None
    assert steadiness.assess(None, "lat").last.points[0].start_s == 1
    monkeypatch.setattr(steadiness, "rounds", lambda *_: found[:4])
    assert steadiness.assess(None, "lat").last is None


def test_a_state_that_is_left_is_told_from_one_that_lasts(monkeypatch):
    def assessed(*values):
        monkeypatch.setattr(steadiness, "rounds", lambda *_: points(*values))
        return steadiness.assess(None, "lat")

    # Both ends are steady, each at a level of its own.
    two = assessed(*[200] * 6, *[20] * 6)
    assert two.last.is_steady and two.is_left
    assert not assessed(*[200] * 6, *[170] * 6).is_left
    assert not assessed(*[200] * 5).is_left
    assert not assessed(100, 200, 300, 400, 500, 600).is_left


@pytest.mark.parametrize(
    ("text", "values", "is_met"),
    [
        ("iops:10%", (91, 100, 109), True),
        ("iops:5%", (91, 100, 109), False),
        ("iops:9", (91, 100, 109), True),
        ("iops:8", (91, 100, 109), False),
        ("iops_slope:9%", (91, 100, 109), True),
        ("iops_slope:8.9%", (91, 100, 109), False),
        ("lat_slope:9", (91, 100, 109), True),
        ("bw_slope:8", (109, 100, 91), False),
    ],
)
def test_fios_criteria(text, values, is_met):
    (window,) = steadiness.windows(points(*values), len(values))
    criterion = steadiness.parse(text)
    assert criterion.is_met(window) == is_met
    assert str(criterion) == text


@pytest.mark.parametrize("text", ["iops", "iops:", "latency:5%", "iops:ten", "iops:1.2.3", ""])
def test_other_words_are_refused(text):
    with pytest.raises(InputError, match="iops:10%"):
        steadiness.parse(text)


def test_rounds_are_those_of_the_series(small_result):
    run = small_result["fifo"]
    series = run.series()
    length = (series["start_ns"][1] - series["start_ns"][0]) / 1e9
    found = steadiness.rounds(run, "iops", 2 * length)
    # The last window ends before it is full.
    assert run.data["simulated_s"] < len(series) * length
    counts = (series["reads"] + series["writes"])[:-1]
    assert [point.value for point in found] == [
        pytest.approx((counts[2 * i] + counts[2 * i + 1]) / (2 * length))
        for i in range(len(counts) // 2)
    ]
    mean = steadiness.rounds(run, "lat", len(counts) * length)[0].value
    total = sum(series[f"{c}_mean_ns"] * series[f"{c}s"] for c in ("read", "write"))[:-1].sum()
    assert mean == pytest.approx(total / counts.sum(), rel=1e-3)


def test_a_run_at_one_rate_is_steady_to_its_end():
    experiment = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    experiment = experiment.set("measure.series_window", "10ms").set("workload.requests", 5050)
    source = {"policy": "constant", "iops": 20000}
    (run,) = experiment.set("workload.source.arrivals", source).run().runs
    values = [point.value for point in steadiness.rounds(run, "iops")]
    assert values == pytest.approx([20000] * len(values), rel=0.02)


def test_what_is_tracked_has_a_name(small_result):
    with pytest.raises(InputError, match="no variable"):
        steadiness.rounds(small_result["fifo"], "speed")


def test_where_nothing_happens_there_is_no_steady_state():
    (silent,) = steadiness.windows(points(0, 0, 0, 0, 0))
    assert not silent.is_steady
    assert not steadiness.parse("iops:5%").is_met(silent)


def test_what_went_into_free_blocks_is_told_from_what_was_collected(cli, tmp_path):
    document = tmp_path / "writes.toml"
    document.write_text(SMALL.split("[[runs]]")[0])
    short = ("--set", "device.gc.stop_above=90", "--set", "workload.requests=4000")
    words = "Note: run: WAF is lower than it stays: "
    outcome = cli("run", document, *short, "--out", tmp_path / "short")
    assert words in " ".join(outcome.out.split())
    found = flashkeel.load(tmp_path / "short").runs[0]
    share = steadiness.from_free_blocks(found)
    assert share is not None and share > steadiness.MOST_FREE
    erased = found.data["erases"] * 64 * 16384
    assert found.data["device"]["programmed_bytes"] - erased == pytest.approx(
        share * found.data["device"]["programmed_bytes"]
    )
    # The same states at both ends.
    long = flashkeel.Experiment(document.read_text(), "long").set("workload.requests", 200_000)
    (settled,) = long.run().runs
    assert abs(steadiness.from_free_blocks(settled)) < steadiness.MOST_FREE


def test_drives_of_a_stack_that_erase_alike_are_told_together():
    small = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    small = small.set("workload.requests", 4000).set("device.gc.stop_above", 90)
    larger = {"ssd": {"geometry": {"pages_per_block": 128, "blocks_per_plane": 32}}}
    (mirrored,) = (
        small.set("stack.devices", [{"mirror": {"devices": [{"ssd": {}}] * 2}}]).run().runs
    )
    share = steadiness.from_free_blocks(mirrored)
    assert share is not None and share > steadiness.MOST_FREE
    device = mirrored.data["device"]
    erased = sum(ssd["erases"] for ssd in mirrored.data["stack"]["ssds"].values()) * 64 * 16384
    assert device["programmed_bytes"] - erased == pytest.approx(share * device["programmed_bytes"])
    (unlike,) = small.set("stack.devices", [{"ssd": {}}, larger]).run().runs
    assert steadiness.from_free_blocks(unlike) is None


def test_planes_that_are_erased_together_free_all_their_blocks():
    together = {
        "geometry.multi_plane": True,
        "geometry.blocks_per_plane": 32,
        "logical_capacity": "760MiB",
    }
    small = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    for key, value in together.items():
        small = small.set(f"device.{key}", value)
    (settled,) = small.set("workload.requests", 200_000).run().runs
    assert abs(steadiness.from_free_blocks(settled)) < steadiness.MOST_FREE


def test_a_device_that_collects_in_no_time_has_no_share_of_free_blocks():
    small = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    (ideal,) = small.set("device.gc.movement", "none").run().runs
    assert ideal.data["waf"] and ideal.data["erases"] == 0
    assert steadiness.from_free_blocks(ideal) is None


def test_write_amplification_over_time_adds_up_to_that_of_the_run():
    small = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small").set(
        "workload.requests", 20_000
    )
    drives = [{"mirror": {"devices": [{"ssd": {}}] * 2}}]
    small = small.set("workload.warm_up", "20ms")
    alone = small.run().runs[0]
    mirrored = small.set("stack.devices", drives).run().runs[0]
    for run in alone, mirrored:
        written, programmed = amplification.of_windows(run.series())
        assert len(written) > 5 and (written >= 0).all()
        assert written.sum() == run.data["device"]["host_bytes_written"]
        assert programmed.sum() == run.data["device"]["programmed_bytes"]
    points = steadiness.rounds(alone, "waf")
    assert len(points) > 5
    assert min(p.value for p in points) < alone.waf < max(p.value for p in points)


def test_a_device_that_programs_nothing_has_no_write_amplification_over_time():
    small = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small").set("workload.requests", 2000)
    small = small.set("measure.series_window", "1ms").set("stack.devices", [{"nvm": {}}])
    (run,) = small.run().runs
    assert steadiness.rounds(run, "iops")
    with pytest.raises(InputError, match="no write amplification over time"):
        steadiness.rounds(run, "waf")


def test_a_sweep_marks_what_is_of_the_beginning(cli, tmp_path):
    (tmp_path / "small.toml").write_text(SMALL.split("[[runs]]")[0])
    both = tmp_path / "both.toml"
    both.write_text('experiment = "small.toml"\n[grid]\n"workload.requests" = [4000, 200000]\n')
    short, long = json.loads(cli("sweep", both, "-o", tmp_path / "s", "--format", "json").out)
    assert abs(short["from_free_blocks"]) > steadiness.MOST_FREE > abs(long["from_free_blocks"])
    table = cli("sweep", both, "-o", tmp_path / "s").out
    first, second = (line for line in table.splitlines() if line.startswith(("1 ", "2 ")))
    assert "~" in first and "~" not in second and "the one that lasts" in table
