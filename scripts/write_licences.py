"""Write THIRD-PARTY.txt, the licences of the crates that are linked into the core: ``make docs``.

What is linked is what the extension module depends on, on x86-64 Linux; what only runs while it
is compiled, such as procedural macros, is not.
"""

import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = ROOT / "THIRD-PARTY.txt"
CORE = "flashkeel-python"
NAMES = re.compile(r"(?i)^(un)?(licen[cs]e|copying|notice|copyright)")
RULE = "=" * 80


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


def text() -> str:
    """Return the list of packages, and each text of a licence once, with whose it is."""
    texts: dict[str, tuple[str, list[str]]] = {}
    rows = []
    for package in linked():
        name = f"{package['name']} {package['version']}"
        rows.append(f"{name}: {package['license']}")
        folder = Path(package["manifest_path"]).parent
        # Sources of others inside a crate bring their own.
        files = sorted([*folder.glob("*"), *folder.glob("*/*")])
        for file in files:
            if file.is_file() and NAMES.match(file.name) and file.suffix not in {".rs", ".toml"}:
                body = _text(file)
                if body:
                    same = " ".join(body.split())
                    texts.setdefault(same, (body, []))[1].append(name)
    parts = [
        "The core of flashkeel has these packages linked into it, each under the licence named;\n"
        "where there is a choice, it is the MIT licence or Apache 2.0. The texts follow.",
        "\n".join(rows),
        *(f"{RULE}\n{', '.join(dict.fromkeys(of))}\n\n{body}" for body, of in texts.values()),
    ]
    return "\n\n".join(parts) + "\n"


def _text(file: Path) -> str:
    """Return the text of a licence; none of one that is not the one chosen."""
    body = file.read_text(encoding="utf-8", errors="replace").strip()
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
