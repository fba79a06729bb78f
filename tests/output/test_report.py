"""What a report says: warnings, bands of blame, differences."""

import json
import re
from html.parser import HTMLParser

import flashkeel
import pytest
from flashkeel import Run, steadiness
from flashkeel.arrow import TableFiles
from flashkeel.comparison import is_guess
from flashkeel.output import steady_plots
from flashkeel.output.report import differences, draw, page, tails, warnings
from small import SMALL


class Outline(HTMLParser):
    """Sees to it that elements are closed in order, and that names are used once."""

    OPEN = ("meta", "input", "br")

    def __init__(self):
        super().__init__()
        self.path, self.names, self.sections = [], [], []

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        self.names += [names["id"]] if "id" in names else []
        self.sections += [names.get("id")] if tag == "section" else []
        if tag not in self.OPEN:
            self.path.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.path.pop() == tag


def outline(text):
    found = Outline()
    found.feed(text)
    assert found.path == []
    assert len(found.names) == len(set(found.names))
    return found


def kinds(runs):
    return {warning.kind for warning in warnings.found(runs)}


def small(**sets):
    experiment = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    for key, value in sets.items():
        experiment = experiment.set(key.replace("__", "."), value)
    return experiment.run()


def test_a_report_has_every_section(small_result):
    found = outline(page.render(small_result.runs, "Small & others"))
    sections = ["warnings", "runs", "tails", "blame", "time", "comparison", "configuration"]
    assert found.sections == sections


def test_one_run_is_compared_with_nothing(small_result):
    found = outline(page.render(small_result.runs[:1], "Small"))
    assert found.sections == ["warnings", "runs", "tails", "blame", "time"]


def test_names_are_no_markup(small_result):
    runs = [run.called(f'<b>&"{run.name}') for run in small_result.runs]
    text = page.render(runs, "<script>alert(1)</script>")
    outline(text)
    assert "<b>&" not in text and "<script>alert" not in text


def test_bands_add_up_to_all_requests(small_result):
    for run in small_result.runs:
        for latency_class in ("small_read", "write"):
            bands = tails.bands(run, latency_class)
            assert sum(band.count for band in bands) == run.samples(latency_class)
            owned = sum(sum(band.owned_ns.values()) for band in bands)
            assert owned == pytest.approx(run.mean(latency_class) * run.samples(latency_class))
            # Each band is slower than the one before it.
            means = [sum(band.owned_ns.values()) / band.count for band in bands]
            assert means == sorted(means)


def test_configurations_differ_in_the_key_that_was_set(small_result):
    text = differences.configuration(small_result.runs)
    keys = re.findall(r'<th scope="row"><code>([^<]+)</code>', text)
    assert "device.scheduler" in keys
    assert all(key.startswith("device.scheduler") for key in keys)
    same = differences.configuration([small_result.runs[0]] * 2)
    assert "No key differs" in same


def test_a_comparison_says_what_compare_says(small_result):
    a, b = small_result.runs
    text = differences.compared(a, [b], "small_read")
    rows = re.findall(r'<tr class="(\w+)"', text)
    expected = [it.verdict for it in flashkeel.compare(a, b) if it.latency_class == "small_read"]
    assert rows == expected


def test_generated_input_and_few_samples_are_warned_of(small_result):
    assert {"synthetic", "too few samples"} <= kinds(small_result.runs)
    texts = [it.text for it in warnings.found(small_result.runs) if it.kind == "too few samples"]
    assert any("beyond p99.95" in text or "beyond p99.99" in text for text in texts)


def test_what_figures_owe_to_the_first_state_is_warned_of():
    half = small(device__precondition__fill=0.5)
    texts = [it.text for it in warnings.found(half.runs) if it.kind == "first state"]
    assert any("of the pages read were never written" in text for text in texts)


def test_equal_runs_are_told_in_the_table_of_tails(small_result):
    run = small_result.runs[0]
    shown = tails.table([run.called("a"), run.called("b")], "small_read")
    assert ">b = a</th>" in shown
    assert ">a</th>" in shown


def test_few_trims_are_warned_of_where_there_is_nothing_else(known_run):
    run = known_run()
    trims = run.data["small_read"]
    run = known_run(trim=trims, read=trims | {"count": 0}, small_read=trims | {"count": 0})
    text = next(warnings._of(run)).text
    assert text.startswith("of 200 k trims fewer than 10 are beyond p99.9999")


def test_a_percentile_that_all_share_is_no_guess(known_run):
    run = known_run()
    known = run.data["small_read"]
    assert is_guess(run, "small_read", 99.9999)
    known["ci95_bounded"] = dict.fromkeys(known["ci95"], True)
    known["ci95"] = {key: [100, 100] for key in known["ci95"]}
    assert not is_guess(run, "small_read", 99.9999)


