"""The simulator. Everything structured crosses as JSON text.

Wrong input raises `InputError`, anything else that fails `RuntimeError`.
"""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal, final

__all__ = [
    "BUILD",
    "LOGICAL_PAGE_BYTES",
    "InputError",
    "Predictor",
    "RunResult",
    "Serving",
    "Table",
    "demand_names",
    "demand_similarity",
    "explain",
    "lifetimes",
    "list_names",
    "listen_unix",
    "merge",
    "predict",
    "predict_log",
    "probe",
    "put_target",
    "reference",
    "resolve",
    "resolve_target",
    "run",
    "schema",
    "serve_nbd",
    "show",
    "span_ns",
    "trace_convert",
    "trace_files",
    "trace_format",
    "trace_info",
    "trace_like",
    "trace_merge",
    "trace_synth",
    "version",
    "write_profiles",
]

BUILD: Final[str]
"""How this is compiled, which speeds depend on: ``release`` or ``release, profile-guided``."""

LOGICAL_PAGE_BYTES: Final[int]
"""Bytes of a page that devices map, read and write."""

class InputError(ValueError):
    """Wrong input: a document, an override, a trace or a name."""

@final
class Table:
    """A table for any Arrow library, such as ``pyarrow.table(...)``."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as a capsule of the Arrow C stream interface."""

    def __len__(self) -> int:
        """Return the number of rows."""

@final
class Serving:
    """A window on a drive that is being served, for other threads."""

    def state(self) -> str | None:
        """Return what is counted since the start, and the device's gauges, as JSON."""

    def recent(self) -> str | None:
        """Return what was measured in the last minute, as the run of a result in JSON."""

@final
class RunResult:
    """What a run measured."""

    def json(self) -> str:
        """Return the run object, with blame table and histograms under ``detail``."""

    def series(self) -> Table:
        """Return the time series, one row a window."""

    def requests(self) -> bytes | None:
        """Return the request log as a Parquet file, if the experiment asked for one."""

    def chips(self) -> Table | None:
        """Return what each chip did, one row a time, if the experiment asked for it."""

def version() -> str:
    """Return the simulator's version."""

