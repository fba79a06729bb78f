"""Regenerate what documents take from the code: ``make docs``.

Some documents are made as a whole. In the others, a table of policies stands
between ``<!-- policies: AXIS -->``, or ``<!-- axes -->``, and ``<!-- end -->``.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from flashkeel import _core

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PLACE = re.compile(r"(<!-- (?:policies: (.+?)|axes) -->\n).*?(<!-- end -->)", re.DOTALL)
AXIS = re.compile(r'^(?:flashkeel_config::)?axis! \{.*?\bas "([^"]+)"', re.MULTILINE | re.DOTALL)


def documents() -> dict[Path, str]:
    """Return the path and the text of each document that is, or holds, something generated."""
    pages = [*ROOT.glob("*.md"), *DOCS.glob("*.md")]
    texts = {page: page.read_text(encoding="utf-8") for page in sorted(pages)}
    filled = {page: PLACE.sub(_table, text) for page, text in texts.items() if PLACE.search(text)}
    return filled | {
        DOCS / "configuration.md": _core.reference().rstrip("\n") + "\n",
        DOCS / "schema.json": _core.schema().rstrip("\n") + "\n",
    }


def _table(place: re.Match[str]) -> str:
    head, rows = _policies(place[2]) if place[2] else (("axis", "list"), _axes())
    head_line, *lines = (f"| {left} | {right} |\n" for left, right in (head, *rows))
    return "".join([place[1], head_line, "|---|---|\n", *lines, place[3]])


def _policies(axis: str) -> tuple[tuple[str, str], Iterable[tuple[str, str]]]:
    """Return the head and the rows of an axis's table: its policies and what they do."""
    types = json.loads(_core.schema())["$defs"].values()
    found = next(one for one in types if one.get("x-axis") == axis)
    rows = (
        (f"`{_name(policy['properties'])}`", _sentence(policy["description"]))
        for policy in found["anyOf"]
        if "properties" in policy
    )
    return (axis, re.split(r"[:.]", _sentence(found["description"]))[0]), rows


def _name(properties: dict[str, dict[str, str]]) -> str:
    """Return the name of the policy, or the only key, of a choice of an axis."""
    return properties["policy"]["const"] if "policy" in properties else next(iter(properties))


def _axes() -> Iterable[tuple[str, str]]:
    """Return each axis, and the folder of its policies, or else the file of its list."""
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        place = path.parent if path.name == "mod.rs" else path
        for axis in AXIS.findall(path.read_text(encoding="utf-8")):
            yield axis, f"`{place.relative_to(ROOT).as_posix()}`"


def _sentence(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
