"""Percentiles as results write them, as people write them, and their axis."""

import math

from flashkeel._core import InputError


def key(percentile: float) -> str:
    """Return the key of a percentile in results, fio's way: ``99.900000``."""
    return f"{percentile:.6f}"


def label(percentile: float) -> str:
    """Return a percentile as ``p99.9``."""
    return f"p{percentile:.6f}".rstrip("0").rstrip(".")


def parse(text: str | float) -> float:
    """Return the percentile meant by ``p99.9``, ``99.9`` or ``99.9%``.

    Raises InputError where it is not a number from 0 up to but not including 100.
    """
    try:
        value = float(str(text).strip().removeprefix("p").removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value < 100:
        raise InputError(f"{text!r} is not a percentile; write for example p99.9")
    known = float(key(value))
    # What has been computed may have more.
    if known >= 100 or (isinstance(text, str) and known != value):
        raise InputError(f"{text!r} has more than six decimals, the most that a percentile has")
    return value


def nines(percentile: float) -> float:
    """Return the position on an axis of nines: 90 is 1, 99 is 2, 99.9 is 3."""
    return -math.log10(1 - percentile / 100)
