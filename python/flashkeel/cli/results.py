"""Results that are named on the command line."""

from __future__ import annotations

from pathlib import Path

from flashkeel._core import InputError
from flashkeel.arrow import TableFiles
from flashkeel.output import storage
from flashkeel.result import Result
from flashkeel.run import Run
from flashkeel.serving import control


def served(target: str) -> Run:
    """Return the last minute of the drive that is served with ``--control unix:PATH``."""
    found = control.ask(control.address(target), "recent")
    whole = {"name": "last minute", "seed": 0, "basis": "clients"} | found
    return Run(whole, TableFiles(control.address(target).parent))


def load_result(target: str, whole: str = "") -> Result:
    """Load ``RESULT``, or of it one run alone, ``RESULT:RUN``, or what tenants got.

    `whole` is what is asked for, if there is none of it of a tenant.
    """
    path, name = _place(target)
    found = storage.load(path)
    if name is None or any(run.name == name for run in found.runs):
        return found if name is None else found.only(name)
    tenants = found.tenants(name)
    if not tenants:
        return found.only(name)
    if whole:
        raise InputError(f"{target}: a tenant, and {whole} is of a whole run")
    only = Result(found.document | {"runs": []}, found.files)
    only.runs = tenants
    return only


def result_file(target: str) -> Path:
    """Return the file that ``RESULT``, ``RESULT:RUN`` or what tenants got is read from."""
    return storage.file(_place(target)[0])


def _place(target: str) -> tuple[str, str | None]:
    """Return the result and the run that ``RESULT`` or ``RESULT:RUN`` names.

    Both may have colons in them; a result is there.
    """
    if ":" not in target or Path(target).exists():
        return target, None
    colons = [at for at, character in enumerate(target) if character == ":"]
    at = next((at for at in reversed(colons) if Path(target[:at]).exists()), colons[-1])
    return target[:at], target[at + 1 :]


def told_apart(files: list[Path]) -> list[str]:
    """Return where results lie by as many of the last names as tell them apart."""
    folders = [file.parent.parts if file.name == storage.RESULT else file.parts for file in files]
    distinct = len(set(folders))
    longest = max(map(len, folders))
    depth = next(n for n in range(1, longest + 1) if len({it[-n:] for it in folders}) == distinct)
    return ["/".join(it[-depth:]) for it in folders]


def load_runs(target: str, whole: str = "") -> list[Run]:
    """Load what `load_result` does as runs, or what a served drive has of late."""
    return [served(target)] if target.startswith("unix:") else load_result(target, whole).runs
