"""Table I: the features that a probe finds, blind, on each drive."""

from __future__ import annotations

from typing import Any

from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study
from flashkeel.reproduce.session import Session
from flashkeel.reproduce.ssdcheck.drives import DRIVES, diagnosis, letter

_BACK, _FORE = "back, flushed when full", "fore, flushed when full and by reads"
_FEATURES = {
    "ssd-a": f"1 volume, 248 KiB, {_BACK}",
    "ssd-b": f"1 volume, 248 KiB, {_BACK}",
    "ssd-c": f"1 volume, 256 KiB, {_BACK}",
    "ssd-d": f"2 volumes (bit 17), 128 KiB, {_BACK}",
    "ssd-e": f"4 volumes (bits 17, 18), 128 KiB, {_BACK}",
    "ssd-f": f"1 volume, 128 KiB, {_FORE}",
    "ssd-g": f"1 volume, 128 KiB, {_FORE}",
}


def _measure(session: Session) -> Outcome:
    findings = {}
    for done, drive in enumerate(DRIVES):
        if session.progress is not None:
            session.progress(f"probe of SSD {letter(drive)}", done / len(DRIVES))
        found, is_right, reason = judged(drive, diagnosis(drive, session.seed).model)
        findings[drive] = Finding(found, is_right, reason)
    return Outcome(
        findings,
        "device",
        "presets built from Table I and full of other features, each probed as a black box "
        "of which nothing is known",
    )


def judged(drive: str, model: dict[str, Any]) -> tuple[str, bool, str]:
    """Return what a probe found of a drive in words, whether that is right, and what is unsure."""
    found = _described(model)
    is_sure = not model["undetermined"] and model["gc_volume_bits"] == model["volume_bits"]
    reason = "; ".join(model["undetermined"])
    if not reason and not is_sure:
        reason = f"volumes of garbage collection: bits {model['gc_volume_bits']}"
    return found, found == _FEATURES[drive] and is_sure, reason


def _described(model: dict[str, object]) -> str:
    bits = model["volume_bits"]
    assert isinstance(bits, list)
    volumes = "1 volume" if not bits else f"{2 ** len(bits)} volumes"
    if bits:
        volumes += f" (bit{'s' if len(bits) > 1 else ''} {', '.join(map(str, bits))})"
    buffer = model["write_buffer"]
    assert isinstance(buffer, dict)
    size = "unknown size" if buffer["bytes"] is None else f"{buffer['bytes'] >> 10} KiB"
    how = {"full": "when full", "read_trigger": "by reads"}
    flushed = " and ".join(how[trigger] for trigger in buffer["flush"])
    return f"{volumes}, {size}, {buffer['type']}, flushed {flushed or 'nobody knows when'}"


STUDY = Study(
    "ssdcheck/table1",
    "Features found by the probe",
    tuple(
        Claim(
            drive,
            f"the diagnosis finds what SSD {letter(drive)} is made of",
            "volumes, buffer size, type and flush are found exactly, with garbage-collection "
            "volumes those of allocation, and nothing is undetermined",
            features,
            "",
        )
        for drive, features in _FEATURES.items()
    ),
    _measure,
)
