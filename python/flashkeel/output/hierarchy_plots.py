"""The picture of ``plan tier``: what a short tail costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flashkeel.candidates import Bounds
from flashkeel.output.files import whole
from flashkeel.output.plots import latencies

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flashkeel.hierarchy import Answer

_COLOURS = ("#4d4d4d", "#E69F00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9")
"""Okabe and Ito's colours, which people with colour blindness can tell apart."""
_MARKERS = "osD^v<>"


def save(answer: Answer, bounds: Bounds, path: Path) -> None:
    """Write the picture to a file that was checked; its kind follows the file's name."""
    with whole(path) as place:
        frontier(answer, bounds).savefig(place, dpi=130)


def frontier(answer: Answer, bounds: Bounds) -> Figure:
    """Return tails over costs, or over sizes of the NVM where there are no prices.

    A colour a policy, a marker a drive; filled where the bounds are kept. Bars reach over the
    seeds, the line joins what nothing is both cheaper and quicker than.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    has_costs = answer.has_costs(bounds)
    scale = 1.0 if has_costs else 2.0**20
    place = {
        id(one): price / scale
        for one in answer.outcomes
        if (price := answer.price(one, bounds)) is not None
    }
    shown = [one for one in answer.outcomes if id(one) in place]
    name_ns, what = "read_ns", "reads"
    if all(one.mean(name_ns) is None for one in shown):
        name_ns, what = "write_ns", "writes"
    drives = [drive.preset for drive in answer.plan.drives]
    policies = list(answer.plan.policies)
    named: set[tuple[str, str]] = set()
    for outcome in shown:
        interval, mean = outcome.interval(name_ns), outcome.mean(name_ns)
        if interval is None or mean is None:
            continue
        choice = outcome.choice
        colour = _COLOURS[policies.index(choice.policy) % len(_COLOURS)]
        name = f"{choice.policy}, {choice.drive}" if len(drives) > 1 else choice.policy
        label = None if (choice.policy, choice.drive) in named else name
        named.add((choice.policy, choice.drive))
        axes.errorbar(
            [place[id(outcome)]],
            [mean],
            yerr=[[mean - interval[0]], [interval[1] - mean]],
            color=colour,
            marker=_MARKERS[drives.index(choice.drive) % len(_MARKERS)],
            markerfacecolor="none" if outcome.excess(bounds) else colour,
            capsize=3,
            label=label,
        )
    best = answer.frontier(bounds)
    tails = [one.tail_ns() for one in best]
    axes.plot([place[id(one)] for one in best], tails, color="#4d4d4d", linewidth=0.8, zorder=0)
    limit = bounds.read_ns if what == "reads" else bounds.write_ns
    if limit is not None:
        axes.axhline(limit, color="#4d4d4d", linewidth=0.8, linestyle=":")
    kind = "synthetic" if answer.is_synthetic else "recorded"
    axes.set_title(f"What a short tail costs ({kind} requests; filled: bounds kept)")
    axes.set_xlabel(f"drive and NVM ({answer.plan.prices.currency})" if has_costs else "NVM (MiB)")
    axes.set_ylabel(f"{answer.plan.percentile} of {what}")
    axes.set_yscale("log")
    latencies(axes.yaxis)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    return figure
