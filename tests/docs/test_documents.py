"""Documents within documents are read as they stand."""

import re
from pathlib import Path

import pytest
from flashkeel import Experiment, InputError
from flashkeel.sweep import design

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(ROOT.glob("docs/*.md"))
BLOCK = re.compile(r"^ *```toml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)

WORKLOAD = """
[workload]
requests = 1
pacing = { policy = "closed", depth = 1 }
source = { policy = "synthetic", read_fraction = 1.0 }
"""
"""Of documents that say nothing of one."""


def blocks():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in BLOCK.finditer(text):
            line = text.count("\n", 0, found.start()) + 2
            yield pytest.param(found[1], id=f"{page.name}:{line}")


@pytest.mark.parametrize("block", list(blocks()))
def test_each_is_read(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("disk").write_bytes(bytes(16 << 20))
    for name in ("mine.log", "disk.csv.gz", "cloudphysics_vm.vscsi.gz"):
        Path(name).write_text("0 0 0 8 1\n1000000 0 8 8 0\n")
    block = block.replace("/dev/nvme1n1", "disk")
    if "[grid]" in block:
        sweep = design.parse(block, "mine.toml", Path())
        assert all(sweep.experiment(point).plans() for point in sweep.points)
        return
    if "source" not in block:
        block += WORKLOAD
    elif "[workload.source]" in block and "[workload]" not in block:
        block += "[workload]\nduration = '1s'\n"
    try:
        assert Experiment.from_toml(block).plans()
    except InputError as error:
        # What a probe has found is not there.
        assert "model.json" in str(error)
