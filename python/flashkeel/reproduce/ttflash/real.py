"""Base, all and NoGC under recorded traces."""

from __future__ import annotations

import os
from pathlib import Path

from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, few, too_few
from flashkeel.reproduce.session import Case, Session
from flashkeel.reproduce.ttflash.systems import ALL, BASE, CLASS, DEVICE, NOGC, SYSTEMS

FILES = {"dtrs": "msps_dtrs_slice.ssdsim.gz", "cloudphysics": "cloudphysics_vm.vscsi.gz"}
_PERCENTILES = (99.0, 99.9)

_BLOCKED = Claim(
    "blocked",
    "GC blocks 2 to 7 % of I/Os in base and 0.003 to 0.05 % in ttFlash",
    "in every trace base blocks at least twenty times as many I/Os as all",
    None,
)
_TAIL = Claim(
    "tail",
    "ttFlash's tail is near NoGC's, and base's is not",
    "p99 and p99.9 of reads: all at most 3.25 times NoGC, base at least 2.8 times, in every trace",
    None,
)


def _measure(session: Session) -> Outcome:
    folder = session.traces or os.environ.get("FLASHKEEL_TRACES")
    files = {name: Path(folder) / file for name, file in FILES.items()} if folder else {}
    files = {name: path for name, path in files.items() if path.is_file()}
    if not files:
        names = " or ".join(FILES.values())
        reason = f"needs {names}: give their folder by --traces or FLASHKEEL_TRACES"
        missing = Finding(None, None, reason)
        return Outcome({"blocked": missing, "tail": missing}, "trace", "not run")
    systems = (BASE, ALL, NOGC)
    runs = session.run([_case(path, name, s) for name, path in files.items() for s in systems])
    blocked = {
        f"{name} {s} (%)": 100 * runs[f"{name} {s}"].data["gc_blocked_fraction"]
        for name in files
        for s in (BASE, ALL)
    }
    ratios = {
        f"{name} {s}, p{at:g} / NoGC's": (runs[f"{name} {s}"].percentile(CLASS, at) or 0)
        / (runs[f"{name} {NOGC}"].percentile(CLASS, at) or 1)
        for name in files
        for s in (BASE, ALL)
        for at in _PERCENTILES
    }
    near = all(value <= 3.25 for key, value in ratios.items() if f" {ALL}," in key)
    far = all(value >= 2.8 for key, value in ratios.items() if f" {BASE}," in key)
    beyond = [run.beyond(CLASS, _PERCENTILES[-1]) for run in runs.values()]
    sparse = any(few(run, CLASS, _PERCENTILES[-1]) for run in runs.values())
    fewer = all(blocked[f"{n} {BASE} (%)"] >= 20 * blocked[f"{n} {ALL} (%)"] for n in files)
    return Outcome(
        {
            "blocked": Finding(blocked, fewer),
            "tail": Finding(
                ratios, None if sparse else near and far, too_few(min(beyond)) if sparse else ""
            ),
        },
        "trace",
        f"{DEVICE}, from its steady state on; {', '.join(path.name for path in files.values())}, "
        "addresses wrapped into it, at the recorded times",
    )


def _case(path: Path, name: str, system: str) -> Case:
    return Case(
        f"{name} {system}",
        SYSTEMS[system]
        | {
            "workload.source": {
                "policy": "trace",
                "path": str(path.absolute()),
                "fold": "wrap",
            },
        },
    )


STUDY = Study("ttflash/real", "Recorded traces", (_BLOCKED, _TAIL), _measure)
