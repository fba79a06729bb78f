"""Agreement with MQSim: the same requests on the same device in two independent simulators.

The requests, the device and what MQSim measured lie beside the recorded traces, in the folder
`crosscheck` next to FLASHKEEL_TRACES, and are no part of the repository.
"""

import os
import re
from pathlib import Path

import pytest
from flashkeel import Experiment

WITHIN = 0.02
SCHEDULERS = {"as delivered": "reads-first", "in order": "priority", "any": "priority"}
"""MQSim's way to serve a chip, and ours."""


def crosscheck(name):
    """Return a file of the folder, or skip the test by its name."""
    traces = os.environ.get("FLASHKEEL_TRACES")
    path = Path(traces).parent / "crosscheck" / name if traces else None
    if path is None or not path.is_file():
        pytest.skip(f"crosscheck/{name} is not beside FLASHKEEL_TRACES")
    return path


def of_mqsim():
    """Return MQSim's figures in µs by trace, scheduler and operation, from its README."""
    found, trace, order = {}, "", ""
    for line in crosscheck("README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 7 or not re.fullmatch(r"[\d.]+", cells[3]):
            continue
        trace = cells[0] or trace
        order = cells[1].split(":")[0] or order
        columns = ("mean", "p50", "p99", "p99.9")
        found[trace, order, cells[2]] = dict(zip(columns, map(float, cells[3:]), strict=True))
    return found


@pytest.mark.parametrize("order", ["as delivered", "in order"])
@pytest.mark.parametrize("trace", ["mixed30", "mixed70"])
def test_mean_and_p99_are_within_two_percent(trace, order):
    experiment = Experiment.from_toml(crosscheck("device.toml"))
    experiment = experiment.set("workload.source.path", str(crosscheck(f"{trace}.mqsim.zst")))
    run = experiment.set("device.scheduler", SCHEDULERS[order]).run().runs[0]
    for operation in ("read", "write"):
        theirs = of_mqsim()[trace, order, operation]
        assert run.mean(operation) / 1e3 == pytest.approx(theirs["mean"], rel=WITHIN)
        assert run.percentile(operation, 99) / 1e3 == pytest.approx(theirs["p99"], rel=WITHIN)


def test_a_read_alone_takes_as_long():
    experiment = Experiment.from_toml(crosscheck("device.toml"))
    experiment = experiment.set("workload.source.path", str(crosscheck("low.mqsim.zst")))
    run = experiment.run().runs[0]
    theirs = of_mqsim()["low", "any", "read"]
    assert run.mean("read") / 1e3 == pytest.approx(theirs["mean"], rel=0.01)
    assert run.percentile("read", 50) / 1e3 == pytest.approx(theirs["p50"], rel=0.01)
