"""Documents made from the code are what the code would make now."""

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts/write_docs.py"


def test_documents_are_fresh():
    for path, text in runpy.run_path(str(SCRIPT))["documents"]().items():
        assert path.exists(), f"{path.name} is missing; run make docs"
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale; run make docs"
