"""The report as a browser shows it: light, dark, at a laptop's width, by keyboard."""

import re

import flashkeel
import pytest
from browser import page
from flashkeel.output.report import page as report
from small import SMALL

CONTRAST = """
(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = (colour) => {
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (colour) => rgb(colour).map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const style = getComputedStyle(document.documentElement);
  const of = (name) => light(style.getPropertyValue(name));
  const against = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const least = (names, back) => Math.min(...names.map((name) => against(of(name), of(back))));
  return {
    text: Math.min(least(["--ink", "--faint", "--bar", "--few"], "--paper"),
                   least(["--ink"], "--warn")),
    lines: least(["--r0", "--r1", "--r2", "--r3", "--r4", "--r5", "--r6"], "--paper"),
  };
})()
"""


@pytest.fixture(scope="module")
def written(small_result, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.write(small_result.runs, "Small", path)
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with page(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 1024])
def test_it_fits_a_laptop_and_can_be_read(browser, written, width, scheme):
    browser.look(written.as_uri(), width, scheme)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    # What is wider scrolls by itself, and takes the keyboard's focus for that.
    lost = "[...document.querySelectorAll('section *')].filter((it) => !it.closest('.scroll') &&"
    lost += " it.getBoundingClientRect().right > innerWidth).map((it) => it.outerHTML)"
    assert browser.evaluate(lost) == []
    contrast = browser.evaluate(CONTRAST)
    # WCAG 2.2 asks for 4.5 for text, 3 for graphics.
    assert contrast["text"] >= 4.5
    assert contrast["lines"] >= 3
    paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_long_names_fit_too(browser, small_result, tmp_path):
    runs = [run.called(f"{'x' * 150} {index}") for index, run in enumerate(small_result.runs)]
    report.write(runs, "T" * 300, tmp_path / "long.html")
    for width in (1024, 420):
        browser.look((tmp_path / "long.html").as_uri(), width, "light")
        assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_it_asks_for_nothing_else_and_complains_of_nothing(browser, written):
    browser.look(written.as_uri(), 1280, "light")
    assert browser.requested == [written.as_uri()]
    assert browser.complaints == []
    assert not re.search(r"""(src|href)=["'][^#]""", written.read_text())
    assert "http" not in written.read_text().replace("http-equiv", "")


def test_all_of_it_is_reached_by_keyboard(browser, written):
    browser.look(written.as_uri(), 1280, "light")
    seen = []
    for _ in range(40):
        browser.press("Tab")
        what = "((it) => it.id || it.hash || it.ariaLabel || it.tagName)(document.activeElement)"
        seen.append(browser.evaluate(what))
        if seen[-1] == "BODY":
            break
    assert seen[:2] == ["#main", "show-small_read"]
    links = ["#runs", "#tails", "#blame", "#time", "#comparison", "#configuration"]
    assert [it for it in seen if it in links] == links
    assert {"series", "Runs", "Percentiles", "Configuration"} <= set(seen)


def test_classes_are_chosen_by_keyboard(browser, written):
    browser.look(written.as_uri(), 1280, "light")
    shown = "[...document.querySelectorAll('#tails .for')].filter((it) => it.offsetHeight)"
    shown += ".map((it) => it.dataset.class)"
    assert browser.evaluate(shown) == ["small_read"]
    browser.press("Tab", 2)
    browser.press("ArrowRight")
    assert browser.evaluate(shown) == ["write"]
    browser.press("ArrowRight")
    assert browser.evaluate(shown) == ["small_read", "write"]


def test_what_stands_alone_is_drawn(browser, tmp_path):
    experiment = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    result = experiment.set("workload.requests", 5).run()
    report.write(result.runs, "Short", tmp_path / "short.html")
    browser.look((tmp_path / "short.html").as_uri(), 1280, "light")
    caps = "[...document.querySelectorAll('#series polyline')]"
    caps += ".map((it) => getComputedStyle(it).strokeLinecap)"
    assert set(browser.evaluate(caps)) == {"square"}
    # A window that the run's end cuts short has no rate.
    assert "requests a second" not in (tmp_path / "short.html").read_text()


def test_a_cursor_reads_all_series_at_one_time(browser, written, small_result):
    browser.look(written.as_uri(), 1280, "light")
    browser.evaluate("document.getElementById('series').focus()")
    browser.press("Home")
    first = browser.evaluate("document.getElementById('when').textContent")
    assert first == "0 s to 0.1 s"
    texts = "[...document.querySelectorAll('#series figure')].filter((it) => it.offsetHeight)"
    texts += ".map((it) => it.querySelector('figcaption').textContent)"
    series = small_result["fifo"].series()
    requests = (series["reads"][0] + series["writes"][0]) / 0.1
    row = next(text for text in browser.evaluate(texts) if text.startswith("requests a second"))
    told = re.search(r"fifo ([\d.]+) k,", row)[1]
    assert float(told) * 1000 == pytest.approx(requests, rel=0.01)
    browser.press("ArrowRight")
    assert browser.evaluate("document.getElementById('when').textContent") == "0.1 s to 0.2 s"
    places = "[...document.querySelectorAll('.cursor[x1]')].filter((it) => it.closest('#series'))"
    places += ".map((it) => it.getAttribute('x1'))"
    assert len(set(browser.evaluate(places))) == 1
    browser.press("End")
    assert browser.evaluate("document.getElementById('when').textContent") != first


def test_a_cursor_tells_late_times_apart(browser, tmp_path):
    experiment = flashkeel.Experiment(SMALL.split("[[runs]]")[0], "small")
    sets = {"warm_up": "100s", "requests": 202_000, "source.arrivals.iops": 2_000}
    for key, value in sets.items():
        experiment = experiment.set(f"workload.{key}", value)
    report.write(experiment.run().runs, "Late", tmp_path / "late.html")
    browser.look((tmp_path / "late.html").as_uri(), 1280, "light")
    browser.evaluate("document.getElementById('series').focus()")
    browser.press("Home")
    when = "document.getElementById('when').textContent"
    assert browser.evaluate(when) == "100 s to 100.1 s"
    browser.press("ArrowRight", 2)
    assert browser.evaluate(when) == "100.2 s to 100.3 s"
