"""fio job files become experiments."""

import pytest
from flashkeel import Experiment, InputError
from flashkeel.imports import read_fio

JOBS = """\
; comment
[global]
ioengine=libaio
direct=1
size=64m
runtime=2

[readers]
rw=randread
bssplit=4k/75:64k/25
iodepth=8
numjobs=2

[writers]
rw=randrw
rwmixread=20
bs=16k
iodepth=4
iodepth_low=1
random_distribution=zipf:0.9
fsync=10
"""


def only(path):
    return read_fio(path).table["workload"]


def test_jobs_become_tenants(job):
    imported = read_fio(job(JOBS))
    tenants = imported.table["stack"]["tenants"]
    assert [it["name"] for it in tenants] == ["readers-1", "readers-2", "writers"]
    assert imported.table["stack"]["depth"] == 20
    readers, _, writers = (it["workload"] for it in tenants)
    assert readers["source"]["block_sizes"] == ["4096B/75", "65536B/25"]
    assert readers["source"]["read_fraction"] == 1.0
    # 64 MiB of 19 KiB on average.
    assert readers["requests"] == 3449
    assert (readers["duration"], readers["pacing"]["depth"]) == ("2000000000ns", 8)
    assert writers["source"]["pattern"] == {"policy": "zipf", "theta": 0.9}
    assert writers["source"]["read_fraction"] == 0.2
    assert writers["pacing"] == {"policy": "closed", "depth": 4, "low": 1}
    assert "[writers]: left out, as there is no equal: fsync" in imported.notes
    assert not any("ioengine" in note for note in imported.notes)


@pytest.mark.parametrize("value", ["1", "sync", "dsync"])
def test_synchronous_writes_have_fua(job, value):
    text = "[a]\nrw=randwrite\nsize=1m\nsync="
    imported = read_fio(job(text + value))
    assert imported.table["workload"]["fua"] is True
    assert any("[a] sync: every write has FUA" in note for note in imported.notes)
    assert not any("no equal" in note for note in imported.notes)
    (plan,) = Experiment(imported.to_toml(), "job.fio").plans()
    assert plan["config"]["workload"]["fua"] is True
    for none in ("0", "none"):
        assert "fua" not in read_fio(job(text + none)).table["workload"]
    with pytest.raises(InputError, match=r"job.fio:4: sync: 'x' is not one of none, 0, sync"):
        read_fio(job(text + "x"))


def test_what_is_made_is_an_experiment(job):
    plans = Experiment(read_fio(job(JOBS)).to_toml(), "job.fio").plans()
    tenants = plans[0]["config"]["stack"]["tenants"]
    assert [it["workload"]["requests"] for it in tenants] == [3449, 3449, 4096]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("rw=write\nbs=128k\nsize=1g", {"requests": 8192}),
        ("rw=read\nsize=1g\nruntime=10\ntime_based", {"duration": "10000000000ns"}),
        ("rw=read\nruntime=1m\nramp_time=5\ntime_based", {"warm_up": "5000000000ns"}),
        ("rw=read\nnumber_ios=7\nsize=1g", {"requests": 7}),
        ("rw=read\nsize=1g\nio_size=2g\nbs=1m", {"requests": 2048}),
        ("rw=read\nsize=1g\nloops=3\nbs=1m", {"requests": 3072}),
        ("rw=read\nsize=1g\nio_size=2g\nloops=3\nbs=1m", {"requests": 2048}),
        ("rw=read\nsize=1g\nio_size=512m\nloops=3\nbs=1m", {"requests": 1536}),
        ("rw=read\nsize=1g\nio_limit=512m\nbs=1m", {"requests": 512}),
        ("rw=read\nsize=1m\nnumber_ios=1000", {"requests": 256}),
        ("rw=read\nsize=1m\nnumber_ios=0", {"requests": 256}),
        (
            "rw=read\nsize=1m\niodepth=8\nioengine=libaio\niodepth_low=0",
            {"pacing": {"policy": "closed", "depth": 8}},
        ),
        ("rw=read\nsize=1m\nnumber_ios=100\nloops=4", {"requests": 400}),
        ("rw=read\nsize=100%\nnumber_ios=100", {"requests": 100}),
        ("rw=read\nsize=8m\nfilesize=4m", {"requests": 1024}),
        ("rw=read\nsize=1000k\nbs=64k", {"requests": 15}),
        ("rw=read\nruntime=500msec\ntime_based", {"duration": "500000000ns"}),
        (
            "rw=read\nsize=1g\nioengine=libaio\niodepth=32",
            {"pacing": {"policy": "closed", "depth": 32}},
        ),
        ("rw=read\nsize=1g\nrate_iops=500", {"pacing": {"policy": "open"}}),
        ("rw=read\nsize=1g\nthinktime=200", {"pacing": {"policy": "think"}}),
    ],
)
def test_how_long_and_when(job, options, expected):
    workload = only(job(f"[a]\n{options}\n"))
    assert {key: workload[key] for key in expected} == expected


