"""The works that are reproduced: one line each."""

from __future__ import annotations

from collections.abc import Sequence

from flashkeel._core import InputError
from flashkeel.reproduce import autossd, envm, keel, plmc, plmlight, ready, ssdcheck, ttflash
from flashkeel.reproduce.claims import Claim, Study
from flashkeel.suggest import did_you_mean

STUDIES: tuple[Study, ...] = (
    *autossd.STUDIES,
    *ready.STUDIES,
    *ttflash.STUDIES,
    *ssdcheck.STUDIES,
    *envm.STUDIES,
    *plmc.STUDIES,
    *plmlight.STUDIES,
    *keel.STUDIES,
)


def select(ids: Sequence[str]) -> list[Study]:
    """Return the figures that `ids` name, in the works' order; all where there are none.

    An id is a figure's, a claim's of it, or the beginning of ids up to a slash.
    One that names nothing raises InputError.
    """
    for wanted in ids:
        if not any(names(study, wanted) for study in STUDIES):
            raise InputError(f"nothing to reproduce is called {wanted!r}{_suggestion(wanted)}")
    return [s for s in STUDIES if not ids or any(names(s, wanted) for wanted in ids)]


def names(study: Study, wanted: str) -> bool:
    """Return whether `wanted` names a figure or any claim of it."""
    return within(study.id, wanted) or any(
        f"{study.id}/{claim.name}" == wanted for claim in study.claims
    )


def claims_of(study: Study, ids: Sequence[str]) -> list[Claim]:
    """Return the claims of a figure that `ids` name; all where there are none."""

    def is_wanted(claim: Claim) -> bool:
        return any(within(f"{study.id}/{claim.name}", wanted) for wanted in ids)

    return [claim for claim in study.claims if not ids or is_wanted(claim)]


def within(name: str, wanted: str) -> bool:
    """Return whether `name` is `wanted` or begins with it up to a slash."""
    return f"{name}/".startswith(f"{wanted.rstrip('/')}/")


def _suggestion(wanted: str) -> str:
    works = dict.fromkeys(study.id.split("/")[0] for study in STUDIES)
    claims = [f"{study.id}/{claim.name}" for study in STUDIES for claim in study.claims]
    known = [*works, *(study.id for study in STUDIES), *claims]
    return did_you_mean(wanted, known) or "; --list shows what is there"
