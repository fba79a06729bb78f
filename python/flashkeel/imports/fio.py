"""fio job files, as fio's manual describes them ("Job file format", "Job file parameters")."""

from __future__ import annotations

import difflib
import itertools
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from flashkeel._core import InputError
from flashkeel.imports.document import Imported

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

_ALIASES = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "nrfiles": "files",
    "seed": "randseed",
    "timeout": "runtime",
    "iodepth_batch_low": "iodepth_low",
}
_KNOWN = {
    *("rw", "bs", "bssplit", "bsrange", "iodepth", "iodepth_low", "rwmixread", "rwmixwrite"),
    *("size", "io_size", "offset", "runtime", "time_based", "ramp_time", "rate_iops", "rate"),
    *("rate_process", "random_distribution", "numjobs", "thinktime", "randseed", "number_ios"),
    *("description", "name", "loops", "read_iolog", "replay_no_stall"),
}
_IRRELEVANT = {
    *("ioengine", "direct", "buffered", "filename", "directory", "group_reporting", "invalidate"),
    *("norandommap", "randrepeat", "thread", "refill_buffers", "cpus_allowed", "gtod_reduce"),
    *("exitall", "allow_file_create", "fallocate", "create_on_open", "overwrite", "files"),
    *("write_lat_log", "write_bw_log", "write_iops_log", "log_avg_msec", "percentile_list"),
    *(
        "clat_percentiles",
        "lat_percentiles",
        "unified_rw_reporting",
        "disable_lat",
        "sqthread_poll",
    ),
    *("hipri", "fixedbufs", "registerfiles", "random_generator", "filesize", "disk_util"),
}
"""What says how fio works, or what it prints, and nothing of what a drive is asked."""

_OTHERS = {
    *("allrandrepeat", "disable_clat", "disable_slat", "iodepth_batch", "latency_percentile"),
    *("rate_iops_min", "slat_percentiles", "write_hist_log", "write_iolog"),
}
"""Options of fio without an equal whose names are near to those above (`fio --cmdhelp`)."""

_SIZES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_TIMES = {
    "d": 86400 * 10**9,
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 1000,
    "usec": 1000,
    "ns": 1,
}
_ORIGINS = {
    "source.block_sizes": ("bssplit", "bsrange", "bs"),
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
_MOST_SIZES = 64
"""Sizes that a range is made of at most."""


@dataclass(frozen=True)
class _Job:
    """The options of a job, each with the line it stands in."""

    name: str
    place: str
    options: dict[str, tuple[str, str]]

    def get(self, key: str) -> str | None:
        """Return the value of an option, if it is given."""
        found = self.options.get(key)
        return found[0] if found else None

    def refuse(self, key: str, why: str) -> InputError:
        """Return the error about an option, with its line."""
        place = self.options[key][1] if key in self.options else self.place
        return InputError(f"{place}: {key}: {why}")

    def number(self, key: str, default: int) -> int:
        """Return a whole number of at least 0."""
        text = self.get(key)
        if text is None:
            return default
        if not text.isdecimal():
            raise self.refuse(key, f"{text!r} is not a whole number")
        return int(text)

    def bytes(self, key: str) -> int | None:
        """Return a size; None where it is not given."""
        text = self.get(key)
        return None if text is None else _bytes(self, key, text)

    def span_ns(self, key: str, unit: str) -> int | None:
        """Return a time; a number alone has the unit `unit`."""
        text = self.get(key)
        if text is None:
            return None
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]*)", text.lower())
        if not match or (match[2] or unit) not in _TIMES:
            raise self.refuse(key, f"{text!r} is not a time")
        return int(Fraction(match[1]) * _TIMES[match[2] or unit])


