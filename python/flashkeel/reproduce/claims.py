"""Claims of published works, and what was found of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from flashkeel.comparison import FEW
from flashkeel.output import units

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from flashkeel.reproduce.session import Session
    from flashkeel.run import Run

Basis = Literal["trace", "synthetic", "device"]
"""What a finding rests on: recorded requests, generated ones, or the device alone."""

Value = float | str | Sequence[float] | Mapping[str, float | None] | None
"""A number, or numbers by name; None where there is none."""


@dataclass(frozen=True)
class Claim:
    """What a work says, and when it counts as found here too."""

    name: str
    """Last part of its id."""
    claim: str
    """What the work says, in a sentence."""
    rule: str
    """When it holds: an ordering, a sign, a bound, or a factor with its tolerance."""
    paper: Value
    """The work's own number."""
    unit: str
    """Of the work's numbers and of those measured; empty where there are none or each says its
    own."""
    is_of_absence: bool = False
    """Whether it says that something does not come, which a run cut short may just not see."""
    is_of_all: bool = False
    """Whether it is of all of some cases, loads or seeds or weeks, of which --quick runs a part."""


@dataclass(frozen=True)
class Finding:
    """What was measured for a claim."""

    measured: Value
    """Numbers that are infinite or none at all become None: nobody knows them."""
    holds: bool | None
    """Whether the rule is met; None where the samples do not allow a verdict."""
    reason: str = ""
    """Why it does not hold, or cannot be judged, or under which limits it does."""
    interval: tuple[float, float] | None = None
    """95 % interval of a single measured number, where one is known."""
    basis: Basis | None = None
    """What it rests on, where that is not what the whole figure does."""

    def __post_init__(self) -> None:
        """Put None for numbers that JSON does not have."""
        object.__setattr__(self, "measured", _known(self.measured))


def _known(value: Value) -> Value:
    match value:
        case float() if not math.isfinite(value):
            return None
        case Mapping():
            return {
                name: None if number is None or not math.isfinite(number) else number
                for name, number in value.items()
            }
    return value


@dataclass(frozen=True)
class Outcome:
    """What came of one figure."""

    findings: Mapping[str, Finding]
    """One for each claim, by name."""
    basis: Basis
    conditions: str
    """What was run: device, workload, length; one sentence."""
    picture: Callable[[], Picture] | None = None
    """Draws it as the work does."""


@dataclass(frozen=True)
class Quantity:
    """A quantity of the set-up that a work leaves open."""

    name: str
    values: tuple[float, ...]
    """Those tried, smallest first."""
    nearest: float
    """Of these, the one nearest to the work's text; the verdict is given there."""
    paper: str
    """What the work says of it, and where its own figures lie."""
    unit: str = ""


@dataclass(frozen=True)
class Range:
    """Claims of a study over one quantity, on runs small enough to repeat at each value."""

    quantity: Quantity
    claims: tuple[str, ...]
    """Names of the claims that it judges."""
    measure: Callable[[Session, float], Outcome]
    """Runs what is needed at one value and judges these claims there."""
    closed: Callable[[Session], str] = lambda session: ""
    """Why nothing is left open in a session, such as where recorded requests decide it."""


@dataclass(frozen=True)
class Swept:
    """What was found of one claim over a quantity."""

    quantity: Quantity
    findings: Mapping[float, Finding]
    """By value."""

    def where(self, holds: bool | None) -> list[float]:
        """Return the values at which the claim holds, does not, or cannot be judged."""
        return [value for value, found in self.findings.items() if found.holds is holds]

    @property
    def turns(self) -> bool:
        """Whether the claim holds at some values and at others does not."""
        return bool(self.where(True) and self.where(False))


