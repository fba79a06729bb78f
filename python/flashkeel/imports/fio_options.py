"""The options of fio's jobs, and what their values mean ("Job file format", "Parameter types")."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from flashkeel._core import InputError

_ALIASES = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "nrfiles": "files",
    "nr_files": "files",
    "iomem": "mem",
    "mem_align": "iomem_align",
    "seed": "randseed",
    "timeout": "runtime",
    "iodepth_batch_low": "iodepth_low",
    "io_limit": "io_size",
    "fileoffset": "offset",
}
KNOWN = {
    *("rw", "bs", "bssplit", "bsrange", "iodepth", "iodepth_low", "rwmixread", "rwmixwrite"),
    *("size", "io_size", "offset", "runtime", "time_based", "ramp_time", "rate_iops", "rate"),
    *("rate_process", "random_distribution", "numjobs", "thinktime", "randseed", "number_ios"),
    *("description", "name", "loops", "read_iolog", "replay_no_stall", "filesize", "kb_base"),
    *("stonewall", "wait_for_previous", "ioengine", "direct", "buffered", "sync"),
    *("norandommap", "random_generator"),
}
BEGINNINGS = {"wait_for", "startdelay"}
"""What says when a job begins, other than after all before it."""

_IRRELEVANT = {
    *("filename", "directory", "group_reporting", "invalidate"),
    *("randrepeat", "thread", "refill_buffers", "cpus_allowed", "gtod_reduce"),
    *("exitall", "allow_file_create", "fallocate", "create_on_open", "overwrite", "files"),
    *("write_lat_log", "write_bw_log", "write_iops_log", "log_avg_msec", "percentile_list"),
    *(
        "clat_percentiles",
        "lat_percentiles",
        "unified_rw_reporting",
        "disable_lat",
        "sqthread_poll",
        "sqthread_poll_cpu",
        "softrandommap",
        "hdfsdirectory",
    ),
    *("hipri", "fixedbufs", "registerfiles", "disk_util", "fadvise_hint"),
    *("create_serialize", "create_fsync", "unlink", "mem", "iomem_align", "lockmem", "cpumask"),
    *(
        "clocksource",
        "per_job_logs",
        "write_iolog",
        "zero_buffers",
        "scramble_buffers",
        "nonvectored",
    ),
}
"""What says how fio works, or what it prints, and nothing of what a drive is asked."""

_OTHERS = {
    *("allrandrepeat", "disable_clat", "disable_slat", "iodepth_batch", "latency_percentile"),
    *("fsync", "rate_iops_min", "slat_percentiles", "write_hist_log"),
}
"""Options of fio without an equal whose names are near to those above (`fio --cmdhelp`)."""

_MOST_SHOWN = 60
"""Characters of a line that are shown in an error."""
_SIZES = " kmgtp"
_TIMES = {
    "d": 86400 * 10**9,
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "msec": 10**6,
    "us": 1000,
    "usec": 1000,
    "ns": 1,
}


@dataclass(frozen=True)
class Job:
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

    def is_set(self, key: str) -> bool:
        """Return whether an option is given, and not as 0."""
        return self.get(key) not in (None, "0")

    def number(self, key: str, default: int) -> int:
        """Return a whole number of at least 0."""
        text = self.get(key)
        if text is None:
            return default
        if not text.isdecimal():
            raise self.refuse(key, f"{text!r} is not a whole number")
        return int(text)

    def filenames(self) -> list[str]:
        """Return the files that are named; a colon in a name has a backslash before it."""
        return [name for name in re.split(r"(?<!\\):", self.get("filename") or "") if name]

    def files(self) -> int:
        """Return how many files there are: those that are named, or else as many as are said."""
        return len(self.filenames()) or max(1, self.number("files", 1))

    def bytes(self, key: str) -> int | None:
        """Return a size; None where it is not given."""
        text = self.get(key)
        return None if text is None else self.size(key, text)

    def size(self, key: str, text: str) -> int:
        """Return the bytes of a size in the value of the option `key`.

        As fio reads it: 1k is `kb_base` bytes, 1024 unless it says 1000, and so is 1ki; 1KiB is
        what `kb_base` is not.
        """
        match = re.fullmatch(r"(0x[0-9a-f]+|\d+)(?:([kmgtp])(i?)(b?))?b?", text.strip().lower())
        if match is None:
            hint = "; a share of a file has no equal" if text.endswith("%") else ""
            raise self.refuse(key, f"{text!r} is not a size{hint}")
        base = self.number("kb_base", 1024)
        if base not in (1000, 1024):
            raise self.refuse("kb_base", f"{base} is neither 1000 nor 1024")
        if match[3] and match[4]:
            base = 2024 - base
        number = int(match[1], 16 if match[1].startswith("0x") else 10)
        found = number * int(base ** (_SIZES.index(match[2]) if match[2] else 0))
        if found == 0 and key != "offset":
            raise self.refuse(key, "a size is at least 1 byte")
        if key.startswith("bs") and base == 1000 and match[3] and match[4] and found % 4096:
            meant = f"{match[1]}{match[2]}"
            raise self.refuse(key, f"{text!r} is {found} bytes to fio; {meant} is what it may mean")
        return found

    def span_ns(self, key: str, unit: str) -> int | None:
        """Return a time; a number alone has the unit `unit`."""
        text = self.get(key)
        if text is None:
            return None
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]*)", text.lower())
        if not match or (match[2] or unit) not in _TIMES:
            raise self.refuse(key, f"{text!r} is not a time")
        return int(Fraction(match[1]) * _TIMES[match[2] or unit])


def read_jobs(path: Path, text: str) -> list[Job]:
    """Return the jobs of a file, each with what `[global]` said before it."""
    shared: dict[str, tuple[str, str]] = {}
    jobs: list[Job] = []
    current: dict[str, tuple[str, str]] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        place = f"{path}:{number}"
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            if not line.endswith("]") or not line[1:-1].strip():
                raise InputError(f"{place}: {_begun(line)!r} is not the name of a job")
            name = line[1:-1].strip()
            # To fio whatever begins with that word is.
            is_global = name.startswith("global")
            current = shared if is_global else dict(shared)
            if not is_global:
                jobs.append(Job(name, place, current))
            continue
        # What follows is a comment for fio too, wherever it stands.
        line = re.split("[#;]", line, maxsplit=1)[0]
        key, equals, value = (part.strip() for part in line.partition("="))
        if current is None:
            raise InputError(
                f"{place}: {_begun(key)} stands before the first [job]; is this a fio job file?"
            )
        if key.split()[:1] == ["include"]:
            raise InputError(f"{place}: {key} is not read; put the options of that file here")
        if "$" in value:
            raise InputError(f"{place}: {key}: {value} has a variable; write what it stands for")
        key = _ALIASES.get(key, key)
        near = difflib.get_close_matches(key, KNOWN | _IRRELEVANT, 1, 0.8)
        if near and key not in KNOWN | _IRRELEVANT | _OTHERS:
            raise InputError(f"{place}: {key}: no option of fio; did you mean {near[0]}?")
        # What is said last counts, and stands last.
        current.pop(key, None)
        current[key] = (value if equals else "1", place)
    if not jobs:
        raise InputError(f"{path}: no job in it; a fio job file has sections such as [job1]")
    return jobs


def _begun(line: str) -> str:
    """Return a line, or how it begins: what is no job file may be a line of megabytes."""
    return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}…"


def by_direction(text: str) -> list[str]:
    """Return the values of an option for reads, writes and trims; what is left out is as before."""
    parts = [part.strip() for part in text.split(",")][:3]
    return parts + [parts[-1]] * (3 - len(parts))


def groups_of(jobs: list[Job]) -> list[list[Job]]:
    """Return the jobs that run at the same time, one such group after the other."""
    groups: list[list[Job]] = []
    for job in jobs:
        waits = any(job.is_set(key) for key in ("stonewall", "wait_for_previous"))
        if waits or not groups:
            groups.append([])
        groups[-1].append(job)
    return groups


def left_out(jobs: list[Job]) -> Iterator[str]:
    """Give a note of the options without an equal, one for all jobs that have the same ones."""
    having: dict[tuple[str, ...], list[str]] = {}
    for job in jobs:
        left = sorted(set(job.options) - KNOWN - _IRRELEVANT - BEGINNINGS)
        having.setdefault(tuple(left), []).append(f"[{job.name}]")
    for keys, names in having.items():
        who = "all jobs" if 1 < len(names) == len(jobs) else ", ".join(dict.fromkeys(names))
        if keys:
            yield f"{who}: left out, as there is no equal: {', '.join(keys)}"


def shared_files(jobs: list[Job]) -> Iterator[str]:
    """Give a note for each file that several jobs of a run name."""
    users: dict[str, list[str]] = {}
    for job in jobs:
        for name in job.filenames():
            users.setdefault(name, []).append(f"[{job.name}]")
    for name, who in users.items():
        if len(who) > 1:
            yield (
                f"{', '.join(dict.fromkeys(who))}: to fio {len(who)} jobs share the addresses of "
                f"{name}; here each has its own"
            )
