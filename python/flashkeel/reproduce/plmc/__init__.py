"""Deterministic windows that hosts share: chapter 4 of Roy's dissertation (PLMC)."""

from flashkeel.reproduce.plmc import composition, copies, counts, hedging, ioda, spread, tails

STUDIES = (
    tails.STUDY,
    copies.STUDY,
    counts.STUDY,
    spread.STUDY,
    ioda.STUDY,
    composition.STUDY,
    hedging.STUDY,
)
