"""Runs for the figures: pooled over seeds, shared among figures, several at a time."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flashkeel import cache, failures
from flashkeel.arrow import TableFiles
from flashkeel.comparison import FEW
from flashkeel.execution import Task, execute
from flashkeel.experiment import Experiment, pool
from flashkeel.reproduce.claims import Basis
from flashkeel.reproduce.kept import Kept
from flashkeel.run import Run
from flashkeel.seeds import consecutive

Progress = Callable[[str, float], None]
"""Called with what is being done and the fraction of it that is done."""


@dataclass(frozen=True)
class Case:
    """One configuration to run."""

    name: str
    keys: Mapping[str, Any]
    """Keys of an experiment document, as ``{"device.preset": "autossd"}``."""
    judged: tuple[str, float] | None = None
    """Class and percentile that need ten samples beyond; seeds are added until it has."""
    most_seeds: int = 8
    least_seeds: int = 1
    """Seeds to run in any case, but for --quick and for requests that are replayed."""


@dataclass
class Session:
    """What all figures of one ``flashkeel reproduce`` share."""

    quick: bool = False
    """Shorter windows and one seed each, for a first look."""
    seed: int = 1
    """First seed of every run."""
    jobs: int = 1
    traces: Path | None = None
    """Folder of recorded traces, used instead of synthetic ones."""
    progress: Progress | None = None
    keep: bool = False
    """Keep runs in the cache directory, and take from there what it has."""
    lookups: dict[str, bool] = field(default_factory=dict)
    """Profiles and recorded files that were looked for in `traces`, and whether they are there."""
    failed: dict[str, int] = field(default_factory=dict)
    """How many requests failed in runs of the figure that is measured, by case."""
    _runs: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    _files: TableFiles = field(default_factory=TableFiles.temporary)

    def seeds(self, count: int) -> list[int]:
        """Return the first `count` seeds of every run."""
        return consecutive(self.seed, count)

    def run(self, cases: Sequence[Case]) -> dict[str, Run]:
        """Run the cases, each with as many seeds as it needs, and return them by name.

        A configuration that another figure has run with the same seed is not
        run again. The results do not depend on `jobs`. Where all requests are replayed
        from traces there is one seed: another changes nothing of what they ask for, so
        that it adds no samples.
        """
        plans = {case.name: _plan(case) for case in cases}
        seeds = {
            case.name: 1 if self.quick or _is_replay(plans[case.name]) else case.least_seeds
            for case in cases
        }
        while True:
            self._execute(
                [(plans[name], seed) for name, n in seeds.items() for seed in self.seeds(n)]
            )
            runs = {name: self._pooled(plan, seeds[name]) for name, plan in plans.items()}
            wanted = {
                case.name: seeds[case.name]
                if _is_replay(plans[case.name])
                else self._seeds(case, runs[case.name])
                for case in cases
            }
            if all(wanted[name] <= seeds[name] for name in seeds):
                self.failed |= {name: n for name, run in runs.items() if (n := failures.count(run))}
                return runs
            seeds = wanted

    def _seeds(self, case: Case, run: Run) -> int:
        done = len(run.seeds)
        if self.quick or case.judged is None or run.beyond(*case.judged) >= FEW:
            return done
        latency_class, percentile = case.judged
        samples = run.samples(latency_class)
        if not samples:
            return done
        # A request more than the quotient says, because counts are rounded down.
        needed = (FEW + 1) / (1 - percentile / 100)
        return min(case.most_seeds, max(done + 1, math.ceil(done * needed / samples)))

    def _execute(self, wanted: Sequence[tuple[dict[str, Any], int]]) -> None:
        missing = dict.fromkeys((plan["name"], seed) for plan, seed in wanted)
        by_name = {plan["name"]: json.dumps(plan) for plan, _ in wanted}
        directory = str(cache.directory())
        plans = {plan["name"]: plan for plan, _ in wanted}
        kept = Kept(cache.directory(), self._files) if self.keep else None
        if kept is not None:
            for name, seed in missing:
                if (name, seed) not in self._runs and (found := kept.find(plans[name], seed)):
                    self._runs[name, seed] = found
        tasks = [
            Task(index, name, by_name[name], seed, directory)
            for index, (name, seed) in enumerate(key for key in missing if key not in self._runs)
        ]
        if not tasks:
            return
        fractions = [0.0] * len(tasks)

        def report(index: int, phase: str, fraction: float) -> None:
            fractions[index] = max(fractions[index], fraction if phase == "replay" else 0.0)
            if phase == "done":
                fractions[index] = 1.0
            if self.progress is not None:
                done = sum(fraction == 1.0 for fraction in fractions)
                self.progress(f"run {done + 1} of {len(tasks)}", sum(fractions) / len(tasks))

        def finished(index: int, data: dict[str, Any]) -> None:
            task = tasks[index]
            self._runs[task.name, task.seed] = data
            if kept is not None:
                kept.keep(plans[task.name], task.seed, data)

        execute(tasks, self.jobs, self._files, report, finished)

    def _pooled(self, plan: dict[str, Any], seeds: int) -> Run:
        runs = [self._runs[plan["name"], seed] for seed in self.seeds(seeds)]
        return Run(pool(runs), self._files)


def basis(runs: Mapping[str, Run]) -> Basis:
    """Return what findings from `runs` rest on."""
    return "synthetic" if any(run.synthetic for run in runs.values()) else "trace"


def amount(runs: Iterable[Run]) -> str:
    """Return how much was measured, in words: the requests of a seed, and the seeds of a run."""
    found = list(runs)
    seeds = sorted({len(run.seeds) for run in found})
    each = sorted({round(run.data["requests"] / len(run.seeds)) for run in found})
    requests = f"{each[0]:,}" if len(each) == 1 else f"{each[0]:,} to {each[-1]:,}"
    if seeds == [1]:
        return f"{requests} requests measured in each run, one seed"
    of = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return f"{requests} requests measured with each of {of} seeds"


def kind(runs: Mapping[str, Run]) -> str:
    """Return the same as a word for requests, of which recorded ones are the trace."""
    return "synthetic" if basis(runs) == "synthetic" else "recorded"


def _plan(case: Case) -> dict[str, Any]:
    experiment = Experiment("", case.name)
    for key, value in case.keys.items():
        experiment = experiment.set(key, value)
    (plan,) = experiment.plans()
    # Seeds are the session's; a name made of the rest lets figures share runs.
    plan["config"]["seed"] = 0
    text = json.dumps(plan["config"], sort_keys=True)
    return plan | {"name": hashlib.sha256(text.encode()).hexdigest()[:16]}


def _is_replay(plan: Mapping[str, Any]) -> bool:
    """Return whether every request of a plan comes from a trace."""
    config = plan["config"]
    tenants = config.get("stack", {}).get("tenants") or [config]
    return all(each["workload"]["source"]["policy"] == "trace" for each in tenants)


def part(whole: Progress, name: str, index: int, count: int) -> Progress:
    """Return the progress of one of `count` parts of `whole`."""

    def report(phase: str, fraction: float) -> None:
        whole(f"{name}: {phase}", (index + fraction) / count)

    return report
