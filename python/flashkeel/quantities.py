"""Sizes and rates as resolved documents write them: whole numbers with a unit."""

_SCALES: dict[str, int] = {
    prefix + binary: int((1024 if binary else 1000) ** power)
    for power, prefix in enumerate(("", "K", "M", "G", "T"))
    for binary in ("", "i")
}


def in_bytes(text: str) -> int:
    """Return the bytes of a size, ``16KiB``."""
    digits = "".join(it for it in text if it.isdigit())
    return int(digits) * _SCALES[text.removeprefix(digits).removesuffix("B")]


def bytes_per_second(text: str) -> int:
    """Return the bytes a second of a rate, ``400MB/s``."""
    return in_bytes(text.removesuffix("/s"))
