"""Figure 11: garbage collection under DTRS at twice the intensity."""

from functools import partial

from flashkeel.reproduce.autossd.episodes import GC, claims, leasts, measure, stops
from flashkeel.reproduce.claims import Study

_WINDOW_S = 20

STUDY = Study(
    "autossd/fig11",
    "Garbage collection under DTRS, twice as fast",
    claims(GC, _WINDOW_S, follows=True),
    partial(measure, profile="dtrs", task=GC, window_s=_WINDOW_S, intensity=2.0, follows=True),
    (stops("dtrs", 2.0), leasts("dtrs", 2.0)),
)
