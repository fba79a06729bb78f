"""Seeds: whole numbers of 64 bits, and as many in a row as are asked for."""

from flashkeel._core import InputError

_COUNT = 2**64
_MOST = 1_000_000
"""Seeds in a row: results of more would not fit anywhere."""


def check(seed: int, place: str = "seed") -> int:
    """Return `seed`; InputError where it is none, with `place` as the name of what was given."""
    if seed < 0:
        raise refused(place, f"the integer {seed}")
    if seed >= _COUNT:
        raise refused(place, "an integer beyond 64 bits")
    return seed


def refused(place: str, found: str) -> InputError:
    """Return the error for what was found instead of a seed, as documents give it."""
    return InputError(f"{place}: expected a whole number, 0 or more, found {found}")


def consecutive(first: int, count: int) -> list[int]:
    """Return `count` seeds from `first` on; after the largest comes 0.

    InputError where that are more than a million.
    """
    check(first)
    if count > _MOST:
        raise InputError(f"{count} seeds; at most {_MOST} at a time")
    return [(first + index) % _COUNT for index in range(count)]
