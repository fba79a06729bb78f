"""`scripts/torture.py` as a module: its client and its drive serve other tests too."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]

_spec = importlib.util.spec_from_file_location("torture", ROOT / "scripts" / "torture.py")
assert _spec is not None
assert _spec.loader is not None
torture = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(torture)