def read_fio(path: Path) -> Imported:
    """Return the experiment that a fio job file asks for; InputError for what is wrong in it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text file: {error.reason}") from error
    jobs = _jobs(path, text)
    notes: list[str] = []
    tenants: list[dict[str, Any]] = []
    asked: list[_Job] = []
    for job in jobs:
        copies = job.number("numjobs", 1)
        if copies == 0:
            raise job.refuse("numjobs", "a job runs at least once")
        for copy in range(copies):
            name = job.name if copies == 1 else f"{job.name}-{copy + 1}"
            taken = {it["name"] for it in tenants}
            # Several jobs of one name are several jobs.
            free = (f"{name}-{n}" if n > 1 else name for n in itertools.count(1))
            name = next(it for it in free if it not in taken)
            tenants.append({"name": name, "workload": _workload(job, notes)})
            asked.append(job)
    table: dict[str, Any] = {"title": f"fio job file {path.name}"}
    seeds = [job.number("randseed", 0) for job in jobs if job.get("randseed")]
    if seeds:
        table["seed"] = seeds[0]
    notes.append("fio names no drive: it is the default device, and device.preset chooses another")
    if len(tenants) == 1:
        table["workload"] = tenants[0]["workload"]
    else:
        depth = sum(it["workload"]["pacing"].get("depth", 32) for it in tenants)
        table["stack"] = {"depth": depth, "tenants": tenants}
        notes.append("each job has a volume of its own on the drive, and all run together")
    places: dict[str, str] = {}
    for number, job in enumerate(asked):
        prefix = "" if len(asked) == 1 else f"stack.tenants.{number}."
        places |= {f"{prefix}{key}": job.place for key in ("workload", "name")}
        for key, options in _ORIGINS.items():
            option = next((it for it in options if it in job.options), None)
            if option:
                place = f"{job.options[option][1]}: {option}"
                places[f"{prefix}workload.{key}"] = place
    if seeds:
        places["seed"] = next(j.options["randseed"][1] for j in jobs if j.get("randseed"))
    return Imported(f"the fio job file {path.name}", table, list(dict.fromkeys(notes)), places)


def _jobs(path: Path, text: str) -> list[_Job]:
    """Return the jobs of a file, each with what `[global]` said before it."""
    shared: dict[str, tuple[str, str]] = {}
    jobs: list[_Job] = []
    current: dict[str, tuple[str, str]] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        place = f"{path}:{number}"
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            if not line.endswith("]") or not line[1:-1].strip():
                raise InputError(f"{place}: {line!r} is not the name of a job")
            name = line[1:-1].strip()
            current = shared if name == "global" else dict(shared)
            if name != "global":
                jobs.append(_Job(name, place, current))
            continue
        # What follows is a comment for fio too, wherever it stands.
        line = re.split("[#;]", line, maxsplit=1)[0]
        key, equals, value = (part.strip() for part in line.partition("="))
        if current is None:
            raise InputError(
                f"{place}: {key} stands before the first [job]; is this a fio job file?"
            )
        if key.split()[:1] == ["include"]:
            raise InputError(f"{place}: {key} is not read; put the options of that file here")
        if "$" in value:
            raise InputError(f"{place}: {key}: {value} has a variable; write what it stands for")
        key = _ALIASES.get(key, key)
        near = difflib.get_close_matches(key, _KNOWN | _IRRELEVANT, 1, 0.8)
        if near and key not in _KNOWN | _IRRELEVANT | _OTHERS:
            raise InputError(f"{place}: {key}: no option of fio; did you mean {near[0]}?")
        current[key] = (value if equals else "1", place)
    if not jobs:
        raise InputError(f"{path}: no job in it; a fio job file has sections such as [job1]")
    return jobs


def _workload(job: _Job, notes: list[str]) -> dict[str, Any]:
    """Return what a job asks."""
    for key in job.options:
        if key not in _KNOWN | _IRRELEVANT:
            notes.append(f"[{job.name}] {key} has no equal, and is left out")
    if path := job.get("read_iolog"):
        return _replay(job, path, notes)
    source = _source(job, notes)
    pacing = _pacing(job, source, notes)
    workload: dict[str, Any] = {}
    ramp = job.span_ns("ramp_time", "s")
    if ramp:
        workload["warm_up"] = f"{ramp}ns"
    runtime = job.span_ns("runtime", "s")
    is_timed = job.get("time_based") not in (None, "0")
    if is_timed and not runtime:
        raise job.refuse("time_based", "runtime says for how long, and is missing")
    if runtime:
        workload["duration"] = f"{runtime + (ramp or 0)}ns"
    # What fio does over and over is a file, and of io_size it does no more.
    amount = job.bytes("io_size") or (job.bytes("size") or 0) * max(1, job.number("loops", 1))
    if job.get("number_ios"):
        workload["requests"] = max(1, job.number("number_ios", 1))
    elif amount and not is_timed:
        workload["requests"] = max(1, round(amount / _mean_bytes(source)))
    elif not runtime:
        raise job.refuse(
            "size", "missing; size, number_ios, or runtime with time_based says how long"
        )
    return workload | {"pacing": pacing, "source": source}


def _replay(job: _Job, path: str, notes: list[str]) -> dict[str, Any]:
    """Return what a job asks that does what a log says, as fio does then, whatever else it has."""
    ignored = [key for key in ("rw", "bs", "bssplit", "bsrange", "size") if key in job.options]
    if ignored:
        notes.append(f"[{job.name}] read_iolog says all, and not {', '.join(ignored)}")
    stalls = job.get("replay_no_stall") in (None, "0")
    pacing = {"policy": "open"} if stalls else _depth(job)
    return {"pacing": pacing, "source": {"policy": "trace", "path": path}}


def _source(job: _Job, notes: list[str]) -> dict[str, Any]:
    """Return what is asked, and where."""
    operation = (job.get("rw") or "read").split(":")[0].lower()
    if operation not in _OPERATIONS:
        raise job.refuse("rw", f"{operation!r} is not one of {', '.join(_OPERATIONS)}")
    if ":" in (job.get("rw") or ""):
        notes.append(f"[{job.name}] rw={job.get('rw')}: the number behind the colon is left out")
    pattern, reads, trims = _OPERATIONS[operation]
    if reads == 0.5:
        share = job.number("rwmixread", 100 - job.number("rwmixwrite", 50))
        if share > 100:
            raise job.refuse("rwmixread", f"{share} is more than 100 %")
        reads = share / 100
    source: dict[str, Any] = {
        "policy": "synthetic",
        "read_fraction": reads,
        "block_sizes": _block_sizes(job, notes),
        "pattern": _pattern(job, pattern, notes),
    }
    if trims:
        source["trim_fraction"] = trims
    offset = job.bytes("offset")
    if offset:
        source["region_offset"] = f"{offset}B"
    size = job.bytes("size")
    if size:
        source["region_size"] = f"{size}B"
    return source


def _pattern(job: _Job, pattern: str, notes: list[str]) -> dict[str, Any]:
    distribution = job.get("random_distribution")
    if distribution is None or pattern != "uniform" or distribution == "random":
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


def _directions(job: _Job) -> list[int]:
    """Return which of the values for reads, writes and trims count."""
    _, reads, trims = _OPERATIONS[(job.get("rw") or "read").split(":")[0].lower()]
    return [2] if trims else [0] if reads == 1.0 else [0, 1] if reads else [1]


def _by_direction(text: str) -> list[str]:
    """Return the values of an option for reads, writes and trims; what is left out is as before."""
    parts = [part.strip() for part in text.split(",")][:3]
    return parts + [parts[-1]] * (3 - len(parts))


def _block_sizes(job: _Job, notes: list[str]) -> list[str]:
    def first(key: str, text: str) -> str:
        every = _by_direction(text)
        used = [every[it] or every[0] for it in _directions(job)]
        if len(set(used)) > 1:
            notes.append(f"[{job.name}] {key}={text}: the first is taken for all operations")
        return used[0]

    split = job.get("bssplit")
    if split:
        parts = [part.partition("/") for part in first("bssplit", split).split(":")]
        given = [int(weight) for _, _, weight in parts if weight.isdecimal()]
        open_ = len(parts) - len(given)
        rest = max(0, 100 - sum(given)) // max(1, open_)
        sizes = [
            (_bytes(job, "bssplit", size), int(w) if w.isdecimal() else rest)
            for size, _, w in parts
        ]
        return [f"{size}B/{weight}" for size, weight in sizes if weight]
    spread = job.get("bsrange")
    if spread:
        low, _, high = first("bsrange", spread).partition("-")
        least, most = _bytes(job, "bsrange", low), _bytes(job, "bsrange", high or low)
        if least > most:
            raise job.refuse("bsrange", f"{spread} ends before it begins")
        count = most // least
        step = -(-count // _MOST_SIZES)
        if step > 1:
            notes.append(f"[{job.name}] bsrange={spread}: of {count} sizes every {step}th is taken")
        return [f"{least * n}B" for n in range(step if step > 1 else 1, count + 1, step)]
    return [f"{_bytes(job, 'bs', first('bs', job.get('bs') or '4k'))}B"]


def _pacing(job: _Job, source: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Return when requests are submitted; a rate or a time to think is put into `source`."""
    closed = _depth(job)
    think = job.span_ns("thinktime", "us")
    iops = _rates(job, "rate_iops", 1, notes) or _rates(job, "rate", _mean_bytes(source), notes)
    if think:
        if closed["depth"] > 1 or iops:
            notes.append(
                f"[{job.name}] thinktime is taken with one request at a time, and no other rate"
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


def _depth(job: _Job) -> dict[str, Any]:
    """Return the pacing of who has so many requests outstanding."""
    depth = job.number("iodepth", 1)
    if depth == 0:
        raise job.refuse("iodepth", "a queue depth is at least 1")
    pacing: dict[str, Any] = {"policy": "closed", "depth": depth}
    low = job.number("iodepth_low", depth)
    return pacing | ({"low": low} if low < depth else {})


def _rates(job: _Job, key: str, request: float, notes: list[str]) -> list[float]:
    """Return the requests a second of each operation; each takes `request` of the option's unit.

    Empty where there are none. A single value is that of reads and of writes, as for fio.
    """
    text = job.get(key)
    if text is None:
        return []
    every = _by_direction(text)
    used = [every[it] for it in _directions(job) if every[it]]
    if key == "rate_iops" and not all(it.isdecimal() for it in used):
        raise job.refuse(key, f"{text!r} is not a whole number")
    rates = [int(it) if key == "rate_iops" else _bytes(job, key, it) for it in used]
    if len(rates) < len(_directions(job)):
        notes.append(f"[{job.name}] {key}={text}: what has no rate of its own keeps to the others'")
    if len(rates) > 1:
        notes.append(
            f"[{job.name}] {key}={text}: reads and writes come at rates of their own, which are "
            "their mix, too"
        )
    return [rate / request for rate in rates] if any(rates) else []


def _mean_bytes(source: dict[str, Any]) -> float:
    pairs = [text.partition("/") for text in source["block_sizes"]]
    weights = [(int(size.removesuffix("B")), int(weight or 1)) for size, _, weight in pairs]
    return sum(size * weight for size, weight in weights) / sum(weight for _, weight in weights)


def _bytes(job: _Job, key: str, text: str) -> int:
    """Return a size; fio's units are powers of 1024."""
    match = re.fullmatch(r"(\d+)([kmgtp]?)(?:i?b)?", text.strip().lower())
    if match is None:
        hint = "; a share of a file has no equal" if text.endswith("%") else ""
        raise job.refuse(key, f"{text!r} is not a size{hint}")
    found = int(match[1]) << (10 * _SIZES[match[2]])
    if found == 0 and key != "offset":
        raise job.refuse(key, "a size is at least 1 byte")
    return found
