"""The licences of what is linked are there, and are of those that may be."""

import re
import runpy
import tomllib

import flashkeel
from structure.source import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts/write_licences.py"))
FREE = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "bzip2-1.0.6",
}
"""Licences that ask for no more than to be named and given along."""


def test_licences_are_fresh():
    assert (ROOT / "THIRD-PARTY.txt").read_text() == SCRIPT["text"](), "run make docs"


def test_all_of_them_may_be_used():
    for package in SCRIPT["linked"]():
        licence = package["license"].replace(" WITH LLVM-exception", "")
        choices = [re.split(r" AND ", choice) for choice in re.split(r" OR |/", licence)]
        parts = [{part.strip(" ()") for part in choice} for choice in choices]
        assert any(part <= FREE for part in parts), package


def test_what_only_runs_while_compiling_is_not_linked():
    names = {package["name"] for package in SCRIPT["linked"]()}
    assert {"pyo3", "parquet", "serde_json"} <= names
    assert not {"syn", "serde_derive", "proptest", "cc"} & names


def test_the_version_stands_in_one_place():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert flashkeel.__version__ == version
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]
    for path in ROOT.glob("crates/*/Cargo.toml"):
        assert tomllib.loads(path.read_text())["package"]["version"] == {"workspace": True}
    # The changes of this version are told first.
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert first == version
