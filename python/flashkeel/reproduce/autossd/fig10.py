"""Figure 10: four systems under eight traces at twice the intensity."""

from functools import partial

from flashkeel.reproduce.autossd.comparison import Reductions, caps, claims, measure
from flashkeel.reproduce.claims import Study

_PRINTED = (
    Reductions("average", 4.9, 24.6, "MSN-BEFS"),
    Reductions("p99.9", 48.6, 70.6, "MSN-CFS"),
    Reductions("p99.9999", 33.2, 55.3, "MSN-CFS"),
)

STUDY = Study(
    "autossd/fig10",
    "Four systems under eight traces, twice as fast",
    claims(_PRINTED),
    partial(measure, printed=_PRINTED, intensity=2.0),
    (caps(_PRINTED, 2.0),),
    is_cut_short=True,
)
