"""Regenerate the documents that are made from the code: ``make docs``."""

from pathlib import Path

from flashkeel import _core

DOCS = Path(__file__).parent.parent / "docs"


def documents() -> dict[Path, str]:
    """Return each generated document's path and text."""
    return {
        DOCS / "configuration.md": _core.reference().rstrip("\n") + "\n",
        DOCS / "schema.json": _core.schema().rstrip("\n") + "\n",
    }


if __name__ == "__main__":
    DOCS.mkdir(exist_ok=True)
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(DOCS.parent))
