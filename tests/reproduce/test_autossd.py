"""Studies of AutoSSD: what they rest on, and their rules."""

import json

from flashkeel import _core
from flashkeel.reproduce import Session
from flashkeel.reproduce.autossd import sensitivity, systems
from flashkeel.reproduce.autossd.device import SYSTEMS


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
