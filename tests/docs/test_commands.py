"""Every command in every document is carried out, as far as it goes with small inputs."""

import dataclasses
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import distributed
import pytest
from flashkeel.cli import app
from flashkeel.reproduce import works
from flashkeel.reproduce.claims import Finding, Outcome

from docs import carried_out

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$|((?:^ {4}\S.*\n)+)", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`(flashkeel [a-z][^`]*)`")
SAVED = re.compile(
    r"Save (?:this )?as `(\w+\.toml)`[^\n]*:\n\n```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
"""A document that the reader is told to save."""
NAMED_AFTER = re.compile(r"`flashkeel run (\w+\.toml)`:\n\n```toml\n(.*?)^```$", re.M | re.S)
ELSEWHERE = {
    "--set device.gc.victim=rand": "tests/docs/test_contributing.py",
    "probe /dev/nvme1n1": "tests/cli/test_drives.py",
    "nbd://storage:10809/disk": "tests/serve/test_real_drives.py",
    "nbd+unix://": "tests/serve/test_real_drives.py",
}
"""Commands that take what cannot be had here, and the tests that do what they do."""
STATUS = {"flashkeel trace info broken.csv": 2}
"""What a command ends with, where the document shows that."""
STANDS_FOR = {
    "DIR[:RUN]": "DIR:fifo",
    "DIR:RUN": "DIR:fifo",
    "RESULT:RUN": "RESULT:fifo",
    "[--class write]": "--class write",
    "run … --out DIR": "run FILE.toml --out made",
    "sweep … ": "sweep over-provisioning -o on-dask ",
    "-o sweep --executor dask": "-o dask --executor dask",
    "plan lifetime …": "plan lifetime --capacity 128GB --rated-cycles 3000 --gb-per-day 500",
    "plan buffer FILE": "plan buffer FILE.toml",
    "plan buffer …": "plan buffer FILE.toml",
    "plan tier …": "plan tier --trace recorded.csv --drive qlc --max-read 20ms --seeds 1",
    "DIR…": "DIR",
    "--kind KIND -o FILE": "--kind cdf -o cdf.png",
    "run FILE --set 'device.preset": "run large.toml --set 'device.preset",
    "probe --out": "probe device.toml --out found",
    "run NAME": "run demo",
    "show NAME": "show demo",
    "reproduce NAME": "reproduce ready",
    "trace info FILE": "trace info recorded.csv",
    "predict --log FILE": "predict --log log.csv",
    "probe FILE": "probe device.toml",
    "nbd FILE": "nbd device.toml",
    "--log trace.txt --model model.json": "--log log.csv --model out/ssd-d/model.json",
    'from = "20s", length': 'from = "10ms", length',
    'from = "20s" }': 'from = "1s" }',
    "workload.requests=100000": "workload.requests=10000",
    "workload.requests=1800000": "workload.requests=10000",
    "mirrors --seeds 4": "mirrors --seeds 1",
    "windows --seeds 3": "windows --seeds 1",
    "workload.duration=21s": "workload.duration=2s",
    "workload.warm_up=100s": "workload.warm_up=0s",
    "zstdcat disk.zst": "cat disk.csv",
    "run mine.toml --destroy": "run own.toml --destroy",
}
"""What a placeholder of a document is here."""
FEW = "--set workload.requests=2000 --set workload.warm_up=0s"
FRESH = "--set device.precondition.pattern=none"
QUICK = {
    "run": f"{FEW} {FRESH}",
    "sweep": f"{FEW} {FRESH}",
    "plan buffer": f"{FEW} {FRESH}",
    "plan lifetime": "--seeds 1",
    "plan tier": "--model 256MiB --size 10% --policy nlcwip",
    "trace synth": "--set workload.requests=3000",
}
"""Options with which commands that take long are quick; those of the document count more."""
WITHOUT_FRESH = ("mirrors", "windows", "plmc", "plmlight", "own.toml --destroy")
"""Experiments over several devices, which have no key for all of them."""


def commands(text):
    """Return the commands in blocks, as written, each in one line."""
    for kind, fenced, indented in BLOCK.findall(text):
        block = fenced or indented
        for line in [] if kind else re.sub(r"\\\n\s*", "", block).splitlines():
            told = line.strip().removeprefix("$ ").replace(".venv/bin/", "")
            if re.match(r"(\w+ .*\| )?flashkeel ", told):
                yield told.partition("  #")[0].strip()


def inline(text):
    """Return the commands within sentences that say what to do, not only what one is called."""
    text = "".join(part for part in re.split(r"^```.*?^```$", text, flags=re.M | re.S))
    for found in CODE.findall(text):
        command = " ".join(found.split())
        if len(_path(shlex.split(command))[1]) > 0:
            yield command


def _path(words):
    """Return the names of a command, and what it is given."""
    group, path, left = app, [], words[1:]
    while isinstance(group, click.Group) and left and left[0] in group.commands:
        path.append(left[0])
        group = group.commands[left.pop(0)]
    return path, left


def page_commands(page):
    text = page.read_text(encoding="utf-8")
    return list(dict.fromkeys([*commands(text), *inline(text)]))


def made_small(command):
    """Return a command of a document as it is done here."""
    for written, here in STANDS_FOR.items():
        command = command.replace(written, here)
    for name, usual in QUICK.items():
        several = command.partition(f"flashkeel {name} ")[2].startswith(WITHOUT_FRESH)
        options = usual.replace(FRESH, "") if several else usual
        command = re.sub(rf"flashkeel {name}(?= )", f"flashkeel {name} {options}", command)
    return command


planned = set()
"""What takes long, and says the same wherever it is said again."""


@pytest.fixture(scope="session")
def reader(tmp_path_factory):
    """Return a folder with what readers have, and a shell in which commands can be said."""
    folder = tmp_path_factory.mktemp("reader")
    carried_out.lay_out(folder)
    program = folder / "bin/flashkeel"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m flashkeel "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return folder, os.environ | {"PYTHONPATH": str(ROOT / "python"), "PATH": path}


def serve(command, folder, environment):
    """Begin to serve, and end it as its user would; return its status and what it said."""
    command = command.replace("/tmp/drive.sock", str(folder / "drive.sock"))
    if "--listen" not in command:
        # The usual port may be in use here.
        command += " --listen 127.0.0.1:0"
    process = subprocess.Popen(
        shlex.split(command), cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    first = process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    return process.returncode, first + said


@pytest.fixture(scope="session")
def scheduler():
    """Return the address of a Dask cluster of one worker."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, scheduler_kwargs={"dashboard": False}
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_are_carried_out(page, reader, monkeypatch, cli, request):
    folder, environment = reader
    text = page.read_text(encoding="utf-8")
    for name, document in [*SAVED.findall(text), *NAMED_AFTER.findall(text)]:
        (folder / name).write_text(document)
    for written in page_commands(page):
        command = made_small(written)
        if any(part in written for part in ELSEWHERE) or command in planned:
            continue
        if "tcp://HOST:8786" in command:
            command = command.replace("tcp://HOST:8786", request.getfixturevalue("scheduler"))
        if command.startswith("flashkeel plan"):
            planned.add(command)
        if command.startswith("flashkeel reproduce"):
            reproduce(command, monkeypatch, cli, folder)
        elif command.startswith("flashkeel serve nbd"):
            status, said = serve(command, folder, environment)
            assert status in (0, 130), f"{command}\n{said}"
        elif re.search(r" [|<] ", command):
            done = subprocess.run(
                ["bash", "-c", f"set -o pipefail; {command}"],
                cwd=folder, env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        else:
            monkeypatch.chdir(folder)
            done = cli(*shlex.split(command)[1:])
            assert done.status == STATUS.get(written, 0), f"{command}\n{done.out}\n{done.err}"


def reproduce(command, monkeypatch, cli, folder):
    """Carry out the choice of claims, and all but the measurement, which has tests of its own."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(works, "STUDIES", tuple(map(measuring_nothing, works.STUDIES)))
    outcome = cli(*shlex.split(command)[1:])
    assert (outcome.status, outcome.err) == (0, ""), command


def measuring_nothing(study):
    findings = {claim.name: Finding(None, None, "not measured") for claim in study.claims}
    outcome = Outcome(findings, "device", "nothing is run")
    ranges = tuple(
        dataclasses.replace(each, measure=lambda session, value: outcome) for each in study.ranges
    )
    return dataclasses.replace(study, measure=lambda session: outcome, ranges=ranges)


def test_nothing_is_left_out_but_what_is_done_elsewhere():
    every = [command for page in PAGES for command in page_commands(page)]
    assert len(every) > 100
    for part, where in ELSEWHERE.items():
        assert any(part in command for command in every)
        assert (ROOT / where).is_file()


def test_the_tour_has_every_command():
    shown = {command.split()[1] for command in commands((ROOT / "docs/tour.md").read_text())}
    text = (ROOT / "docs/tour.md").read_text(encoding="utf-8")
    shown |= {command.split()[1] for command in CODE.findall(text)}
    assert set(app.commands) <= shown
