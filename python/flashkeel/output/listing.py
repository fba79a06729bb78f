"""Objects of counts and names, as lines of text."""

from __future__ import annotations

from typing import Any

from flashkeel.output import units


def lines(found: dict[str, Any], unit: str = "", indent: str = "") -> list[str]:
    """Return nested counts and names, one a line, in human units.

    A key ends in its unit (``_ns``, ``_bytes``), or in none where `unit`, the
    key of the object around it, says it.
    """
    width = max((len(key) for key in found), default=0) + 2
    laid_out: list[str] = []
    for key, value in found.items():
        words = key.removesuffix("_ns").replace("_", " ")
        if isinstance(value, dict):
            laid_out += [f"{indent}{words}", *lines(value, key, indent + "  ")]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            rows = (_row(item) for item in value)
            laid_out += [f"{indent}{words}", *(f"{indent}  {row}" for row in rows)]
        else:
            laid_out.append(f"{indent}{words:<{width}}{_human(f'{key}_{unit}', value)}")
    return laid_out


def _row(item: dict[str, Any]) -> str:
    pairs = ((key.removesuffix("_bytes").replace("_", " "), _human(key, item[key])) for key in item)
    return ", ".join(f"{words} {text}" for words, text in pairs)


def _human(key: str, value: Any) -> str:  # noqa: ANN401
    match value:
        case str():
            # Names come from files; nothing in one moves a cursor.
            return "".join(c if c.isprintable() else repr(c)[1:-1] for c in value)
        case bool():
            return str(value)
        case int() | float() if "_ns" in key:
            return units.duration(value)
        case int() | float() if "bytes" in key:
            return units.size(value)
        case float() if "fraction" in key:
            return units.share(value)
        case int():
            return f"{value:,}"
        case float():
            return units.significant(value)
        case list():
            return "; ".join(_human(key, item) for item in value) or units.MISSING
    return units.MISSING
