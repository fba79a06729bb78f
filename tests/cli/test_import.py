"""flashkeel import, and fio job files that run as they are."""

import json

SMALL_DEVICE = [
    text
    for key, value in {
        "logical_capacity": "380MiB",
        "geometry.blocks_per_plane": "16",
        "geometry.pages_per_block": "64",
        "gc.start_below": "40",
        "gc.stop_above": "60",
    }.items()
    for text in ("--set", f"device.{key}={value}")
]


def test_a_fio_job_file_runs(cli, tmp_path):
    job = tmp_path / "job.fio"
    job.write_text("[a]\nrw=randread\nbs=4k\nsize=1m\niodepth=4\n")
    outcome = cli("run", job, *SMALL_DEVICE, "--format", "json")
    assert outcome.status == 0, outcome.err
    assert json.loads(outcome.out)["runs"][0]["requests"] == 256
    assert "fio names no drive" in outcome.err
    document = tmp_path / "job.toml"
    assert cli("import", "fio", job, "-o", document).status == 0
    assert (
        json.loads(cli("run", document, *SMALL_DEVICE, "--format", "json").out)["runs"][0]["digest"]
        == json.loads(outcome.out)["runs"][0]["digest"]
    )


def test_nothing_is_written_of_a_job_that_cannot_run(cli, tmp_path):
    job, out = tmp_path / "odd.fio", tmp_path / "odd.toml"
    job.write_text("[a]\nrw=read\nbs=3000\nsize=1m\n")
    outcome = cli("import", "fio", job, "-o", out)
    assert outcome.status == 2
    assert f"flashkeel: {job}:3: bs: " in outcome.err
    assert not out.exists()


def test_nothing_is_printed_of_one_either(cli, tmp_path):
    job = tmp_path / "odd.fio"
    job.write_text("[a]\nrw=read\nbs=3000\nsize=1m\n")
    outcome = cli("import", "fio", job)
    assert (outcome.status, outcome.out) == (2, "")
    assert f"flashkeel: {job}:3: bs: " in outcome.err


def test_logs_of_several_runs_are_found_from_another_folder(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["fio version 2 iolog", "/x add", "/x open", "/x read 0 4096", "/x close"]
    (tmp_path / "a.log").write_text("".join(f"{line}\n" for line in lines))
    sections = "[a]\nread_iolog=a.log\n[b]\nstonewall\nread_iolog=a.log\n"
    (tmp_path / "job.fio").write_text(sections)
    (tmp_path / "documents").mkdir()
    imported = cli("import", "fio", "job.fio", "-o", "documents/job.toml")
    assert imported.status == 0, imported.err
    outcome = cli("run", "documents/job.toml", *SMALL_DEVICE, "--format", "json")
    assert outcome.status == 0, outcome.err
    assert [run["requests"] for run in json.loads(outcome.out)["runs"]] == [1, 1]
