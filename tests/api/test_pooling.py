"""Pools of seeds: of every number of every report it is known what becomes of it.

The pool of reports adds up whole numbers but those that it knows by name
(`crates/experiment/src/pooling.rs`). So that no new one is added up that counts nothing, each that
reports have stands here.
"""

from pathlib import Path

import flashkeel
import pytest
from flashkeel.experiment import pool

BASES = sorted(Path("crates/experiment/tests/laws/bases").glob("*.toml"))
"""Small documents of every kind of device, two seeds of which take a tenth of a second."""
INCOMPLETE = "bare"

TABLES = {"flash_operations"}
"""Tables of counts, each by a name."""
COUNTS = {
    "admitted_bytes", "aligned", "asked", "bad_lines", "beyond", "broken_windows",
    "buffered_pages_read",
    "bytes_read", "bytes_written", "changes", "changes_held", "changes_held_for_windows",
    "changes_refused", "checked_pages", "clean_pages_evicted", "clipped", "coalesced_pages",
    "collections_out_of_turn", "critical_bytes", "delivered", "demoted_bytes",
    "deterministic_ns", "deterministic_windows",
    "direct_writes", "dirty_regions", "drained_bytes", "erases", "failed_writebacks",
    "filled_bytes", "flushes", "folded", "forced", "free_block_stalls", "gc_blocked_pages_read",
    "given", "given_up_pages", "hedged_bytes", "hedged_reads", "hedges_won", "host_bytes_read",
    "host_bytes_to_nvm", "host_bytes_to_ssd", "host_bytes_trimmed", "host_bytes_written",
    "host_bytes_zeroed", "journal_bytes", "lost_copies", "lost_reads", "map_hits", "map_misses",
    "messages", "modified_pages_evicted", "moved_pages", "none_deterministic",
    "none_deterministic_ns", "not_io", "other_device", "outside_window", "overtaken",
    "padding_pages", "pages_read_from_nvm", "pages_read_from_ssd", "programmed_bytes", "read",
    "reads", "reordered", "request_bytes", "response_bytes", "restored_pages", "resynced_bytes",
    "retired_blocks", "retransmissions", "retried_reads", "rewritten_bytes", "safe_bytes",
    "top_ups", "trims", "trims_dropped", "unchecked_pages", "unmapped_pages_read", "used",
    "used_up", "victims", "victims_by_greedy", "windows", "windows_begun", "windows_ended_early",
    "windows_ended_time_exceeded", "windows_ended_typical_exceeded", "windows_ended_urgent",
    "write_zeroes", "writes", "writes_without_room", "zero_length",
}  # fmt: skip
MEANS = {
    "bytes_at_risk", "deficiency_percent", "table_bytes", "tail_p50_ns", "tail_p99_99_ns",
    "tail_p99_9_ns", "tail_p99_ns", "upper_pages", "utilisation_percent",
}  # fmt: skip
"""Sizes, what is at a moment, and percentiles; `NO_COUNTS` in pooling.rs."""
LARGEST = {"held_bytes_max", "most_cycles"}
WORKED_OUT = {"waf"}
"""Fractions that are made from the pooled counts."""


@pytest.fixture(scope="module")
def pools():
    """Return the reports of two seeds and their pool, by the document's name."""
    found = {}
    for path in BASES:
        if path.stem == INCOMPLETE:
            continue
        experiment = flashkeel.Experiment.from_toml(path.read_text())
        experiment = experiment.set("workload.requests", 300)
        experiment = experiment.set("workload.source.read_fraction", 0.5)
        (one,), (two,) = (experiment.run(seed=seed).runs for seed in (1, 2))
        found[path.stem] = [
            reports(run) for run in (one.data, two.data, pool([one.data, two.data]))
        ]
    return found


def reports(run):
    """Return what is pooled by the names of its numbers."""
    counts = [tenant["workload"] for tenant in run.get("tenants", [])]
    return {key: run.get(key) for key in ("device", "stack", "workload")} | {"tenants": counts}


def numbers(*reports, name="", parent=""):
    """Return each number that one of alike reports has: name, its table's name, and values."""
    if any(isinstance(each, dict) for each in reports):
        tables = [each or {} for each in reports]
        for key in dict.fromkeys(key for table in tables for key in table):
            yield from numbers(*(table.get(key) for table in tables), name=key, parent=name)
    elif any(isinstance(each, list) for each in reports):
        lists = [each or [] for each in reports]
        for at in range(max(map(len, lists))):
            values = [each[at] if at < len(each) else None for each in lists]
            yield from numbers(*values, name=name, parent=parent)
    elif any(isinstance(each, int | float) and not isinstance(each, bool) for each in reports):
        yield name, parent, reports


def is_whole(values):
    return all(isinstance(value, int) for value in values if value is not None)


def kind_of(name, parent):
    is_counted = name in COUNTS or parent in TABLES
    kinds = {"sum": is_counted, "mean": name in MEANS, "largest": name in LARGEST}
    (kind,) = [kind for kind, is_it in kinds.items() if is_it] or ["unknown"]
    return kind


def test_it_is_known_of_every_whole_number_whether_it_counts(pools):
    unknown = {
        name
        for each in pools.values()
        for name, parent, values in numbers(*each)
        if is_whole(values) and kind_of(name, parent) == "unknown"
    }
    assert not unknown, (
        f"what becomes of {', '.join(sorted(unknown))} where seeds are pooled? A count goes into "
        "COUNTS here; anything else into NO_COUNTS or LARGEST of pooling.rs, and the same here"
    )


def test_every_kind_that_is_listed_is_in_a_report(pools):
    seen = {name for each in pools.values() for name, _, values in numbers(*each)}
    assert seen >= COUNTS | MEANS | LARGEST | WORKED_OUT
    kinds = {kind for _, each, _ in pools.values() for kind in each["stack"] or {}}
    assert kinds >= {"ssds", "nvms", "drams", "tiers", "mirrors", "windoweds", "coordinators"}
    assert kinds >= {"networks"}


def test_pools_are_sums_means_and_largest_by_that(pools):
    of = {"sum": sum, "mean": lambda known: sum(known) / len(known), "largest": max}
    for document, each in pools.items():
        for name, parent, (one, two, pooled) in numbers(*each):
            if name in WORKED_OUT:
                continue
            kind = kind_of(name, parent)
            if kind != "largest" and not is_whole((one, two)):
                kind = "mean"
            expected = of[kind]([value for value in (one, two) if value is not None])
            within = 0.5 if is_whole((one, two)) and kind == "mean" else abs(expected) * 1e-9
            assert pooled == pytest.approx(expected, abs=within), (document, parent, name)
