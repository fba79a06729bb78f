"""What is said of runs whose figures say less than they seem to."""

import flashkeel
from flashkeel.output import cautions
from small import SMALL

WORKLOAD = """\
[workload]
requests = 200
pacing = { policy = "closed", depth = 1 }
source = { policy = "synthetic", read_fraction = 0.0 }
"""


def said(**buffer):
    experiment = flashkeel.Experiment(SMALL.partition("[workload]")[0] + WORKLOAD, "small")
    for key, value in buffer.items():
        experiment.set(f"device.buffer.{key}", value)
    return [words for words in cautions.of(experiment.run().runs) if "flash page" in words]


def test_writes_that_wait_for_others_rather_than_for_flash_are_named():
    (words,) = said(kind="none", timeout="100ms")
    assert words.endswith(
        "% of the latency of writes is waiting for others to fill a flash page; "
        "the key `buffer.timeout` of the device ends that"
    )
    assert said(kind="none") == said(kind="back", timeout="100ms") == []