@dataclass(frozen=True)
class Study:
    """A figure or table of a work as an experiment."""

    id: str
    """Work and figure, as ``autossd/fig5``."""
    title: str
    claims: tuple[Claim, ...]
    measure: Callable[[Session], Outcome]
    """Runs what is needed and judges every claim."""
    ranges: tuple[Range, ...] = ()
    """What is swept with ``--range``."""
    is_cut_short: bool = False
    """Whether --quick runs less than is needed to deny a claim: shorter, smaller, fewer seeds."""

    def outcome(self, session: Session) -> Outcome:
        """Run what is needed and judge every claim, as far as the session allows."""
        session.failed.clear()
        return self._as_told(self.measure(session), session)

    def outcome_at(self, range_: Range, session: Session, value: float) -> Outcome:
        """Do the same for the claims of a range, at one value of its quantity."""
        session.failed.clear()
        return self._as_told(range_.measure(session, value), session)

    def _as_told(self, outcome: Outcome, session: Session) -> Outcome:
        is_short = self.is_cut_short and session.quick
        absent = {claim.name for claim in self.claims if claim.is_of_absence}
        findings = beginnings(outcome.findings, is_short, absent)
        if session.quick:
            whole = {claim.name for claim in self.claims if claim.is_of_all}
            findings = {
                name: _undecided(found, "--quick runs a part of its cases, which cannot confirm it")
                if found.holds and name in whole
                else found
                for name, found in findings.items()
            }
        if session.failed:
            most = max(session.failed, key=lambda case: session.failed[case])
            reason = (
                f"requests failed, {session.failed[most]:,} with {most}; they are in no percentile"
            )
            findings = {name: _undecided(found, reason) for name, found in findings.items()}
        return replace(outcome, findings=findings)

    def open_for(self, claim: Claim) -> list[str]:
        """Return the quantities over which ``--range`` judges a claim, in words."""
        return [each.quantity.name for each in self.ranges if claim.name in each.claims]


@dataclass(frozen=True)
class Verdict:
    """A claim beside what was found of it."""

    study: Study
    claim: Claim
    finding: Finding
    outcome: Outcome
    swept: tuple[Swept, ...] = ()
    """What was found over the quantities that its work leaves open."""

    @property
    def id(self) -> str:
        """Id of the claim, as ``autossd/fig5/p99.9-mean``."""
        return f"{self.study.id}/{self.claim.name}"

    @property
    def basis(self) -> Basis:
        """What the finding rests on."""
        return self.finding.basis or self.outcome.basis


def beginnings(
    findings: Mapping[str, Finding], quick: bool, absent: Container[str] = ()
) -> dict[str, Finding]:
    """Return findings; of --quick, those of a run cut short.

    It can confirm but not deny, save those of something that does not come, the `absent`.
    """
    return {
        name: _undecided(
            found, f"a run cut short by --quick cannot {'confirm' if name in absent else 'deny'} it"
        )
        if quick and found.holds is (name in absent)
        else found
        for name, found in findings.items()
    }


def _undecided(found: Finding, reason: str) -> Finding:
    return replace(found, holds=None, reason="; ".join(filter(None, [reason, found.reason])))


def few(run: Run, latency_class: str, percentile: float) -> bool:
    """Return whether fewer than ten samples lie beyond a percentile."""
    return run.beyond(latency_class, percentile) < FEW


def too_few(beyond: int) -> str:
    """Return the reason to give where samples are missing."""
    return f"{beyond} samples lie beyond the percentile, {FEW} are needed"


def owner(run: Run, latency_class: str, percentile: float) -> str:
    """Return the cause that owns most of what lies above a percentile, in words."""
    largest = run.explain(percentile, latency_class).shares[0]
    above = "of the mean" if percentile == 0 else f"above p{percentile:g}"
    return f"{units.cause(largest.cause)} owns {units.share(largest.share)} {above}"


def owners(runs: Mapping[str, Run], latency_class: str, percentile: float) -> str:
    """Return the same of several runs."""
    each = [f"{name}: {owner(run, latency_class, percentile)}" for name, run in runs.items()]
    return "; ".join(each)


def at_least_half(measured: float, paper: float, none: float = 0.0) -> tuple[bool | None, str]:
    """Return whether an effect is at least half of a work's, and what to say beyond twice it.

    `none` is the number of no effect: 0 of a reduction, 1 of a factor. None where nothing is
    measured.
    """
    if math.isnan(measured):
        return None, "nothing was measured"
    return (measured - none) / (paper - none) >= 0.5, beyond_twice(measured, paper, none)


def beyond_twice(measured: float, paper: float, none: float = 0.0) -> str:
    """Return what to say of an effect that is more than twice a work's; empty of any other."""
    share = (measured - none) / (paper - none)
    return f"beyond twice the paper's: {share:.3g} times its effect" if share > 2 else ""


def reduction(a: float, b: float) -> float:
    """Return by how many percent `b` is below `a`; negative where it is above."""
    return 100 * (1 - b / a)


def with_interval(
    run: Run, latency_class: str, percentile: float
) -> tuple[float, float, float] | None:
    """Return a percentile in ns and the bounds of its 95 % interval, where there is one."""
    value = run.percentile(latency_class, percentile)
    bounds = run.interval(latency_class, percentile)
    return None if value is None or bounds is None else (value, *bounds)


def rises(values: Sequence[float], tolerance: float = 0.0) -> bool:
    """Return whether no value is below its predecessor by more than the fraction `tolerance`."""
    return all(b >= a * (1 - tolerance) for a, b in pairwise(values))
