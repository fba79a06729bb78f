"""In which settings runs differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from flashkeel.run import Run


def differing(runs: Sequence[Run]) -> dict[str, list[str | None]]:
    """Return the keys in which resolved configurations differ, each with its value in every run.

    A value is written as JSON; None where a run has no such key. Keys that all runs have come
    first: others are what follows from them, as another policy's settings.
    """
    flat = [dict(_leaves(_configured(run))) for run in runs]
    keys = dict.fromkeys(key for one in flat for key in one)
    found = {key: [one.get(key) for one in flat] for key in keys}
    ranked = sorted(found.items(), key=lambda item: None in item[1])
    return {key: values for key, values in ranked if len(set(values)) > 1}


def _configured(run: Run) -> dict[str, Any]:
    config = run.data.get("config") or {}
    # Its title names an experiment, and no setting.
    kept = {key: value for key, value in config.items() if key != "title"}
    return kept | {"preset": run.data.get("preset"), "seeds": len(run.seeds)}


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401
    """Give each setting with its key, as an experiment writes it."""
    if isinstance(node, dict) and node:
        for key, value in node.items():
            # A policy without settings is written by its name.
            yield from _leaves(value, path if key == "policy" and path else _join(path, key))
    elif isinstance(node, list) and any(isinstance(item, (dict, list)) for item in node):
        for index, value in enumerate(node):
            yield from _leaves(value, _join(path, str(index)))
    else:
        yield path, json.dumps(node, ensure_ascii=False)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
