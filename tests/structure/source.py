"""The project's own files, as the structure tests read them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rust(*folders: str) -> list[Path]:
    """Return the Rust files below `folders`, by default every crate's ``src``."""
    found = [ROOT / folder for folder in folders] or sorted(ROOT.glob("crates/*/src"))
    return sorted(path for folder in found for path in folder.rglob("*.rs"))


def python() -> list[Path]:
    """Return the files of the Python package."""
    return sorted((ROOT / "python").rglob("*.py"))


def suites() -> list[Path]:
    """Return the files of the tests in both languages, and the examples."""
    globs = ["crates/*/tests/**/*.rs", "crates/*/examples/**/*.rs", "tests/**/*.py"]
    return sorted(path for glob in globs for path in ROOT.glob(glob))


def code(path: Path) -> str:
    """Return a Rust file without its comments."""
    return re.sub(r"//.*", "", path.read_text(encoding="utf-8"))


def name(path: Path) -> str:
    """Return a path as messages show it."""
    return str(path.relative_to(ROOT))
