"""Experiments: a device, a workload and the variants to run."""

from __future__ import annotations

import copy
import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Literal

from flashkeel import _core, cache, spread, toml
from flashkeel._core import InputError
from flashkeel.arrow import TableFiles
from flashkeel.execution import Progress, Task, execute
from flashkeel.parsing import read_document
from flashkeel.result import SCHEMA, Result
from flashkeel.seeds import check, check_count, consecutive
from flashkeel.suggest import did_you_mean


class Experiment:
    """An experiment document with the keys set over it.

    >>> experiment = Experiment.named("demo").set("device.scheduler", "fifo")
    """

    def __init__(self, document: str, name: str) -> None:
        """Take a TOML `document`; `name` is what its errors call it."""
        self.document = document
        self.name = name
        self._sets: tuple[tuple[str, str], ...] = ()
        # Resolving may read a whole trace, so it is done once.
        self._resolved: dict[int | None, str] = {}

    def __repr__(self) -> str:
        sets = "".join(f", {key} = {value}" for key, value in self._sets)
        return f"<Experiment {self.name!r}{sets}>"

    def _repr_html_(self) -> str:
        sets = "".join(f"\n# set: {key} = {value}" for key, value in self._sets)
        return f"<p><b>{escape(self.name)}</b></p><pre>{escape(self.document + sets)}</pre>"

    @staticmethod
    def from_toml(source: str | Path) -> Experiment:
        """Return the experiment in a TOML file, or in TOML text.

        A string is text if it has a line break, or a ``=`` and no file is called so, and the
        name of a file otherwise.
        """
        if isinstance(source, str) and (
            "\n" in source or ("=" in source and not os.path.isfile(source))
        ):
            return Experiment(source, "<text>")
        path = Path(source)
        try:
            return Experiment(read_document(path), str(path))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error

    @staticmethod
    def named(name: str) -> Experiment:
        """Return a built-in experiment; ``flashkeel list experiments`` names them."""
        if name not in (known := _names("experiments")):
            hint = "; it is a profile: with_profile takes it" if name in _names("profiles") else ""
            raise InputError(f"no experiment is named {name!r}; there are {', '.join(known)}{hint}")
        return Experiment(_core.show(name), name)

    @staticmethod
    def with_profile(name: str) -> Experiment:
        """Return an experiment on the default device under the profile called `name`.

        ``flashkeel list profiles`` names them.
        """
        source = f'policy = "profile"\nname = {toml.value(name)}\n'
        return Experiment(f"[workload.source]\n{source}", f"profile {name}")

    @staticmethod
    def with_trace(path: str | Path) -> Experiment:
        """Return an experiment that replays a trace on the default device.

        `path` is a file, or ``-`` for standard input.
        """
        place = "-" if str(path) == "-" else os.path.abspath(path)
        source = f'policy = "trace"\npath = {toml.value(place)}\n'
        return Experiment(f"[workload.source]\n{source}", f"trace {path}")

    @staticmethod
    def find(name: str) -> Experiment:
        """Return the built-in experiment called `name`, else the one in the file `name`."""
        if name in (known := _names("experiments")):
            return Experiment.named(name)
        if not Path(name).exists():
            raise InputError(
                f"{name}: no such file, and no experiment of that name; "
                f"the experiments are {', '.join(known)}{did_you_mean(Path(name).stem, known)}"
            )
        return Experiment.from_toml(Path(name))

    @staticmethod
    def from_table(table: Mapping[str, Any], name: str) -> Experiment:
        """Return the experiment that a mapping describes; `name` is what errors call it.

        Where that is a path, relative paths in it start at its folder.
        """
        return Experiment(
            "".join(f"{toml.value(k)} = {toml.value(v)}\n" for k, v in table.items()), name
        )

    def set(self, key: str, value: Any) -> Experiment:  # noqa: ANN401
        """Return this experiment with a key set over the document in every run.

        The one it is called on stays as it was. Of a key set again the last value counts.
        Whether there is such a key is seen when the runs are resolved, in :meth:`plans` and
        :meth:`run`.

        A string is taken as ``--set KEY=VALUE`` takes it (``"fifo"``, ``"50us"``); numbers,
        booleans, lists, mappings, paths and what NumPy has of these become their TOML equals.
        """
        text = value if isinstance(value, str) else toml.value(value)
        changed = copy.copy(self)
        changed._sets, changed._resolved = (*self._sets, (key, text)), {}
        return changed

    def plans(
        self, seed: int | None = None, progress: Callable[[str, float], object] | None = None
    ) -> list[dict[str, Any]]:
        """Return the resolved runs; bad input raises InputError.

        `progress` is called with what is being done and the fraction done
        while a trace is read.
        """
        if seed is not None:
            check(seed)
        if seed not in self._resolved:
            self._resolved[seed] = _core.resolve(
                self.document, self.name, list(self._sets), seed, progress
            )
        # Each caller has plans of its own.
        plans: list[dict[str, Any]] = json.loads(self._resolved[seed])
        return plans

    def run(
        self,
        seed: int | None = None,
        seeds: int = 1,
        jobs: int = 1,
        use_cache: bool = True,
        progress: Progress | None = None,
        destroy: bool = False,
    ) -> Result:
        """Run all variants and return what they measured.

        `seed` replaces the experiment's own. With `seeds` above one every
        variant runs with that many consecutive seeds, whose samples are pooled;
        after the largest seed, 2^64 − 1, comes 0.
        `jobs` runs are worked on at a time, on as many processors; the results do not depend
        on it. The device's steady state is kept on disk between runs unless `use_cache`
        is false. Real drives are kept as they are, and writes to them refused, unless
        `destroy` says that their data may be lost; they are used by one run after the other.
        """
        check_count(seeds, "seeds")
        check_count(jobs, "jobs")
        plans = self.plans(seed)
        files = TableFiles.temporary()
        _refuse_shared_pipes(plans, seeds)
        allowed = [plan | {"destroys": True} for plan in plans] if destroy else plans
        tasks = _tasks(allowed, seeds, str(cache.directory()) if use_cache else None)
        runs = execute(tasks, 1 if has_real(plans) else jobs, files, progress)
        return Result(
            {
                "schema": SCHEMA,
                "version": _core.version(),
                "experiment": self.name,
                "title": plans[0]["config"]["title"],
                "identity": identity(plans, seeds),
                "runs": [pool(runs[i : i + seeds]) for i in range(0, len(runs), seeds)],
            },
            files,
        )


