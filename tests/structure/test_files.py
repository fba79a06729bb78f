"""Files are small, finished, and where their names say."""

import re

import pytest
from structure.source import ROOT, code, name, python, rust, suites

MOST_LINES = 500

HELPERS = {
    "crates/device/src/front/buffer/fullest.rs": "which lane has the most buffered pages",
    "crates/device/src/front/buffer/state.rs": "what every buffer policy works on",
    "crates/device/src/front/buffer/stripe_queue.rs": "which stripes have buffered pages",
    "crates/device/src/ftl/redundancy/stripes.rs": "how physical stripes lie on chips",
    "crates/device/src/ftl/redundancy/static_stripes.rs": "how logical stripes lie on chips",
    "crates/host/src/device/composed.rs": "what every stage over devices has in common",
    "crates/host/src/device/maker.rs": "what every kind is made with",
    "crates/host/src/scheduler/ring.rs": "what takes turns under two of them",
    "crates/host/src/scheduler/stage.rs": "what every scheduler decides for",
    "crates/host/src/tier/budget/calendar.rs": "what was written by day and week",
    "crates/host/src/tier/budget/rating.rs": "what every budget follows from",
    "crates/host/src/volume/stage.rs": "what every volume manager decides for",
    "crates/device/src/ftl/slc/state.rs": "what waits to be folded",
}
"""Files in the folder of an axis that are no policies, and what they are."""

UNFINISHED = r"\b([T]ODO|[F]IXME|[X]XX|[H]ACK|[W]IP)\b|[t]odo!|[u]nimplemented!"
"""Written so that it does not find itself."""

AXES = [path for path in rust() if path.name == "mod.rs" and "axis! {" in code(path)]


def test_no_file_is_long():
    files = [*rust(), *python(), *suites()]
    long = {name(path): len(path.read_text().splitlines()) for path in files}
    assert not {path: lines for path, lines in long.items() if lines > MOST_LINES}


def test_there_are_axes():
    assert len(AXES) >= 7


@pytest.mark.parametrize("axis", AXES, ids=lambda path: path.parent.name)
def test_every_policy_file_is_in_the_list_and_begins_with_its_name(axis):
    policies = dict(re.findall(r'\w+\(\w+\) in (\w+) = "([^"]+)"', code(axis)))
    files = {path.stem: path for path in axis.parent.glob("*.rs") if path != axis}
    others = {stem for stem, path in files.items() if name(path) in HELPERS}
    assert set(files) - others == set(policies)
    for stem, policy in policies.items():
        first = files[stem].read_text().splitlines()[0]
        assert first.startswith(f"//! `{policy}`: "), name(files[stem])


def test_helpers_exist():
    assert all((ROOT / path).is_file() for path in HELPERS)


def test_nothing_is_marked_unfinished():
    found = {name(path): re.findall(UNFINISHED, path.read_text()) for path in _texts()}
    assert not {path: words for path, words in found.items() if words}


def test_links_between_documents_lead_somewhere():
    broken = [
        f"{name(page)}: {target}"
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert not broken


def test_the_architecture_names_files_that_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    paths = re.findall(r"`((?:crates|python|tests|docs|scripts)/[^`*{ ]+)`", text)
    assert paths
    assert not [path for path in paths if not (ROOT / path).exists()]


def _texts():
    kinds = {".rs", ".py", ".pyi", ".toml", ".md", ".json", ".sh", ""}
    folders = ["crates", "python", "tests", "docs", "scripts", ".ci"]
    below = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    for path in [*ROOT.iterdir(), *below]:
        if path.is_file() and path.suffix in kinds and "__pycache__" not in path.parts:
            yield path
