"""What storage costs: one dated table, which a user's file may replace.

>>> from flashkeel.prices import Prices
>>> Prices.load().of("qlc", 1e12)
100.0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from flashkeel._core import InputError
from flashkeel.parsing import parse_toml, read_document
from flashkeel.suggest import did_you_mean

_BUILT_IN = "prices.toml"
_KEYS = ("date", "currency", "per_gb")


@dataclass(frozen=True)
class Prices:
    """Prices per GB (10⁹ bytes) by technology, of one day."""

    date: str
    currency: str
    per_gb: Mapping[str, float]

    @staticmethod
    def load(path: Path | None = None) -> Prices:
        """Return the table in a file, or the one that is built in.

        A file that is no such table raises InputError with its name and the key.
        """
        if path is None:
            return _checked(files("flashkeel").joinpath(_BUILT_IN).read_text("utf-8"), _BUILT_IN)
        try:
            text = read_document(path)
        except OSError as error:
            raise InputError(f"{path}: cannot read it: {error.strerror}") from None
        return _checked(text, str(path))

    def of(self, technology: str, size_bytes: float) -> float | None:
        """Return what so many bytes of a technology cost; None where it has no price.

        A technology is a preset's name or the beginning of it up to a hyphen:
        ``qlc-1xnm`` costs what ``qlc`` does unless the table has it by itself.
        """
        while technology not in self.per_gb:
            technology, hyphen, _ = technology.rpartition("-")
            if not hyphen:
                return None
        return self.per_gb[technology] * size_bytes / 1e9


def _checked(text: str, name: str) -> Prices:
    try:
        found = parse_toml(text)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    for key in found:
        if key not in _KEYS:
            raise InputError(
                f"{name}: {key}: unknown key, expected one of {', '.join(_KEYS)}"
                f"{did_you_mean(key, _KEYS)}"
            )
    for key in _KEYS:
        if key not in found:
            raise InputError(f"{name}: the key {key!r} is missing")
    prices = found["per_gb"]
    if not isinstance(prices, dict):
        raise InputError(f"{name}: per_gb: expected a table of prices by technology")
    for technology, price in prices.items():
        if not _is_price(price):
            raise InputError(
                f"{name}: per_gb.{technology}: {price!r} is no price; expected a number above 0"
            )
    return Prices(str(found["date"]), str(found["currency"]), prices)


def _is_price(price: Any) -> bool:  # noqa: ANN401
    is_number = isinstance(price, int | float) and not isinstance(price, bool)
    return is_number and 0 < price < float("inf")
