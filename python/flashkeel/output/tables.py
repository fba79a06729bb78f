"""Tables for people: runs, their tails, causes and differences."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from flashkeel import failures, percentiles, spread
from flashkeel.budget import Spent
from flashkeel.comparison import FEW, is_guess
from flashkeel.explanation import Explanation
from flashkeel.output import units
from flashkeel.output.plots import ABOVE, with_samples, workload_kind
from flashkeel.run import Run
from flashkeel.steadiness import Criterion, Steadiness

_TAIL = (99.0, 99.9, 99.99, 99.9999)
_MOST_CAUSES = 3
_BAR_WIDTH = 24
_SENTENCE = 50
PAGE = 80
"""Characters of a line, where no terminal says otherwise."""

_INPUT_CHANGES = {
    "not_io": "lines or records that are no requests",
    "bad_lines": "lines that cannot be read left out",
    "other_device": "requests of other devices left out",
    "outside_window": "requests outside the window left out",
    "zero_length": "requests of no length left out",
    "trims_dropped": "trims left out: too small, or of what is neither read nor written",
    "aligned": "requests rounded to the alignment (bytes and MB/s count them so)",
    "folded": "requests moved by fold",
    "clipped": "requests cut off at its end",
    "reordered": "requests put back in order",
}


def grid(left: str, *right: str) -> Table:
    """Return a table without rows: names at the left, numbers at the right."""
    # Narrow gaps, so that the widest of them fit a terminal of 80 columns.
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(left)
    for name in right:
        table.add_column(name, justify="right")
    return table


def facts(title: str, rows: Iterable[tuple[str, str]]) -> Group:
    """Return one row a fact: what it is called, and what is so."""
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), show_edge=False, show_header=False)
    table.add_column()
    table.add_column(max_width=_SENTENCE)
    for words, text in rows:
        table.add_row(words, escape(text))
    return titled(title, table)


def titled(title: str, table: Table, caption: str = "") -> Group:
    """Return a table with its title above it, and what there is to say of it below."""
    # Rich would fold titles of its own to the table's width.
    below = Text(f"{caption}\n" if caption else "", style="dim")
    return Group(Text(title, style="bold"), table, below)


def runs(all_runs: Sequence[Run]) -> Group:
    """Return one row a run: the reads and the writes that were measured, and how fast they came."""
    title = f"Runs ({workload_kind(all_runs)})"
    columns = ["time", "reads", "IOPS", "MB/s", "writes", "IOPS", "MB/s"]
    failed = [failures.count(run) for run in all_runs]
    others = [
        run.data["requests"] - run.samples("read") - run.samples("write") - fails
        for run, fails in zip(all_runs, failed, strict=True)
    ]
    more = {words: found for words, found in (("others", others), ("failed", failed)) if any(found)}
    table = grid("run", *columns, *more)
    for index, run in enumerate(all_runs):
        cells = []
        for latency_class in ("read", "write"):
            cells += [
                units.count(run.samples(latency_class)),
                units.rate(run.iops(latency_class)),
                units.significant(run.bandwidth(latency_class) / 1e6),
            ]
        time = units.duration(run.data["simulated_s"] * 1e9)
        cells += [units.count(found[index]) for found in more.values()]
        table.add_row(escape(run.name), time, *cells)
    return titled(title, table)


def costs(all_runs: Sequence[Run]) -> Group:
    """Return one row a run: what it cost the drive, and how fast the simulator was."""
    table = grid("run", "WAF", "erases", "GC-blocked", "simulated in", "requests simulated/s")
    for run in all_runs:
        data = run.data
        speed = data["requests"] / data["wall_s"] if data["wall_s"] else None
        table.add_row(
            escape(run.name),
            units.ratio(data["waf"]),
            units.count(data["erases"]),
            units.share(data["gc_blocked_fraction"]),
            units.duration(data["wall_s"] * 1e9),
            units.rate(speed),
        )
    return titled("The drive's work, and the simulator's", table)


def tenants(all_runs: Sequence[Run]) -> Group | None:
    """Return one row a tenant: what it got; None where no run has tenants."""
    table = grid("tenant", "reads/s", "mean", "p99.9", "writes/s", "mean", "p99.9")
    for run in all_runs:
        for tenant in run.tenants:
            name = tenant.name if len(all_runs) == 1 else f"{run.name}: {tenant.name}"
            cells = []
            for latency_class in ("read", "write"):
                cells += [
                    units.rate(tenant.data[latency_class]["iops"]),
                    units.duration(tenant.mean(latency_class)),
                    tail(tenant, latency_class, 99.9),
                ]
            table.add_row(escape(name), *cells)
    return titled("Tenants", table) if table.row_count else None


def tiers(all_runs: Sequence[Run]) -> Group | None:
    """Return one row a run: tails, what each medium was written, what a power cut would take.

    None where no run has tiers.
    """
    stacks = [run.data.get("stack") or {} for run in all_runs]
    if not any(stack.get("tiers") for stack in stacks):
        return None
    columns = ["read mean", "p99", "write mean", "p99", "to NVM", "to SSD", "at risk"]
    table = grid("run", *columns)
    for run, stack in zip(all_runs, stacks, strict=True):
        latencies = [
            units.duration(latency)
            for one in ("read", "write")
            for latency in (run.mean(one), run.percentile(one, 99.0))
        ]
        written = [
            units.size(sum(one[key] for one in stack[kind].values()) if stack.get(kind) else None)
            for kind, key in (("nvms", "bytes_written"), ("ssds", "host_bytes_written"))
        ]
        risks = [tier["mean_kilobytes_at_risk"] for tier in stack.get("tiers", {}).values()]
        at_risk = units.size(1e3 * sum(risks) if risks else None)
        table.add_row(escape(run.name), *latencies, *written, at_risk)
    below = "at risk: on average, what a power cut would take of what was acknowledged"
    return titled("Tiers", table, below)


def windows(all_runs: Sequence[Run]) -> Group | None:
    """Return one row a host that shares deterministic windows; None where no run has such.

    What it asked for and got in them, and how long its reads took, window by window.
    """
    table = grid("host", "windows", "reads", "beyond", "tail p50", "p99")
    has_few = False
    for run in all_runs:
        coordinators = (run.data.get("stack") or {}).get("coordinators", {})
        for number, one in coordinators.items():
            names = [tenant.name for tenant in run.tenants] or [""] * len(one["hosts"])
            for name, host in zip(names, one["hosts"], strict=True):
                part = f"coordinator {number}" if len(coordinators) > 1 else ""
                what = [run.name if len(all_runs) > 1 else "", part, name]
                cells = []
                for key, beyond in (("p50", 0.5), ("p99", 0.01)):
                    cell = units.duration(host[f"tail_{key}_ns"])
                    above = int(host["windows"] / len(run.seeds) * beyond)
                    if host["windows"] and above < FEW:
                        cell += f" *{above}"
                        has_few = True
                    cells.append(cell)
                table.add_row(
                    escape(": ".join(filter(None, what)) or "all"),
                    units.count(host["windows"]),
                    units.count(host["asked"]),
                    units.share(host["beyond"] / host["asked"] if host["asked"] else None),
                    *cells,
                )
    if not table.row_count:
        return None
    below = (
        "reads of 4 KiB that came in deterministic windows, and those of them beyond the host's\n"
        "count; tail: the 99.99th percentile of the reads of a window, over the windows"
    )
    if any(len(run.seeds) > 1 for run in all_runs):
        below += "\n(of several seeds the mean of theirs)"
    if has_few:
        below += f"\n* fewer than {FEW} windows beyond: how many"
    return titled("Hosts in deterministic windows", table, below)


def trace_terms(name: str, basis: str, terms: dict[str, float | None]) -> Group:
    """Return a trace in the terms of published tables, as ``trace info`` gives them."""
    names = {
        "hours": "hours",
        "writes (millions)": "writes_millions",
        "reads (millions)": "reads_millions",
        "write size (KB)": "write_kb",
        "read size (KB)": "read_kb",
        "inter-arrival, mean (ms)": "inter_arrival_mean_ms",
        "inter-arrival, median (ms)": "inter_arrival_median_ms",
        "writes (%)": "write_percent",
        "random (%)": "random_percent",
    }
    table = grid("in the terms of papers", "")
    for words, key in names.items():
        value = terms[key]
        table.add_row(words, units.MISSING if value is None else units.significant(value))
    kind = "synthetic workload" if basis == "synthetic" else "recorded trace"
    return titled(f"{name} ({kind})", table, "1 KB is 1024 bytes")


def notes(all_runs: Sequence[Run]) -> list[str]:
    """Return what readers of the results must know, each once."""
    found = dict.fromkeys(note for run in all_runs for note in run.data["notes"])
    changes = {run.name: changed_input(run.data["workload"]) for run in all_runs}
    if len(set(changes.values())) == 1:
        changes = {"input": changes[all_runs[0].name]}
    unmeasured = [run.name for run in all_runs if not run.data["requests"]]
    alike: dict[str, list[str]] = {}
    for run in all_runs:
        alike.setdefault(run.data["digest"], []).append(run.name)
    return [
        *(
            f"Note: {', '.join(names)}: they did the same in every request; what they differ in "
            "makes no difference here, or was set for all of them"
            for names in alike.values()
            if len(names) > 1
        ),
        *(f"Note: {name}: no request was measured" for name in unmeasured),
        *(f"Note: {note}" for note in found),
        *(f"Note: {name}: {text}" for name, text in changes.items() if text),
    ]


def changed_input(counts: Mapping[str, int]) -> str:
    """Return what became of a workload's input, as its `counts` have it; empty if nothing."""
    changed = {words: counts[key] for key, words in _INPUT_CHANGES.items() if counts.get(key)}
    return ", ".join(f"{count:,} {words}" for words, count in changed.items())


