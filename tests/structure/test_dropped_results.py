"""What makes something new and changes nothing is not called for nothing."""

import ast
import json

from structure.source import ROOT, name, python


def dropped(text):
    """Return the lines of statements that set a key of an experiment and drop the new one.

    No other `set` takes positional arguments and is called as a statement: Matplotlib's takes
    keywords, that of events nothing.
    """
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="set"), args=[_, *_])):
                found.append(node.lineno)
    return found


def test_a_dropped_experiment_is_found():
    text = (
        "\ne.set('a', 1).set('b', 2)\nf = e.set('a', 1)\ne.set(*pair)\naxes.set(x=1)\nevent.set()"
    )
    assert dropped(text) == [2, 4]


def test_nobody_sets_a_key_of_an_experiment_and_drops_the_new_one():
    others = (path for folder in ("tests", "scripts") for path in (ROOT / folder).rglob("*.py"))
    texts = {name(path): path.read_text() for path in (*python(), *others)}
    for path in (ROOT / "docs").glob("*.ipynb"):
        for number, cell in enumerate(json.loads(path.read_text())["cells"]):
            if cell["cell_type"] == "code":
                texts[f"{name(path)}, cell {number}"] = "".join(cell["source"])
    assert len(texts) > 300
    assert not {where: lines for where, text in texts.items() if (lines := dropped(text))}
