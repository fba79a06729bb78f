"""fio job files, as fio's manual describes them ("Job file format", "Job file parameters")."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

from flashkeel._core import InputError
from flashkeel.imports.document import Imported, in_run
from flashkeel.imports.fio_options import (
    BEGINNINGS,
    KNOWN,
    Job,
    by_direction,
    groups_of,
    left_out,
    read_jobs,
    shared_files,
)
from flashkeel.parsing import read_document

_OPERATIONS = {
    "read": ("sequential", 1.0, 0.0),
    "write": ("sequential", 0.0, 0.0),
    "trim": ("sequential", 0.0, 1.0),
    "randread": ("uniform", 1.0, 0.0),
    "randwrite": ("uniform", 0.0, 0.0),
    "randtrim": ("uniform", 0.0, 1.0),
    "rw": ("sequential", 0.5, 0.0),
    "readwrite": ("sequential", 0.5, 0.0),
    "randrw": ("uniform", 0.5, 0.0),
}
"""Pattern, share of reads and share of trims of each `rw`."""

_ORIGINS = {
    "source.block_sizes": ("bssplit", "bsrange", "bs"),
    "source.write_block_sizes": ("bssplit", "bsrange", "bs"),
    "source.region_size": ("size",),
    "source.region_offset": ("offset",),
    "source.pattern": ("random_distribution", "rw"),
    "source.arrivals": ("rate_iops", "rate", "thinktime"),
    "source.read_fraction": ("rwmixread", "rwmixwrite", "rw"),
    "pacing": ("iodepth_low", "iodepth"),
    "source.path": ("read_iolog",),
    "requests": ("number_ios", "io_size", "size"),
    "duration": ("runtime",),
    "warm_up": ("ramp_time",),
}
"""The options of which a key of a workload is made, the first that is given."""
_SYNCHRONOUS = {
    *("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice", "mtd"),
    *("pmemblk", "dev-dax", "libpmem"),
}
"""Engines that do one request at a time, whatever `iodepth` says (FIO_SYNCIO in fio's engines)."""
_REPLAYED = {
    *("read_iolog", "replay_no_stall", "runtime", "ramp_time", "iodepth", "iodepth_low"),
    *("ioengine", "direct", "buffered", "numjobs", "thinktime", "randseed", "description", "name"),
    *("stonewall", "wait_for_previous", "sync"),
}
"""What counts of a job that replays a log, or is noted on its own."""
_BLOCK = "4096"
"""The size of requests where nothing says it."""
_MOST_SIZES = 64
"""Sizes that a range is made of at most."""
_MOST_JOBS = 1024
"""Jobs that run at the same time at most: a stack has no more tenants."""
_MOST_NAMES = 3
"""Jobs that a run is called after at most."""


def read_fio(path: Path) -> Imported:
    """Return the experiment that a fio job file asks for; InputError for what is wrong in it."""
    try:
        text = read_document(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    jobs = read_jobs(path, text)
    notes: list[str] = []
    table: dict[str, Any] = {"title": f"fio job file {path.name}"}
    places: dict[str, str] = {}
    seeds = [job for job in jobs if job.get("randseed")]
    if seeds:
        table["seed"] = seeds[0].number("randseed", 0)
        places["seed"] = seeds[0].options["randseed"][1]
    groups = groups_of(jobs)
    asked = [_together(group, notes) for group in groups]
    if len(groups) == 1:
        table |= asked[0][0]
        places |= asked[0][1]
    else:
        table["runs"] = []
        for group, (what, where) in zip(groups, asked, strict=True):
            taken = {it["name"] for it in table["runs"]}
            name = _free(_called(group), taken)
            table["runs"].append({"name": name, "set": what})
            places |= {in_run(name, key): place for key, place in where.items()}
        notes.append(
            "jobs that fio begins when those before have ended are a run of their own, on a drive "
            "in the state in which the first one found it"
        )
    notes += left_out(jobs)
    notes.append("fio names no drive: it is the default device, and device.preset chooses another")
    return Imported(f"the fio job file {path.name}", table, list(dict.fromkeys(notes)), places)


def _called(group: list[Job]) -> str:
    """Return a name for jobs that run at the same time."""
    names = [job.name for job in group]
    return "+".join(names) if len(names) <= _MOST_NAMES else f"{names[0]}+{len(names) - 1} others"


def _free(name: str, taken: set[str]) -> str:
    """Return `name`, numbered where others have it: several of one name are several."""
    names = (f"{name}-{n}" if n > 1 else name for n in itertools.count(1))
    return next(it for it in names if it not in taken)


def _together(jobs: list[Job], notes: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what jobs ask that run at the same time, and the places of what is in it."""
    tenants: list[dict[str, Any]] = []
    asked: list[Job] = []
    for job in jobs:
        copies = job.number("numjobs", 1)
        if copies == 0:
            raise job.refuse("numjobs", "a job runs at least once")
        if len(tenants) + copies > _MOST_JOBS:
            raise job.refuse("numjobs", f"at most {_MOST_JOBS} jobs run at the same time")
        for copy in range(copies):
            name = job.name if copies == 1 else f"{job.name}-{copy + 1}"
            name = _free(name, {it["name"] for it in tenants})
            tenants.append({"name": name, "workload": _workload(job, notes)})
            asked.append(job)
    table: dict[str, Any]
    if len(tenants) == 1:
        table = {"workload": tenants[0]["workload"]}
    else:
        depth = sum(it["workload"]["pacing"].get("depth", 32) for it in tenants)
        table = {"stack": {"depth": depth, "tenants": tenants}}
        notes.append("each job has a volume of its own on the drive, and all of a run together")
        notes += shared_files(asked)
    places: dict[str, str] = {}
    for number, job in enumerate(asked):
        prefix = "" if len(asked) == 1 else f"stack.tenants.{number}."
        places |= {f"{prefix}{key}": job.place for key in ("workload", "name")}
        for key, options in _ORIGINS.items():
            option = next((it for it in options if it in job.options), None)
            if option:
                place = f"{job.options[option][1]}: {option}"
                places[f"{prefix}workload.{key}"] = place
    return table, places


def _workload(job: Job, notes: list[str]) -> dict[str, Any]:
    """Return what a job asks."""
    if (count := job.files()) > 1:
        notes.append(f"[{job.name}] its {count} files are one region of one drive here")
    notes += [
        f"[{job.name}] {key} has no equal: it begins with the others of its run"
        for key in job.options
        if key in BEGINNINGS
    ]
    if not _is_direct(job):
        notes.append(
            f"[{job.name}] fio goes through the page cache unless direct=1 is set; there is none "
            "here, and every request goes to the drive"
        )
    forced: dict[str, Any] = {"fua": True} if _is_forced(job, notes) else {}
    if path := job.get("read_iolog"):
        return forced | _replay(job, path, notes)
    source = _source(job, notes)
    pacing = _pacing(job, source, notes)
    workload = _times(job)
    is_timed = job.is_set("time_based")
    if is_timed and "duration" not in workload:
        raise job.refuse("time_based", "runtime says for how long, and is missing")
    # A job that is timed begins anew until its time is over.
    requests = None if is_timed else _requests(job, _extent(job), _mean_bytes(source))
    if requests:
        workload["requests"] = requests
        if job.number("number_ios", 0) and "warm_up" in workload:
            notes.append(
                f"[{job.name}] number_ios: fio counts from the end of ramp_time on, and here those "
                "before it count, too"
            )
    elif "duration" not in workload:
        where = f"{job.get('size')} says where" if job.get("size") else "missing"
        ends = "number_ios, io_size, or runtime with time_based says how long"
        raise job.refuse("size", f"{where}; {ends if job.get('size') else f'size, {ends}'}")
    return forced | workload | {"pacing": pacing, "source": source}


def _is_forced(job: Job, notes: list[str]) -> bool:
    """Return whether each write of a job is acknowledged only once it is durable."""
    value = (job.get("sync") or "none").lower()
    if value not in ("none", "0", "sync", "1", "dsync"):
        raise job.refuse("sync", f"{value!r} is not one of none, 0, sync, 1, dsync")
    if value in ("none", "0"):
        return False
    notes.append(
        f"[{job.name}] sync: every write has FUA, which makes a difference where the drive's "
        "buffer is volatile: device.buffer.volatile = true"
    )
    return True


def _is_direct(job: Job) -> bool:
    """Return whether a job passes the page cache by: of both options the last one counts."""
    key = ([it for it in job.options if it in ("direct", "buffered")] or ["direct"])[-1]
    return job.is_set(key) == (key == "direct")


def _requests(job: Job, extent: int | None, each: float) -> int | None:
    """Return how many requests of `each` bytes a job makes; None where nothing says so.

    They end with the first of `number_ios`, where 0 is none, and `io_size` or the size of the
    files. `loops` does all that again, but for an `io_size` beyond theirs, which has gone over
    them already.
    """
    limit = job.bytes("io_size")
    ends = [max(1, int(amount / each)) for amount in (limit or extent,) if amount]
    ends += [count] if (count := job.number("number_ios", 0)) else []
    is_over = limit is not None and extent is not None and limit > extent
    return min(ends) * (1 if is_over else max(1, job.number("loops", 1))) if ends else None


def _region(job: Job) -> int | None:
    """Return the bytes in which a job's requests lie; None for all the drive has."""
    size = None if job.get("size") == "100%" else job.bytes("size")
    # Files may be larger than what is done of them. `filesize` and `offset` are of each.
    file = job.bytes("filesize")
    return size if file is None else job.files() * max(0, file - (job.bytes("offset") or 0))


def _extent(job: Job) -> int | None:
    """Return the bytes that a job goes through once; None where nothing says so."""
    given = [_region(job), None if job.get("size") == "100%" else job.bytes("size")]
    return min((it for it in given if it is not None), default=None)


def _replay(job: Job, path: str, notes: list[str]) -> dict[str, Any]:
    """Return what a job asks that does what a log says.

    fio 3.33 does each of its requests once, until `runtime` is over, whatever else the job has.
    """
    ignored = [key for key in job.options if key in KNOWN - _REPLAYED]
    if ignored:
        notes.append(f"[{job.name}] read_iolog says all, and not {', '.join(ignored)}")
    if job.get("thinktime"):
        notes.append(f"[{job.name}] thinktime has no equal with read_iolog, and is left out")
    if job.is_set("replay_no_stall"):
        pacing = _depth(job, notes)
    else:
        pacing = {"policy": "open"}
        notes.append(
            f"[{job.name}] read_iolog: requests come at the times of the log, whatever is "
            "outstanding: iodepth does not limit them"
        )
    source = {"policy": "trace", "path": path}
    return _times(job) | {"pacing": pacing, "source": source}


def _times(job: Job) -> dict[str, Any]:
    """Return what a job's `ramp_time` and `runtime` become."""
    ramp, runtime = job.span_ns("ramp_time", "s"), job.span_ns("runtime", "s")
    warm_up = {"warm_up": f"{ramp}ns"} if ramp else {}
    return warm_up | ({"duration": f"{runtime + (ramp or 0)}ns"} if runtime else {})


def _source(job: Job, notes: list[str]) -> dict[str, Any]:
    """Return what is asked, and where."""
    operation = (job.get("rw") or "read").split(":")[0].lower()
    if operation not in _OPERATIONS:
        raise job.refuse("rw", f"{operation!r} is not one of {', '.join(_OPERATIONS)}")
    if ":" in (job.get("rw") or ""):
        notes.append(f"[{job.name}] rw={job.get('rw')}: the number behind the colon is left out")
    pattern, reads, trims = _OPERATIONS[operation]
    if reads == 0.5:
        # Of both the last one counts.
        key = ([it for it in job.options if it.startswith("rwmix")] or ["rwmixread"])[-1]
        share = job.number(key, 50)
        if share > 100:
            raise job.refuse(key, f"{share} is more than 100 %")
        reads = (share if key == "rwmixread" else 100 - share) / 100
        if pattern == "sequential":
            notes.append(f"[{job.name}] rw={operation}: reads and writes are one sequence, not two")
    source: dict[str, Any] = {
        "policy": "synthetic",
        "read_fraction": reads,
        "block_sizes": _block_sizes(job, _directions(job)[0], notes),
        "pattern": _pattern(job, pattern, notes),
    }
    if len(_directions(job)) > 1:
        writes = _block_sizes(job, 1, notes)
        if writes != source["block_sizes"]:
            source["write_block_sizes"] = writes
    if trims:
        source["trim_fraction"] = trims
    offset = job.bytes("offset")
    if offset:
        source["region_offset"] = f"{offset}B"
    region = _region(job)
    if region is not None:
        # What is left behind the last whole request is not asked for.
        sizes = source["block_sizes"] + source.get("write_block_sizes", [])
        block = min(size for size, _ in _weights(sizes))
        source["region_size"] = f"{max(block, region // block * block)}B"
    return source


def _pattern(job: Job, pattern: str, notes: list[str]) -> dict[str, Any]:
    distribution = job.get("random_distribution")
    if distribution is None or pattern != "uniform" or distribution == "random":
        is_mapped = not job.is_set("norandommap") or job.get("random_generator") == "lfsr"
        if pattern == "uniform" and is_mapped:
            notes.append(
                f"[{job.name}] rw={job.get('rw')}: fio comes to each block once before any again; "
                "here each request goes to any of them, as with norandommap in fio"
            )
        return {"policy": pattern}
    name, _, parameter = distribution.partition(":")
    if name != "zipf":
        notes.append(
            f"[{job.name}] random_distribution={distribution} has no equal: all places alike"
        )
        return {"policy": pattern}
    try:
        theta = float(parameter.split(":")[0] or 1.1)
    except ValueError:
        raise job.refuse("random_distribution", f"{parameter!r} is not a number") from None
    return {"policy": "zipf", "theta": theta}


def _directions(job: Job) -> list[int]:
    """Return which of the values for reads, writes and trims count."""
    _, reads, trims = _OPERATIONS[(job.get("rw") or "read").split(":")[0].lower()]
    return [2] if trims else [0] if reads == 1.0 else [0, 1] if reads else [1]


def _block_sizes(job: Job, direction: int, notes: list[str]) -> list[str]:
    """Return the sizes of reads (0), writes (1) or trims (2)."""

    def own(key: str, text: str) -> str:
        every = by_direction(text)
        return every[direction] or (_BLOCK if key == "bs" else every[0])

    split = job.get("bssplit")
    if split:
        parts = [part.partition("/") for part in own("bssplit", split).split(":")]
        shares = [_share(job, split, weight, notes) for _, _, weight in parts]
        given = [share for share in shares if share is not None]
        rest = max(0, 100 - sum(given)) // max(1, len(shares) - len(given))
        weights = [rest if share is None else share for share in shares]
        # fio goes through them by their shares, and the largest has what is left.
        *smaller, largest = sorted(range(len(parts)), key=weights.__getitem__)
        left = 100
        for number in smaller:
            weights[number] = min(weights[number], left)
            left -= weights[number]
        weights[largest] = left
        sizes = [job.size("bssplit", size) for size, _, _ in parts]
        return [f"{size}B/{weight}" for size, weight in zip(sizes, weights, strict=True) if weight]
    spread = job.get("bsrange")
    if spread:
        low, _, high = own("bsrange", spread).partition("-")
        least, most = job.size("bsrange", low), job.size("bsrange", high or low)
        if least > most:
            raise job.refuse("bsrange", f"{spread} ends before it begins")
        count = most // least
        step = -(-count // _MOST_SIZES)
        if step > 1:
            notes.append(f"[{job.name}] bsrange={spread}: of {count} sizes every {step}th is taken")
        return [f"{least * n}B" for n in range(step if step > 1 else 1, count + 1, step)]
    return [f"{job.size('bs', own('bs', job.get('bs') or _BLOCK))}B"]


def _share(job: Job, split: str, text: str, notes: list[str]) -> int | None:
    """Return a percentage as fio reads it: whole, and where it is 0 that of all that is left."""
    match = re.fullmatch(r"(\d*)(\.\d*)?", text.strip())
    if match is None:
        raise job.refuse("bssplit", f"{text!r} is not a percentage")
    whole = min(int(match[1] or 0), 100)
    if match[2]:
        notes.append(
            f"[{job.name}] bssplit={split}: percentages are whole to fio: {text} is {whole}"
        )
    return whole or None


def _pacing(job: Job, source: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Return when requests are submitted; a rate or a time to think is put into `source`."""
    closed = _depth(job, notes)
    think = job.span_ns("thinktime", "us")
    iops = _rates(job, "rate_iops", source, notes) or _rates(job, "rate", source, notes)
    if think and iops and 1e9 / sum(iops) > think:
        # As fio keeps to the rate, whatever it has to catch up with.
        notes.append(f"[{job.name}] thinktime is shorter than the rate's gaps, and is left out")
        think = None
    if think:
        rate = next((key for key in ("rate_iops", "rate") if iops and job.get(key)), None)
        depth = "iodepth" if closed["depth"] > 1 else None
        for key in filter(None, (rate, depth)):
            notes.append(
                f"[{job.name}] {key} is left out: thinktime is taken, with one request at a time"
            )
        source["arrivals"] = {"policy": "constant", "iops": 1e9 / think}
        return {"policy": "think"}
    if iops:
        process = "poisson" if job.get("rate_process") == "poisson" else "constant"
        notes.append(
            f"[{job.name}] a rate is kept whatever is outstanding: iodepth does not limit it"
        )
        source["arrivals"] = {"policy": process, "iops": float(sum(iops))}
        if len(iops) > 1:
            # Each comes at its own rate, whatever the mix would be without.
            source["read_fraction"] = iops[0] / sum(iops)
        return {"policy": "open"}
    return closed


def _depth(job: Job, notes: list[str]) -> dict[str, Any]:
    """Return the pacing of who has so many requests outstanding."""
    depth = job.number("iodepth", 1)
    if depth == 0:
        raise job.refuse("iodepth", "a queue depth is at least 1")
    engine = job.get("ioengine") or "psync"
    if depth > 1 and engine in _SYNCHRONOUS:
        named = (
            f"ioengine={engine}"
            if job.get("ioengine")
            else "psync, fio's ioengine if none is given,"
        )
        notes.append(f"[{job.name}] iodepth={depth}: {named} has one request at a time, as here")
        depth = 1
    pacing: dict[str, Any] = {"policy": "closed", "depth": depth}
    low = job.number("iodepth_low", 0) or depth
    return pacing | ({"low": low} if low < depth else {})


def _rates(job: Job, key: str, source: dict[str, Any], notes: list[str]) -> list[float]:
    """Return the requests a second of each operation.

    Empty where there are none. A single value is that of reads and of writes, as for fio.
    """
    text = job.get(key)
    if text is None:
        return []
    every = by_direction(text)
    # 0 is no rate to fio, as nothing is.
    used = [it for it in _directions(job) if every[it].strip("0")]
    if key == "rate_iops" and not all(every[it].isdecimal() for it in used):
        raise job.refuse(key, f"{text!r} is not a whole number")
    sizes = {it: _mean(_sizes_of(source, it)) for it in used}
    rates = [
        int(every[it]) if key == "rate_iops" else job.size(key, every[it]) / sizes[it]
        for it in used
    ]
    if rates and len(rates) < len(_directions(job)):
        reads = float(source["read_fraction"])
        if 0 < reads < 1:
            kept, free = ("reads", "writes") if used == [0] else ("writes", "reads")
            raise job.refuse(
                key,
                f"{text!r} limits {kept} alone, and fio does {free} as fast as iodepth lets it "
                f"meanwhile, whatever the mix; give {free} a rate, too, or make each a job",
            )
        # The mix is of one alone.
        rates = rates if (reads > 0) == (used == [0]) else []
    if len(rates) > 1:
        notes.append(
            f"[{job.name}] {key}={text}: reads and writes come at rates of their own, which are "
            "their mix, too"
        )
    return [float(rate) for rate in rates]


def _weights(sizes: list[str]) -> list[tuple[int, int]]:
    """Return sizes of requests, each with its weight."""
    pairs = [text.partition("/") for text in sizes]
    return [(int(size.removesuffix("B")), int(weight or 1)) for size, _, weight in pairs]


def _sizes_of(source: dict[str, Any], direction: int) -> list[str]:
    """Return the sizes of reads (0), writes (1) or trims (2)."""
    sizes: list[str] = source["block_sizes"]
    return source.get("write_block_sizes", sizes) if direction == 1 else sizes


def _mean(sizes: list[str]) -> float:
    weights = _weights(sizes)
    return sum(size * weight for size, weight in weights) / sum(weight for _, weight in weights)


def _mean_bytes(source: dict[str, Any]) -> float:
    """Return the mean size of a job's requests."""
    share = float(source["read_fraction"])
    return share * _mean(_sizes_of(source, 0)) + (1 - share) * _mean(_sizes_of(source, 1))
