"""How much NVM in front of a drive makes it quick, safe and lasting, and at what cost.

>>> from flashkeel import hierarchy
>>> source = {"policy": "trace", "path": "vm.vscsi", "fold": "compact"}
>>> plan = hierarchy.Plan(source, [hierarchy.Medium("qlc")], hierarchy.Medium("optane-p4800x"))
>>> print(plan.estimate(seeds=3).cheapest(hierarchy.Bounds(read_ns=20e6, years=5)))
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flashkeel import _core, cache, failures, steadiness
from flashkeel._core import LOGICAL_PAGE_BYTES, InputError
from flashkeel.arrow import TableFiles
from flashkeel.candidates import Bounds, Choice, Measured, Outcome
from flashkeel.comparison import rests_on
from flashkeel.execution import Task, execute
from flashkeel.experiment import Experiment, is_pipe
from flashkeel.media import WARRANTY_YEARS, YEAR_DAYS, Medium, Sold
from flashkeel.prices import Prices
from flashkeel.quantities import in_bytes, logical_bytes, padded, wearing_amplification
from flashkeel.run import Run
from flashkeel.seeds import consecutive

BASE = "base"
"""The policy without an NVM."""
POLICIES = (
    BASE,
    *(
        name
        for name in json.loads(_core.list_names("tiers"))
        if "lower" in tomllib.loads(_core.show(name))
    ),
)
"""What tiers can be based on that says what a tier below does, and what memory alone can be."""
SIZES = ("2%", "5%", "10%", "20%", "40%", "100%")
"""Sizes of the NVM that are tried unless others are given, of what the traffic touches."""
PERCENTILES = ("p50", "p90", "p95", "p99", "p99.5", "p99.9", "p99.95", "p99.99")
DAY_NS = 86_400e9
_LARGEST_FILL = 4
"""Capacity of the model of a drive over what the traffic touches, at least."""
_LEAST_MODEL = 32 << 30
"""Of a smaller one a burst would use up all that is spare."""
_LEAST_BLOCKS = 16
"""Of memory or NVM, below which there is no room for a journal."""
_NO_TRAFFIC = "the traffic neither reads nor writes, so that there is nothing to plan for"
_EMPTY = (
    "--set stack.devices.0.tier.upper.dram.capacity: it is a share of the workload's footprint, "
    "which is empty"
)


@dataclass(frozen=True)
class Answer:
    """All that was tried, in the order of drives, policies and sizes."""

    plan: Plan
    outcomes: Sequence[Outcome]
    footprint_bytes: int
    duration_ns: float
    """How long the traffic lasts that was measured."""
    is_synthetic: bool

    def of(self, drive: str, policy: str | None = None) -> list[Outcome]:
        """Return those of one drive, and of one policy."""
        return [
            one
            for one in self.outcomes
            if one.choice.drive == drive and policy in (None, one.choice.policy)
        ]

    def has_costs(self, bounds: Bounds) -> bool:
        """Return whether anything with an NVM, or all without one, has a cost."""
        return any(one.cost(bounds) is not None for one in self._with_nvm())

    def smallest(self, bounds: Bounds) -> Outcome | None:
        """Return what keeps the bounds with the least NVM, and of several the quickest."""
        kept = [one for one in self.outcomes if not one.excess(bounds)]
        return min(kept, key=lambda one: (one.bought_bytes(bounds), one.tail_ns()), default=None)

    def cheapest(self, bounds: Bounds, among: Sequence[Outcome] | None = None) -> Outcome | None:
        """Return what keeps the bounds and costs least; None where no cost is known."""
        priced = [
            (cost, one.tail_ns(), number, one)
            for number, one in enumerate(self.outcomes if among is None else among)
            if not one.excess(bounds) and (cost := one.cost(bounds)) is not None
        ]
        return min(priced)[-1] if priced else None

    def nearest(self, bounds: Bounds, among: Sequence[Outcome] | None = None) -> Outcome:
        """Return what misses the fewest bounds, and of several the one that misses by least."""

        def distance(one: Outcome) -> tuple[int, float, float]:
            excess = one.excess(bounds)
            times = [found for found in excess.values() if math.isfinite(found)]
            at_risk = one.mean("risk_bytes") if "risk" in excess else None
            return len(excess), max(times, default=0.0), at_risk or 0.0

        return min(self.outcomes if among is None else among, key=distance)

    def frontier(self, bounds: Bounds) -> list[Outcome]:
        """Return those that nothing is both cheaper and quicker than, cheapest first.

        Without prices what counts is the size of the NVM.
        """
        found: list[Outcome] = []
        for _, _, _, one in sorted(
            (price, one.tail_ns(), number, one)
            for number, one in enumerate(self.outcomes)
            if (price := self.price(one, bounds)) is not None
        ):
            if not found or one.tail_ns() < found[-1].tail_ns():
                found.append(one)
        return found

    def price(self, one: Outcome, bounds: Bounds) -> float | None:
        """Return what counts as the price of one: cost, or bytes of NVM where none is known."""
        return one.cost(bounds) if self.has_costs(bounds) else float(one.bought_bytes(bounds))

    def _with_nvm(self) -> Sequence[Outcome]:
        return [one for one in self.outcomes if one.nvm_bytes] or self.outcomes


@dataclass(frozen=True)
class Plan:
    """The traffic, the candidates, and what is tried of them."""

    source: Mapping[str, Any]
    """A workload's source: ``policy`` and its settings."""
    drives: Sequence[Medium]
    nvm: Medium
    policies: Sequence[str] = POLICIES
    sizes: Sequence[str] = SIZES
    """Of the NVM: of what is touched, as ``"5%"``, or as ``"1GiB"``."""
    dram: str = "2%"
    """Memory in front, the same for all."""
    percentile: str = "p99"
    requests: int | None = None
    """How many of the traffic; all of a trace where it is None."""
    model: str | None = None
    """Capacity of the model of a drive; four times what is touched where it is None, and at
    least 32 GiB, but no more than the drive has."""
    prices: Prices = field(default_factory=Prices.load)

    def estimate(
        self,
        seeds: int = 3,
        seed: int = 1,
        jobs: int = 1,
        progress: Callable[[str, float], object] | None = None,
    ) -> Answer:
        """Run everything with `seeds` consecutive seeds from `seed` on, `jobs` at a time.

        `progress` is called with what is being done and the fraction of it that is done. Bad
        input raises InputError.
        """
        if self.percentile not in PERCENTILES:
            raise InputError(f"no percentile {self.percentile}; it is {', '.join(PERCENTILES)}")
        # What is wrong with a source is told where it is resolved.
        path = self.source.get("path")
        if self.source.get("policy") == "trace" and isinstance(path, str) and is_pipe(path):
            raise InputError(f"--trace {path}: every run reads it; save it to a file first")
        if not self.drives:
            raise InputError("no drive is given; name one candidate at least")
        sold = [Sold.of(drive) for drive in self.drives]
        footprint = self._footprint(sold[0], progress)
        choices = [(one, choice) for one in sold for choice in self._choices(one.medium)]
        plans = [self._plan(one, choice, footprint) for one, choice in choices]
        runs = _runs(plans, consecutive(seed, seeds), jobs, progress)
        if not any(run.classes() for of_plan in runs for run in of_plan):
            raise InputError(_NO_TRAFFIC)
        # All see the same traffic, and what falls behind is at it for longer.
        lasts_ns = [min(map(_duration_ns, of_seed)) for of_seed in zip(*runs, strict=True)]
        outcomes = [
            self._outcome(choice, one, plan, of_plan, lasts_ns)
            for (one, choice), plan, of_plan in zip(choices, plans, runs, strict=True)
        ]
        is_synthetic = any(run.synthetic for of_plan in runs for run in of_plan)
        return Answer(self, outcomes, footprint, max(lasts_ns), is_synthetic)

    def _workload(self) -> dict[str, Any]:
        counted = {} if self.requests is None else {"requests": self.requests}
        return {"source": dict(self.source)} | counted

    def _footprint(self, sold: Sold, progress: Callable[[str, float], object] | None) -> int:
        """Return what the traffic touches, which is memory of 100 % of that."""
        experiment = Experiment("", "plan tier").set("device.preset", sold.medium.preset)
        tier = {
            "preset": BASE,
            "upper": {"dram": {"capacity": "100%"}},
            "lower": {"ssd": {}},
        }
        experiment = experiment.set("workload", self._workload())
        experiment = experiment.set("stack.devices", [{"tier": tier}])
        try:
            (plan,) = experiment.plans(progress=progress)
        except InputError as error:
            raise InputError(str(error).replace(_EMPTY, _NO_TRAFFIC)) from None
        (device,) = plan["config"]["stack"]["devices"]
        return in_bytes(device["tier"]["upper"]["dram"]["capacity"])

    def _choices(self, drive: Medium) -> Iterator[Choice]:
        sizes: dict[tuple[bool, float], str] = {}
        for asked in self.sizes:
            sizes.setdefault(_quantity("--size", asked), asked)
        for policy in self.policies:
            for size in (None,) if policy == BASE else sizes.values():
                yield Choice(drive.preset, policy, size)

    def _plan(self, sold: Sold, choice: Choice, footprint: int) -> dict[str, Any]:
        wanted = max(_LARGEST_FILL * footprint, _LEAST_MODEL)
        device = sold.model(wanted if self.model is None else _size("--model", self.model))
        lower: dict[str, Any] = {"ssd": {}}
        dram = _share("--dram", self.dram, footprint)
        holds = in_bytes(device["logical_capacity"])
        if footprint > holds:
            raise InputError(
                f"the traffic touches {footprint} bytes, more than the model of {choice.drive} "
                f"holds, {holds}; give a larger --model, or another drive"
            )
        if choice.size is not None:
            capacity = _share("--size", choice.size, footprint)
            _check_room("--size", choice.size, capacity, choice.drive, holds)
            nvm = {"preset": self.nvm.preset, "capacity": f"{capacity}B"}
            lower = {"tier": {"upper": {"nvm": nvm}, "lower": lower}}
        _check_room("--dram", self.dram, dram, choice.drive, holds)
        memory = {"dram": {"capacity": f"{dram}B"}}
        tier = {"preset": choice.policy, "upper": memory, "lower": lower}
        experiment = Experiment("", "plan tier").set("device", device)
        experiment = experiment.set("workload", self._workload())
        experiment = experiment.set("stack.devices", [{"tier": tier}])
        try:
            (plan,) = experiment.plans()
        except InputError as error:
            raise InputError(self._named(str(error), choice)) from None
        return plan

    def _named(self, error: str, choice: Choice) -> str:
        """Return what is wrong with a key in the words of the options that it comes from."""
        outer = "--set stack.devices.0.tier."
        inner = f"{outer}lower.tier.upper"
        for key, option in (
            (f"{inner}.nvm.preset", f"--nvm {self.nvm.preset}"),
            (f"{inner}.nvm.capacity", f"--size {choice.size}"),
            (f"{inner}:", f"--size {choice.size}:"),
            (f"{outer}upper.dram.capacity", f"--dram {self.dram}"),
        ):
            error = error.replace(key, option)
        of_drive = f"the model of {choice.drive}, for which a larger --model may do: "
        return re.sub(rf"{re.escape(outer)}(lower\.tier\.)?lower\.ssd\.", of_drive, error)

    def _outcome(
        self,
        choice: Choice,
        sold: Sold,
        plan: Mapping[str, Any],
        runs: Sequence[Run],
        lasts_ns: Sequence[float],
    ) -> Outcome:
        nvm_bytes = 0
        for device in plan["config"]["stack"]["devices"]:
            inner = device["tier"]["lower"].get("tier")
            nvm_bytes = in_bytes(inner["upper"]["nvm"]["capacity"]) if inner else 0
        return Outcome(
            choice,
            nvm_bytes,
            sold.capacity,
            self.prices.of(choice.drive, sold.capacity),
            self.prices.of(self.nvm.preset, 1e9),
            [
                self._measured(choice, sold, run, nvm_bytes, ns)
                for run, ns in zip(runs, lasts_ns, strict=True)
            ],
            list(dict.fromkeys(note for run in runs for note in run.data["notes"])),
        )

    def _measured(
        self, choice: Choice, sold: Sold, run: Run, nvm_bytes: int, lasts_ns: float
    ) -> Measured:
        tiers = run.data["stack"]["tiers"]
        days = lasts_ns / DAY_NS
        inner, outer = tiers["0"], tiers.get("1", tiers["0"])
        ssd = inner["lower"]["bytes_written"] / days
        nvm = inner["upper"]["bytes_written"] / days if choice.size else 0.0
        device, geometry = run.data["config"]["device"], sold.config["geometry"]
        wearing = wearing_amplification(run.data, geometry)
        times = padded(run.data["device"], geometry) or 1.0
        written = run.data["device"]["host_bytes_written"]
        return Measured(
            read_ns=run.percentile("read", self.percentile),
            write_ns=run.percentile("write", self.percentile),
            beyond=min(
                rests_on(run, one, self.percentile) for one in ("read", "write") if run.samples(one)
            ),
            read_mean_ns=run.mean("read"),
            write_mean_ns=run.mean("write"),
            read_by_size_ns=run.percentile_by_size("read", self.percentile),
            risk_bytes=outer["mean_kilobytes_at_risk"] * 1e3,
            ssd_bytes_per_day=ssd,
            nvm_bytes_per_day=nvm,
            ssd_years=_years(sold.endurance_bytes(wearing), ssd),
            nvm_years=_years(self._nvm_endurance(run, nvm_bytes), nvm),
            waf=wearing,
            padded=times,
            turned_over=times * written / logical_bytes(device),
            from_free=steadiness.from_free_blocks(run),
            failed=failures.count(run),
            behind=_duration_ns(run) / lasts_ns,
        )

    def _nvm_endurance(self, run: Run, nvm_bytes: int) -> float:
        if self.nvm.writes_per_day is not None:
            return self.nvm.writes_per_day * nvm_bytes * YEAR_DAYS * WARRANTY_YEARS
        reports = run.data["stack"].get("nvms", {}).values()
        return float(sum(report.get("endurance_bytes", 0.0) for report in reports))


