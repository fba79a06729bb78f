"""Write demands as irregular as one asks for."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from flashkeel import lifetime

_BY_THE_MINUTE = 0.45
"""Standard deviation of the logarithm of a minute's demand, that of the profile of exchange."""
_DAILY_SWING = 0.3
"""That of all profiles."""
_MINUTES_A_DAY = 1_440


def noisy(name: str, noise: float, seed: int, folder: Path) -> dict[str, Any]:
    """Return a day with a profile's volume and this noise by the half hour, as traffic.

    It is written to the folder, and is the same for the same name, noise and seed.
    """
    profile = next(p for p in lifetime.write_profiles() if p["name"] == name)
    rng = random.Random(f"{name}/{noise}/{seed}")
    written = []
    slow = 1.0
    for minute in range(_MINUTES_A_DAY):
        if minute % 30 == 0:
            slow = rng.lognormvariate(0, noise)
        day = 1 - _DAILY_SWING * math.cos(2 * math.pi * minute / _MINUTES_A_DAY)
        written.append(day * slow * rng.lognormvariate(0, _BY_THE_MINUTE))
    scale = profile["gb_per_hour"] * 24e9 / sum(written)
    path = folder / f"{name}.csv"
    rows = (f"{minute},{round(share * scale)}" for minute, share in enumerate(written))
    path.write_text("\n".join(["window,write_bytes", *rows, ""]))
    return {"policy": "series", "path": str(path), "interval": "1min"}
