"""Files of other kinds, given as traces and logs: what they are, and what to do."""

import re

import pytest

FIO = '{\n  "fio version" : "fio-3.33",\n  "jobs" : []\n}\n'
IOSTAT = """\
Linux 5.15.0 (host) \t03/01/2024 \t_x86_64_\t(8 CPU)

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s  %util
nvme0n1        120.00   4800.00     0.00   0.00    0.42    40.00   10.00   5.00
"""
LATENCIES = "0, 320171, 0, 4096, 16187392, 0\n1, 275217, 1, 4096, 198717440, 0\n"
COLUMNS = "happened_ms,op,offset,size,latency_ms\n0.058,read,3260866560,4096,1.582\n"


def asked(cli, path):
    """Return what each command says that cannot take a file."""
    outcomes = [cli("trace", "info", path), cli("run", path), cli("predict", "--log", path)]
    assert [outcome.status for outcome in outcomes] == [2, 2, 2]
    return [outcome.err for outcome in outcomes]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FIO, "a summary of fio (--output-format=json), which has no requests"),
        (IOSTAT, "a report of iostat, which has means and no requests"),
        (COLUMNS, "its columns are happened_ms, op, offset, size, latency_ms"),
    ],
)
def test_what_it_is_and_what_to_do(cli, tmp_path, text, words):
    path = tmp_path / "file"
    path.write_text(text)
    for err in asked(cli, path):
        assert words in err


def test_fios_latency_log_is_a_trace_by_its_columns(cli, tmp_path):
    path = tmp_path / "lat_lat.1.log"
    path.write_text(LATENCIES)
    outcome = cli("trace", "info", path)
    assert outcome.status == 2
    assert "predict --log takes it" in outcome.err
    columns = outcome.err.split('columns = "')[1].split('"')[0]
    outcome = cli("trace", "info", path, "--set", f"columns={columns}")
    assert (outcome.status, outcome.err) == (0, "")
    assert re.search(r"^requests +2$", outcome.out, re.MULTILINE)


def test_a_latency_log_without_offsets_is_no_trace(cli, tmp_path):
    path = tmp_path / "lat_lat.1.log"
    path.write_text("0, 320171, 0, 4096\n")
    assert "without offsets; let the job set log_offset=1" in cli("trace", "info", path).err


def test_a_file_of_no_kind_is_refused_as_before(cli, tmp_path):
    path = tmp_path / "file"
    path.write_text("nothing of this kind\n")
    assert "no known trace format" in cli("trace", "info", path).err
