"""Black-box drives: diagnosed from outside, their requests predicted (SSDcheck)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from flashkeel import _core, cache, foreign, toml
from flashkeel._core import InputError
from flashkeel.experiment import Experiment, naming_profiles
from flashkeel.parsing import LONGEST_DOCUMENT, parse_json, parse_toml, read_document
from flashkeel.seeds import check

Progress = Callable[[str, float], object]

WORKLOADS = (
    "tpce",
    "homes",
    "web",
    "exchange",
    "live-maps-back-end",
    "build-server",
    "rw-mixed",
)
"""Profiles of Table II of the paper, and its 50/50 mix."""

PROFILE_REQUESTS = 200_000
"""Requests of a profile that is predicted, unless it is said how many."""

_SIMULATED = "sim:"
_OF_RUNS = ("seed", "workload", "measure", "runs")
"""What a document with a drive may say of runs, and no drive has."""


class Drive:
    """A device or a stack of them, simulated or real, that is treated as a black box."""

    def __init__(
        self,
        document: str,
        name: str,
        sets: Sequence[tuple[str, str]] = (),
        destroy: bool = False,
    ) -> None:
        """Take a TOML `document` with a device or a stack, called `name` in errors.

        The data of real drives in it is kept, unless `destroy` says that it may be lost.
        """
        self.name = name
        """What it was called, as ``sim:ssd-d``."""
        resolved = json.loads(_core.resolve_target(document, name, list(sets)))
        self.unused = _unused(parse_toml(document), sets)
        """Keys of the document, and keys set, that are of runs and say nothing of the drive."""
        self._target = json.dumps(resolved | {"destroys": destroy})

    def __repr__(self) -> str:
        return f"<Drive {self.name!r}>"

    @staticmethod
    def find(
        target: str | Path, sets: Sequence[tuple[str, str]] = (), destroy: bool = False
    ) -> Drive:
        """Return the drive ``sim:PRESET``, that of a TOML file, or a real one.

        A real one is a block device, a file that is no text or too long for a document, or an
        export of a network block device server (``nbd://...``); `destroy` says that its data
        may be lost. `sets` are keys and values set over it, such as ``device.gc.victim``.
        """
        target = str(target)
        if target.startswith(_SIMULATED):
            preset = target.removeprefix(_SIMULATED)
            return Drive(f"[device]\npreset = {toml.value(preset)}\n", target, sets, destroy)
        if "://" in target:
            return Drive(
                f"[[stack.devices]]\nnbd.uri = {toml.value(target)}\n", target, sets, destroy
            )
        path = Path(target)
        if _is_real(path):
            name = toml.value(_encodable(str(path.absolute())))
            return Drive(f"[[stack.devices]]\nfile.path = {name}\n", target, sets, destroy)
        if not path.exists():
            raise InputError(
                f"{target}: no such file; write sim:PRESET for a built-in device "
                "(flashkeel list presets), or a TOML file with a table [device] or [stack], "
                "or a real file or block device, or the URI of a network block device"
            )
        # Nothing else is opened: who reads a pipe waits for whoever writes to it.
        if not path.is_file():
            raise InputError(f"{target}: neither a regular file nor a block device")
        if path.stat().st_size == 0:
            raise InputError(f"{target}: it is empty: neither a drive nor a document")
        return Drive(read_document(path), str(path), sets, destroy)

    def probe(
        self,
        seed: int = 1,
        use_cache: bool = True,
        progress: Progress | None = None,
        limit: timedelta | None = None,
    ) -> Diagnosis:
        """Diagnose the drive in its initial state; `seed` decides both.

        It is overwritten. What is not found within `limit` of its time is not determined;
        InputError where that is no time.
        """
        if limit is not None and limit <= timedelta():
            raise InputError(f"limit = {limit.total_seconds():g} s: it has to be above 0")
        check(seed)
        try:
            found = _core.probe(self._target, seed, _cache_dir(use_cache), limit, progress)
        except InputError as error:
            # What is wrong with the drive as a whole names none.
            if self.name in str(error):
                raise
            raise InputError(f"{self.name}: {error}") from error
        return Diagnosis(self.name, json.loads(found))

    def predict(
        self,
        model: Diagnosis,
        workload: str | Experiment,
        requests: int | None = None,
        seed: int | None = None,
        use_cache: bool = True,
        progress: Progress | None = None,
        false_calls: float | None = None,
    ) -> dict[str, Any]:
        """Run `workload` with predictions from `model`; return what became of them.

        `workload` is a profile, each of whose requests, 200,000 or so many, comes its gap after
        its predecessor's completion, or an experiment or its TOML file. `seed` replaces the
        experiment's own; that of a profile is 1. No greater part of
        the normal requests than `false_calls` is called slow, if given. The dictionary
        has ``workload``, ``seed``, ``requests``, ``slow_fraction``, ``slow_recall``,
        ``normal_recall``, ``precision``, ``score`` (in requests), ``is_on``, ``contradiction``
        (what the drive did that the model's cannot do, or None), ``basis``, ``input`` (what
        became of it, in requests) and ``notes`` of the workload, and ``model``, with what was
        learnt.
        """
        if isinstance(workload, Experiment):
            name, experiment = workload.name, workload
            _refuse_requests(name, requests)
        else:
            name, experiment = workload, find_workload(workload, requests)
        plan, *others = experiment.plans(seed, progress)
        if any(it["config"]["workload"] != plan["config"]["workload"] for it in others):
            names = ", ".join(it["name"] for it in (plan, *others))
            raise InputError(
                f"{name}: its runs have workloads of their own, and one is predicted: "
                f"leave one of {names}"
            )
        found: dict[str, Any] = json.loads(
            _core.predict(
                _core.put_target(json.dumps(plan), self._target),
                json.dumps(model.model),
                model.name,
                plan["config"]["seed"],
                false_calls,
                _cache_dir(use_cache),
                progress,
            )
        )
        return {"workload": name, "seed": plan["config"]["seed"]} | found

    def serve_nbd(
        self,
        listen: str,
        *,
        ready: Callable[[str, int, _core.Serving], object],
        say: Callable[[str], object],
        data: str | Path | None = None,
        name: str = "flashkeel",
        read_only: bool = False,
        time_scale: float = 1.0,
        seed: int = 1,
        use_cache: bool = True,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Serve the drive as an NBD export until interrupted; return what was served.

        `listen` is ``unix:PATH`` or ``ADDRESS:PORT``; `ready` is called with the export's
        URI, its size in bytes and a window on it, `say` with sentences about what happens.
        What is written is kept in the file `data`, and found there the next time, or in
        memory. The dictionary has ``clients``, how many connected, a client each time
        that it does; ``faults``, how many of them broke the protocol; ``requests``; ``late``,
        percentiles in ns of by how much answers were later than the model says, and
        ``synced``, of how much longer flushes and other requests took until what they were
        about was durable.
        """
        service = {
            "seed": check(seed),
            "listen": listen,
            "name": name,
            "read_only": read_only,
            "time_scale": time_scale,
            "data": None if data is None else str(data),
        }
        for said in (listen, name, str(data)):
            # As JSON what is no UTF-8 would be refused without being named.
            said.encode()
        found: dict[str, Any] = json.loads(
            _core.serve_nbd(
                self._target, json.dumps(service), ready, say, _cache_dir(use_cache), progress
            )
        )
        return found


def find_workload(name: str, requests: int | None = None) -> Experiment:
    """Return the experiment of a profile, of so many requests, or of a name or a TOML file.

    InputError where `requests` are given for an experiment, which has its own.
    """
    if name in json.loads(_core.list_names("profiles")):
        experiment = Experiment.with_profile(name).set("workload.pacing", "think")
        count = PROFILE_REQUESTS if requests is None else requests
        return experiment.set("workload.requests", count)
    try:
        experiment = Experiment.find(name)
    except InputError as error:
        raise naming_profiles(name, error) from None
    _refuse_requests(name, requests)
    return experiment


def _refuse_requests(name: str, requests: int | None) -> None:
    if requests is not None:
        raise InputError(f"{name}: requests are of a profile; an experiment has its own")


def _unused(document: dict[str, Any], sets: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return what of a document, and of keys set over it, is not of the drive."""
    found = []
    if {"device", "stack"} & document.keys():
        found += [key for key in _OF_RUNS if key in document]
        found += ["stack.tenants"] if "tenants" in document.get("stack", {}) else []
    of_runs = (*_OF_RUNS, "stack.tenants")
    found += [key for key, _ in sets if any(f"{key}.".startswith(f"{it}.") for it in of_runs)]
    return tuple(dict.fromkeys(found))


class Diagnosis:
    """A device model, and what it rests on if it was just found."""

    def __init__(self, name: str, found: dict[str, Any]) -> None:
        """Take a model as ``probe --format json`` prints it, with or without evidence."""
        self.name = name
        self.model = {key: value for key, value in found.items() if key != "evidence"}
        """The device model: plain data, as in the model file."""
        self.evidence: dict[str, Any] | None = found.get("evidence")
        """What the diagnosis saw; ``None`` in a model from a file."""

    def __repr__(self) -> str:
        return f"<Diagnosis of {self.name!r}:\n{self._without_learned()}>"

    @staticmethod
    def from_file(path: str | Path) -> Diagnosis:
        """Read a device model file; InputError where it cannot be read, or is none."""
        try:
            found = parse_json(read_document(Path(path)))
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        except ValueError as error:
            raise InputError(f"{path}: not a device model: {error}") from error
        if not isinstance(found, dict):
            raise InputError(f"{path}: not a device model")
        return Diagnosis(str(path), found)

    def _without_learned(self) -> str:
        known = {key: value for key, value in self.model.items() if key != "learned"}
        return json.dumps(known, indent=2)

    def to_json(self) -> str:
        """Return the text of a device model file."""
        text = self._without_learned()
        if "learned" not in self.model:
            return text
        # Thousands of numbers, which nobody reads line by line.
        learned = json.dumps(self.model["learned"], separators=(",", ":"))
        return text.removesuffix("\n}") + f',\n  "learned": {learned}\n}}'


@dataclass(frozen=True)
class Request:
    """A request to a drive."""

    id: int
    """Names it until it has completed."""
    time_ns: int
    """When it is, or would be, submitted."""
    operation: Literal["read", "write", "flush"]
    lba: int
    """First 512-byte sector; of a flush 0."""
    sectors: int
    """So many of them; of a flush 0."""


@dataclass(frozen=True)
class Prediction:
    """What is expected of a request: its latency in the mean, and whether it is called slow."""

    latency_ns: int
    is_slow: bool
    chance: float
    """How likely it is to be slow, 0 to 1."""


class Predictor:
    """Predicts the requests of one drive, and learns from what they took.

    >>> predictor = Predictor(Drive.find("sim:ssd-d").probe())
    >>> predictor.predict(Request(0, 0, "read", lba=4096, sectors=8)).is_slow
    False
    """

    def __init__(self, diagnosis: Diagnosis, false_calls: float | None = None) -> None:
        """Begin with no more than the diagnosis says, and with what was learnt if it says that.

        No greater part of the normal requests than `false_calls`, 0 to 1, is called slow; without
        it, as many as give the greatest harmonic mean of recall and precision, or 0.85 %.
        """
        self._name = diagnosis.name
        self._core = _core.Predictor(json.dumps(diagnosis.model), diagnosis.name, false_calls)

    def predict(self, request: Request) -> Prediction:
        """Predict a read or write as if it were submitted at its time; nothing changes."""
        latency_ns, chance, is_slow = self._core.predict(
            request.time_ns, request.operation, request.lba, request.sectors
        )
        return Prediction(latency_ns, is_slow, chance)

    def submitted(self, request: Request) -> None:
        """Tell of a request that the drive was given at its time.

        InputError for one whose number another has that has not completed.
        """
        self._core.submitted(
            request.time_ns, request.id, request.operation, request.lba, request.sectors
        )

    def observe(self, request_id: int, time_ns: int) -> None:
        """Tell of a request that has completed; InputError where it is not outstanding."""
        self._core.observe(time_ns, request_id)

    def diagnosis(self) -> Diagnosis:
        """Return the diagnosis with what was learnt: a predictor of it begins with that."""
        return Diagnosis(self._name, json.loads(self._core.model()))

    @property
    def is_on(self) -> bool:
        """Whether predictions are given out; otherwise none is of a slow request."""
        return self._core.is_on


def predict_log(
    log: str | Path,
    model: Diagnosis | None = None,
    iolog: str | Path | None = None,
    device: str | None = None,
    progress: Progress | None = None,
    false_calls: float | None = None,
    time_unit: str | None = None,
) -> dict[str, Any]:
    """Say how good predictions would have been for a drive of which there is a log.

    `log` has submissions and latencies: fio's latency log, with `iolog` beside it or not,
    blkparse's or blktrace's events, a trace with response times (``msr``, ``systor``, ``etw``),
    or columns that its first line names. `device` says which counts where there are several,
    `time_unit` (such as ``1us``) what a tick of a trace and of its response times is.
    Without a `model` the first half of the log says what is slow. No greater part of the
    normal requests than `false_calls` is called slow, if given.

    The dictionary has ``read`` and ``write`` (what they took, as in a run, and how many were
    ``slow``), ``requests``, ``judged``, ``slow``, ``reliability`` (what came of
    probabilities, by tenths of them), ``methods`` (SSDcheck's engine first, then the
    baselines, each with ``recall``, ``precision``, ``roc_auc``, ``saved_fraction`` and what
    is ``undetermined``), ``model`` with what was learnt, ``notes`` and more.
    """
    with foreign.named(log):
        said = _core.predict_log(
            str(log),
            None if iolog is None else str(iolog),
            device,
            time_unit,
            None if model is None else json.dumps(model.model),
            "" if model is None else model.name,
            false_calls,
            progress,
        )
    found: dict[str, Any] = json.loads(said)
    return found


def _is_real(path: Path) -> bool:
    """Return whether a path is a drive's, and no document's, which is short and has no NUL."""
    if path.is_block_device():
        return True
    if not path.is_file():
        return False
    if path.stat().st_size >= LONGEST_DOCUMENT:
        return True
    with path.open("rb") as file:
        return b"\0" in file.read(4096)


def _encodable(name: str) -> str:
    """Return a name that a document can hold."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        shown = name.encode(errors="backslashreplace").decode()
        raise InputError(f"{shown}: a name that is no UTF-8; give the drive another") from error
    return name


def _cache_dir(use_cache: bool) -> str | None:
    return str(cache.directory()) if use_cache else None
