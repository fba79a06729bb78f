"""The predictor as a library."""

import pytest
from flashkeel import Diagnosis, Drive, InputError, Predictor, Request

MODEL = {
    "sectors": 1 << 21,
    "volume_bits": [17],
    "gc_volume_bits": [17],
    "write_buffer": {"bytes": 8 * 4096, "type": "back", "flush": ["full"]},
    "thresholds_ns": {"read": 250_000, "write": 250_000},
    "latencies_ns": {"read": 80_000, "write": 8_000, "flush": 1_000_000, "collection": 9_000_000},
    "sleep": {"after_ns": 20_000_000, "wake_ns": 1_000_000},
    "undetermined": [],
}


@pytest.fixture
def predictor():
    return Predictor(Diagnosis("test", MODEL))


def write(predictor, number, time_ns, lba):
    request = Request(number, time_ns, "write", lba, 8)
    predictor.submitted(request)
    predictor.observe(number, time_ns + 8_000)


def test_a_full_buffer_makes_reads_of_its_volume_slow(predictor):
    for number in range(8):
        write(predictor, number, number * 20_000, number * 8)
    own, other = (Request(9, 160_000, "read", lba, 8) for lba in (0, 1 << 17))
    assert predictor.predict(own).is_slow
    assert predictor.predict(own).chance > 0.5
    # The mean of what it takes slow and normal, as likely as these are.
    assert predictor.predict(own).latency_ns > 500_000
    elsewhere = predictor.predict(other)
    assert elsewhere.chance < 0.1
    assert not elsewhere.is_slow
    assert 80_000 <= elsewhere.latency_ns < 120_000
    later = Request(9, 5_000_000, "read", 0, 8)
    assert not predictor.predict(later).is_slow


def test_a_flush_empties_the_buffer(predictor):
    for number in range(3):
        write(predictor, number, number * 20_000, number * 8)
    predictor.submitted(Request(3, 60_000, "flush", 0, 0))
    predictor.observe(3, 1_060_000)
    for number in range(5, 10):
        write(predictor, number, 5_000_000 + number * 20_000, number * 8)
    read = Request(20, 5_200_000, "read", 0, 8)
    assert not predictor.predict(read).is_slow
    for number in range(10, 13):
        write(predictor, number, 5_000_000 + number * 20_000, number * 8)
    assert predictor.predict(Request(20, 5_260_000, "read", 0, 8)).is_slow
    with pytest.raises(InputError, match="a flush of 8 sectors"):
        predictor.submitted(Request(21, 6_000_000, "flush", 0, 8))
    with pytest.raises(InputError, match="one of"):
        predictor.predict(Request(21, 6_000_000, "flush", 0, 0))


def test_a_drive_that_sleeps_is_slow_to_wake(predictor):
    write(predictor, 0, 0, 0)
    assert not predictor.predict(Request(1, 10_000_000, "read", 0, 8)).is_slow
    assert predictor.predict(Request(1, 30_000_000, "read", 0, 8)).is_slow
    assert predictor.is_on


def test_bad_input(predictor):
    with pytest.raises(InputError, match="sectors at LBA"):
        predictor.predict(Request(0, 0, "read", 1 << 21, 8))
    with pytest.raises(InputError, match="one of"):
        predictor.predict(Request(0, 0, "erase", 0, 8))
    predictor.predict(Request(0, 1000, "read", 0, 8))
    with pytest.raises(InputError, match="before"):
        predictor.predict(Request(0, 999, "read", 0, 8))
    with pytest.raises(InputError, match="threshold"):
        Predictor(Diagnosis("test", MODEL | {"thresholds_ns": {"read": 0, "write": 1}}))


def test_every_request_is_submitted_and_completes_once(predictor):
    with pytest.raises(InputError, match="request 1: it was not submitted"):
        predictor.observe(1, 9_000)
    request = Request(1, 1000, "read", 0, 8)
    predictor.submitted(request)
    with pytest.raises(InputError, match="request 1: it was submitted before"):
        predictor.submitted(request)
    with pytest.raises(InputError, match="before"):
        predictor.observe(1, 999)
    predictor.observe(1, 9_000)
    with pytest.raises(InputError, match="or has completed before"):
        predictor.observe(1, 9_000)
    # A number may be another's then, and what was refused has changed nothing.
    predictor.submitted(Request(1, 9_000, "read", 0, 8))
    predictor.observe(1, 10_000)


@pytest.mark.parametrize("part", [-0.1, 1.5, float("nan")])
def test_a_part_of_false_calls_out_of_range_is_refused(part):
    with pytest.raises(InputError, match="false_calls"):
        Predictor(Diagnosis("test", MODEL), false_calls=part)


def test_a_model_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere: No such file"):
        Diagnosis.from_file(tmp_path / "nowhere")


def test_drives_and_diagnoses_show_what_they_are(tmp_path):
    (tmp_path / "mine.toml").write_text('[device]\npreset = "ssd-d"\n')
    assert repr(Drive.find(tmp_path / "mine.toml")) == f"<Drive '{tmp_path / 'mine.toml'}'>"
    shown = repr(Diagnosis("mine", MODEL | {"learned": {"weights": [1] * 1000}}))
    assert shown.startswith("<Diagnosis of 'mine':") and '"volume_bits"' in shown
    assert "weights" not in shown
