"""Flashkeel: an SSD simulator and storage-policy toolkit.

Build an experiment, run it, look at the tail::

    import flashkeel

    result = flashkeel.Experiment.named("demo").run()
    for run in result.runs:
        print(run.name, run.percentile("small_read", 99.9), "ns")
    print(result["fifo"].explain(above="p99.9"))
"""

from flashkeel import _core
from flashkeel._core import InputError
from flashkeel.comparison import Comparison, compare
from flashkeel.experiment import Experiment
from flashkeel.explanation import Explanation
from flashkeel.output.storage import load
from flashkeel.result import Result
from flashkeel.run import Run
from flashkeel.ssdcheck import Diagnosis, Drive, Prediction, Predictor, Request

# Errors that cross from a worker process are found again by this name.
InputError.__module__ = __name__

__version__: str = _core.version()

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
    "__version__",
    "compare",
    "load",
]
