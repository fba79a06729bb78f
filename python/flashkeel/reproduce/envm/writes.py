"""Figures 3.10 to 3.14: what each device is written, against its rating."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from flashkeel.reproduce.claims import Claim, Finding, Outcome, Study, reduction
from flashkeel.reproduce.envm.hierarchy import (
    DAYS,
    ENVM_GB,
    OPTANE_WRITES_PER_DAY,
    OWN_SKEW,
    QLC_GB_PER_DAY,
    Day,
    Setting,
    conditions,
    measure,
    runs_of,
    shrink,
    times,
)
from flashkeel.reproduce.envm.locality import below, judged, localities, skews
from flashkeel.reproduce.intervals import every
from flashkeel.reproduce.session import Session, basis, kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POLICIES = ("base", "I", "II", "III")
_MOST = 16
_LARGE_ENVM_GB = 120.0
"""12 % of 1 TB."""
_SLIGHTLY = 0.25
"""Critical writes up to this share of the rating are few; ours."""
_OWN = "at the profile's own skew; the reason says where else"

_OTHER_RATING_GB = 110.0
"""A day of the Optane module, where the text does not say 100."""
_CLAIMS = (
    Claim(
        "base",
        "base writes more than the rating on busy and moderate days",
        f"above 110 GB on both, and at most that on a low day, {_OWN}",
        None,
        "GB",
    ),
    Claim(
        "within",
        "policy III's SSD writes stay within the safe limit on a busy day",
        f"at most 110 GB, {_OWN}",
        QLC_GB_PER_DAY,
        "GB",
    ),
    Claim(
        "order",
        "policy III writes more to the SSD than I and II",
        f"more than either, {_OWN}",
        None,
        "GB",
    ),
    Claim(
        "envm",
        "policy III writes 22 % less to the ENVM than policy I",
        f"at least half as much less, {_OWN}",
        22.0,
        "%",
    ),
    Claim(
        "envm-rating",
        "with 32 GB all three policies write more to the ENVM than its rating",
        "each above 110 GB on a busy day, which this sentence has for the 100 of section 3.6.1, "
        f"{_OWN}",
        {"section 3.6.1": OPTANE_WRITES_PER_DAY * ENVM_GB, "this sentence": _OTHER_RATING_GB},
        "GB",
    ),
    Claim(
        "larger",
        "an ENVM of 12 % of the SSD's size keeps both within their ratings",
        f"with 120 GB, I, II and III on a busy day: ENVM at most 375 GB, SSD 110, {_OWN}",
        "12 % of the SSD's size",
        "GB",
    ),
    Claim(
        "magnified-base",
        "base is above the rating substantially with writes of 4 and 16 times the size",
        f"by more than the rating again at both, {_OWN}",
        None,
        "GB",
    ),
    Claim(
        "magnified-2",
        "with writes of twice the size all policies are safe",
        f"I, II and III at most 110 GB to the SSD, {_OWN}",
        QLC_GB_PER_DAY,
        "GB",
    ),
    Claim(
        "magnified-4",
        "with four times policy III is slightly critical",
        f"above 110 GB by at most a quarter, {_OWN}",
        None,
        "GB",
    ),
    Claim(
        "magnified-16",
        "with sixteen times all are critical",
        f"I, II and III above 110 GB by more than the rating again, {_OWN}",
        None,
        "GB",
    ),
)


def _swept(skews: Sequence[float]) -> list[Setting]:
    shapes = [Setting(policy) for policy in _POLICIES]
    shapes += [Setting("base", day=day) for day in ("moderate", "low")]
    shapes += [Setting(policy, envm_gb=_LARGE_ENVM_GB) for policy in ("I", "II", "III")]
    return [shape.at(skew) for shape in shapes for skew in skews]


def _magnified_settings(session: Session) -> list[Setting]:
    return [
        Setting(policy, magnification=times).at(skew)
        for times in _magnified(session)
        if times > 1
        for policy in _POLICIES
        for skew in _skews_of_magnified(session)
    ]


def _magnified(session: Session) -> tuple[int, ...]:
    return (1, 2, 4) if session.quick else (1, 2, 4, _MOST)


def _skews_of_magnified(session: Session) -> tuple[float, ...]:
    # The longest writes take longest to run.
    swept = skews(session)
    return swept[1::2] if len(swept) > 1 else swept


def _measure(session: Session) -> Outcome:
    swept = skews(session)
    days = measure(session, _swept(swept))
    # Far from what they are compared with, and slow to run.
    days |= measure(session, _magnified_settings(session), seeds=1)
    magnified = partial(judged, days, _skews_of_magnified(session))
    iii = Setting("III")
    findings = {
        **_swept_findings(days, swept, OWN_SKEW),
        "magnified-2": magnified(
            lambda at: all(
                at(Setting(policy, magnification=2)).critical_gb() == 0
                for policy in ("I", "II", "III")
            ),
            {policy: days[Setting(policy, magnification=2)].ssd_gb for policy in _POLICIES},
        ),
        "magnified-4": magnified(
            lambda at: (
                0 < at(replace(iii, magnification=4)).critical_gb() <= _SLIGHTLY * QLC_GB_PER_DAY
            ),
            _by_size(days, "III"),
        ),
        **_most(session, days),
    }
    return Outcome(
        findings,
        basis(runs_of(days)),
        conditions(shrink(session), days),
        partial(_draw, days, kind(runs_of(days))),
    )


def _measure_at(session: Session, skew: float) -> Outcome:
    days = measure(session, _swept((skew,)))
    return Outcome(
        _swept_findings(days, (skew,), skew),
        basis(runs_of(days)),
        conditions(shrink(session), days),
    )


def _swept_findings(
    days: Mapping[Setting, Day], swept: Sequence[float], skew: float
) -> dict[str, Finding]:
    """Judge at a skew what is judged at each that is swept."""
    found = partial(judged, days, swept, at=skew)
    iii = Setting("III")

    def here(setting: Setting) -> Day:
        return days[setting.at(skew)]

    ssd = {policy: here(Setting(policy)).ssd_gb for policy in _POLICIES}
    envm = {policy: here(Setting(policy)).envm_gb for policy in ("I", "II", "III")}
    by_day = {name: here(Setting("base", day=name)).ssd_gb for name in DAYS}
    large = {
        f"{policy} {what}": getattr(here(Setting(policy, envm_gb=_LARGE_ENVM_GB)), key)
        for policy in ("I", "II", "III")
        for what, key in (("SSD", "ssd_gb"), ("ENVM", "envm_gb"))
    }
    return {
        "base": found(_exceeds, by_day),
        "within": found(
            lambda at: below(at(iii).ssd_gb, QLC_GB_PER_DAY),
            ssd["III"],
            "what the background writes is not held back by the budget, so that all that "
            "is written comes to the SSD sooner or later",
        ),
        "order": found(
            lambda at: below(
                max(at(Setting("I")).ssd_gb, at(Setting("II")).ssd_gb), at(iii).ssd_gb
            ),
            ssd,
        ),
        "envm": found(
            lambda at: below(at(iii).envm_gb, times(at(Setting("I")).envm_gb, 0.89)),
            reduction(envm["I"], envm["III"]),
            f"GB of it journal under III: {here(iii).journal_gb:.2g}",
        ),
        "envm-rating": found(
            lambda at: every(
                below(_OTHER_RATING_GB, at(Setting(policy)).envm_gb) for policy in envm
            ),
            envm,
            "years until the module is worn out by its wear law: "
            + ", ".join(f"{name} {here(Setting(name)).envm_years:.1f}" for name in envm),
        ),
        "larger": found(_large_enough, large),
    }


def _most(session: Session, days: Mapping[Setting, Day]) -> dict[str, Finding]:
    """Judge what needs the longest writes, which take too long for a first look."""
    names = ("magnified-base", "magnified-16")
    if _MOST not in _magnified(session):
        return dict.fromkeys(names, Finding(None, None, "not run under --quick"))
    found = partial(judged, days, _skews_of_magnified(session))
    base = Setting("base")
    rules = (
        lambda at: all(
            at(replace(base, magnification=times)).critical_gb() > QLC_GB_PER_DAY
            for times in (4, _MOST)
        ),
        lambda at: all(
            at(Setting(policy, magnification=_MOST)).critical_gb() > QLC_GB_PER_DAY
            for policy in ("I", "II", "III")
        ),
    )
    measured = (
        _by_size(days, "base"),
        {policy: days[Setting(policy, magnification=_MOST)].ssd_gb for policy in _POLICIES},
    )
    return {
        name: found(rule, values) for name, rule, values in zip(names, rules, measured, strict=True)
    }


def _exceeds(at: Callable[[Setting], Day]) -> bool | None:
    busy, moderate, low = (at(Setting("base", day=day)).ssd_gb for day in DAYS)
    rating = QLC_GB_PER_DAY
    return every([below(rating, busy), below(rating, moderate), below(low, rating)])


def _large_enough(at: Callable[[Setting], Day]) -> bool | None:
    each = [at(Setting(policy, envm_gb=_LARGE_ENVM_GB)) for policy in ("I", "II", "III")]
    limit = OPTANE_WRITES_PER_DAY * _LARGE_ENVM_GB
    return every(
        verdict
        for day in each
        for verdict in (below(day.envm_gb, limit), below(day.ssd_gb, QLC_GB_PER_DAY))
    )


def _by_size(days: Mapping[Setting, Day], policy: str) -> dict[str, float]:
    """Return what the SSD is written by how many times the size writes have."""
    found = {
        setting.magnification: day.ssd_gb
        for setting, day in days.items()
        if setting == Setting(policy, magnification=setting.magnification)
    }
    return {f"{times}x": found[times] for times in sorted(found)}


def _draw(days: Mapping[Setting, Day], kind: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    plain, magnified = figure.subplots(1, 2)
    width = 0.2
    for index, policy in enumerate(_POLICIES):
        offset = (index - 1.5) * width
        day = days[Setting(policy)]
        plain.bar([offset, 1 + offset], [day.ssd_gb, day.envm_gb], width, label=policy)
        sizes = _by_size(days, policy)
        magnified.bar([place + offset for place in range(len(sizes))], sizes.values(), width)
    ratings = (QLC_GB_PER_DAY, OPTANE_WRITES_PER_DAY * ENVM_GB)
    for place, limit in enumerate(ratings):
        plain.hlines(limit, place - 0.45, place + 0.45, color="black", linestyle=":")
    magnified.axhline(QLC_GB_PER_DAY, color="black", linewidth=0.8, linestyle=":")
    magnified.set_yscale("log")
    plain.set_xticks([0, 1], ["SSD", "ENVM"])
    magnified.set_xticks(range(len(sizes)), sizes)
    magnified.set_xlabel("size of writes")
    plain.set_ylabel("written on a busy day (GB)")
    magnified.set_ylabel("written to the SSD (GB)")
    plain.legend(frameon=False, ncols=2)
    for axes in (plain, magnified):
        axes.grid(alpha=0.3, axis="y")
    figure.suptitle(f"Writes of a busy day ({kind}; dotted: rating of a day)")
    return figure


_SWEPT = tuple(claim.name for claim in _CLAIMS if not claim.name.startswith("magnified"))

STUDY = Study(
    "envm/writes",
    "What each device is written",
    _CLAIMS,
    _measure,
    (localities(_SWEPT, _measure_at),),
)
