"""Write amplification over time, from what drives have counted by the end of each window."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Counts = np.ndarray[Any, Any]

_WRITTEN, _PROGRAMMED = "host_bytes_written", "programmed_bytes"


def of_windows(table: Mapping[str, Counts]) -> tuple[Counts, Counts] | None:
    """Return the bytes written to drives, and those that they programmed, window by window.

    Of several drives it is the sum. None where no drive of the series counts them: devices that
    are no SSD do not, nor do results of before they were in it.
    """
    sums = _sum(table, _WRITTEN), _sum(table, _PROGRAMMED)
    return None if sums[0] is None or sums[1] is None else (sums[0], sums[1])


def ratio(written: Counts, programmed: Counts) -> Counts:
    """Return the bytes programmed for each byte written; NaN where nothing was written."""
    import numpy as np

    known = np.where(written > 0, written, np.nan)
    return np.asarray(programmed / known)


def _sum(table: Mapping[str, Counts], name: str) -> Counts | None:
    import numpy as np

    drives = [table[key] for key in table if re.fullmatch(rf"(ssd\d+_)?{name}", key)]
    if not drives:
        return None
    # Counts begin with the measurement.
    counted = np.sum([np.asarray(drive, dtype=float) for drive in drives], axis=0)
    return np.asarray(np.diff(counted, prepend=0.0))
