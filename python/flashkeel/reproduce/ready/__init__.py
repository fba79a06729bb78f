"""READY: recovery-aware dynamic throttling (FAST 2012)."""

from flashkeel.reproduce.ready import demand, lifetimes, real, response

STUDIES = (demand.STUDY, lifetimes.STUDY, response.STUDY, real.STUDY)
