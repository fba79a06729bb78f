"""READY: recovery-aware dynamic throttling (FAST 2012)."""

from flashkeel.reproduce.ready import demand, epochs, levelling, lifetimes, real, response

STUDIES = (
    demand.STUDY,
    epochs.STUDY,
    lifetimes.STUDY,
    response.STUDY,
    levelling.STUDY,
    real.STUDY,
)
