"""Programs of others are installed where they may be; where CI=true none is skipped."""

import os

import debian
import programs
import pytest


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return what sets up root on Debian, whose apt-get is a script, beside no programs."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    monkeypatch.setattr(debian.os, "geteuid", lambda: 0)
    monkeypatch.setattr(debian.Path, "exists", lambda path: True)
    debian.apt.cache_clear()

    def apt(script):
        path = tmp_path / "bin/apt-get"
        path.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/log\n{script}\n')
        path.chmod(0o755)
        return tmp_path

    yield apt
    debian.apt.cache_clear()


def test_a_missing_program_is_installed_by_the_name_of_its_package(machine):
    tool = os.path.join("$(dirname $0)", "nbdinfo")
    place = machine(
        f'case "$*" in *install*) echo "#!/bin/sh" > {tool}; /bin/chmod +x {tool};; esac'.replace(
            "$(dirname $0)", "${0%/*}"
        )
    )
    assert programs.require("nbdinfo") == place / "bin/nbdinfo"
    update, install = (place / "log").read_text().splitlines()
    assert update.endswith("update")
    assert install.endswith("libnbd-bin")
    assert programs.require("nbdinfo")
    assert len((place / "log").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("ci", "missed"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_what_cannot_be_installed_is_missed_by_name(machine, monkeypatch, ci, missed):
    machine('echo "E: no network" >&2; exit 1')
    monkeypatch.setenv("CI", ci)
    with pytest.raises(missed, match="nbdinfo is missing, of the Debian package libnbd-bin: E: no"):
        programs.require("nbdinfo")


def test_whoever_is_not_root_is_told_so(machine, monkeypatch):
    place = machine("")
    monkeypatch.setattr(debian.os, "geteuid", lambda: 1000)
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception, match="only root on Debian can install it"):
        programs.require("nbdinfo")
    assert [path.name for path in place.iterdir()] == ["bin"]