def _runs(
    plans: Sequence[Mapping[str, Any]],
    seeds: Sequence[int],
    jobs: int,
    progress: Callable[[str, float], object] | None,
) -> list[list[Run]]:
    """Return for each plan its runs, one a seed."""
    directory = str(cache.directory())
    pairs = [(plan, seed) for plan in plans for seed in seeds]
    tasks = [
        Task(index, "tier", json.dumps(plan), seed, directory)
        for index, (plan, seed) in enumerate(pairs)
    ]
    fractions = [0.0] * len(tasks)

    def report(index: int, phase: str, fraction: float) -> None:
        if phase in ("replay", "done"):
            fractions[index] = max(fractions[index], fraction)
        if progress is not None:
            progress(phase, sum(fractions) / len(tasks))

    found = [Run(data, TableFiles.none()) for data in execute(tasks, jobs, None, report)]
    return [found[start : start + len(seeds)] for start in range(0, len(found), len(seeds))]


def _share(option: str, text: str, footprint: int) -> int:
    """Return a share of what is touched, or a size, in bytes of whole blocks."""
    is_share, found = _quantity(option, text)
    if not is_share:
        return int(found)
    return (
        max(_LEAST_BLOCKS, math.ceil(found * footprint / LOGICAL_PAGE_BYTES)) * LOGICAL_PAGE_BYTES
    )


