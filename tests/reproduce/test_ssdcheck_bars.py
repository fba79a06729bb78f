"""The predictor finds at least what the paper's does, on the seven profiles in full."""

from statistics import fmean

from flashkeel.reproduce import Session
from flashkeel.reproduce.ssdcheck import fig11
from flashkeel.reproduce.ssdcheck.drives import DRIVES

LEAST_MEAN = 85.0
"""Percent of the slow requests, mean of the drives: what modelling more than the paper gives."""


def test_every_drive_is_predicted_as_well_as_in_the_paper():
    found = fig11.STUDY.measure(Session()).findings
    for name, finding in found.items():
        assert finding.holds, f"{name}: {finding.measured}, {finding.reason}"
    slow = {drive: found[drive].measured["found"] for drive in DRIVES}
    assert fmean(slow.values()) >= LEAST_MEAN, slow
