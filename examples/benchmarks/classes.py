"""Classes that a group cannot change: logistic regression on InvariantFeatures, on the columns, and a random forest.

Labels of three classes are drawn with probabilities that depend on an invariant function of the point: on the sphere
S^2 under the 48 symmetries of the cube, and of eight numbers of length 1 in any order (S^7, 40 320 permutations). Log
loss (nats), accuracy and seconds of the fit on fresh rows; "the truth" predicts by the probabilities themselves.

    python examples/benchmarks/classes.py --json classes.json
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from common import Rows, options, report
from scipy.special import softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import Pipeline, make_pipeline

from daskspectral import InvariantFeatures
from daskspectral.groups import Generated, Group, Permutations, SignFlips
from daskspectral.manifolds import Sphere

NEW = 20_000
CUBE = Generated([Permutations(3), SignFlips(3)], "the cube")


def cubic(x: np.ndarray) -> np.ndarray:
    """Scores of the classes by how near a point is to axes, diagonals of faces, and diagonals of the cube."""
    quartic, sextic = (x**4).sum(axis=1), 27 * np.prod(x**2, axis=1)
    return np.column_stack([14 * (quartic - 0.75), 2 + 0 * quartic - 9 * np.abs(quartic - 0.5), 8 * (sextic - 0.45)])


def unordered(x: np.ndarray) -> np.ndarray:
    """Scores by the third and the fourth moment of the numbers."""
    third, fourth = np.sqrt(8) * (x**3).sum(axis=1), 8 * (x**4).sum(axis=1) / 3
    return np.column_stack([6 * third, -6 * third, 6 * (fourth - 0.9)])


TASKS: dict[str, tuple[int, Group, Callable[[np.ndarray], np.ndarray]]] = {
    "cube": (3, CUBE, cubic),
    "eight numbers": (8, Permutations(8), unordered),
}


def drawn(x: np.ndarray, scores: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """A label for each row, by the probabilities of its scores."""
    p = softmax(scores(x), axis=1)
    return (rng.random((len(x), 1)) > np.cumsum(p, axis=1)[:, :2]).sum(axis=1)


@click.command(help=__doc__)
@options(repeats=None)
def main(quick: bool, json_path: Path | None) -> None:
    """Fit, and compare on fresh rows."""
    warnings.filterwarnings("ignore", category=FutureWarning, module="sklearn")  # of defaults of LogisticRegressionCV
    rows: Rows = []
    for task, (d, group, scores) in TASKS.items():
        sphere = Sphere(d)
        for n in (150,) if quick else (500, 5000):
            rng = np.random.default_rng(n)
            x, new = sphere.sample(n, rng), sphere.sample(500 if quick else NEW, rng)
            y, truth = drawn(x, scores, rng), drawn(new, scores, rng)
            models: dict[str, Any] = {
                "invariant": regression(sphere, group),
                "no group": regression(sphere, None),
                "logistic regression": LogisticRegression(),
                "random forest": RandomForestClassifier(20 if quick else 300, min_samples_leaf=5, random_state=0),
            }
            p = softmax(scores(new), axis=1)
            rows.append({"task": task, "rows": n, "model": "the truth", **judged(truth, p), "seconds": None})
            for name, model in models.items():
                start = time.perf_counter()
                model.fit(x, y)
                seconds = time.perf_counter() - start
                found = judged(truth, model.predict_proba(new))
                rows.append({"task": task, "rows": n, "model": name, **found, "seconds": seconds})
    report("classes under a group", rows, json_path, [])


def regression(sphere: Sphere, group: Group | None) -> Pipeline:
    """Logistic regression on invariant functions, its penalty a Sobolev norm that is chosen on folds."""
    features = InvariantFeatures(sphere, group, smoothness=sphere.dimension / 2 + 1)
    penalties = np.logspace(0, 5, 11)
    return make_pipeline(features, LogisticRegressionCV(Cs=penalties, scoring="neg_log_loss", max_iter=1000))


def judged(truth: np.ndarray, p: np.ndarray) -> dict[str, float]:
    """Log loss and accuracy of probabilities."""
    return {"log loss": float(log_loss(truth, p)), "accuracy": float(accuracy_score(truth, p.argmax(axis=1)))}


if __name__ == "__main__":
    main()
