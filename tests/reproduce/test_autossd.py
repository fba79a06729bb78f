"""Studies of AutoSSD: what they rest on, and their rules."""

import json

from flashkeel import _core
from flashkeel.reproduce.autossd import sensitivity


def test_the_sweeps_are_around_the_defaults():
    schedulers = json.loads(_core.schema())["$defs"]["SchedulerConfig"]["anyOf"]
    (debit,) = (each for each in schedulers if "gc_p" in each.get("properties", {}))
    for key, default in sensitivity.DEFAULTS.items():
        assert debit["properties"][key]["default"] == default
        assert default in sensitivity.SWEEPS[key]
