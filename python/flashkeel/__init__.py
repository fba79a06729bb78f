"""Flashkeel: an SSD simulator and storage-policy toolkit.

Build an experiment, run it, look at the tail::

    import flashkeel

    result = flashkeel.Experiment.named("demo").run()
    for run in result.runs:
        print(run.name, run.percentile("small_read", 99.9), "ns")
    print(result["fifo"].explain(above="p99.9"))
"""

# As of `typing`, which takes longer to import than all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from flashkeel._core import InputError
    from flashkeel.arrow import Table
    from flashkeel.comparison import Comparison, compare
    from flashkeel.experiment import Experiment
    from flashkeel.explanation import Explanation
    from flashkeel.output.storage import load
    from flashkeel.result import Result
    from flashkeel.run import Run
    from flashkeel.ssdcheck import Diagnosis, Drive, Prediction, Predictor, Request, predict_log

    __version__: str

__all__ = [
    "Comparison",
    "Diagnosis",
    "Drive",
    "Experiment",
    "Explanation",
    "InputError",
    "Prediction",
    "Predictor",
    "Request",
    "Result",
    "Run",
    "Table",
    "__version__",
    "compare",
    "load",
    "predict_log",
]

_MODULES = {
    "Comparison": "comparison",
    "Diagnosis": "ssdcheck",
    "Drive": "ssdcheck",
    "Experiment": "experiment",
    "Explanation": "explanation",
    "InputError": "_core",
    "Prediction": "ssdcheck",
    "Predictor": "ssdcheck",
    "Request": "ssdcheck",
    "Result": "result",
    "Run": "run",
    "Table": "arrow",
    "compare": "comparison",
    "load": "output.storage",
    "predict_log": "ssdcheck",
}
"""Where each name is. They are imported when they are first used: an interrupt while the command
starts is then caught by the command."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name == "__version__":
            return import_module("flashkeel._core").version()
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