def test_a_run_that_was_steady_and_is_no_more_is_told_as_steady_tells_it(small_result, monkeypatch):
    values = [100.0] * 12 + [100.0 + 40 * n for n in range(13)]
    points = [steadiness.Point(n, n + 1, value) for n, value in enumerate(values)]
    monkeypatch.setattr(steadiness, "rounds", lambda *_: points)
    run = small_result.runs[0]
    (told,) = [it.text for it in warnings.found([run]) if it.kind == "not steady"]
    found = steadiness.assess(run, "lat")
    assert not found.last.is_steady and found.reached.points[0].start_s == 0
    assert "the first steady rounds, from 0 to 5 s, are those that `flashkeel steady` tells" in told
    assert "<code>flashkeel steady</code> tells" in page.render([run], "Small")
    monkeypatch.setattr(steadiness, "rounds", lambda *_, **__: points)
    monkeypatch.setattr(Run, "seeds", [7, 8])
    told = [it.text for it in warnings.found([run]) if it.kind == "not steady"]
    assert told[0].startswith("2 of 2 seeds; seed 7: in the last 5 of 25 rounds")
    monkeypatch.undo()
    monkeypatch.setattr(steadiness, "rounds", lambda *_: points[12:])
    (told,) = [it.text for it in warnings.found([run]) if it.kind == "not steady"]
    assert "the first steady rounds" not in told


def test_a_run_of_two_steady_states_is_warned_of(small_result, monkeypatch):
    values = [2e6] * 12 + [2e5] * 13
    points = [steadiness.Point(n, n + 1, value) for n, value in enumerate(values)]
    monkeypatch.setattr(steadiness, "rounds", lambda *_: points)
    run = small_result.runs[0]
    assert steadiness.assess(run, "lat").last.is_steady
    (told,) = [it.text for it in warnings.found([run]) if it.kind == "not steady"]
    assert "steady at 2.00 ms from 0 to 5 s, and is 200 µs in the last 5 of 25 rounds" in told
    assert "mixes two states" in told


def test_steady_rounds_of_a_long_run_are_told_in_hours(small_result, monkeypatch):
    values = [2e6] * 12 + [2e5] * 13
    points = [steadiness.Point(3e4 * n, 3e4 * (n + 1), value) for n, value in enumerate(values)]
    monkeypatch.setattr(steadiness, "rounds", lambda *_: points[1:])
    run = small_result.runs[0]
    found = steadiness.assess(run, "lat")
    (told,) = [it.text for it in warnings.found([run]) if it.kind == "not steady"]
    assert "from 8.333 to 50 h, and is 200 µs" in told
    figure = steady_plots.convergence([run], [found])
    assert "steady from 8.333 h on" in figure.axes[0].get_title(loc="left")


def test_a_queue_that_grows_is_warned_of(small_result):
    arrivals = {"policy": "poisson", "iops": 200_000}
    flooded = small(workload__source__arrivals=arrivals, measure__series_window="5ms")
    texts = [it.text for it in warnings.found(flooded.runs) if it.kind == "not steady"]
    (told,) = [text for text in texts if "faster than they are served" in text]
    assert "latencies say how long the run was (at most " in told
    calm = [it.text for it in warnings.found(small_result.runs)]
    assert not any("faster than they are served" in text for text in calm)


def test_reads_faster_than_the_channels_are_warned_of(small_result):
    assert "impossible rate" not in kinds(small_result.runs)
    empty = small(
        workload__source__read_fraction=1.0,
        workload__source__block_sizes=["128KiB"],
        workload__source__arrivals={"policy": "poisson", "iops": 100_000},
        device__precondition__pattern="none",
    )
    (told,) = [it.text for it in warnings.found(empty.runs) if it.kind == "impossible rate"]
    assert "was never written" in told


def test_writes_that_end_in_the_buffer_are_warned_of():
    writes = {
        "workload__source__read_fraction": 0.0,
        "workload__source__arrivals": {"policy": "poisson", "iops": 4_000_000},
    }
    short = small(
        **writes,
        workload__requests=500,
        device__buffer={"size": "64MiB", "flush": ["full"]},
    )
    (told,) = [it.text for it in warnings.found(short.runs) if it.kind == "impossible rate"]
    assert told.startswith("it writes ") and "100 % of it is still in the write buffer" in told
    assert "impossible rate" not in kinds(small(**writes).runs)


def test_runs_of_one_colour_are_told_apart(small_result):
    runs = [small_result.runs[0].called(f"run {index}") for index in range(9)]
    text = page.render(runs, "Nine")
    assert text.count('<polyline class="line again" ') == 2 * 2
    assert [draw.stroke(index) for index in (6, 7, 14, 21, 28)] == [
        *("line", "line again", "line thrice", "line more", "line"),
    ]
    assert text.count('class="key again"') % 2 == 0
    assert "line again" not in page.render(runs[:7], "Seven").partition("</style>")[2]


