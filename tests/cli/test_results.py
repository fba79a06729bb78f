"""flashkeel compare and explain, on saved results."""

import json

import pytest
from flashkeel import budget as budgets
from flashkeel.output import plots


def test_explain_shows_causes_with_bars(cli, saved):
    outcome = cli("explain", f"{saved}:fifo", "--above", "p99")
    assert (outcome.status, outcome.err) == (0, "")
    assert "above p99 " in outcome.out
    assert "█" in outcome.out
    assert "debit:" not in outcome.out


def test_explain_shows_every_run(cli, saved):
    out = cli("explain", saved, "--above", "99").out
    assert "fifo:" in out
    assert "debit:" in out


def test_explain_json_adds_up(cli, saved):
    found = json.loads(cli("explain", saved, "--class", "write", "--format", "json").out)
    assert [one["run"] for one in found] == ["fifo", "debit"]
    for one in found:
        assert one["latency_class"] == "write"
        assert abs(sum(share["share"] for share in one["shares"]) - 1) < 1e-9


def test_synthetic_input_is_named(cli, saved):
    assert "synthetic workload" in cli("explain", saved).out
    (found, _) = json.loads(cli("explain", saved, "--format", "json").out)
    assert found["basis"] == "synthetic"
    assert "(synthetic workload)" in cli("compare", saved, saved).out
    (found, _) = json.loads(cli("compare", saved, saved, "--format", "json").out)
    assert (found["a_basis"], found["b_basis"]) == ("synthetic", "synthetic")


def test_explain_reads_the_file_as_well(cli, saved):
    assert cli("explain", saved).out == cli("explain", saved / "result.json").out


def test_explain_refuses_a_class_without_requests(cli, saved):
    outcome = cli("explain", saved, "--class", "flush")
    assert (outcome.status, outcome.out) == (2, "")
    assert "there are no flushes in 'fifo', 'debit'" in outcome.err


def test_explain_refuses_a_bad_percentile(cli, saved):
    outcome = cli("explain", saved, "--above", "median")
    assert outcome.status == 2
    assert "not a percentile" in outcome.err


def test_explain_refuses_an_unknown_run(cli, saved):
    outcome = cli("explain", f"{saved}:nope")
    assert outcome.status == 2
    assert "fifo, debit" in outcome.err


def test_a_run_may_have_a_colon_in_its_name(cli, shell, small_toml, tmp_path):
    odd = tmp_path / "odd.toml"
    odd.write_text(small_toml.read_text().replace('name = "fifo"', 'name = "先入:先出: 1"'))
    out = tmp_path / "a:b"
    ran = shell("run", odd, "--out", out)
    # Letters that a picture's font does not have are no reason for complaints.
    assert (ran.status, ran.err) == (0, "")
    outcome = cli("explain", f"{out}:先入:先出: 1")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith("先入:先出: 1: ")
    outcome = cli("explain", f"{out}:nope")
    assert outcome.status == 2 and "no run 'nope'" in outcome.err


def test_a_result_outlasts_its_picture(shell, small_toml, tmp_path, monkeypatch):
    # As whoever sets it wrongly finds out only when a picture is drawn.
    monkeypatch.setenv("MPLBACKEND", "nonsense")
    out = tmp_path / "out"
    ran = shell("run", small_toml, "--out", out)
    assert ran.status == 1 and "the result is there, but its picture could not be drawn" in ran.err
    monkeypatch.delenv("MPLBACKEND")
    assert shell("explain", f"{out}:fifo").status == 0
    assert not (out / plots.FILES[0]).exists()


def changed(saved, path, change):
    """Save a result with its runs changed; returns where."""
    document = json.loads((saved / "result.json").read_text())
    for run in document["runs"]:
        change(run)
    path.write_text(json.dumps(document))
    return path


def test_compare_says_where_an_erase_frees_more(cli, saved, tmp_path):
    def over_planes(run):
        run["config"]["device"]["geometry"] |= {"multi_plane": True, "planes_per_chip": 4}

    other = changed(saved, tmp_path / "planes.json", over_planes)
    words = "erases: one frees 1.00 MiB of A, and 4.00 MiB of B"
    assert words in cli("compare", saved, other).out
    assert "one frees" not in cli("compare", saved, saved).out


def test_compare_says_what_it_does_not_compare(cli, saved, tmp_path):
    def rename(run):
        run["name"] = run["name"].replace("debit", "mine")

    outcome = cli("compare", saved, changed(saved, tmp_path / "mine.json", rename))
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.rstrip().endswith("has none of that name: A debit, B mine")
    assert "Not compared" not in cli("compare", saved, saved).out


def test_compare_says_that_nothing_is_alike(cli, saved, tmp_path):
    def make_flushes(run):
        run["flush"] = dict(run["read"])
        for name in ("read", "small_read", "write"):
            run[name]["count"] = 0

    other = changed(saved, tmp_path / "flushes.json", make_flushes)
    assert "They have no class of requests in common" in cli("compare", saved, other).out
    out = cli("compare", other, other).out
    assert "flushes" in out and "no class" not in out


def test_a_check_does_not_pass_what_it_could_not_compare(cli, saved, tmp_path):
    def lose_writes(run):
        run["write"]["count"] = 0

    def fail(run):
        run["failed_requests"] = {"read_only": 30}

    assert cli("compare", saved, saved, "--check").status == 0
    lost = changed(saved, tmp_path / "lost.json", lose_writes)
    outcome = cli("compare", saved, lost, "--check")
    assert outcome.status == 3 and "Only A (debit) has writes" in outcome.out
    failing = changed(saved, tmp_path / "failing.json", fail)
    outcome = cli("compare", saved, failing, "--check")
    assert outcome.status == 3 and "30 requests were refused" in outcome.out
    assert cli("compare", failing, saved, "--check").status == 0

    def rename(run):
        run["name"] = run["name"].replace("debit", "mine")

    renamed = changed(saved, tmp_path / "renamed.json", rename)
    assert cli("compare", saved, renamed, "--check").status == 3