def test_synchronous_engines_have_one_request_at_a_time(job):
    def made(options):
        imported = read_fio(job(f"[a]\nrw=read\nsize=1m\ndirect=1\niodepth=32\n{options}\n"))
        return imported.table["workload"]["pacing"]["depth"], imported.notes[:-1]

    for engine in ("psync", "sync", "vsync", "pvsync", "pvsync2", "mmap"):
        note = f"[a] iodepth=32: ioengine={engine} has one request at a time, as here"
        assert made(f"ioengine={engine}") == (1, [note])
    # Of which fio takes one where none is given.
    depth, notes = made("")
    assert depth == 1
    assert "psync, fio's ioengine if none is given, has one request" in notes[0]
    for engine in ("libaio", "io_uring", "posixaio"):
        assert made(f"ioengine={engine}") == (32, [])
    assert made("iodepth=1") == (1, [])


def test_that_random_places_come_again_is_noted(job):
    def is_noted(options):
        notes = read_fio(job(f"[a]\nsize=1m\n{options}\n")).notes
        return any("fio comes to each block once" in note for note in notes)

    assert is_noted("rw=randread")
    assert is_noted("rw=randrw\nnorandommap=0\nrandom_distribution=random")
    assert is_noted("rw=randread\nnorandommap\nrandom_generator=lfsr")
    assert not is_noted("rw=randwrite\nnorandommap")
    assert not is_noted("rw=write")
    # fio has no map then.
    assert not is_noted("rw=randread\nrandom_distribution=zipf:1.2")


def test_the_page_cache_is_none_of_the_drive(job):
    def is_noted(options):
        notes = read_fio(job(f"[a]\nrw=read\nsize=1m\n{options}\n")).notes
        return any("[a] fio goes through the page cache" in note for note in notes)

    assert [is_noted(it) for it in ("", "direct=0", "buffered=1", "direct=1\nbuffered=1")] == [
        True
    ] * 4
    assert not any(is_noted(it) for it in ("direct=1", "buffered=0", "buffered=1\ndirect"))


def test_what_is_timed_ends_by_time_alone(job):
    workload = only(job("[a]\nrw=read\nsize=1g\nnumber_ios=7\ntime_based\nruntime=1\n"))
    assert "requests" not in workload


def test_requests_before_the_end_of_a_ramp_are_noted(job):
    def is_noted(options):
        notes = read_fio(job(f"[a]\nrw=read\nsize=1m\n{options}\n")).notes
        return any("[a] number_ios: fio counts from the end of ramp_time on" in it for it in notes)

    assert is_noted("number_ios=9\nramp_time=1")
    assert not is_noted("number_ios=9")
    # An io_size counts what is done before, for fio too.
    assert not is_noted("io_size=64k\nramp_time=1")
    assert not is_noted("number_ios=9\nramp_time=1\nruntime=5\ntime_based")


def test_sizes_are_as_for_fio(job):
    def size(text, *options):
        source = only(job("\n".join(["[a]", "rw=read", f"size={text}", *options, ""])))["source"]
        return int(source["region_size"].removesuffix("B"))

    for text in ("4m", "4mb", "4mB", "4M", "4mi", "4096k", "0x400000", "4194304b"):
        assert size(text) == 4 << 20, text
    # fio 3.33 takes this for powers of 1000, unless those are what it takes 4m for.
    assert size("4MiB") == 4_000_000 // 4096 * 4096
    assert size("4MiB", "kb_base=1000") == 4 << 20
    assert size("4m", "kb_base=1000") == 4_000_000 // 4096 * 4096
    # What is left behind the last whole request is not asked for.
    assert size("1m", "bs=48k") == 21 * 48 << 10
    assert size("8m", "filesize=64m", "offset=16m") == 48 << 20
    whole = only(job("[a]\nrw=read\nsize=100%\nruntime=1\ntime_based\n"))
    assert "region_size" not in whole["source"]


