"""The page of all policies, from the lists of the axes and what each policy's module says.

The module's comment names the work that a policy is from: author or paper, section, equation.
"""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs/images/policies"
AXIS = re.compile(r"^(?:flashkeel_config::)?axis! \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
HEAD = re.compile(r'((?: *///.*\n)*)(?: *#\[.*\n)* *(?:pub(?:\(\w+\))? )?enum \w+ as "([^"]+)"')
POLICY = re.compile(
    r'((?: *///.*\n)*)(?: *#\[.*\n)* *\w+\((\w+)\)(?: in (\w+))? = "([^"]+)"', re.MULTILINE
)
NOT_DRAWN = {
    "device": "docs/tiers.md and docs/mirrors.md compare devices put together",
    "workload source": "docs/workloads.md says what recorded and published workloads are like",
    "traffic": "it is a drive's life that it is for: docs/lifetime.md",
    "wear law": "it is a drive's life that it is about: docs/lifetime.md",
    "retirement": "it is a drive's last days that it is about: docs/lifetime.md",
}
"""Axes that latencies say nothing of, and what does."""
LEFT_OUT = {("arrival process", "demand")}
"""Policies that are not in the picture of their axis."""
REMARKS = {
    "arrival process": "Without `demand`: it changes over hours and days, and is `constant` in the "
    "seconds of a picture.",
    "read choice": "Under `window` the copies have windows in turn, without which it chooses "
    "nothing.",
}
"""What is unequal in the picture of an axis."""
HEADINGS = {
    "crates/workload": "Workload",
    "crates/host": "Host",
    "crates/device/src/front": "Front door",
    "crates/device/src/ftl": "FTL",
    "crates/device/src/sched": "Scheduling",
    "crates/device/src/flash": "Flash",
}
"""Parts of the data path, in its order, by where their axes are."""


def page() -> str:
    """Return the page, in Markdown."""
    lines = [
        "# Policies",
        "",
        "Every policy of every axis, along the data path: what it does, which work it is from, and",
        "a picture of the axis. Where no work is named a policy is a textbook's or our own. The",
        "keys and settings are in the [configuration](configuration.md).",
        "",
        "A picture shows the latencies of one class of requests under each policy on a small",
        "device (`scripts/draw_policies.py`), with a synthetic workload: what an axis is about, no",
        "measure of what is better.",
        "",
    ]
    axes = list(_axes())
    for folder, heading in HEADINGS.items():
        lines += [f"## {heading}", ""]
        for path, name, about, policies in axes:
            if path.relative_to(ROOT).as_posix().startswith(folder):
                lines += _axis(path, name, about, policies)
    return "\n".join(lines) + "\n"


def names() -> dict[str, list[str]]:
    """Return the policies of each axis."""
    return {axis: [found[3] for found in policies] for _, axis, _, policies in _axes()}


def picture(axis: str) -> Path:
    """Return where the picture of an axis is."""
    return PICTURES / f"{axis.lower().replace('/', '').replace(' ', '-')}.png"


_Policy = tuple[str, str, str, str]


def _axes() -> Iterator[tuple[Path, str, str, list[_Policy]]]:
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        for found in AXIS.finditer(path.read_text(encoding="utf-8")):
            head = HEAD.match(found[1])
            assert head, path
            yield path, head[2], head[1], POLICY.findall(found[1][head.end() :])


def _axis(path: Path, name: str, about: str, policies: list[_Policy]) -> Iterator[str]:
    yield f"### {name[0].upper()}{name[1:]}\n"
    yield f"{_said(about, '///')}\n"
    drawn = picture(name)
    if drawn.exists():
        where = drawn.relative_to(ROOT / "docs").as_posix()
        yield f"![Latencies under each {name}]({where})\n"
    if remark := REMARKS.get(name):
        yield f"{remark}\n"
    if why := NOT_DRAWN.get(name):
        yield "No picture: " + re.sub(r"docs/(\w+\.md)", r"[\1](\1)", why) + ".\n"
    for said, settings, module, policy in policies:
        file = _file(path, module, settings)
        comment = re.match(r"(?://!.*\n)*", file.read_text(encoding="utf-8")) if module else None
        text = _said(comment[0], "//!") if comment else f"`{policy}`: {_said(said, '///')}"
        yield f"{text}\n"
        yield f"*Code:* `{file.relative_to(ROOT).as_posix()}`\n"


def _file(path: Path, module: str, settings: str) -> Path:
    """Return the file of a policy's module, beside the list or below it."""
    if not module:
        return path
    places = [path.parent, path.parent / path.stem]
    files = [place / name for place in places for name in (f"{module}.rs", f"{module}/mod.rs")]
    return next(file for file in files if file.exists())


def _said(comment: str, mark: str) -> str:
    """Return what a comment says, its paragraphs apart; references to code are plain names."""
    lines = [line.strip().removeprefix(mark).strip() for line in comment.splitlines()]
    text = "\n".join(lines).strip()
    return re.sub(r"\[(`[^`\]]+`)\](?:\([^)]*\))?", r"\1", text)