def resolve(
    document: str,
    name: str,
    sets: list[tuple[str, str]],
    seed: int | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> str:
    """Return the runs of a TOML document, a list of plans with ``name`` and ``config``.

    `name` is what errors call the document; where it is a path, relative paths
    in the document start at its folder. `sets` are keys and values set over the
    document, as ``--set KEY=VALUE`` gives them. `seed` replaces the document's.
    `progress` is called as by :func:`run` while a trace is read.
    """

def run(
    plan_json: str,
    seed: int,
    cache_dir: str | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> RunResult:
    """Run one plan with a seed.

    The steady state of the device is kept in `cache_dir`; no result depends on
    it. `progress` is called with what is being done and the fraction of it that
    is done, at most ten times a second; an exception it raises ends the run.
    """

def span_ns(text: str) -> int:
    """Return the nanoseconds of a time as documents write it: ``20us``."""

def explain(result_json: str, run_name: str, class_: str, above: str) -> str:
    """Say who owns the latency of a run's requests above a percentile (``p99.9``).

    `class_` is ``read``, ``write``, ``small_read``, ``trim`` or ``flush``. Returns an
    object with ``threshold_ns``, ``count``, ``mean_ns`` and ``causes``, a list of
    ``cause``, ``share``, ``mean_ns``, largest first.
    """

def merge(runs: list[str]) -> str:
    """Pool the runs of one plan with different seeds into one run object."""

def trace_info(
    path: str,
    options_json: str,
    progress: Callable[[str, float], object] | None = None,
) -> str:
    """Describe a trace; `options_json` holds keys of the trace source.

    `progress` is called as by :func:`run`, here and below.
    """

def trace_format(path: str, options_json: str) -> str:
    """Name the format of a trace, from the file's head; `options_json` as for the above."""

def trace_files(path: str) -> list[Path]:
    """Name the files that are read of a trace: `path`, and other CPUs' beside a blktrace."""

def trace_convert(
    path: str,
    options_json: str,
    out_path: str,
    out_format: str,
    progress: Callable[[str, float], object] | None = None,
) -> str:
    """Write a trace in another format and return the counts of what became of it."""

def trace_merge(
    paths: list[str],
    options_json: str,
    beginnings: str,
    spaces: str,
    out_path: str,
    out_format: str,
    progress: Callable[[str, float], object] | None = None,
) -> str:
    """Write several traces as one and return the counts of what became of them.

    `beginnings` is ``together`` or ``recorded``, `spaces` is ``separate`` or ``merge``.
    """

def trace_like(
    path: str,
    options_json: str,
    out_path: str,
    out_format: str,
    seed: int,
    requests: int | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> str:
    """Write a synthetic trace that is like another and return its counts."""

def trace_synth(
    config_json: str,
    out_path: str,
    out_format: str,
    seed: int,
    progress: Callable[[str, float], object] | None = None,
) -> str:
    """Write the workload of a plan's ``config`` as a trace and return the counts."""

def lifetimes(
    plans_json: str, seeds: list[int], progress: Callable[[str, float], object] | None = None
) -> str:
    """Find how long drives last under their write demands: for each plan a life with each seed.

    `plans_json` is a list of objects with the keys of a lifetime plan (``drive``,
    ``traffic``, ``throttle`` …).
    """

def write_profiles() -> str:
    """Return the built-in write profiles, a list of objects."""

def demand_names(path: str) -> str:
    """Return the names of the series of a write demand, a list."""

def demand_similarity(traffic_json: str, period_s: int, share: float, seed: int) -> float | None:
    """Return the share of periods whose demand is within `share` of the period's before.

    None where the traffic has fewer than two periods.
    """

def list_names(kind: Literal["presets", "tiers", "policies", "profiles", "experiments"]) -> str:
    """Return a list of names, or for policies the axes, each with its policies.

    ``presets`` are those of devices, ``tiers`` those of tiers, which are sets of policies.
    """

def show(name: str) -> str:
    """Return the TOML document of a built-in experiment or preset, or one that uses a profile."""

def schema() -> str:
    """Return the JSON Schema of an experiment document."""

def reference() -> str:
    """Return the configuration reference in Markdown."""

def resolve_target(document: str, name: str, sets: list[tuple[str, str]]) -> str:
    """Return what a document drives: its tables ``device`` and ``stack``.

    Without either all of it is the device.
    """

def put_target(plan_json: str, target_json: str) -> str:
    """Return the plan with the target in the place of what it drives.

    The plan's tenants, if it has any, share it.
    """

def listen_unix(path: str) -> int:
    """Listen at a socket in the file system, in the place of a server that was killed.

    Return the number of the file, which is the caller's to close.
    """

def serve_nbd(
    target_json: str,
    service_json: str,
    ready: Callable[[str, int, Serving], object],
    say: Callable[[str], object],
    cache_dir: str | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> str:
    """Serve a target until interrupted; return what was served.

    `ready` is called with the export's URI, its size in bytes and a window on it, `say` with
    what concerns those who serve.
    """

def probe(
    target_json: str,
    seed: int,
    cache_dir: str | None = None,
    limit: timedelta | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> str:
    """Diagnose a target; return the device model with the key ``evidence`` beside."""

def predict(
    plan_json: str,
    model_json: str,
    model_name: str,
    seed: int,
    false_calls: float | None = None,
    cache_dir: str | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> str:
    """Run one plan, predict each request, and say what became of the predictions.

    `model_name` is what errors call the model; `false_calls` the part of normal requests that
    may be called slow.
    """

def predict_log(
    path: str,
    iolog: str | None = None,
    device: str | None = None,
    time_unit: str | None = None,
    model_json: str | None = None,
    model_name: str = "",
    false_calls: float | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> str:
    """Score the predictions of a log's requests; say how good they were, and what is assumed.

    `model_name` is what errors call the model; without one the log's first half says what is slow.
    """

@final
class Predictor:
    """Predicts the requests of one drive; times are ns since any moment, and never decrease."""

    def __new__(
        cls, model_json: str, model_name: str, false_calls: float | None = None
    ) -> Predictor:
        """Take a device model; `model_name` is what errors call it."""

    def predict(
        self, now_ns: int, operation: str, lba: int, sectors: int
    ) -> tuple[int, float, bool]:
        """Return the expected latency in ns, how likely it is slow, and whether it is called so."""

    def submitted(self, now_ns: int, id: int, operation: str, lba: int, sectors: int) -> None:
        """Tell of a request that the drive was given."""

    def observe(self, now_ns: int, id: int) -> None:
        """Tell of a request that has completed."""

    def model(self) -> str:
        """Return the model with what was learnt, as JSON."""

    @property
    def is_on(self) -> bool:
        """Whether predictions are given out; otherwise none is of a slow request."""