def test_what_is_said_last_counts(job):
    def reads(*options):
        source = only(job("\n".join(["[a]", "rw=randrw", "size=1m", *options, ""])))["source"]
        return source["read_fraction"]

    assert reads("rwmixread=10", "rwmixwrite=70") == 0.3
    assert reads("rwmixwrite=70", "rwmixread=10") == 0.1
    path = job("[global]\nrwmixread=10\nrwmixwrite=70\nsize=1m\n[a]\nrw=randrw\nrwmixread=20\n")
    assert only(path)["source"]["read_fraction"] == 0.2


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ("4k/50:16k/50", [50, 50]),
        # The largest share has what is left, as in fio 3.33.
        ("4k/80:16k/30", [70, 30]),
        ("4k/10:16k/30", [10, 90]),
        ("4k/80:16k/30:64k/50", [20, 30, 50]),
        ("4k/20:16k/10:64k", [20, 10, 70]),
        ("4k:16k:64k", [33, 33, 34]),
        # A part of a percent is none to fio, and 0 is as if nothing were given.
        ("4k/33.3:64k/66.7", [33, 67]),
        ("4k/0:64k/40", [60, 40]),
        ("4k/0:64k/100", [100]),
        ("4k/150:64k/10", [90, 10]),
    ],
)
def test_shares_of_sizes_are_hundred(job, split, expected):
    source = only(job(f"[a]\nrw=randread\nsize=1g\nbssplit={split}\n"))["source"]
    assert [int(it.partition("/")[2]) for it in source["block_sizes"]] == expected


def test_parts_of_percents_are_noted(job):
    notes = read_fio(job("[a]\nrw=read\nsize=1g\nbssplit=4k/33.3:64k\n")).notes
    assert "[a] bssplit=4k/33.3:64k: percentages are whole to fio: 33.3 is 33" in notes


def test_what_no_job_here_does_is_noted(job):
    notes = read_fio(job("[a]\nrw=rw\nsize=1m\n[b]\nstartdelay=1\nrw=read\nsize=1m\n")).notes
    assert "[a] rw=rw: reads and writes are one sequence, not two" in notes
    assert "[b] startdelay has no equal: it begins with the others of its run" in notes


def test_options_without_an_equal_are_one_note_for_jobs_with_the_same(job):
    unlike = (
        "[a]\nfsync=1\nrw=read\nsize=1m\nverify=md5\n[b]\nrw=read\nsize=1m\n[c]\nrw=read\nsize=1m\n"
    )
    left = ": left out, as there is no equal: "
    notes = read_fio(job(unlike + "verify=md5\nfsync=8\n")).notes
    assert [note for note in notes if left in note] == [f"[a], [c]{left}fsync, verify"]
    alike = "[global]\nverify=md5\nfsync=1\nrw=read\nsize=1m\n[a]\n[b]\n[b]\n"
    notes = read_fio(job(alike)).notes
    assert [note for note in notes if left in note] == [f"all jobs{left}fsync, verify"]


def test_behind_a_stonewall_is_a_run_of_its_own(job):
    text = (
        "[global]\nsize=1m\nrandseed=9\n[fill]\nrw=write\nstonewall\n[read]\nrw=randread\nstonewall\n"
        "[beside]\nrw=randwrite\nnumjobs=2\n[read]\nrw=read\nwait_for_previous=1\n"
        "[read]\nrw=read\nstonewall\n[last]\nrw=trim\nstonewall=0\n"
    )
    imported = read_fio(job(text))
    assert imported.table["seed"] == 9
    runs = {run["name"]: run["set"] for run in imported.table["runs"]}
    assert list(runs) == ["fill", "read+beside", "read", "read+last"]
    names = [it["name"] for it in runs["read+beside"]["stack"]["tenants"]]
    assert names == ["read", "beside-1", "beside-2"]
    assert any("are a run of their own" in note for note in imported.notes)
    plans = imported.experiment("job.fio").plans()
    assert [plan["name"] for plan in plans] == list(runs)
    assert plans[0]["config"]["workload"]["source"]["read_fraction"] == 0.0
    assert [len(plan["config"].get("stack", {}).get("tenants", [])) for plan in plans] == [
        0,
        3,
        0,
        2,
    ]


