"""The rules of the claims on windows against IODA's."""

import pytest
from flashkeel.reproduce.plmc import ioda


class Made:
    """A run whose reads take so many us at p99, ten times that at p99.9."""

    def __init__(self, us, spread=0.0):
        self.ns, self.spread = us * 1e3, spread

    def percentile(self, _kind, at):
        return self.ns * (10 if at > 99 else 1)

    def interval(self, kind, at):
        value = self.percentile(kind, at)
        return value * (1 - self.spread), value * (1 + self.spread)

    def beyond(self, _kind, _at):
        return 100


def test_the_base_of_windows_collects_as_they_do():
    moves = {n: k.get("device.gc.movement", "as preset") for n, k in ioda._SYSTEMS.items()}
    assert moves[ioda._BASE] == moves[ioda._OURS] == "as preset"
    assert moves[ioda._BLOCKING] == "channel-blocking"


@pytest.mark.parametrize(
    ("base", "spread", "holds"), [(2000, 0.0, True), (120, 0.0, False), (1900, 0.05, None)]
)
def test_windows_must_surely_beat_the_same_pair(base, spread, holds):
    us = {ioda._BASE: base, ioda._BLOCKING: 2000, ioda._OURS: 100, ioda._IDEAL: 100}
    runs = {
        f"ioda {profile} {name}": Made(each, spread)
        for profile in ioda._PROFILES
        for name, each in us.items()
    }
    found = ioda.judged(runs)
    assert found["beats-base"].holds is holds
    assert found["beats-base"].measured["dtrs p99"] == pytest.approx(base / 100)
    against_blocking = found["beats-blocking-base"]
    assert against_blocking.measured["dtrs p99"] == pytest.approx(20)
    assert against_blocking.holds is (None if spread else True)
    assert "dtrs p99 beyond twice the paper's: 4.94 times its effect" in against_blocking.reason
    assert found["near-ideal"].holds
