"""The Python examples of the documentation are valid, and those that stand alone run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_ALONE = {"docs/tour.md": "goes on with files that the reader has made by then"}
"""Pages whose examples are compiled only, and why."""


def examples():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        name = page.relative_to(ROOT).as_posix()
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start(1))
            yield pytest.param(name, line, block[1], id=f"{name}:{line + 1}")


@pytest.mark.parametrize(("page", "line", "code"), list(examples()))
def test_an_example_runs(page, line, code, tmp_path, monkeypatch):
    # Empty lines before it, so that an error tells the line of the page.
    compiled = compile("\n" * line + code, ROOT / page, "exec")
    if page not in NOT_ALONE:
        monkeypatch.chdir(tmp_path)
        exec(compiled, {"__name__": "example"})


def test_there_are_examples_and_reasons():
    pages = {parameter.values[0] for parameter in examples()}
    assert pages >= {"docs/lifetime.md", *NOT_ALONE}
