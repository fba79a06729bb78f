"""Figure 5: four systems under eight traces."""

from functools import partial

from flashkeel.reproduce.autossd.comparison import BURSTY, Reductions, caps, claims, measure
from flashkeel.reproduce.claims import Study

_PRINTED = (
    Reductions("average", 3.8, 18.0, "MSN-BEFS"),
    Reductions("p99.9", 53.6, 67.2, "RAD-AS"),
    Reductions("p99.9999", 42.7, 76.6, "RAD-AS"),
)

STUDY = Study(
    "autossd/fig5",
    "Four systems under eight traces",
    (*claims(_PRINTED), BURSTY),
    partial(measure, printed=_PRINTED, intensity=1.0),
    (caps(_PRINTED, 1.0),),
    is_cut_short=True,
)