def test_all_jobs_may_wait_for_those_before(job):
    sections = "".join(f"[{name}]\nrw=read\n" for name in "abcd")
    table = read_fio(job(f"[global]\nsize=1m\nstonewall\n{sections}")).table
    assert [run["name"] for run in table["runs"]] == list("abcd")
    (run,) = [read_fio(job(f"[global]\nsize=1m\n{sections}[e]\nrw=read\n")).table["stack"]]
    assert len(run["tenants"]) == 5
    many = read_fio(job(f"[global]\nsize=1m\n{sections}[e]\nstonewall\nrw=read\n")).table
    assert [run["name"] for run in many["runs"]] == ["a+3 others", "e"]


def test_a_log_is_replayed(job):
    workload = only(job("[a]\nread_iolog=a.log\nrw=randread\niodepth=4\n"))
    assert workload == {
        "pacing": {"policy": "open"},
        "source": {"policy": "trace", "path": "a.log"},
    }
    eager = only(job("[a]\nread_iolog=a.log\nreplay_no_stall=1\nioengine=libaio\niodepth=4\n"))
    assert eager["pacing"] == {"policy": "closed", "depth": 4}
    notes = read_fio(job("[a]\nread_iolog=a.log\nrw=randread\nsize=1g\n")).notes
    assert "[a] read_iolog says all, and not rw, size" in notes


def test_a_replay_has_its_times_and_notes_the_rest(job):
    text = (
        "[a]\nread_iolog=a.log\nruntime=60\nramp_time=5\nrate_iops=100\nloops=3\nthinktime=5\n"
        "number_ios=9\nio_size=1m\noffset=4k\ntime_based\nrwmixread=3\nnumjobs=1\nrandseed=2\n"
    )
    imported = read_fio(job(text))
    workload = imported.table["workload"]
    assert (workload["warm_up"], workload["duration"]) == ("5000000000ns", "65000000000ns")
    ignored = "rate_iops, loops, number_ios, io_size, offset, time_based, rwmixread"
    assert f"[a] read_iolog says all, and not {ignored}" in imported.notes
    assert "[a] thinktime has no equal with read_iolog, and is left out" in imported.notes
    assert any("iodepth does not limit them" in note for note in imported.notes)


def test_sections_are_global_as_to_fio(job):
    text = "[globals]\nsize=1m\n[a]\n[global-2]\nbs=8k\n[b]\n[Global]\n"
    tenants = read_fio(job(text)).table["stack"]["tenants"]
    found = [(it["name"], it["workload"]["requests"]) for it in tenants]
    assert found == [("a", 256), ("b", 128), ("Global", 128)]


def test_comments_marks_and_names_are_as_for_fio(job):
    path = job("")
    text = "[a]\nrw=read ; c\nbs=8k # c\nsize=1m\n[a]\nrw=write\nsize=1m\nfsync=1\nrate_min=1\n"
    path.write_text(text, encoding="utf-8-sig")
    tenants = read_fio(path).table["stack"]["tenants"]
    assert [it["name"] for it in tenants] == ["a", "a-2"]
    assert tenants[0]["workload"]["source"]["block_sizes"] == ["8192B"]


@pytest.mark.parametrize(
    "option",
    ["softrandommap=1", "sqthread_poll_cpu=3", "mem_align=4k", "iomem=malloc", "nr_files=2"],
)
def test_options_of_fio_whose_names_are_near_to_others_are_passed_over(job, option):
    notes = read_fio(job(f"[a]\nrw=read\nsize=1m\n{option}\n")).notes
    assert not any(option.partition("=")[0] in note for note in notes)


def test_more_jobs_than_run_together_are_refused_at_once(job):
    for numjobs in (1025, 2**63):
        path = job(f"[a]\nrw=read\nsize=1m\n[b]\nrw=read\nsize=1m\nnumjobs={numjobs}\n")
        with pytest.raises(InputError, match=":7: numjobs: at most 1024 jobs run at the same time"):
            read_fio(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a]\nrw=read\nbs=3000\nsize=1m\n", "job.fio:3: bs: "),
        ("[a]\nrw=randrw\nbs=4k,3000\nsize=1m\n", "job.fio:3: bs: "),
        ("[a]\nrw=read\nsize=900g\n", "job.fio:3: size: "),
        ("[a]\nrw=read\nsize=1m\n[b]\nrw=read\nsize=900g\n", "job.fio:6: size: "),
        ("[a]\nrw=read\nsize=1m\n[b]\nstonewall\nrw=read\nsize=900g\n", "job.fio:7: size: "),
    ],
)
def test_what_a_drive_refuses_has_the_line_of_the_job(job, text, expected):
    imported = read_fio(job(text))
    with pytest.raises(InputError) as refusal:
        imported.experiment("job.fio").set("seed", 3).plans()
    assert expected in str(refusal.value)


