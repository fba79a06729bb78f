"""What is seen of a drive while it is served: metrics, and `explain` from the outside."""

import json
import math
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest
from flashkeel.serving import bounded, control, metrics
from programs import require
from prometheus_client.parser import text_string_to_metric_families
from torturing import ROOT, torture


class Served:
    """A server with metrics and a socket for commands."""

    def __init__(self, folder, page="127.0.0.1:0", *options):
        document, self.path, self.control = folder / "d.toml", folder / "nbd", folder / "control"
        document.write_text(torture.DRIVE)
        command = [sys.executable, "-m", "flashkeel", "serve", "nbd", document, "--format", "json"]
        command += ["--listen", f"unix:{self.path}", "--control", f"unix:{self.control}"]
        command += ["--metrics", page, *options]
        self.process = subprocess.Popen(
            [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        said = self.process.stderr.readline()
        self.status = Path(f"/proc/{self.process.pid}/status")
        self.page = re.match(r"To be watched at (http://[^ ]+/), for Prometheus", said)[1]
        self.metrics = f"{self.page}metrics"
        assert self.process.stderr.readline().startswith("Serving")
        self.client = torture.Client(self.path)

    def scrape(self):
        """Return all samples as {(name, labels): value}."""
        with urllib.request.urlopen(self.metrics, timeout=10) as page:
            assert page.headers["Content-Type"].startswith("text/plain")
            families = text_string_to_metric_families(page.read().decode())
            return {
                (sample.name, *sorted(sample.labels.items())): sample.value
                for family in families
                for sample in family.samples
            }

    def end(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, err
        return json.loads(out)


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def served(tmp_path):
    found = Served(tmp_path)
    yield found
    found.process.kill()
    found.process.wait()


def ask(client, kind, cookie, first, pages, data=b""):
    client.ask(kind, cookie, first * 4096, pages * 4096, data)
    assert client.answer() == (0, cookie)
    if kind == torture.READ:
        client.receive(pages * 4096)


def test_metrics_count_what_clients_did(served):
    for cookie in range(20):
        ask(served.client, torture.WRITE, cookie, cookie * 8, 8, bytes(32768))
    for cookie in range(30):
        ask(served.client, torture.READ, cookie, 2000 + cookie, 1)
    ask(served.client, torture.FLUSH, 0, 0, 0)
    ask(served.client, torture.TRIM, 0, 100, 16)
    seen = served.scrape()
    disk = ("device", "flashkeel")
    counted = {
        "flashkeel_disk_reads_completed_total": 30,
        "flashkeel_disk_read_bytes_total": 30 * 4096,
        "flashkeel_disk_writes_completed_total": 20,
        "flashkeel_disk_written_bytes_total": 20 * 32768,
        "flashkeel_disk_flush_requests_total": 1,
        "flashkeel_disk_discards_completed_total": 1,
        "flashkeel_lateness_answers_total": 52,
    }
    assert {name: seen[name, disk] for name in counted} == counted
    assert seen["flashkeel_clients", disk] == 1
    # Where nothing was measured there is no lateness of 0.
    late, sync = (
        [value for (name, *_), value in seen.items() if name == f"flashkeel_{which}_seconds"]
        for which in ("lateness", "sync")
    )
    assert len(late) == len(sync) == 5
    assert all(value >= 0 for value in late)
    assert all(math.isnan(value) for value in sync)
    # Each read is in one histogram, that of whoever owned most of it.
    everything = [
        value
        for (name, *labels), value in seen.items()
        if name == "flashkeel_latency_seconds_bucket"
        and {("operation", "read"), ("le", "+Inf")} < set(labels)
    ]
    assert sum(everything) == 30
    # What they took is told with it, once.
    for name, expected in (
        ("count", 30),
        ("sum", seen["flashkeel_disk_read_time_seconds_total", disk]),
    ):
        parts = [
            value
            for (sample, *labels), value in seen.items()
            if sample == f"flashkeel_latency_seconds_{name}" and ("operation", "read") in labels
        ]
        assert sum(parts) == pytest.approx(expected)
    owned = [
        value
        for (name, *labels), value in seen.items()
        if name == "flashkeel_latency_owned_seconds_total" and ("operation", "read") in labels
    ]
    # Flash is read in 50 us.
    assert (
        30 * 50e-6
        < sum(owned)
        == pytest.approx(seen["flashkeel_disk_read_time_seconds_total", disk])
    )
    assert any(name == "flashkeel_free_blocks" for name, *_ in seen)
    assert any(name == "flashkeel_write_amplification" for name, *_ in seen)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(served.metrics.replace("/metrics", "/other"), timeout=10)
    assert served.end()["late"]["count"] == 52


def test_what_may_fall_is_no_counter():
    report = {"bytes_at_risk": 4096, "has_filled": False, "upper_pages": 8, "drained_bytes": 1}
    state = {
        "clients": 0,
        "time_scale": 1.0,
        "bounds_ns": [],
        "operations": {
            name: {"count": 0, "failed": 0, "bytes": 0, "latencies": {}, "owned_ns": {}}
            for name in ("read", "write", "flush", "discard")
        },
        **dict.fromkeys(
            ("late", "synced"),
            dict.fromkeys(("count", "p50_ns", "p99_ns", "p99_9_ns", "p99_99_ns", "max_ns"), 0),
        ),
        "device": [{"kind": "tier", "report": report, "gauges": {}}],
    }
    text = metrics.page("d", SimpleNamespace(state=lambda: json.dumps(state)))().decode()
    kinds = {it.name: it.type for it in text_string_to_metric_families(text)}
    assert kinds["flashkeel_bytes_at_risk"] == kinds["flashkeel_has_filled"] == "gauge"
    assert kinds["flashkeel_upper_pages"] == "gauge"
    assert kinds["flashkeel_drained_bytes"] == "counter"


def test_what_a_page_would_be_is_told_without_it(served):
    for page in ("", "state.json", "metrics"):
        told = urllib.request.Request(served.page + page, method="HEAD")
        with urllib.request.urlopen(told, timeout=10) as found:
            assert (found.status, found.read()) == (200, b"")
            assert int(found.headers["Content-Length"]) > 1000
    nowhere = urllib.request.Request(f"{served.page}nowhere", method="HEAD")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(nowhere, timeout=10)


def test_pages_are_shown_at_addresses_of_both_kinds(tmp_path):
    found = Served(tmp_path, "[::1]:0")
    assert found.page.startswith("http://[::1]:")
    assert found.scrape()
    found.end()


def test_browsers_that_go_leave_nothing_behind(served):
    place = urllib.parse.urlsplit(served.page)
    for asked in (b"GET / HTTP/1.1\r\n\r\n", b"GET /me", b""):
        with socket.create_connection((place.hostname, place.port)) as client:
            # It is reset, not closed, with the answer on its way.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(asked)
    assert served.scrape()
    served.process.send_signal(signal.SIGINT)
    assert served.process.communicate(timeout=20)[1] == ""


def test_what_chips_do_is_told_since_it_was_last_asked(served):
    def chips():
        with urllib.request.urlopen(f"{served.page}state.json", timeout=10) as page:
            (part,) = json.load(page)["device"]
        return part["chips"]

    # What was done before anybody asked is told, too.
    ask(served.client, torture.READ, 90, 0, 1)
    before = chips()
    assert before["from_ns"] == 0
    assert sum(each.get("host_read", 0) for each in before["busy_ns"]) == 60_240
    for cookie in range(40):
        ask(served.client, torture.READ, cookie, cookie, 1)
    after = chips()
    assert before["to_ns"] <= after["from_ns"] < after["to_ns"]
    busy = [set(each) for each in after["busy_ns"]]
    assert busy == [{"host_read"}] * 4
    # Flash is read in 50 us, and the data takes 10 us to the controller.
    assert sum(each["host_read"] for each in after["busy_ns"]) == 40 * 60_240
    # What was told is not told again.
    assert chips()["busy_ns"] == [{}] * 4
    served.end()


def test_a_browser_shows_the_drive_while_it_is_used(served, tmp_path):
    job = [require("fio"), "--name=job", "--ioengine=nbd", "--rw=randrw", "--bs=4k", "--iodepth=4"]
    job += [f"--uri=nbd+unix:///?socket={served.path}", "--time_based", "--runtime=30"]
    fio = subprocess.Popen(job, stdout=subprocess.DEVNULL, cwd=tmp_path)
    # The time of the browser is virtual: it waits for nobody.
    wait_until(lambda: served.scrape()["flashkeel_clients", ("device", "flashkeel")] == 2)
    shown = {}
    for scheme in ("light", "dark"):
        browser = [require("chromium"), "--headless=new", "--no-sandbox", "--disable-gpu"]
        browser += [f"--user-data-dir={tmp_path / scheme}", "--window-size=1280,1400"]
        browser += ["--force-dark-mode"] if scheme == "dark" else []
        browser += ["--virtual-time-budget=8000", "--dump-dom", served.page]
        done = subprocess.run(browser, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        shown[scheme] = done.stdout
    fio.kill()
    fio.wait()
    for dom in shown.values():
        assert re.search(r"[\d.,K]+ reads/s, [\d.,K]+ writes/s, 2 clients", dom)
        assert re.search(r"requests; most took at most [\d.]+ (µs|ms), the slowest", dom)
        assert re.search(r"Now \d of 4 chips are busy more than half of the time; of the time", dom)
        assert re.search(r"(host (reads|writes)|collection) takes? [\d.]+ %", dom)
        assert re.search(r"Of [\d.,K]+ requests in the last minute the", dom)
        assert re.search(r'<th scope="row">[a-z -]+</th><td>[\d.,K]+</td><td>[\d.]+ %</td>', dom)
        assert "The server does not answer" not in dom.partition("<script>")[0]
        # It loads nothing from elsewhere.
        assert not re.search(r"(src|href)=", dom)
    served.end()


def test_the_dashboard_shows_metrics_that_there_are(served):
    ask(served.client, torture.WRITE, 1, 0, 1, bytes(4096))
    there = {name for name, *_ in served.scrape()}
    dashboard = json.loads((ROOT / "docs/grafana-dashboard.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    shown += [variable["query"] for variable in dashboard["templating"]["list"]]
    named = {name for text in shown for name in re.findall(r"flashkeel_\w+", text)}
    assert len(named) > 10
    assert named <= there
    served.end()


def test_a_drive_that_is_slowed_down_says_so(tmp_path, cli):
    served = Served(tmp_path, "127.0.0.1:0", "--time-scale", "20")
    ask(served.client, torture.READ, 1, 0, 1)
    outcome = cli("explain", f"unix:{served.control}", "--above", "p50")
    assert "All times are the drive's: clients see each 20 times as long" in outcome.out
    outcome = cli("explain", f"unix:{served.control}", "--format", "json")
    assert json.loads(outcome.out)[0]["time_scale"] == 20
    assert served.scrape()["flashkeel_time_scale", ("device", "flashkeel")] == 20
    served.end()


def test_explain_says_who_owns_the_last_minute(served, cli):
    outcome = cli("explain", f"unix:{served.control}")
    assert (outcome.status, outcome.out) == (0, "last minute: no requests\n")
    for cookie in range(50):
        ask(served.client, torture.READ, cookie, cookie, 1)
    outcome = cli("explain", f"unix:{served.control}", "--above", "p50")
    assert outcome.status == 0
    assert re.search(r"last minute: \d+ small reads above p50 .*requests of clients", outcome.out)
    assert "own flash" in outcome.out
    assert re.search(r"server was later .* of 50 answers: half .*, p99 .*, p99\.9", outcome.out)
    outcome = cli("explain", f"unix:{served.control}", "--class", "write")
    assert outcome.out == "last minute: no writes\n"
    outcome = cli("explain", f"unix:{served.control}", "--class", "read", "--format", "json")
    (found,) = json.loads(outcome.out)
    assert found["basis"] == "clients"
    assert found["server_late"]["count"] == 50
    assert sum(share["share"] for share in found["shares"]) == pytest.approx(1)
    served.end()
    assert not served.control.exists()
    outcome = cli("explain", f"unix:{served.control}")
    assert outcome.status == 2
    assert "No such file" in outcome.err


def test_explain_says_what_waited_until_it_was_durable(tmp_path, cli):
    served = Served(tmp_path, "127.0.0.1:0", "--data", tmp_path / "data")
    for cookie in range(20):
        served.client.ask(torture.WRITE, cookie, cookie * 4096, 4096, bytes(4096), torture.FUA)
        assert served.client.answer() == (0, cookie)
    outcome = cli("explain", f"unix:{served.control}", "--above", "p50")
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("Clients saw more")]
    assert "20 requests waited until they were durable in --data: half " in line
    outcome = cli("explain", f"unix:{served.control}", "--format", "json")
    (found,) = json.loads(outcome.out)
    # The model answered none of them by itself.
    assert "server_late" not in found
    synced = found["server_synced"]
    assert synced["count"] == sum(synced["counts"]) == 20
    assert len(synced["counts"]) == len(synced["bounds_ns"]) + 1
    assert 0 < synced["p50_ns"] <= synced["max_ns"]
    served.end()


def test_whoever_says_nonsense_hears_so_and_disturbs_nobody(served):
    silent = socket.socket(socket.AF_UNIX)
    silent.connect(str(served.control))
    hostile = socket.socket(socket.AF_UNIX)
    hostile.connect(str(served.control))
    hostile.sendall(b"\xff" * 10_000 + b"\n")
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(served.control))
        client.sendall(b"format c:\nstate\n")
        answers = client.makefile("rb")
        assert json.loads(answers.readline()) == {
            "error": "unknown command 'format c:': state, recent"
        }
        assert json.loads(answers.readline())["clients"] == 1
    ask(served.client, torture.READ, 1, 0, 1)
    served.end()
    silent.close()
    hostile.close()


def test_a_crowd_takes_few_threads_and_keeps_nobody_out_for_good(served):
    def threads():
        (line,) = re.findall(r"Threads:\t(\d+)", served.status.read_text())
        return int(line)

    place = urllib.parse.urlsplit(served.page)
    before = threads()
    crowd = [socket.create_connection((place.hostname, place.port)) for _ in range(50)]
    wait_until(lambda: threads() >= before + bounded.MOST)
    time.sleep(3 * bounded.PAUSE_S)
    assert threads() == before + bounded.MOST
    for one in crowd:
        one.close()
    assert served.scrape()
    assert control.ask(served.control, "state")["clients"] == 1
    served.end()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--metrics", "9100"), "write ADDRESS:PORT"),
        (("--metrics", "[::1:9100"), "write ADDRESS:PORT"),
        (("--metrics", "::1:9100"), "write ADDRESS:PORT"),
        (("--metrics", "127.0.0.1:99999"), "write ADDRESS:PORT"),
        (("--metrics", "127.0.0.1:\u00b2"), "write ADDRESS:PORT"),
        (("--metrics", f"127.0.0.1:{'1' * 5000}"), "write ADDRESS:PORT"),
        (("--metrics", "192.0.2.1:9100"), "192.0.2.1:9100: Cannot assign requested address"),
        (("--control", "somewhere"), "write unix:PATH, such as unix:/tmp/drive.ctl"),
        (("--control", "unix:/nowhere/at/all"), "/nowhere/at/all: No such file or directory"),
    ],
)
def test_where_nobody_can_be_answered_is_refused(cli, tmp_path, options, words):
    document = tmp_path / "drive.toml"
    document.write_text(torture.DRIVE)
    outcome = cli("serve", "nbd", document, "--listen", f"unix:{tmp_path / 'nbd'}", *options)
    assert outcome.status == 2
    assert words in outcome.err
    assert not (tmp_path / "nbd").exists()


def test_nothing_is_made_where_nobody_can_be_answered(cli, tmp_path):
    document, data, control = tmp_path / "drive.toml", tmp_path / "data", tmp_path / "control"
    document.write_text(torture.DRIVE)
    control.write_text("mine")
    places = (
        "--listen",
        f"unix:{tmp_path / 'nbd'}",
        "--data",
        data,
        "--control",
        f"unix:{control}",
    )
    outcome = cli("serve", "nbd", document, *places)
    assert outcome.status == 2
    assert f"{control}: something that is no socket is there" in outcome.err
    assert (data.exists(), control.read_text()) == (False, "mine")


def test_a_socket_that_has_come_in_its_place_is_left_alone(tmp_path):
    path = tmp_path / "control"
    with control.listening(path):
        path.unlink()
        other = socket.socket(socket.AF_UNIX)
        other.bind(str(path))
        other.listen()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    other.close()
    path.unlink()
    with control.listening(path):
        assert path.is_socket()
    assert not path.exists()
