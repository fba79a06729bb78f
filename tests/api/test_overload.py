"""Requests that come faster than they are served, told from bursts and from those that wait."""

import json

import flashkeel
import numpy as np
import pytest
from flashkeel import Run, overload
from flashkeel.arrow import TableFiles
from flashkeel.output import cautions
from small import SMALL

FLOOD = {"policy": "poisson", "iops": 200_000}


def run(seconds, mean_s, arrivals=None, pacing="open", requests=100_000, **more):
    """Return a run of 100,000 reads."""
    source = {"policy": "synthetic", "arrivals": arrivals} if arrivals else {"policy": "trace"}
    data = {
        "name": "run",
        "seed": 1,
        "requests": requests,
        "simulated_s": seconds,
        "read": {"count": requests, "mean_ns": mean_s * 1e9, "max_ns": seconds * 1e9},
        "config": {"workload": {"source": source, "pacing": {"policy": pacing}}},
    }
    return Run(data | more, TableFiles.none())


def even(iops, policy="poisson", **more):
    return {"policy": policy, "iops": iops} | more


BURSTS = even(20_000.0, "bursts", on="1s", off="1s")
VARYING = even(10_000.0, "varying", spread=0.5, persistence="100ms")


@pytest.mark.parametrize(
    ("measured", "served"),
    [
        (run(20, 4, even(10_000.0)), 5000),
        (run(20, 4, even(10_000.0, "constant")), 5000),
        (run(20, 4, BURSTS), 5000),
        (run(20, 4, VARYING), 5000),
        (run(20, 2, even(10_000.0), seeds=[1, 2]), 5000),
        # A little later, and by chance.
        (run(10.3, 0.1, even(10_000.0)), None),
        (run(12, 0.5, even(10.0), requests=100), None),
        (run(13, 0.5, VARYING), None),
        (run(11.9, 0.5, BURSTS), None),
        # One request takes long.
        (run(20, 0.001, even(10_000.0)), None),
        # They wait for each other, or nobody says how fast they come.
        (run(20, 4, pacing="closed"), None),
        (run(20, 4, even(10_000.0), pacing="think"), None),
        (run(20, 4), None),
    ],
)
def test_what_ends_much_later_than_it_comes_is_an_overload(measured, served):
    found = overload.found(measured)
    assert [it.served for it in found] == ([] if served is None else [served])
    assert all(it.asked == 10_000 for it in found)


def test_of_a_trace_the_series_says_when_requests_come(monkeypatch):
    # 1,000 come in each of ten windows and 500 are served in each of twenty.
    came = [1000] * 10 + [0] * 11
    ended = [500] * 20 + [0]
    inside = np.cumsum(came) - np.cumsum(ended)
    none = np.zeros(21)
    series = {"start_ns": np.arange(21) * 10**9, "reads": np.array(ended), "writes": none}
    series |= {"trims": none, "flushes": none, "requests_in_device": inside.astype(float)}
    monkeypatch.setattr(Run, "has", lambda _run, kind: kind == "series")
    monkeypatch.setattr(Run, "series", lambda _run: series)
    (found,) = overload.found(run(20, 5, requests=10_000))
    assert (round(found.asked), found.served) == (1000, 500)
    series["requests_in_device"], series["reads"] = none, np.array(came[::-1])
    assert not overload.found(run(20, 5, requests=10_000))


def in_one_line(text):
    return " ".join(text.split())


def test_it_is_said_wherever_such_a_run_is_shown(cli, tmp_path):
    document = tmp_path / "flooded.toml"
    document.write_text(SMALL.split("[[runs]]")[0])
    flood = ("--set", f"workload.source.arrivals.iops={FLOOD['iops']}")
    words = "requests come faster than they are served: 200 k a second come"
    assert words in in_one_line(cli("run", document, *flood, "--out", tmp_path / "much").out)
    assert words not in cli("run", document, "--out", tmp_path / "calm").out
    compared = ("compare", tmp_path / "much", tmp_path / "calm")
    assert f"Note: A run: {words}" in in_one_line(cli(*compared).out)
    (pair,) = json.loads(cli(*compared, "--format", "json").out)
    noted = [any(words in note for note in pair[side]) for side in ("a_notes", "b_notes")]
    assert noted == [True, False]
    both = tmp_path / "both.toml"
    both.write_text(
        'experiment = "flooded.toml"\n[grid]\n"workload.source.arrivals.iops" = [20000, 200000]\n'
    )
    swept = cli("sweep", both, "-o", tmp_path / "swept").out
    assert "2 !" in swept and "1 !" not in swept
    rows = json.loads(cli("sweep", both, "-o", tmp_path / "swept", "--format", "json").out)
    assert [row["overloaded"] for row in rows] == [False, True]


def test_tenants_are_judged_one_by_one():
    text = SMALL.split("[[runs]]")[0]
    experiment = flashkeel.Experiment(text, "two")
    calm = {"requests": 2000, "source": {"policy": "synthetic", "arrivals": even(2000.0)}}
    much = {"requests": 20_000, "source": {"policy": "synthetic", "arrivals": even(2e6)}}
    tenants = [{"name": "calm", "workload": calm}, {"name": "much", "workload": much}]
    result = experiment.set("stack.tenants", tenants).run()
    (found,) = overload.found(result.runs[0])
    assert found.name == "much" and 20_000 < found.served < 1e6
    said = next(iter(cautions.of(result.runs)))
    assert said.startswith("run: much: requests come faster than they are served: 2.00 M a second")