def test_a_range_of_sizes(job):
    sizes = only(job("[a]\nrw=randread\nsize=1g\nbsrange=4k-16k\n"))["source"]["block_sizes"]
    assert sizes == ["4096B", "8192B", "12288B", "16384B"]
    imported = read_fio(job("[a]\nrw=randread\nsize=1g\nbsrange=4k-1m\n"))
    sizes = imported.table["workload"]["source"]["block_sizes"]
    assert (len(sizes), sizes[-1]) == (64, "1048576B")
    assert any("every 4th is taken" in note for note in imported.notes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rw=read\n", "job.fio:1: rw stands before the first [job]"),
        ("[global]\nrw=read\n", "job.fio: no job in it"),
        ("[a]\nrw=raed\nsize=1g\n", "job.fio:2: rw: 'raed' is not one of read, write"),
        ("[a]\nrw=read\n", "job.fio:1: size: missing"),
        ("[a]\nrw=read\nsize=50%\n", "job.fio:3: size: '50%' is not a size; a share"),
        ("[a]\nrw=read\nsize=100%\n", "job.fio:3: size: 100% says where; number_ios, io_size"),
        (
            "[a]\nrw=read\nsize=1g\nbs=8KiB\n",
            "job.fio:4: bs: '8KiB' is 8000 bytes to fio; 8k is what it may mean",
        ),
        ("[a]\nrw=read\nsize=1g\nkb_base=7\n", "job.fio:4: kb_base: 7 is neither 1000 nor 1024"),
        ("[a]\nrw=read\nsize=1x\n", "job.fio:3: size: '1x' is not a size"),
        ("[a]\nrw=read\nsize=1g\niodepth=0\n", "job.fio:4: iodepth: a queue depth"),
        (
            "[a]\nrw=read\nsize=1g\nbssplit=4k/x:64k/60\n",
            "job.fio:4: bssplit: 'x' is not a percentage",
        ),
        ("[a]\nrw=read\nsize=${SIZE}\n", "job.fio:3: size: ${SIZE} has a variable"),
        ("[a]\ninclude other.fio\n", "job.fio:2: include other.fio"),
        ("[a]\nrw=read\nruntime=soon\n", "job.fio:3: runtime: 'soon' is not a time"),
        ("[a\n", "job.fio:1: '[a' is not the name of a job"),
        (
            "[a]\nrw=read\niodpeth=32\n",
            "job.fio:3: iodpeth: no option of fio; did you mean iodepth?",
        ),
    ],
)
def test_what_is_wrong_has_its_line(job, text, expected):
    with pytest.raises(InputError) as refusal:
        read_fio(job(text))
    assert expected in str(refusal.value)


@pytest.mark.parametrize(
    ("option", "count"),
    [
        ("filename=/dev/nvme0n1:/dev/nvme1n1", 2), ("nrfiles=4", 4),
        ("filename=/dev/disk/pci-0000\\:01", 0), ("filename=/dev/nvme0n1", 0), ("nrfiles=1", 0),
        ("filename=a:b\nnrfiles=4", 2), ("filename=a\nnrfiles=4", 0),
    ],
)  # fmt: skip
def test_several_files_of_a_job_are_one_region_and_noted(job, option, count):
    notes = read_fio(job(f"[j]\ndirect=1\nrw=randread\nsize=64m\n{option}\n")).notes
    said = f"[j] its {count} files are one region of one drive here"
    assert [note for note in notes if "files" in note] == ([said] if count else [])


def test_a_file_that_jobs_of_a_run_share_is_noted(job):
    head = "[global]\ndirect=1\nrw=randread\nsize=64m\n"
    one, two = "[a]\nfilename=/dev/nvme0n1\n", "[b]\nfilename=/dev/nvme0n1\n"
    said = "to fio 2 jobs share the addresses of /dev/nvme0n1; here each has its own"
    assert f"[a], [b]: {said}" in read_fio(job(head + one + two)).notes
    assert f"[a]: {said}" in read_fio(job(f"{head}{one}numjobs=2\n")).notes
    assert not any("share" in it for it in read_fio(job(f"{head}{one}{two}stonewall\n")).notes)
