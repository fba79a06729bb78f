"""The policies of each axis, as the core lists them."""

import json
from functools import cache

from flashkeel import _core


@cache
def by_axis() -> dict[str, tuple[str, ...]]:
    """Return the policies of every axis, such as ``"throttle"``, in the axis's order."""
    found: dict[str, tuple[str, ...]] = {}
    listed: list[str] = json.loads(_core.list_names("policies"))
    for line in listed:
        axis, policy = line.rsplit(" ", 1)
        found[axis] = (*found.get(axis, ()), policy)
    return found
