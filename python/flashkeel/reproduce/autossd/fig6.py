"""Figure 6: garbage collection under RAD-AS."""

from functools import partial

from flashkeel.reproduce.autossd.episodes import GC, claims, leasts, measure, stops
from flashkeel.reproduce.claims import Study

_WINDOW_S = 10

STUDY = Study(
    "autossd/fig6",
    "Garbage collection under RAD-AS",
    claims(GC, _WINDOW_S, follows=True),
    partial(measure, profile="rad-as", task=GC, window_s=_WINDOW_S, intensity=1.0, follows=True),
    (stops("rad-as", 1.0), leasts("rad-as", 1.0)),
)
