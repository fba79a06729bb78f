"""Claims over the set-up quantities that their works leave open: where each holds."""

from __future__ import annotations

from collections.abc import Sequence

from flashkeel._core import InputError
from flashkeel.reproduce import works
from flashkeel.reproduce.claims import Claim, Outcome, Range, Study, Swept, Verdict
from flashkeel.reproduce.session import Session, part
from flashkeel.reproduce.unfinished import Attempts


def sweep(ids: Sequence[str], session: Session) -> list[Verdict]:
    """Judge the claims that `ids` name, all if none, at every value of their quantities.

    The verdict on a claim is the one at the value nearest to its work's text; of several
    quantities, the first. One that the session's recorded requests decide is left out. InputError
    where none of the claims has a quantity left open; where one fails the others are measured,
    and Unfinished has their verdicts; BrokenOff has those there are at an interrupt.
    """
    chosen = [
        (study, range_)
        for study in works.select(ids)
        for range_ in study.ranges
        if _claims(study, range_, ids)
    ]
    reasons = {f"{s.id}: {reason}" for s, r in chosen if (reason := r.closed(session))}
    if chosen and not (chosen := [(s, r) for s, r in chosen if not r.closed(session)]):
        raise InputError("; ".join(sorted(reasons)))
    if not chosen:
        known = ", ".join(study.id for study in works.STUDIES if study.ranges)
        raise InputError(f"{', '.join(ids)}: no quantity is left open there; --range knows {known}")
    found: dict[str, Verdict] = {}
    outer = session.progress
    attempts = Attempts()
    for index, (study, range_) in enumerate(chosen):
        if attempts.is_broken_off:
            break
        quantity = range_.quantity
        outcomes: dict[float, Outcome] = {}
        with attempts.at(f"{study.id} over {quantity.name}"):
            for step, value in enumerate(quantity.values):
                if outer is not None:
                    whole = len(chosen) * len(quantity.values)
                    done = index * len(quantity.values) + step
                    session.progress = part(outer, f"{study.id} {value:g}", done, whole)
                outcomes[value] = study.outcome_at(range_, session, value)
        if len(outcomes) < len(quantity.values):
            continue
        nearest = outcomes[quantity.nearest]
        for claim in _claims(study, range_, ids):
            swept = Swept(
                quantity, {at: each.findings[claim.name] for at, each in outcomes.items()}
            )
            first = found.get(f"{study.id}/{claim.name}")
            found[f"{study.id}/{claim.name}"] = (
                Verdict(study, claim, nearest.findings[claim.name], nearest, (swept,))
                if first is None
                else Verdict(study, claim, first.finding, first.outcome, (*first.swept, swept))
            )
    session.progress = outer
    return attempts.ended(list(found.values()))


def _claims(study: Study, range_: Range, ids: Sequence[str]) -> list[Claim]:
    """Return the claims of a range that `ids` name."""
    return [
        claim
        for claim in study.claims
        if claim.name in range_.claims
        and (not ids or any(works.within(f"{study.id}/{claim.name}", wanted) for wanted in ids))
    ]
