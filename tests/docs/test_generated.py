"""Documents made from the code are what the code would make now."""

import json
import runpy
from pathlib import Path

from flashkeel import _core

SCRIPT = Path(__file__).parents[2] / "scripts/write_docs.py"


def test_documents_are_fresh():
    for path, text in runpy.run_path(str(SCRIPT))["documents"]().items():
        assert path.exists(), f"{path.name} is missing; run make docs"
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale; run make docs"


def test_each_policy_has_its_keys_beside_its_name():
    # What a table of the schema refers to knows no `policy`, and would refuse it.
    types = json.loads(_core.schema())["$defs"].values()
    tables = [table for one in types if "x-axis" in one for table in one["anyOf"]]
    assert len(tables) > 100
    assert not [table for table in tables if "$ref" in table]
