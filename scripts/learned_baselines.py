"""Judge learned predictors, in the styles of LinnOS and of Heimdall, beside ours.

    cargo run --profile dev -p flashkeel-ssdcheck --example stranger_logs FROM TO FOLDER
    scripts/learned_baselines.py FOLDER

Each is trained offline on the first half of a log and judged on the second, as ours is, which
has learnt as it went. LinnOS (Hao et al., OSDI 2020) gives a network of one hidden layer of 256
the requests outstanding, and of the last four that have ended what they took and how many were
outstanding when they came. Heimdall (Kurniawan et al., EuroSys 2025) gives one of 128 and 16 what
is outstanding, the request's size, and of the last three what they took, how many were
outstanding and how fast they were. Both predict reads; here they are told the operation, too,
and the labels are what the probe calls slow, not what their papers' labelling does.
"""

from __future__ import annotations

import argparse
import warnings
from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST = 100
"""Slow requests, and normal ones, in each half, without which a run tells nothing."""

ROUNDS = 30
"""Passes over the first half at most; fewer once a tenth that is held back gets no better."""

HISTORY = 4


def features(log: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what LinnOS's and Heimdall's networks are given of each request."""
    submitted = log["submitted_ns"].to_numpy(np.int64)
    latency = log["latency_ns"].to_numpy(np.int64)
    order = np.argsort(submitted + latency, kind="stable")
    ended = (submitted + latency)[order].tolist()
    size = log["sectors"].to_numpy(np.float64)
    is_read = (log["operation"] == "read").to_numpy(np.float64)
    before = np.array([bisect_right(ended, now) for now in submitted.tolist()])
    outstanding = np.arange(len(log)) - before
    took = np.log2(latency[order])
    queue = outstanding[order].astype(float)
    speed = np.log2(size[order] / latency[order])

    def last(of: NDArray[np.float64], ago: int) -> NDArray[np.float64]:
        index = before - ago
        return np.where(index >= 0, of[np.maximum(index, 0)], 0.0)

    ours = [outstanding.astype(float), is_read]
    linnos = [last(of, ago) for of in (took, queue) for ago in range(1, HISTORY + 1)]
    heimdall = [last(of, ago) for of in (took, queue, speed) for ago in range(1, HISTORY)]
    return np.column_stack([*ours, *linnos]), np.column_stack([*ours, np.log2(size), *heimdall])


def judged(
    of: NDArray[np.float64], is_slow: NDArray[np.bool_], layers: tuple[int, ...]
) -> tuple[float, float]:
    """Train on the first half; return F1 and the area under the curve of the second."""
    half = len(of) // 2
    scaler = StandardScaler().fit(of[:half])
    network = MLPClassifier(layers, early_stopping=True, max_iter=ROUNDS, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(scaler.transform(of[:half]), is_slow[:half])
    known, chance = (
        network.predict_proba(scaler.transform(part))[:, 1] for part in (of[:half], of[half:])
    )
    # The threshold that is best on what is known.
    steps = np.linspace(0.02, 0.98, 49)
    threshold = max(steps, key=lambda step: f1_score(is_slow[:half], known >= step))
    return f1_score(is_slow[half:], chance >= threshold), roc_auc_score(is_slow[half:], chance)


def main() -> None:
    """Print a row for each pacing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    found: dict[str, list[tuple[float, ...]]] = {}
    for path in sorted(parser.parse_args().folder.glob("*.csv")):
        log = pd.read_csv(path)
        half = len(log) // 2
        is_slow = log["is_slow"].to_numpy(bool)
        counts = [part.sum() for part in (is_slow[:half], is_slow[half:])]
        if min(counts) < FEWEST or max(counts) > half - FEWEST:
            continue
        linnos, heimdall = features(log)
        called, chance = (log[key].to_numpy()[half:] for key in ("is_called", "chance"))
        row = (
            f1_score(is_slow[half:], called),
            roc_auc_score(is_slow[half:], chance),
            *judged(linnos, is_slow, (256,)),
            *judged(heimdall, is_slow, (128, 16)),
        )
        found.setdefault(path.stem.partition("-")[2], []).append(row)
        print(path.stem, *(f"{value:.2f}" for value in row), flush=True)
    print("| pacing | runs | F1 ours | LinnOS | Heimdall | ROC-AUC ours | LinnOS | Heimdall |")
    for pacing, rows in found.items():
        means = np.mean(rows, axis=0)
        cells = " | ".join(f"{value:.2f}" for value in (*means[::2], *means[1::2]))
        print(f"| {pacing} | {len(rows)} | {cells} |")


if __name__ == "__main__":
    main()
