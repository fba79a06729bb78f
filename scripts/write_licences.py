"""Write THIRD-PARTY.txt, the licences of the crates that are linked into the core: ``make docs``.

What is linked is what the extension module depends on, on x86-64 Linux, and Rust's standard
library; what only runs while it is compiled, such as procedural macros, is not.
"""

import html
import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = ROOT / "THIRD-PARTY.txt"
CORE = "flashkeel-python"
NAMES = re.compile(r"(?i)^(un)?(licen[cs]e|copying|notice|copyright)")
RULE = "=" * 80
STANDARD = "Rust's standard library"
STANDARD_USES = {"cfg-if", "gimli", "hashbrown", "libc", "rustc-demangle"}
"""What the standard library has from others on x86-64 Linux."""


def linked() -> list[dict[str, str]]:
    """Return the packages linked into the core that are not the project's own, by name."""
    command = ["cargo", "metadata", "--format-version=1", "--locked"]
    command += ["--filter-platform=x86_64-unknown-linux-gnu"]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    metadata = json.loads(found)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    (core,) = (key for key, package in packages.items() if package["name"] == CORE)
    seen, left = set(), [core]
    while left:
        key = left.pop()
        kinds = {kind for target in packages[key]["targets"] for kind in target["kind"]}
        if key in seen or "proc-macro" in kinds:
            continue
        seen.add(key)
        left += [
            dependency["pkg"]
            for dependency in nodes[key]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    others = (packages[key] for key in seen if packages[key]["source"] is not None)
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def standard() -> list[tuple[str, str, list[str]]]:
    """Return the standard library and what it has from others: name, licence, texts."""
    command = ["rustc", "--print=sysroot"]
    root = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    folder = Path(root.strip(), "share/doc/rust")
    page = (folder / "COPYRIGHT-library.html").read_text(encoding="utf-8")
    own, *others = page.split("<h3>\N{PACKAGE} ")
    own = own.partition('id="in-tree-files"')[2].partition("<h2")[0].partition(">")[2]
    notes = html.unescape(re.sub(r"<[^>]*>", "", own)).splitlines()
    own = "\n".join(filter(None, map(str.strip, notes)))
    unicode = (folder / "licenses/Unicode-3.0.txt").read_text(encoding="utf-8")
    found = [(STANDARD, "(Apache-2.0 OR MIT) AND Unicode-3.0", [own, unicode])]
    for other in others:
        name, _, version = other.partition("<")[0].rpartition("-")
        if name in STANDARD_USES:
            (licence,) = re.findall(r"License:</b> ([^<]*)<", other)
            bodies = map(html.unescape, re.findall(r"<pre>(.*?)</pre>", other, re.DOTALL))
            found.append((f"{name} {version}", licence, list(bodies)))
    return found


def text() -> str:
    """Return the list of packages, and each text of a licence once, with whose it is."""
    texts: dict[str, tuple[str, list[str]]] = {}
    rows = []

    def add(body: str, of: str) -> None:
        body = _chosen(body.strip())
        if body:
            texts.setdefault(" ".join(body.split()), (body, []))[1].append(of)

    for package in linked():
        name = f"{package['name']} {package['version']}"
        rows.append(f"{name}: {package['license']}")
        folder = Path(package["manifest_path"]).parent
        # Sources of others inside a crate bring their own.
        files = sorted([*folder.glob("*"), *folder.glob("*/*")])
        for file in files:
            if file.is_file() and NAMES.match(file.name) and file.suffix not in {".rs", ".toml"}:
                add(file.read_text(encoding="utf-8", errors="replace"), name)
    for name, licence, bodies in standard():
        rows.append(f"{name}: {licence}")
        for body in bodies:
            add(body, name)
    parts = [
        "The core of flashkeel has these packages linked into it, each under the licence named;\n"
        "where there is a choice, it is the MIT licence or Apache 2.0. The texts follow.",
        "\n".join(rows),
        *(f"{RULE}\n{', '.join(dict.fromkeys(of))}\n\n{body}" for body, of in texts.values()),
    ]
    return "\n\n".join(parts) + "\n"


def _chosen(body: str) -> str:
    """Return the text of a licence; none of one that is not the one chosen."""
    if "GNU GENERAL PUBLIC LICENSE" in body or "GNU LESSER GENERAL" in body:
        return ""
    if "Apache License" in body and "END OF TERMS" in body:
        # What follows tells how to use it, each time with other white space.
        body = body.partition("END OF TERMS AND CONDITIONS")[0]
        body = body[body.index("Apache License") :]
        body = re.sub(r"https?://www.apache.org/licenses/(LICENSE-2.0)?", "", body)
    return "\n".join(map(str.rstrip, body.splitlines()))


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
    print(FILE.relative_to(ROOT))
