"""Sizes, rates and shapes as numbers."""

import pytest
from flashkeel._core import span_ns
from flashkeel.quantities import (
    bytes_per_second,
    flash_bytes,
    in_bytes,
    in_seconds,
    logical_bytes,
    planes,
    wearing_amplification,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16KiB", 16 << 10),
        ("1.5GB", 1_500_000_000),
        ("0.5TiB", 1 << 39),
        ("512B", 512),
        ("4096", 4096),
        ("9007199254740993B", 9_007_199_254_740_993),
    ],
)
def test_sizes_are_whole_bytes(text, size):
    assert in_bytes(text) == size


@pytest.mark.parametrize("text", ["", "KiB", "much", "4 gigabytes", "nanGiB"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError):
        in_bytes(text)


def test_rates_are_bytes_a_second():
    assert bytes_per_second("400MB/s") == 400_000_000


def test_flash_is_all_of_its_pages():
    shape = {"channels": 2, "chips_per_channel": 3, "planes_per_chip": 4}
    geometry = shape | {"blocks_per_plane": 5, "pages_per_block": 6, "page_size": "16KiB"}
    assert planes(geometry) == 24
    assert flash_bytes(geometry) == 24 * 5 * 6 * 16384


def test_times_are_what_the_core_takes_them_for():
    for unit in ("ns", "us", "ms", "s", "min", "h", "d", "w"):
        assert in_seconds(f"3{unit}") == pytest.approx(span_ns(f"3{unit}") / 1e9)


def test_what_is_for_the_host_is_a_size_or_a_share():
    geometry = {
        "channels": 2,
        "chips_per_channel": 1,
        "planes_per_chip": 1,
        "blocks_per_plane": 8,
        "pages_per_block": 4,
        "page_size": "16KiB",
    }
    assert logical_bytes({"geometry": geometry, "logical_capacity": "1MiB"}) == 1 << 20
    assert logical_bytes({"geometry": geometry, "logical_capacity": "87.5%"}) == 917_504


def test_folds_of_an_slc_cache_use_up_no_cycles():
    geometry = {"page_size": "16KiB", "planes_per_chip": 2, "multi_plane": True}
    device = {"programmed_bytes": 4 * 32768, "flash_operations": {"fold": 1}}
    assert wearing_amplification({"waf": 2.0, "device": device}, geometry) == 1.5
    assert wearing_amplification({"waf": None, "device": device}, geometry) is None
