"""Lives in Python: what is no plan, and no question, is refused in words."""

from datetime import timedelta

import flashkeel
import pytest
from flashkeel import InputError, padding
from flashkeel.lifetime import Plan
from flashkeel.quantities import in_seconds
from small import SMALL

DRIVE = {"capacity": "1GB", "rated_cycles": 50}
TRAFFIC = {"policy": "constant", "per_day": "10GB"}


@pytest.mark.parametrize(
    ("settings", "seeds", "words"),
    [
        ({}, 0, "seeds = 0: at least one is needed"),
        ({"target_years": float("nan")}, 1, "target_years = nan: give a number"),
        ({"write_amplification": float("inf")}, 1, "write_amplification = inf: give a number"),
        ({"drive": DRIVE | {"dwpd": float("nan")}}, 1, "drive.dwpd = nan: give a number"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(settings, seeds, words):
    with pytest.raises(InputError, match=words):
        Plan(**{"drive": DRIVE, "traffic": TRAFFIC} | settings).estimate(seeds=seeds)


def test_delays_are_known_at_five_percentiles():
    found = Plan(DRIVE, TRAFFIC, throttle="ready", write_amplification=2.0).estimate(seeds=1)
    delays = [found.delay_ns(percentile) for percentile in (50, 90, 99, 99.9, 99.99)]
    assert delays == sorted(delays) and delays[-1] > 0
    with pytest.raises(InputError, match="no delay is known at 98; there are 50, 90, 99"):
        found.delay_ns(98)


def test_a_probe_has_some_time():
    with pytest.raises(InputError, match="limit = -1 s: it has to be above 0"):
        flashkeel.Drive.find("sim:ssd-d").probe(limit=timedelta(seconds=-1))


@pytest.mark.parametrize(("share", "fewer"), [(0.9, True), (1.1, False)])
def test_padding_knows_the_timeout_of_devices_that_have_none_of_their_own(share, fewer):
    # A write that comes within the timeout goes to flash with the one before it.
    every_s = share * in_seconds(padding._TIMEOUT)
    source = {
        "policy": "synthetic",
        "read_fraction": 0.0,
        "block_sizes": ["4KiB"],
        "arrivals": {"policy": "constant", "iops": 1 / every_s},
    }
    experiment = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    experiment = experiment.set("workload.requests", 20).set("workload.source", source)
    assert "timeout" not in experiment.plans()[0]["config"]["device"]["buffer"]
    (run,) = experiment.run().runs
    assert (run.data["device"]["flash_operations"]["host_write"] < 15) == fewer