def _names(kind: Literal["experiments", "profiles"]) -> list[str]:
    found: list[str] = json.loads(_core.list_names(kind))
    return found


def has_real(node: Any) -> bool:  # noqa: ANN401
    """Return whether there is a real drive among devices."""
    match node:
        case {"file": {"path": str()}} | {"nbd": {"uri": str()}}:
            return True
        case dict():
            return any(map(has_real, node.values()))
        case list():
            return any(map(has_real, node))
    return False


def _refuse_shared_pipes(plans: Sequence[dict[str, Any]], seeds: int) -> None:
    """Refuse several runs that read one pipe, of which only the first would get anything."""
    for name, readers in _pipes(plans).items():
        if (count := readers * seeds) > 1:
            raise InputError(
                f"{name} can be read only once, and {count} runs read it; save it to a file first"
            )


def refuse_pipes(plans: Sequence[dict[str, Any]]) -> None:
    """Refuse runs that read a pipe, where they are not the last to need what it gives."""
    for name in _pipes(plans):
        raise InputError(f"{name} can be read only once; save it to a file first")


def _pipes(plans: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return what can be read only once of all that runs read, and how many times each is read."""
    readers: dict[str, int] = {}
    for plan in plans:
        stack = plan["config"].get("stack") or {}
        asked = [it["workload"] for it in stack.get("tenants", [])] or [plan["config"]["workload"]]
        for source in (workload["source"] for workload in asked):
            if source["policy"] == "trace" and is_pipe(path := source["path"]):
                name = "standard input" if path == "-" else path
                readers[name] = readers.get(name, 0) + 1
    return readers


def is_pipe(path: str) -> bool:
    """Return whether a trace can be read only once."""
    try:
        mode = os.fstat(0).st_mode if path == "-" else Path(path).stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode)


def identity(plans: Sequence[dict[str, Any]], seeds: int) -> str:
    """Return a hash that is equal where the runs, their settings and their seeds are."""
    import hashlib

    text = json.dumps([SCHEMA, seeds, plans], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _tasks(plans: Sequence[dict[str, Any]], seeds: int, cache_dir: str | None) -> list[Task]:
    pairs = [(plan, seed) for plan in plans for seed in consecutive(plan["config"]["seed"], seeds)]
    return [
        Task(index, plan["name"], json.dumps(plan), seed, cache_dir)
        for index, (plan, seed) in enumerate(pairs)
    ]


def pool(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one run object for the runs of one plan with different seeds."""
    if len(runs) == 1:
        return runs[0]
    pooled: dict[str, Any] = json.loads(_core.merge([json.dumps(run) for run in runs]))
    spread.keep(pooled, runs)
    return pooled | {"seeds": [run["seed"] for run in runs]}


def naming_profiles(name: str, error: InputError) -> InputError:
    """Return the error about a name that is no experiment's as one that names profiles, too."""
    if Path(name).suffix:
        return error
    profiles = _names("profiles")
    # An experiment that may have been meant stands at the end, unless a profile may.
    said, mark, meant = str(error).partition("; did you mean ")
    hint = did_you_mean(name, profiles) or mark + meant
    return InputError(f"{said}; the profiles are {', '.join(profiles)}{hint}")
