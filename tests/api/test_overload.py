"""Requests that come faster than they are served, told from bursts and from those that wait."""

import json

import flashkeel
import pytest
from flashkeel import Run, overload
from flashkeel.arrow import TableFiles
from flashkeel.output import cautions, fio_json
from small import SMALL

FLOOD = {"policy": "poisson", "iops": 200_000}


def run(seconds, mean_s, pacing="open", requests=100_000, **more):
    """Return a run of 100,000 reads that come in ten seconds."""
    data = {
        "name": "run",
        "seed": 1,
        "requests": requests,
        "simulated_s": seconds,
        "last_arrival_s": 10.0,
        "last_completion_s": seconds,
        "read": {"count": requests, "mean_ns": mean_s * 1e9, "max_ns": seconds * 1e9},
        "config": {"workload": {"pacing": {"policy": pacing}}},
    }
    return Run(data | more, TableFiles.none())


def even(iops):
    return {"policy": "poisson", "iops": iops}


@pytest.mark.parametrize(
    ("measured", "served"),
    [
        (run(20, 4), 5000),
        (run(20, 2, seeds=[1, 2]), 5000),
        # A little later.
        (run(10.3, 0.1), None),
        # One request takes long.
        (run(20, 0.001), None),
        # They wait for each other.
        (run(20, 4, pacing="closed"), None),
        (run(20, 4, pacing="think"), None),
        # Of earlier results it is not known.
        (run(20, 4, last_arrival_s=0.0), None),
    ],
)
def test_what_ends_much_later_than_it_comes_is_an_overload(measured, served):
    found = overload.found(measured)
    assert [it.served for it in found] == ([] if served is None else [served])
    assert all(it.asked == 10_000 for it in found)


def in_one_line(text):
    return " ".join(text.split())


def test_it_is_said_wherever_such_a_run_is_shown(cli, tmp_path):
    document = tmp_path / "flooded.toml"
    document.write_text(SMALL.split("[[runs]]")[0])
    flood = ("--set", f"workload.source.arrivals.iops={FLOOD['iops']}")
    words = "requests come faster than they are served: "
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


def test_tenants_are_judged_one_by_one(tmp_path):
    text = SMALL.split("[[runs]]")[0]
    experiment = flashkeel.Experiment(text, "two")
    # Once tenants that replay a trace were not judged at all.
    trace = tmp_path / "much.csv"
    rows = (f"{at * 500},R,{at % 100 * 4096},4096\n" for at in range(20_000))
    trace.write_text("time_ns,operation,offset,bytes\n" + "".join(rows))
    calm = {"requests": 2000, "source": {"policy": "synthetic", "arrivals": even(2000.0)}}
    much = {"source": {"policy": "trace", "path": str(trace)}}
    tenants = [{"name": "calm", "workload": calm}, {"name": "much", "workload": much}]
    result = experiment.set("stack.tenants", tenants).run()
    (found,) = overload.found(result.runs[0])
    assert found.name == "much" and 20_000 < found.served < 1e6
    said = list(cautions.of(result.runs))
    words = "run: much: requests come faster than they are served: 2.00 M a second"
    assert any(it.startswith(words) for it in said)
    # It is done long before the other, and its rates count all of the time.
    assert any(it.startswith("run: tenant much ends after ") for it in said)
    _, job = json.loads(fio_json.render(result))["jobs"]
    assert job["read"]["iops"] == pytest.approx(found.served)
    assert found.served > 2 * result.runs[0].tenants[1].iops("read")
