"""A program that is missing is missed by name, and nowhere silently."""

import os
import shutil

import programs
import pytest


@pytest.fixture(autouse=True)
def _nobody(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.delenv("CI", raising=False)


def test_a_program_is_found(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda program: f"/usr/bin/{program}")
    assert str(programs.require("nbdinfo")) == "/usr/bin/nbdinfo"


def test_a_missing_one_skips_the_test_by_name():
    with pytest.raises(pytest.skip.Exception, match=r"no-such is missing.*package no-such"):
        programs.require("no-such")


def test_a_missing_one_fails_continuous_integration(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such is missing"):
        programs.require("no-such")