def tails(all_runs: Sequence[Run], latency_class: str) -> Group:
    """Return one row a run with requests of a class: mean and tail of these.

    The samples beyond a percentile are shown where they are few, its 95 %
    interval where seeds are pooled.
    """
    title = f"Latency of {units.requests(latency_class)}"
    table = grid("run", "mean", *map(percentiles.label, _TAIL))
    for run in with_samples(all_runs, latency_class):
        cells = [tail(run, latency_class, percentile) for percentile in _TAIL]
        table.add_row(escape(run.name), units.duration(run.mean(latency_class)), *cells)
    caption = ""
    if any(is_guess(run, latency_class, p) for run in all_runs for p in _TAIL):
        caption = f"* fewer than {FEW} samples beyond: how many"
    few = [
        f"{run.name} {units.count(run.samples(latency_class))}"
        for run in all_runs
        if run.samples(latency_class) and is_guess(run, latency_class, _TAIL[0])
    ]
    if few:
        caption += "\n" + textwrap.fill(f"Requests in all: {', '.join(few)}", PAGE)
    caption += of_intervals(all_runs, latency_class)
    return titled(title, table, caption.lstrip("\n"))


def of_intervals(all_runs: Sequence[Run], latency_class: str) -> str:
    """Return a line of what the intervals of tails do not take in, where there are such."""
    pools = [run for run in all_runs if len(run.seeds) > 1]
    is_missing = spread.is_missing(pools, latency_class)
    return f"\nintervals {spread.INDEPENDENT}" if is_missing else ""


