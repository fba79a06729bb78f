"""Reproduction of published works: their claims as experiments with stated rules.

>>> from flashkeel import reproduce
>>> for verdict in reproduce.reproduce(["autossd/fig4a"], reproduce.Session(quick=True)):
...     print(verdict.id, verdict.finding.holds)
"""

from __future__ import annotations

from collections.abc import Sequence

from flashkeel.reproduce import works
from flashkeel.reproduce.claims import Verdict
from flashkeel.reproduce.ranges import sweep
from flashkeel.reproduce.session import Session, part
from flashkeel.reproduce.unfinished import Attempts, BrokenOff, Unfinished

__all__ = ["BrokenOff", "Session", "Unfinished", "Verdict", "reproduce", "sweep"]


def reproduce(ids: Sequence[str], session: Session) -> list[Verdict]:
    """Run the figures that `ids` name, all if none, and return a verdict a claim.

    An id is a work (``autossd``), a figure (``autossd/fig5``) or a claim
    (``autossd/fig5/p99.9-mean``). One that is unknown raises InputError. Where a figure fails the
    others are measured, and Unfinished has their verdicts; BrokenOff has those there are at an
    interrupt.
    """
    studies = works.select(ids)
    verdicts: list[Verdict] = []
    attempts = Attempts()
    outer = session.progress
    for index, study in enumerate(studies):
        if attempts.is_broken_off:
            break
        if outer is not None:
            session.progress = part(outer, study.id, index, len(studies))
        with attempts.at(study.id):
            outcome = study.outcome(session)
            verdicts += [
                Verdict(study, claim, outcome.findings[claim.name], outcome)
                for claim in study.claims
            ]
    session.progress = outer
    wanted = [v for v in verdicts if not ids or any(works.within(v.id, i) for i in ids)]
    return attempts.ended(wanted)