def _quantity(option: str, text: str) -> tuple[bool, float]:
    """Return whether a share was asked for, and which, or a size in bytes.

    One quantity may be written in several ways, as 5% and 5.0%.
    """
    if not text.endswith("%"):
        return False, _size(option, text)
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not 0 < share <= 1:
        raise InputError(f"{option} {text}: a share is above 0 % and at most 100 %")
    return True, share


def _size(option: str, text: str) -> int:
    try:
        # A number alone may have been meant as a share, or as any unit.
        found = 0 if text.strip().isdecimal() else in_bytes(text)
    except (OverflowError, ValueError):
        found = 0
    if found <= 0:
        raise InputError(f"{option} {text}: write a size, as 1GiB")
    return found


def _check_room(option: str, text: str, asked: int, drive: str, holds: int) -> None:
    if asked > holds:
        raise InputError(
            f"{option} {text}: {asked} bytes are more than the model of {drive} holds, {holds}; "
            "give less, or a larger --model"
        )


def _duration_ns(run: Run) -> float:
    return max(float(run.data["simulated_s"]) * 1e9, 1.0)


def _years(endurance_bytes: float, bytes_per_day: float) -> float | None:
    return endurance_bytes / (bytes_per_day * YEAR_DAYS) if bytes_per_day else None