def tail(run: Run, latency_class: str, percentile: float) -> str:
    """Return a percentile as a cell, with a mark where few are beyond, of seeds its interval."""
    cell = units.duration(run.percentile(latency_class, percentile))
    if not run.samples(latency_class):
        return cell
    if is_guess(run, latency_class, percentile):
        cell += f" *{run.beyond(latency_class, percentile)}"
    interval = run.interval(latency_class, percentile)
    if len(run.seeds) > 1 and interval is not None:
        cell += f"\n{units.interval(*interval)}"
    return cell


def largest_causes(explanations: Iterable[Explanation]) -> Group:
    """Return one row a run: the causes that own most of its tail."""
    found = list(explanations)
    words = units.requests(found[0].latency_class)
    title = f"What owns the latency of {words} above {percentiles.label(ABOVE)}"
    table = grid("run")
    table.add_column("largest causes")
    for explanation in found:
        largest = explanation.shares[:_MOST_CAUSES]
        causes = ", ".join(f"{units.cause(s.cause)} {units.share(s.share)}" for s in largest)
        if explanation.count and not explanation.is_as_asked:
            causes = f"above {explanation.reached}: {causes}"
        table.add_row(escape(explanation.run), causes or units.MISSING)
    return titled(title, table)


def explanation(found: Explanation, kind: str) -> Group:
    """Return one row a cause, with a bar; `kind` is what to call the run's input."""
    words = units.requests(found.latency_class, found.count)
    title = (
        f"{found.run}: {found.count:,} {words} above {found.reached} "
        f"(from {units.threshold(found)}), mean {units.duration(found.mean_ns)}; {kind}"
    )
    table = grid("cause", "share", "mean", "requests")
    table.add_column("")
    widest = found.shares[0].share if found.shares else 1.0
    for share in found.shares:
        bar = "█" * round(_BAR_WIDTH * share.share / widest) or "▏"
        table.add_row(
            units.cause(share.cause),
            units.share(share.share),
            units.duration(share.mean_ns),
            units.count(share.requests),
            bar,
        )
    return titled(title, table)


