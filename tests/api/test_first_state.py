"""What figures owe to the state that a run began in is told."""

import flashkeel
import pytest
from flashkeel import first_state
from flashkeel.output import cautions
from flashkeel.quantities import logical_bytes
from small import SMALL


def told(seeds=1, **settings):
    """Return a run with these settings, and what is said of it in one line."""
    experiment = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    for key, value in ({"workload.requests": 3000} | settings).items():
        experiment = experiment.set(key, value)
    (run,) = experiment.run(seeds=seeds).runs
    return run, " ".join(cautions.of([run]))


def test_even_writes_leave_an_even_state_as_it_was():
    run, text = told()
    assert first_state.rewritten_share(run) is None
    assert "evenly" not in text and "never written" not in text and "in order" not in text


def test_uneven_writes_over_an_even_state_are_told_until_the_drive_is_written():
    uneven = {
        "workload.source.pattern": {"policy": "zipf"},
        "workload.source.read_fraction": 0.1,
    }
    run, text = told(**uneven, **{"workload.requests": 20_000})
    capacity = logical_bytes(run.data["config"]["device"])
    share = first_state.rewritten_share(run)
    assert share == pytest.approx(run.data["device"]["host_bytes_written"] / capacity)
    assert share < 1 and "of the drive, which was written evenly before" in text
    # What is written in the warm-up counts, of one seed and of each of several.
    warmed = {"workload.requests": 20_000, "workload.warm_up": "200ms"}
    for seeds in (1, 2):
        pooled, _ = told(seeds, **uneven, **warmed)
        assert first_state.rewritten_share(pooled) == pytest.approx(share, rel=0.05)
    long, text = told(**uneven, **{"workload.requests": 200_000})
    assert first_state.rewritten_share(long) > 1 and "evenly" not in text


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"workload.source.region_size": "38MiB"},
        {"workload.source.region_offset": "190MiB"},
        {"workload.source.trim_fraction": 0.1},
        {"workload.source.zero_fraction": 0.1},
        {"device.precondition.fill": 0.9},
    ],
)
def test_even_writes_to_other_places_than_before_are_told(elsewhere):
    writes = {"workload.source.read_fraction": 0.1, "workload.requests": 40_000}
    run, text = told(**writes, **elsewhere)
    assert 0 < first_state.rewritten_share(run) < 1
    assert "of the drive, which was written evenly before" in text


def test_trims_take_longer_than_writing_the_drive_once_unless_a_warm_up_does():
    trims = {"workload.source.trim_fraction": 0.3, "workload.source.read_fraction": 0.0}
    # At 20,000 requests a second the drive is written in 7 s.
    run, text = told(**trims, **{"workload.requests": 200_000})
    assert first_state.rewritten_share(run) == pytest.approx(1.44, abs=0.02)
    assert "as trims take effect slowly" in text
    for warm_up, is_young in (("10s", True), ("25s", False)):
        longer = {"workload.requests": 600_000, "workload.warm_up": warm_up}
        assert first_state.is_young(told(**trims, **longer)[0]) == is_young
    settled, _ = told(**trims, **{"workload.requests": 800_000})
    assert not first_state.is_young(settled)


def test_even_writes_to_all_that_was_written_before_leave_it_as_it_was():
    same = {
        "device.precondition.fill": 0.9,
        "workload.source.region_size": "342MiB",
        "workload.requests": 40_000,
    }
    run, text = told(**same)
    assert run.waf > 1.05 and first_state.rewritten_share(run) is None and "evenly" not in text


def test_what_holds_for_several_runs_is_said_once():
    run, _ = told(**{"device.precondition.fill": 0.5})
    said = [text for text in cautions.of([run, run.called("other")]) if "never written" in text]
    assert len(said) == 1 and said[0].startswith("run, other: ")


def test_reads_of_pages_that_were_never_written_are_told():
    run, text = told(**{"device.precondition.fill": 0.5})
    assert 0.2 < first_state.unwritten_share(run) < 0.6
    assert "of the pages read were never written" in text


def test_reads_in_order_of_what_was_written_at_random_are_told():
    ordered = {"workload.source.pattern": {"policy": "sequential"}}
    assert "what is read in order was written at random" in told(**ordered)[1]
    laid = ordered | {"device.precondition.pattern": "sequential"}
    assert "written at random" not in told(**laid)[1]
