"""Figure 7: read scrubbing under LM-TBE."""

from functools import partial

from flashkeel.reproduce.autossd.episodes import SCRUB, claims, measure
from flashkeel.reproduce.claims import Study

_WINDOW_S = 20

STUDY = Study(
    "autossd/fig7",
    "Read scrubbing under LM-TBE",
    claims(SCRUB, _WINDOW_S, follows=False),
    partial(
        measure, profile="lm-tbe", task=SCRUB, window_s=_WINDOW_S, intensity=1.0, follows=False
    ),
)
