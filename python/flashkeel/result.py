"""Results: the runs of an experiment, kept, shown and saved together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashkeel._core import InputError
from flashkeel.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flashkeel.arrow import TableFiles

SCHEMA = 1
"""Version of the shape of a result."""


class Result:
    """The runs of an experiment, in its order."""

    def __init__(self, document: dict[str, Any], files: TableFiles) -> None:
        self.document = document
        self.files = files
        self.runs = [Run(data, files) for data in document["runs"]]

    def __repr__(self) -> str:
        names = ", ".join(run.name for run in self.runs)
        return f"<Result {self.title!r}: {len(self)} run{'' if len(self) == 1 else 's'}: {names}>"

    def _repr_html_(self) -> str:
        from flashkeel.output import notebook

        return f"<p><b>{escape(self.title)}</b></p>{notebook.runs(self.runs)}"

    @property
    def title(self) -> str:
        """Title of the experiment."""
        return str(self.document.get("title") or self.document.get("experiment") or "")

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, name: str) -> Run:
        """Return the run called `name`; InputError where there is none."""
        for run in self.runs:
            if run.name == name:
                return run
        known = ", ".join(run.name for run in self.runs)
        raise InputError(f"no run {name!r} in the result; it has {known}")

    def only(self, name: str) -> Result:
        """Return a result of the run called `name` alone; InputError where there is none."""
        return Result(self.document | {"runs": [self[name].data]}, self.files)

    def tenants(self, name: str) -> list[Run]:
        """Return the tenants that `name` means: ``TENANT`` of any run, or ``RUN:TENANT``.

        Of several runs each is called as the latter says.
        """
        found = []
        for run in self.runs:
            for tenant in run.tenants:
                full = f"{run.name}:{tenant.name}"
                if name in (tenant.name, full):
                    found.append(tenant if len(self) == 1 else tenant.called(full))
        return found

    def to_json(self, detail: bool = False) -> str:
        """Return the result as JSON, with blame tables and histograms if `detail`."""
        if detail:
            return json.dumps(self.document, ensure_ascii=False, allow_nan=False)
        runs = [_without_detail(run) for run in self.document["runs"]]
        return json.dumps(
            self.document | {"runs": runs}, indent=2, ensure_ascii=False, allow_nan=False
        )

    def plot(self, kind: str = "tails", **options: Any) -> Figure:  # noqa: ANN401
        """Return a picture as a Matplotlib figure.

        `kind` is ``tails``, ``cdf``, ``blame``, ``series``, ``heat`` or ``windows``; the functions
        of those names in `flashkeel.output.plots` and the modules beside it say what they show,
        and which `options` they take, such as ``latency_class="write"``.
        """
        from flashkeel.output import pictures

        return pictures.draw(self, kind, **options)

    def save(self, directory: str | Path, overwrite: bool = False) -> None:
        """Write the result to `directory` in one step, created if needed.

        A directory that holds another experiment's result is refused with
        InputError unless `overwrite`; one that holds anything else, always.
        """
        from flashkeel.output import storage

        storage.save(self, Path(directory), overwrite)


def _without_detail(run: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in run.items() if key != "detail"}
    if "tenants" in kept:
        kept["tenants"] = [_without_detail(tenant) for tenant in kept["tenants"]]
    return kept
