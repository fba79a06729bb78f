"""Build the documentation as a site in target/site/html: ``make site``.

The pages are those of the repository, with the root's beside those of ``docs``, and references
of the policies, the commands and the Python package made from the code.
"""

import html
import inspect
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import flashkeel
import site_policies
from flashkeel.cli import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PLACE = ROOT / "target/site"
SOURCE, SITE = PLACE / "pages", PLACE / "html"
PAGES = {
    "Start": {"Flashkeel": "index.md", "A tour": "tour.md", "Recipes": "recipes.md"},
    "Guide": {
        "Workloads": "workloads.md",
        "Imports": "imports.md",
        "Results": "results.md",
        "Sweeps": "sweeps.md",
        "Why is my p99.99 bad?": "why-p9999.md",
        "Hosts": "host.md",
        "Tiers": "tiers.md",
        "Mirrors": "mirrors.md",
        "Serving": "serving.md",
        "Drives": "drives.md",
        "SSDcheck": "ssdcheck.md",
        "Lifetime": "lifetime.md",
        "Background work": "background.md",
        "Tuning": "tuning.md",
        "Keel": "keel.md",
        "ttFlash": "ttflash.md",
        "plmlight": "plmlight.md",
        "Reproductions": "reproduce.md",
    },
    "Reference": {
        "Configuration": "configuration.md",
        "Policies": "policies.md",
        "Commands": "commands.md",
        "Python": "python.md",
    },
    "Project": {
        "Architecture": "ARCHITECTURE.md",
        "Contributing": "CONTRIBUTING.md",
        "Changes": "CHANGELOG.md",
    },
}
"""Every page, below the heading under which it is found."""
_LINE = 80
"""Characters of a signature that fit a line."""


def sources() -> dict[str, str]:
    """Return the name and the text of every page."""
    pages = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    for path in ROOT.glob("*.md"):
        name = "index.md" if path.name == "README.md" else path.name
        pages[name] = path.read_text(encoding="utf-8").replace("](docs/", "](")
    pages = {name: text.replace("](../", "](") for name, text in pages.items()}
    pages = {name: text.replace("](README.md", "](index.md") for name, text in pages.items()}
    made = {"policies.md": site_policies.page(), "commands.md": commands(), "python.md": python()}
    return pages | made


def commands() -> str:
    """Return the reference of the commands, from what they say of themselves."""
    return "\n".join(["# Commands", "", *_command(app, ("flashkeel",))])


def _command(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    context = click.Context(command, info_name=" ".join(path), max_content_width=88)
    if len(path) > 1:
        yield f"{'#' * len(path)} {' '.join(path)}\n"
    yield f"```text\n{command.get_help(context)}\n```\n"
    for name, part in getattr(command, "commands", {}).items():
        yield from _command(part, (*path, name))


def python() -> str:
    """Return the reference of the Python package, from its signatures and docstrings."""
    lines = ["# Python", "", inspect.getdoc(flashkeel) or "", ""]
    for name in sorted(flashkeel.__all__):
        found = getattr(flashkeel, name)
        if name.startswith("__"):
            continue
        lines += [f"## {name}", "", *_object(name, found)]
        if not inspect.isclass(found):
            continue
        for member, value in sorted(vars(found).items()):
            function = value.fget if isinstance(value, property) else value
            function = getattr(function, "__func__", function)
            if not member.startswith("_") and inspect.isfunction(function):
                is_property = isinstance(value, property)
                lines += [f"### {name}.{member}", "", *_object(member, function, is_property)]
    # What is indented after two colons is an example, and reST's roles are plain names.
    text = re.sub(r"::\n\n((?: {4}.*\n|\n)+)", _example, "\n".join(lines) + "\n")
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")


def _example(found: re.Match[str]) -> str:
    return f":\n\n<pre><code>{inspect.cleandoc(found[1])}</code></pre>\n\n"


def _object(name: str, found: object, is_property: bool = False) -> Iterator[str]:
    if callable(found) and not is_property:
        yield f"<pre><code>{html.escape(name + _signature(found), quote=False)}</code></pre>\n"
    yield f"{inspect.getdoc(found) or ''}\n"


class _Plain(str):
    """An annotation that is shown as it is written, without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _signature(found: Callable[..., object]) -> str:
    """Return the parameters and the result of a function, a line each where one is too short."""
    try:
        known = inspect.signature(found)
    except ValueError:
        return ""
    words, is_named = [], False
    for part in known.parameters.values():
        if part.name == "self":
            continue
        if part.kind is part.KEYWORD_ONLY and not is_named:
            words.append("*")
        is_named = part.kind in (part.KEYWORD_ONLY, part.VAR_POSITIONAL)
        words.append(str(part.replace(annotation=_plain(part.annotation))))
    result = _plain(known.return_annotation)
    end = "" if result in (known.empty, "None") else f" -> {result}"
    line = f"({', '.join(words)}){end}"
    if len(line) <= _LINE:
        return line
    return "(\n" + "".join(f"    {word},\n" for word in words) + f"){end}"


def _plain(annotation: object) -> object:
    """Return an annotation to be shown as it is written; none stays none."""
    if annotation is inspect.Parameter.empty:
        return annotation
    return _Plain(
        annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    )


def main() -> int:
    """Write the sources, and let the generator make the site; return its exit status."""
    shutil.rmtree(PLACE, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    for name, text in sources().items():
        (SOURCE / name).write_text(text, encoding="utf-8")
    shutil.copytree(DOCS / "images", SOURCE / "images")
    for path in [*DOCS.glob("*.json"), *DOCS.glob("*.ipynb"), *ROOT.glob("LICENSE-*")]:
        shutil.copy2(path, SOURCE)
    nav = [
        {heading: [{title: page} for title, page in pages.items()]}
        for heading, pages in PAGES.items()
    ]
    lines = [
        "[project]",
        'site_name = "Flashkeel"',
        f"site_description = {json.dumps(inspect.getdoc(flashkeel).partition(chr(10))[0])}",
        f"docs_dir = {json.dumps(SOURCE.name)}",
        f"site_dir = {json.dumps(SITE.name)}",
        f"nav = {_inline(nav)}",
        "[project.theme]",
        # Nothing is loaded from elsewhere.
        "font = false",
        'features = ["navigation.sections", "content.code.copy"]',
        "[[project.theme.palette]]",
        'media = "(prefers-color-scheme: light)"',
        'scheme = "default"',
        "[[project.theme.palette]]",
        'media = "(prefers-color-scheme: dark)"',
        'scheme = "slate"',
    ]
    (PLACE / "zensical.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    return subprocess.run(command, cwd=PLACE, check=False).returncode


def _inline(node: object) -> str:
    """Return a value as TOML, in one line."""
    match node:
        case dict():
            return (
                "{ " + ", ".join(f"{json.dumps(k)} = {_inline(v)}" for k, v in node.items()) + " }"
            )
        case list():
            return "[" + ", ".join(map(_inline, node)) + "]"
    return json.dumps(node)


if __name__ == "__main__":
    sys.exit(main())