def test_compare_pairs_runs_by_name(cli, saved):
    outcome = cli("compare", saved, saved)
    assert "A fifo against B fifo" in outcome.out
    assert "A debit against B debit" in outcome.out
    assert "fifo against B debit" not in outcome.out


def test_compare_says_where_runs_of_one_name_lie_and_what_was_set(cli, saved, tmp_path):
    def by_priority(run):
        run["config"]["device"]["scheduler"] = {"policy": "priority"}

    other = changed(saved, tmp_path / "other.json", by_priority)
    out = cli("compare", f"{saved}:debit", f"{other}:debit").out
    assert "A small: debit against B other.json: debit" in out
    assert 'device.scheduler: A "debit", B "priority"' in out
    assert "settings, of which `flashkeel report` has a table" in out
    assert "differ in no setting" in cli("compare", f"{saved}:debit", f"{saved}:debit").out


def test_compare_two_runs_of_one_result(cli, saved):
    outcome = cli("compare", f"{saved}:fifo", f"{saved}:debit")
    assert (outcome.status, outcome.err) == (0, "")
    assert "95 % interval" in outcome.out
    assert "too few" in outcome.out


def test_compare_shows_what_whole_runs_come_to(cli, saved):
    out = cli("compare", f"{saved}:fifo", f"{saved}:debit").out
    for words in ("WAF", "erases a seed", "read IOPS", "write MB/s", "write mean", "few seeds"):
        assert words in out
    (pair,) = json.loads(cli("compare", f"{saved}:fifo", f"{saved}:debit", "--format", "json").out)
    waf = pair["measures"][0]
    assert (waf["measure"], waf["interval"], waf["verdict"]) == ("waf", None, "unknown")
    assert waf["difference"] == pytest.approx(waf["b"] - waf["a"])


def test_compare_json_has_differences(cli, saved):
    pairs = json.loads(cli("compare", f"{saved}:fifo", saved, "--format", "json").out)
    assert [(pair["a"], pair["b"]) for pair in pairs] == [("fifo", "fifo"), ("fifo", "debit")]
    for row in pairs[0]["percentiles"]:
        assert row["difference_ns"] == row["b_ns"] - row["a_ns"] == 0
        assert row["verdict"] in ("overlap", "unknown")


def test_explain_says_which_part_broke_a_budget(cli, saved):
    parts = "host=10us,network=0us,queue=1s,device=1ns"
    out = cli("explain", f"{saved}:fifo", "--budget", parts).out
    assert "is broken by device" in out
    (found,) = json.loads(
        cli("explain", f"{saved}:fifo", "--budget", parts, "--format", "json").out
    )
    by_part = {part["part"]: part for part in found["budget"]}
    assert list(by_part) == ["host", "network", "queue", "device"]
    assert by_part["queue"]["budget_ns"] == 1e9
    # Every nanosecond belongs to one part.
    assert abs(sum(part["spent_ns"] for part in by_part.values()) - found["mean_ns"]) < 1e-3
    kept = cli("explain", f"{saved}:fifo", "--budget", "host=0us,network=0us,queue=9s,device=9s")
    assert "kept by every part" in kept.out


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ("host=10us", "the budget lacks network, queue, device"),
        ("host=1us,network=1us,queue=1us,disk=1us", "no part 'disk'"),
        ("host=1us,network=1us,queue=1us,device=fast", "--budget device: "),
        ("10us", "write KEY=VALUE"),
        ("host=1us,network=1us,queue=1us,device=1us,device=1s", "device twice"),
    ],
)
def test_explain_refuses_a_budget_that_is_none(cli, saved, budget, message):
    outcome = cli("explain", saved, "--budget", budget)
    assert outcome.status == 2
    assert message in outcome.err
    assert outcome.out == ""


def test_every_cause_of_a_budget_is_a_cause():
    causes = [cause for causes in budgets.PARTS.values() for cause in causes]
    assert len(causes) == len(set(causes))
    assert set(causes) <= set(plots.CAUSE_COLOURS)


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize("seeds", [3, 4])
def test_check_tells_scripts_whether_a_tail_has_grown(cli, small_toml, tmp_path, form, seeds):
    saved = tmp_path / "saved"
    assert cli("run", small_toml, "--seeds", seeds, "--out", saved).status == 0

    def slow(run):
        for name in ("percentile", "ci95"):
            of = run["write"][name]
            for at, value in of.items():
                of[at] = [10 * it for it in value] if name == "ci95" else 10 * value
        for one in run["detail"]["histograms"]:
            if one["operation"] == "write":
                one["counts"] = [[10 * ns, count] for ns, count in one["counts"]]

    slower = changed(saved, tmp_path / "slower.json", slow)
    shown = ("--format", form)
    assert cli("compare", saved, slower, *shown).status == 0
    worse = cli("compare", saved, slower, "--check", *shown)
    if seeds == 4:
        assert (worse.status, worse.err) == (3, "")
    else:
        assert worse.status == 0
        assert "note: --check passed over percentiles that seem higher: " in worse.err
    for a, b in ((slower, saved), (saved, saved)):
        fine = cli("compare", a, b, "--check", *shown)
        assert (fine.status, fine.err) == (0, "")