def budget(found: Explanation, parts: Sequence[Spent]) -> Group:
    """Return one row a part: what it may take and what it took."""
    total = sum(part.budget_ns for part in parts)
    took = sum(part.spent_ns for part in parts)
    broken = [part.part for part in parts if part.is_broken]
    verdict = f"broken by {', '.join(broken)}" if broken else "kept by every part"
    table = grid("part", "may take", "takes", "over")
    for part in parts:
        over = units.duration(part.spent_ns - part.budget_ns) if part.is_broken else ""
        table.add_row(
            part.part, units.duration(part.budget_ns), units.duration(part.spent_ns), over
        )
    over = units.duration(took - total) if took > total else ""
    table.add_row("in all", units.duration(total), units.duration(took), over)
    return titled(
        f"{found.run}: the budget in the mean of these {found.count:,} is {verdict}", table
    )


_AVERAGES = {"lat": units.duration, "waf": units.ratio}
"""How the variables of a steady state are written, but for rates."""


def steady(
    all_runs: Sequence[Run], found: Sequence[Steadiness], criterion: Criterion | None
) -> Group:
    """Return one row a run or seed: from when on it is steady, how much its window varies.

    What is compared with the limit of a criterion is in the unit of that.
    """
    tracked = "slope/s" if criterion and criterion.is_slope else "deviation"
    table = grid(
        "run", "rounds", "steady\nfrom", "average", "range", "line", tracked, "at the\nend"
    )
    for run, one in zip(all_runs, found, strict=True):
        window = one.reached or one.last
        if window is None:
            table.add_row(escape(run.name), str(len(one.points)), *["too few"] * 6)
            continue
        average = _AVERAGES.get(one.variable, units.rate)
        end = average(one.last.average) if one.last else units.MISSING
        start = units.moment(window.points[0].start_s) if one.reached else "not steady"
        value = criterion.value(window) if criterion else window.deviation_share
        compared = (units.share if not criterion or criterion.is_share else average)(value)
        shares = map(units.share, (window.range_share, window.excursion_share))
        cells = (start, average(window.average), *shares, compared)
        mark = " *" if one.is_left else ""
        table.add_row(escape(run.name), str(len(one.points)), *cells, f"{end}{mark}")
    by = f"ss={criterion}" if criterion else "SNIA's criterion: range 20 %, line 10 %"
    below = (
        "of the first steady window, or of the last where none is; at the end: the\n"
        f"average of the last window; a window has {_window(found)}"
    )
    if any(one.is_left for one in found):
        below += (
            "\n* over 20 % from the first steady ones: what is measured over the whole run\n"
            "mixes two states"
        )
    return titled(f"Steady state by {by} ({workload_kind(all_runs)})", table, below)


def _window(found: Sequence[Steadiness]) -> str:
    """Return how many rounds a window takes, and how long they are."""
    rounds = sorted({one.window_rounds for one in found})
    lengths = sorted({it.end_s - it.start_s for one in found for it in one.points[:1]})
    count = " to ".join(map(str, dict.fromkeys((rounds[0], rounds[-1]))))
    if not lengths:
        return f"{count} rounds"
    ends = (units.duration(length * 1e9) for length in (lengths[0], lengths[-1]))
    return f"{count} rounds of {' to '.join(dict.fromkeys(ends))}"
