"""Dependencies point one way: between crates, inside the device, inside the Python package."""

import ast
import re
import tomllib

import pytest
from structure.source import ROOT, code, name, python, rust

CRATES = {
    "engine": set(),
    "config": set(),
    "stats": {"engine"},
    "workload": {"config", "engine"},
    "device": {"config", "engine"},
    "nvm": {"engine"},
    "ssdcheck": {"engine"},
    "nbd": set(),
    "blockdev": {"engine", "nbd"},
    "host": {"blockdev", "config", "device", "engine", "nvm", "ssdcheck", "stats", "workload"},
    "store": {"device", "engine"},
    "experiment": {
        "blockdev",
        "config",
        "device",
        "engine",
        "host",
        "nvm",
        "ssdcheck",
        "stats",
        "store",
        "workload",
    },
    "serve": {"engine", "nbd", "stats", "store"},
    "python": {"experiment", "serve", "stats"},
}
"""Each crate, and exactly the crates of the project that it builds on."""

FOUNDATION = {"address", "limits", "prefetch", "processor"}
DATA_PATH = {"front", "ftl", "sched", "flash"}
DEVICE = {
    "address": set(),
    "limits": set(),
    "prefetch": set(),
    "processor": set(),
    "presets": set(),
    "flash": FOUNDATION,
    "sched": {"flash", *FOUNDATION},
    "counters": {"sched", *FOUNDATION},
    "arrivals": set(),
    "idleness": set(),
    "machine": {"sched", "counters", "arrivals", *FOUNDATION},
    "ftl": {"sched", "flash", "machine", "arrivals", *FOUNDATION},
    # `ssd` because requests are carried on by methods of the device.
    "front": {"ftl", "sched", "flash", "machine", "ssd", *FOUNDATION},
    # Each part says what numbers it needs; what was written is resolved to them.
    "layout": {*DATA_PATH, "machine", *FOUNDATION},
    "config": {*DATA_PATH, "machine", "layout", *FOUNDATION},
    "ssd": {*DATA_PATH, "layout", "counters", "machine", "arrivals", "idleness", *FOUNDATION},
    "stranger": {*DATA_PATH, "config", "machine", *FOUNDATION},
}
"""Each module of the device, and the modules it may use: front → ftl → sched → flash."""

MEASURED = "."
ROOMS = {
    MEASURED: set(),
    "imports": {MEASURED},
    "output": {MEASURED},
    "reproduce": {"output", MEASURED},
    "serving": {MEASURED},
    "sweep": {"output", MEASURED},
    "cli": {"imports", "reproduce", "output", "serving", "sweep", MEASURED},
}
"""Each room of the Python package, and the rooms that it may use; its own modules measure."""

DOORS = {
    ("__init__.py", "output"): "`flashkeel.load`",
    ("result.py", "output"): "`Result.save` and pictures, when they are called",
    ("run.py", "output"): "what a notebook shows, when it does",
    ("explanation.py", "output"): "what a notebook shows, when it does",
    ("__main__.py", "cli"): "`python -m flashkeel`",
}
"""What uses a room that lies after its own, and what for."""

PACKAGE = ROOT / "python/flashkeel"


def test_every_crate_is_listed():
    assert {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")} == set(CRATES)


@pytest.mark.parametrize("crate", CRATES)
def test_crates_build_on_the_crates_below_them(crate):
    manifest = tomllib.loads((ROOT / f"crates/{crate}/Cargo.toml").read_text())
    declared = {
        dependency.removeprefix("flashkeel-")
        for dependency in manifest.get("dependencies", {})
        if dependency.startswith("flashkeel-")
    }
    assert declared == CRATES[crate]
    text = "".join(map(code, rust(f"crates/{crate}")))
    unused = {other for other in declared if f"flashkeel_{other}" not in text}
    assert not unused, "declared but never used"


def test_every_module_of_the_device_is_listed():
    modules = {path.stem for path in (ROOT / "crates/device/src").iterdir()}
    assert modules - {"lib", "tests"} == set(DEVICE)


@pytest.mark.parametrize("module", DEVICE)
def test_the_device_uses_only_what_lies_further_down_its_data_path(module):
    used = {
        f"{name(path)} uses {other}"
        for path in rust("crates/device/src")
        if path.relative_to(ROOT / "crates/device/src").parts[0].removesuffix(".rs") == module
        for other in _modules_named(path)
        if other not in DEVICE[module] | {module}
    }
    assert not used


def _modules_named(path):
    """Return the first step of every path that starts at the root of the device's crate."""
    text = code(path)
    depth = len(path.relative_to(ROOT / "crates/device/src").parts) - (path.name == "mod.rs")
    for start in ("crate", "::".join(["super"] * depth)):
        yield from re.findall(rf"(?<![\w:]){start}::(\w+)", text)
        for group in re.findall(rf"(?<![\w:]){start}::\{{([^}}]*)\}}", text):
            yield from re.findall(r"(?:^|,)\s*(\w+)", group)


def test_every_room_of_the_package_is_listed():
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms | {MEASURED} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_the_package_uses_only_what_lies_before_it(room):
    used = {
        (path.relative_to(PACKAGE).as_posix(), other)
        for path in python()
        if _room(path.relative_to(PACKAGE).with_suffix("").parts) == room
        for other in _rooms_imported(path)
        if other not in ROOMS[room] | {room}
    }
    assert used == {edge for edge in DOORS if _room(edge[0].split("/")) == room}


def _rooms_imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (_room(it.split(".")[1:]) for it in names if it.split(".")[0] == "flashkeel")


def _room(steps):
    """Return the room of a module, from its steps below the package."""
    return next((step for step in steps[:1] if step in ROOMS), MEASURED)
