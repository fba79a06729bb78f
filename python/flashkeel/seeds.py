"""Seeds: whole numbers of 64 bits, and as many in a row as are asked for."""

from typing import SupportsIndex

from flashkeel._core import InputError

_COUNT = 2**64
_MOST = 1_000_000
"""Seeds in a row: results of more would not fit anywhere."""


def check(seed: int, place: str = "seed") -> int:
    """Return `seed`; InputError where it is none, with `place` as the name of what was given."""
    if not _is_whole(seed):
        raise refused(place, repr(seed))
    if seed < 0:
        raise refused(place, f"the integer {seed}")
    if seed >= _COUNT:
        raise refused(place, "an integer beyond 64 bits")
    return int(seed)


def check_count(count: int, place: str) -> int:
    """Return `count`, which `place` names; InputError where it is no number of anything."""
    if not _is_whole(count):
        raise InputError(f"{place}: expected a whole number, 1 or more, found {count!r}")
    if count < 1:
        raise InputError(f"{place} = {count}: at least one is needed")
    return int(count)


def refused(place: str, found: str) -> InputError:
    """Return the error for what was found instead of a seed, as documents give it."""
    return InputError(f"{place}: expected a whole number, 0 or more, found {found}")


def consecutive(first: int, count: int) -> list[int]:
    """Return `count` seeds from `first` on; after the largest comes 0.

    InputError where that is none, or more than a million.
    """
    first, count = check(first), check_count(count, "seeds")
    if count > _MOST:
        raise InputError(f"{count} seeds; at most {_MOST} at a time")
    return [(first + index) % _COUNT for index in range(count)]


def _is_whole(number: object) -> bool:
    """Return whether it is a whole number, of Python or of others that have them.

    To Python booleans are numbers; here they are an argument in the wrong place.
    """
    return isinstance(number, SupportsIndex) and not isinstance(number, bool)
