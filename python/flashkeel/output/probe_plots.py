"""The picture of a diagnosis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashkeel._core import LOGICAL_PAGE_BYTES
from flashkeel.output import plots, units
from flashkeel.output.files import whole
from flashkeel.ssdcheck import Diagnosis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILE = "probe.svg"
"""What :func:`save` is meant to write."""

_COLOUR, _OTHER = "#0072B2", "#D55E00"
_SHOWN_FLUSHES = 8


def save(found: Diagnosis, path: Path) -> None:
    """Draw the evidence: throughput and p by bit, collection intervals, read spikes."""
    import matplotlib
    from matplotlib.figure import Figure

    evidence = found.evidence
    if evidence is None:
        raise ValueError("a model without evidence has no picture")
    figure = Figure(figsize=(12, 8), layout="constrained")
    ((top_left, top_right), (bottom_left, bottom_right)) = figure.subplots(2, 2)
    figure.suptitle(f"{found.name}: what the probe saw")
    _allocation(top_left, evidence)
    _spikes(top_right, found.model, evidence)
    _chances(bottom_left, evidence)
    _intervals(bottom_right, found.model, evidence)
    with (
        matplotlib.rc_context({"svg.hashsalt": "flashkeel", "svg.fonttype": "none"}),
        whole(path) as place,
    ):
        figure.savefig(place, metadata={"Date": None})


def _allocation(axes: Axes, evidence: dict[str, Any]) -> None:
    rows = evidence["allocation"]
    # Of points on each other both are seen: the ring is around the dot.
    for value, mark in ((0, {"color": _COLOUR}), (1, {"color": _OTHER, "mfc": "none", "ms": 9})):
        points = [(row["bit"], row["relative_throughput"][value]) for row in rows]
        known = [(bit, part) for bit, part in points if part is not None]
        axes.plot(*zip(*known, strict=True), "o-", label=f"bit fixed at {value}", **mark)
    axes.set(xlabel="bit of the LBA", ylabel="throughput of reads, relative")
    # What is as quick as ever does not lie on the frame.
    axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
    _bits(axes)
    axes.legend(frameon=False)


def _spikes(axes: Axes, model: dict[str, Any], evidence: dict[str, Any]) -> None:
    reads = evidence["buffer"]["reads"]
    pages = (model["write_buffer"]["bytes"] or 0) // LOGICAL_PAGE_BYTES
    shown = [point for point in reads if not pages or point[0] <= pages * _SHOWN_FLUSHES]
    axes.plot([writes for writes, _ in shown], [ns for _, ns in shown], ".", color=_COLOUR, ms=3)
    axes.axhline(model["thresholds_ns"]["read"], color=_OTHER, lw=1)
    axes.set(xlabel="4 KiB writes before the read", ylabel="read latency", yscale="log")
    plots.latencies(axes.yaxis)
    axes.set_title(f"write buffer: {units.size(model['write_buffer']['bytes'])}", fontsize="medium")


def _chances(axes: Axes, evidence: dict[str, Any]) -> None:
    flips = evidence["collection"]["flip"]
    least = 1e-30
    told = [flip for flip in flips if flip["p"] is not None]
    bits = [flip["bit"] for flip in told]
    axes.plot(bits, [max(flip["p"], least) for flip in told], "o", color=_COLOUR)
    axes.set(xlabel="bit flipped", ylabel="p of one collection volume (dots)", yscale="log")
    # There is no greater one than 1.
    axes.set_ylim(min(axes.get_ylim()[0], 0.01), 2)
    _bits(axes)
    told = [flip for flip in flips if flip["with_flushes"] is not None]
    if told:
        right = axes.twinx()
        parts = [100 * flip["with_flushes"] for flip in told]
        right.plot([flip["bit"] for flip in told], parts, "+", color=_OTHER)
        right.set(ylabel="stalls a buffer apart (crosses, %)", ylim=(-5, 105))


def _bits(axes: Axes) -> None:
    """Label an axis of bits, of which there are no halves."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _intervals(axes: Axes, model: dict[str, Any], evidence: dict[str, Any]) -> None:
    collection = evidence["collection"]
    flips = {flip["bit"]: flip["intervals"] for flip in collection["flip"]}
    selecting = model["gc_volume_bits"] or []
    lines = {"Fixed": collection["fixed"]}
    lines |= {f"Flip {bit}": flips[bit] for bit in selecting if bit in flips}
    others = [bit for bit in flips if bit not in selecting]
    lines |= {f"Flip {bit}": flips[bit] for bit in others[:1]}
    for index, (name, values) in enumerate(lines.items()):
        ordered = sorted(values)
        if ordered:
            steps = [(index + 1) / len(ordered) for index in range(len(ordered))]
            axes.step(ordered, steps, where="post", label=name, **plots.of_run(index))
    axes.set(xlabel="writes between collections", ylabel="share of intervals")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
