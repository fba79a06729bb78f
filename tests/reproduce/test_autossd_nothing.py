"""Rules of AutoSSD's studies where there is nothing to compare with: no verdict."""

from flashkeel.reproduce.autossd import fig4b, fig8, sensitivity
from reproduce.test_autossd_rules import Canned, Made, bounded, holds, waits


def test_figure_8_needs_waits_to_be_less_than():
    def made(ours, others):
        return lambda name: Made(waits=waits(*ours) if "autossd" in name else waits(*others))

    none = holds(fig8.STUDY, made((0, 0), (0, 0)))
    assert none == {"gc-least": None, "least": None}
    assert holds(fig8.STUDY, made((0, 40), (0, 50))) == {"gc-least": None, "least": True}
    assert holds(fig8.STUDY, made((0, 50), (1, 50)))["gc-least"] is True
    # What is as much is not below.
    assert holds(fig8.STUDY, made((20, 50), (20, 50))) == {"gc-least": False, "least": False}


def test_settings_that_change_nothing_have_no_best():
    def judge(moves):
        def made(name):
            run = Made(p3=moves(*name.rpartition(" ")[2].split("=")))
            run.values[99.99] = 1e6
            return run

        return sensitivity.STUDY.measure(Canned(made)).findings["plateau"]

    idle = judge(lambda key, value: 1000)
    assert idle.holds is None
    assert idle.reason.startswith("nothing changes with gc_p, gc_i, period, gc_min, gc_max: ")
    defaults = {str(value) for value in sensitivity.DEFAULTS.values()}
    assert judge(lambda key, value: 1000 if value in defaults else 1100).holds is True
    part = judge(lambda key, value: 1100 if key == "gc_p" and value not in defaults else 1000)
    assert part.holds is None and "nothing changes with gc_i, period" in part.reason
    assert judge(lambda key, value: 1200 if value in defaults else 1000).holds is False


def test_what_never_moves_does_not_fall():
    assert fig4b._falls([5.0, 4.0, 4.0, 3.0])
    assert not fig4b._falls([5.0, 5.0, 5.0])
    assert not fig4b._falls([3.0, 4.0, 2.0], 0.01)


def test_a_peak_that_is_none_has_no_half():
    nothing = bounded(rain=[0] * 6, autossd=[0] * 6)
    assert nothing.holds is None and "nothing to be half of in rain" in nothing.reason
