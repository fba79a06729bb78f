"""The documentation site: built without a warning, without a dead link, with nothing left out."""

import importlib
import json
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import flashkeel
import pytest
from flashkeel import _core
from flashkeel.cli import app

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/build_site.py"
SITE = ROOT / "target/site/html"


class Page(HTMLParser):
    """Where a page leads, what it loads, and the places in it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.places = [], [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and found.get("rel") in ("stylesheet", "icon"):
            self.loaded.append(found["href"])
        if tag in ("script", "img", "iframe") and "src" in found:
            self.loaded.append(found["src"])


@pytest.fixture(scope="module")
def pages():
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout + done.stderr
    return {path: Page(path) for path in SITE.rglob("*.html") if path.name != "404.html"}


def target(page, link):
    """Return the file and the place that a link leads to; None where it leads elsewhere."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    found = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
    return (found / "index.html" if found.is_dir() else found), unquote(parts.fragment)


def test_every_link_leads_somewhere(pages):
    dead = []
    for page, found in pages.items():
        for link in [*found.links, *found.loaded]:
            where = target(page, link)
            if where is None:
                continue
            file, place = where
            if not file.exists() or (file in pages and place not in pages[file].places):
                dead.append(f"{page.relative_to(SITE)}: {link}")
    assert not dead


def test_nothing_is_loaded_from_elsewhere(pages):
    loaded = {link for found in pages.values() for link in found.loaded}
    assert loaded
    assert not [link for link in loaded if urlsplit(link).netloc]


def test_every_page_is_found_from_the_first(pages, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    groups = runpy.run_path(str(SCRIPT))["PAGES"].values()
    named = {page for group in groups for page in group.values()}
    written = {path.name for path in (ROOT / "docs").glob("*.md")}
    roots = {"ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"}
    assert named == written | roots | {"index.md", "policies.md", "commands.md", "python.md"}
    first = SITE / "index.html"
    linked = {target(first, link) for link in pages[first].links}
    assert set(pages) <= {file for file, _ in filter(None, linked)}


def test_every_policy_has_its_source_and_every_axis_a_picture(pages, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    site_policies = importlib.import_module("site_policies")
    draw_policies = importlib.import_module("draw_policies")
    text = (SITE / "policies/index.html").read_text(encoding="utf-8")
    types = json.loads(_core.schema())["$defs"].values()
    axes = {
        one["x-axis"]: [
            named(policy["properties"]) for policy in one["anyOf"] if "properties" in policy
        ]
        for one in types
        if "x-axis" in one
    }
    assert site_policies.names() == axes
    assert text.count("<em>Code:</em>") == sum(map(len, axes.values()))
    # The works that policies are from are named with their sections.
    for words in ("AutoSSD, §3.2", "SSDcheck, §III-B", "Rosenblum and Ousterhout", "equation 4.1"):
        assert words in text
    drawn = {site_policies.picture(axis).name for axis in draw_policies.AXES}
    assert {path.name for path in site_policies.PICTURES.iterdir()} == drawn
    for name in drawn:
        assert f"policies/{name}" in text
    assert set(axes) - set(draw_policies.AXES) == set(site_policies.NOT_DRAWN)


def test_every_policy_can_be_drawn_or_is_left_out_in_words(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    site_policies = importlib.import_module("site_policies")
    draw_policies = importlib.import_module("draw_policies")
    for axis, policies in site_policies.names().items():
        if axis in draw_policies.AXES:
            planned = [
                policy
                for policy, experiment in draw_policies.experiments(axis, policies)
                if experiment.plans()
            ]
            left_out = [policy for policy in policies if policy not in planned]
            assert all((axis, policy) in site_policies.LEFT_OUT for policy in left_out)
            assert all(f"`{policy}`" in site_policies.REMARKS[axis] for policy in left_out)


def named(properties):
    """Return the name of the policy, or the only key, of a choice of an axis."""
    return properties["policy"]["const"] if "policy" in properties else next(iter(properties))


def test_references_leave_nothing_out(pages):
    places = pages[SITE / "python/index.html"].places
    assert {name.lower() for name in flashkeel.__all__ if not name.startswith("__")} <= places
    text = (SITE / "python/index.html").read_text()
    # Types as they are written, and long signatures with a line each.
    assert "run(\n    seed: int | None = None,\n" in text and "'str'" not in text
    commands = (SITE / "commands/index.html").read_text()
    for name in app.commands:
        assert re.search(rf"Usage: flashkeel {name} ", commands), name