@pytest.mark.parametrize(
    ("low", "high"),
    [(299e3, 299e3), (340e3, 341e3), (2.2e6, 4.6e6), (5.3e6, 9.3e6), (1, 1e9), (1, 1)],
)
def test_an_axis_of_latencies_has_numbers(low, high):
    scale = draw.latencies([low, high], 0, 100)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 10
    assert all(scale.low * 0.999 <= tick <= scale.high * 1.001 for tick in ticks)


def test_runs_without_series_are_reported(small_result, tmp_path):
    runs = [Run(run.data, TableFiles(tmp_path)) for run in small_result.runs]
    assert "has no time series" in page.render(runs, "Small")


def test_no_rate_falls_where_a_run_ends(small_result):
    text = page.render(small_result.runs, "small")
    data = json.loads(re.search(r'id="series-data">(.*?)</script>', text, re.DOTALL)[1])
    for values in data["rows"][2]["values"]:
        assert values[-1] is None
        assert min(values[:-1]) > 0.9 * max(values[:-1])


def test_columns_of_many_windows_show_the_most_of_any_and_say_over_how_long(small_result):
    run = small(measure__series_window="1ms").runs[0]
    text = page.render([run], "small")
    # A second in 360 columns.
    mean = re.search(r"Each point is the mean over (\S+) ms; .* of windows of (\S+) ms ", text)
    assert float(mean[1]) > 2 and mean[2] == "1.00"
    rows = json.loads(re.search(r'id="series-data">(.*?)</script>', text, re.DOTALL)[1])["rows"]
    titles = re.findall(r"<figcaption>([^<]+) <", text)
    rates = rows[titles.index("requests a second: mean (dotted: most)")]
    table = run.series()
    most = max((table["reads"] + table["writes"])[:-1]) / 1e-3
    assert max(filter(None, rates["peaks"][0])) == pytest.approx(most, rel=1e-3)
    assert max(filter(None, rates["values"][0])) < most
    inside = rows[titles.index("requests in the device: mean (dotted: most)")]
    assert max(filter(None, inside["peaks"][0])) == max(table["requests_in_device"])
    fine = page.render(small_result.runs, "small")
    assert "Each point is a window of 100 ms." in fine and "dotted: most" not in fine


def test_an_axis_of_few_requests_has_fractions(small_result):
    run = small(workload__source__arrivals={"policy": "poisson", "iops": 500}).runs[0]
    text = page.render([run], "small")
    figure = re.search(r"<figcaption>requests in the device.*?</figure>", text, re.DOTALL)[0]
    ticks = re.findall(r'text-anchor="end">([^<]+)<', figure)
    assert len(set(ticks)) == len(ticks) and any("." in tick for tick in ticks)


def test_limits_of_the_flash_are_called_so(small_result):
    text = page.render([small_result["debit"]], "small")
    assert "limit of the flash (may use up to): host" in text
    assert "share of the flash" not in text


def test_drives_of_a_stack_share_rows():
    device = {"ssd": {}}
    runs = small(stack__devices=[device, device], workload__requests=3000).runs
    text = page.render(runs, "Two")
    assert "free blocks, fewest of any drive" in text
    assert text.count("free blocks, fewest of any drive <output") == 1


def test_the_command_writes_a_page(cli, saved, tmp_path):
    out = tmp_path / "report.html"
    outcome = cli("report", saved, "-o", out)
    assert (outcome.status, outcome.err) == (0, "")
    outline(out.read_text())
    assert "Compared with fifo" in out.read_text()
    cli("report", saved, f"{saved}:debit", "--base", "fifo", "--title", "Mine", "-o", out)
    assert "small: debit" in out.read_text() and "<h1>Mine</h1>" in out.read_text()


def test_results_in_folders_of_one_name_are_told_apart(cli, small_result, tmp_path, monkeypatch):
    for folder in ("a", "b"):
        small_result.save(tmp_path / folder / "out")
    monkeypatch.chdir(tmp_path / "a" / "out")
    page = tmp_path / "report.html"
    assert cli("report", ".", "../../b/out", "-o", page).status == 0
    assert "a/out: fifo" in page.read_text()
    assert "b/out: fifo" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("{0}", "--base", "nope"), "no such run; there are fifo, debit"),
        (("unix:/tmp/x",), "results that `run --out` saved"),
        (("{0}:nope",), "fifo, debit"),
        (("/nowhere",), "No such file"),
    ],
)
def test_what_cannot_be_reported_is_refused(cli, saved, tmp_path, arguments, words):
    out = tmp_path / "report.html"
    outcome = cli("report", *(it.format(saved) for it in arguments), "-o", out)
    assert outcome.status == 2
    assert words in outcome.err
    assert not out.exists()


def test_a_page_is_not_called_a_picture(cli, saved, tmp_path):
    outcome = cli("report", saved, "-o", tmp_path / "report.pdf")
    assert outcome.status == 2
    assert "call it report.html" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_a_result_is_not_overwritten_by_its_report(cli, saved):
    outcome = cli("report", saved, "-o", saved / "result.json")
    assert outcome.status == 2
    assert "choose another name" in outcome.err
