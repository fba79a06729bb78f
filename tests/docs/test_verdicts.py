"""What comes of each claim of a published work stands in a document, under its name."""

import inspect
import re
from functools import partial
from pathlib import Path

from flashkeel.reproduce import works
from flashkeel.reproduce.plmlight import claims as plmlight_claims
from flashkeel.reproduce.plmlight import study as plmlight_study

DOCUMENTS = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))
IN_WORDS = {
    "autossd/fig1", "autossd/fig4a", "autossd/fig4b", "autossd/fig4c", "autossd/fig5",
    "autossd/fig6", "autossd/fig7", "autossd/fig8", "autossd/fig9", "autossd/fig10",
    "autossd/fig11", "autossd/outlook", "ttflash/blocked", "ttflash/latency", "ttflash/cost",
    "ttflash/burst", "ttflash/filebench", "ttflash/real", "ssdcheck/fig14", "envm/latency",
    "envm/writes", "envm/week", "envm/technologies", "plmc/spread", "plmc/hedging", "keel/reads",
    "keel/ablation", "keel/lifetime",
}  # fmt: skip
"""Studies whose tables say what is claimed, and not always what the claim is called."""


def unnamed():
    """Return the claims by study that no document has by name."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    found = {}
    for study in works.STUDIES:
        part = study.id.partition("/")[2]
        for name in (claim.name for claim in study.claims):
            if not any(f"`{it}`" in text for it in (name, f"{part}/{name}", f"{study.id}/{name}")):
                found.setdefault(study.id, []).append(name)
    return found


def test_every_claim_has_its_verdict_in_a_document():
    missing = {study: names for study, names in unnamed().items() if study not in IN_WORDS}
    assert not missing, "claims that no document lists"


def test_studies_are_told_in_words_only_where_they_are():
    assert set(unnamed()) >= IN_WORDS


def judged_by():
    """Return the module whose rules each study judges by."""
    for study in works.STUDIES:
        measure = study.measure.func if isinstance(study.measure, partial) else study.measure
        module = inspect.getmodule(measure)
        # The rules of PLMlight stand in a file of their own.
        yield study.id, plmlight_claims if module is plmlight_study else module


def test_what_is_judged_by_numbers_alone_is_listed():
    whole = {
        study
        for study, module in judged_by()
        if not re.search(r"\b(intervals\.|with_interval\(|below\()", _rules(module))
    }
    text = (Path(__file__).parents[2] / "docs" / "reproduce.md").read_text(encoding="utf-8")
    listed = text.partition("<!-- by numbers -->")[2].partition("<!-- end -->")[0]
    assert set(re.findall(r"`([^`]+)`", listed)) == whole | BESIDE


def _rules(module):
    """Return the source of a module, where names that it takes from `intervals` say so."""
    source = inspect.getsource(module)
    taken = re.search(r"^from flashkeel.reproduce.intervals import", source, re.MULTILINE)
    return f"intervals. {source}" if taken else source


BESIDE = {"ttflash/latency"}
"""Studies that tell an interval, and do not judge by it."""
