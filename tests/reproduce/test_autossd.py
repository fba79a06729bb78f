"""Studies of AutoSSD: what they rest on, and their rules."""

import json

import pytest
from flashkeel import _core
from flashkeel.reproduce import Session
from flashkeel.reproduce.autossd import (
    fig6,
    fig7,
    fig8,
    fig9,
    fig11,
    sensitivity,
    systems,
)
from flashkeel.reproduce.autossd.device import CAP, SYSTEMS


def test_the_sweeps_are_around_the_defaults():
    schedulers = json.loads(_core.schema())["$defs"]["SchedulerConfig"]["anyOf"]
    (debit,) = (each for each in schedulers if "gc_p" in each.get("properties", {}))
    for key, default in sensitivity.DEFAULTS.items():
        assert debit["properties"][key]["default"] == default
        assert default in sensitivity.SWEEPS[key]


def test_every_system_scrubs_as_the_papers_does():
    session = Session(quick=True)
    for system in SYSTEMS:
        assert systems.case(session, "dtrs", system).keys["device.scrub.enabled"] is True


class Asked(Exception):
    """What a study would run."""


class Asking(Session):
    """Says what a study would run instead of running it."""

    def run(self, cases):
        raise Asked(cases)


def asked(measure, *args, **of):
    with pytest.raises(Asked) as told:
        measure(Asking(**of), *args)
    return told.value.args[0]


@pytest.mark.parametrize("study", [fig6.STUDY, fig7.STUDY, fig8.STUDY, fig11.STUDY])
def test_no_system_is_handicapped_by_another_cap(study):
    cases = asked(study.measure)
    assert len(cases) == len(SYSTEMS) - (study is not fig8.STUDY)
    assert {case.keys["device.gc.concurrent_victims"] for case in cases} == {CAP}
    for range_ in study.ranges:
        (case,) = asked(range_.measure, range_.quantity.nearest)
        assert case.keys["device.gc.concurrent_victims"] == CAP


def test_the_loads_of_figure_9_scrub_as_their_conditions_say():
    cases = asked(fig9._no_static)
    assert len(cases) == 25
    assert all(case.keys["device.scrub.enabled"] for case in cases)
    assert "scrubbing on" in systems.described_small(Session())


def test_a_quick_figure_9_runs_only_what_it_can_judge():
    cases = asked(fig9.STUDY.measure, quick=True)
    assert len(cases) == 4
    found = fig9._no_static(Asking(quick=True))
    assert found.holds is None and "not run by --quick" in found.reason
