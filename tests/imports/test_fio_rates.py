"""Rates of fio's jobs, and what each operation has of its own."""

import pytest
from flashkeel import InputError
from flashkeel.imports import read_fio


def only(path):
    return read_fio(path).table["workload"]


def test_rates_and_thinking_are_arrivals(job):
    def arrivals(options):
        return only(job(f"[a]\nrw=read\nsize=1g\nbs=4k\n{options}\n"))["source"]["arrivals"]

    assert arrivals("rate_iops=500") == {"policy": "constant", "iops": 500.0}
    assert arrivals("rate_iops=500\nrate_process=poisson")["policy"] == "poisson"
    assert arrivals("rate=4m")["iops"] == 1024.0
    assert arrivals("thinktime=200")["iops"] == 5000.0
    assert arrivals("thinktime=2ms")["iops"] == 500.0


def test_each_operation_has_its_own_value(job):
    def source(options):
        return only(job(f"[a]\nsize=1g\n{options}\n"))["source"]

    assert source("rw=randwrite\nbs=4k\nrate=10m,20m")["arrivals"]["iops"] == 5120.0
    assert source("rw=randwrite\nrate_iops=100,2000")["arrivals"]["iops"] == 2000.0
    assert source("rw=randread\nrate_iops=100,2000")["arrivals"]["iops"] == 100.0
    assert source("rw=randrw\nrate_iops=100,2000")["arrivals"]["iops"] == 2100.0
    # What is none of the mix has no say.
    assert "arrivals" not in source("rw=randrw\nrwmixread=100\nrate_iops=,1000")
    assert "arrivals" not in source("rw=randrw\nrate_iops=0")
    alone = source("rw=randrw\nrwmixread=0\nrate_iops=,1000")
    assert (alone["arrivals"]["iops"], alone["read_fraction"]) == (1000.0, 0.0)
    assert source("rw=randrw\nrate_iops=100,2000")["read_fraction"] == pytest.approx(1 / 21)
    # fio 3.33 does 999 reads and 999 writes a second of it, whatever the mix.
    both = source("rw=randrw\nrwmixread=70\nrate_iops=1000")
    assert (both["arrivals"]["iops"], both["read_fraction"]) == (2000.0, 0.5)
    assert source("rw=randrw\nbs=4k\nrate=4m")["arrivals"]["iops"] == 2048.0
    assert source("rw=randwrite\nbs=4k,64k")["block_sizes"] == ["65536B"]
    assert source("rw=randtrim\nbs=4k,64k")["block_sizes"] == ["65536B"]
    assert source("rw=randwrite\nbs=64k,")["block_sizes"] == ["4096B"]
    assert source("rw=randread\nbs=,64k")["block_sizes"] == ["4096B"]
    mixed = only(job("[a]\nrw=randrw\nrwmixread=75\nsize=1g\nbs=4k,64k\n"))
    assert mixed["source"]["block_sizes"] == ["4096B"]
    assert mixed["source"]["write_block_sizes"] == ["65536B"]
    assert mixed["requests"] == (1 << 30) // (19 << 10)
    split = source("rw=randrw\nbssplit=4k/50:8k/50,64k")
    assert split["block_sizes"] == ["4096B/50", "8192B/50"]
    assert split["write_block_sizes"] == ["65536B/100"]
    assert source("rw=randrw\nbsrange=4k-8k,16k-16k")["write_block_sizes"] == ["16384B"]
    assert "write_block_sizes" not in source("rw=randrw\nbs=4k,4k")
    # Each operation's bytes a second are of requests of its own size.
    paced = source("rw=randrw\nbs=4k,64k\nrate=4m,64m")
    assert (paced["arrivals"]["iops"], paced["read_fraction"]) == (2048.0, 0.5)


@pytest.mark.parametrize("value", ["500,", "500,0", ",500", "0,500"])
def test_a_rate_of_one_operation_of_a_mix_is_refused(job, value):
    # fio 3.33 with 500 of reads does one of them and 1,023 writes at once.
    kept, free = ("reads", "writes") if value[0] == "5" else ("writes", "reads")
    said = rf"job.fio:4: rate_iops: '{value}' limits {kept} alone, .*; give {free} a rate, too"
    with pytest.raises(InputError, match=said):
        read_fio(job(f"[a]\nrw=randrw\nsize=1m\nrate_iops={value}\n"))


@pytest.mark.parametrize(
    ("options", "pacing", "iops", "said"),
    [
        ("rate_iops=500\nthinktime=100", "open", 500, "thinktime is shorter than the rate's gaps"),
        ("rate=4m\nthinktime=2ms", "think", 500, "rate is left out: thinktime is taken"),
        ("rate_iops=600\nthinktime=2ms", "think", 500, "rate_iops is left out: thinktime is taken"),
        (
            "iodepth=8\nioengine=libaio\nthinktime=2ms",
            "think",
            500,
            "iodepth is left out: thinktime is taken",
        ),
    ],
)
def test_of_a_rate_and_thinking_the_slower_counts(job, options, pacing, iops, said):
    imported = read_fio(job(f"[a]\nrw=read\nsize=1g\nbs=4k\n{options}\n"))
    workload = imported.table["workload"]
    assert (workload["pacing"]["policy"], workload["source"]["arrivals"]["iops"]) == (pacing, iops)
    assert sum(note.startswith(f"[a] {said}") for note in imported.notes) == 1
