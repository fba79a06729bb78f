"""Drives and NVMs as they are sold, and models of drives that run in seconds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flashkeel._core import LOGICAL_PAGE_BYTES, InputError
from flashkeel.experiment import Experiment
from flashkeel.quantities import flash_bytes, in_bytes, planes

YEAR_DAYS = 365.0
"""Here and in TBW and DWPD."""
WARRANTY_YEARS = 5.0
"""For how long drive writes per day are meant."""
_BLOCKS_PER_PLANE = 160
"""Of the model of a drive: enough for garbage collection to work as in a large one."""
_FEWEST_PAGES = 48


@dataclass(frozen=True)
class Medium:
    """A drive or an NVM."""

    preset: str
    writes_per_day: float | None = None
    """Times its capacity that may be written each day, over five years; else by its wear law,
    and of an NVM by its preset."""


@dataclass(frozen=True)
class Sold:
    """A drive at the size at which it is sold."""

    medium: Medium
    config: Mapping[str, Any]

    @staticmethod
    def of(medium: Medium, is_endurance_known: bool = False) -> Sold:
        """Look a drive's preset up.

        InputError where its endurance is not known, here or to who asks.
        """
        document = (
            f"[device]\npreset = {json.dumps(medium.preset)}\n"
            '[workload]\nsource = "synthetic"\npacing = "closed"\nrequests = 1\n'
        )
        plan = Experiment(document, f"drive {medium.preset}").plans()[0]
        sold = Sold(medium, plan["config"]["device"])
        is_known = is_endurance_known or medium.writes_per_day is not None
        if not is_known and sold.rated_cycles is None:
            raise InputError(
                f"drive {medium.preset}: its endurance is not known, as the preset has no wear "
                "law; give the drive writes per day that it is sold with, as "
                f"{medium.preset},dwpd=0.3"
            )
        return sold

    @property
    def capacity(self) -> int:
        """What the host can address, in bytes."""
        return in_bytes(self.config["logical_capacity"])

    @property
    def rated_cycles(self) -> float | None:
        """Cycles that a block endures; None without a wear law."""
        wear = self.config.get("wear")
        found = wear.get("rated_cycles") if isinstance(wear, Mapping) else None
        return None if found is None else float(found)

    @property
    def over_provisioning(self) -> float:
        """Flash beyond the capacity, as a share of it."""
        return flash_bytes(self.config["geometry"]) / self.capacity - 1

    def endurance_bytes(self, amplification: float | None) -> float:
        """Return what may be written to it: as it is sold, or by its wear law.

        By that the cycles of its blocks are used up `amplification` times as fast.
        """
        if self.medium.writes_per_day is not None:
            return self.medium.writes_per_day * self.capacity * YEAR_DAYS * WARRANTY_YEARS
        return (
            (self.rated_cycles or 0.0)
            * flash_bytes(self.config["geometry"])
            / max(amplification or 1.0, 1.0)
        )

    def model(self, wanted: int) -> dict[str, Any]:
        """Return the same drive with smaller and fewer blocks, which holds so much.

        The share of its flash that is not for the host stays what it is.
        """
        geometry = self.config["geometry"]
        flash, page = flash_bytes(geometry), in_bytes(geometry["page_size"])
        across = planes(geometry)
        raw = min(wanted, self.capacity) * flash / self.capacity
        blocks = min(_BLOCKS_PER_PLANE, geometry["blocks_per_plane"])
        kinds = len(self.config["timing"]["program"])
        pages = math.ceil(raw / (across * blocks * page))
        pages = min(max(_FEWEST_PAGES, pages), geometry["pages_per_block"])
        pages = -(-pages // kinds) * kinds
        blocks = max(blocks, math.ceil(raw / (across * pages * page)))
        size = across * blocks * pages * page * self.capacity / flash
        return {
            "preset": self.medium.preset,
            "logical_capacity": f"{int(size) // LOGICAL_PAGE_BYTES * LOGICAL_PAGE_BYTES}B",
            "geometry": {"blocks_per_plane": blocks, "pages_per_block": pages},
        }
