"""InvariantClassifier: scikit-learn's coefficients, held-out values, labels in a store."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import daskspectral as dsp
from daskspectral.cli.describing import describe
from daskspectral.groups import Permutations
from daskspectral.manifolds import Sphere

S2 = Sphere(3)
X = S2.sample(300, np.random.default_rng(0))
NAMES = np.array(["left", "middle", "right"])[np.digitize(np.sort(X, axis=1) @ [1.0, 2.0, -1.0], [-1, -0.4])]
W = np.random.default_rng(2).integers(0, 3, 300).astype(float)


def make(**changes: Any) -> dsp.InvariantClassifier:
    options = {"manifold": S2, "group": Permutations(3), "smoothness": 2.0, "n_eigenfunctions": 49, "alpha": 1e-3}
    return dsp.InvariantClassifier(**(options | {"folds": None, "tolerance": 1e-18} | changes))


@pytest.mark.usefixtures("small_tasks")
def test_scikit_learn_on_the_same_functions_and_without_each_fold(tmp_path: Path) -> None:
    labels = np.random.default_rng(5).integers(0, 4, 300)
    stored = zarr.create_array(tmp_path / "y.zarr", shape=(300,), dtype=str, chunks=(130,))
    stored[:] = NAMES
    model = make(folds=labels).fit(X, stored, sample_weight=W, checkpoint=tmp_path / "run")

    def features(x: Any) -> Any:
        return model.basis_.values(x)[1:].T / model.basis_.cumulative[1:].astype(float)

    def other(rows: Any) -> LogisticRegression:
        machine = LogisticRegression(C=1e3 / W[rows].sum(), solver="newton-cholesky", tol=1e-10, max_iter=200)
        return machine.fit(features(X[rows]), NAMES[rows], sample_weight=W[rows])

    new = S2.sample(100, np.random.default_rng(3))
    wanted = other(slice(None)).predict_proba(features(new))
    dsp.save(model, tmp_path / "model.zarr")
    for found in (model, dsp.load(tmp_path / "model.zarr")):
        np.testing.assert_allclose(found.predict_proba(new), wanted, atol=1e-6)
        np.testing.assert_array_equal(found.predict(new), model.classes_[wanted.argmax(axis=1)])
    np.testing.assert_allclose(model.predict_proba(new[:, ::-1]), model.predict_proba(new), atol=1e-10)
    losses = [
        log_loss(NAMES[own], other(~own).predict_proba(features(X[own])), sample_weight=W[own], labels=model.classes_)
        for own in (labels == k for k in range(4))
    ]
    weights = np.bincount(labels, W)
    assert model.held_out_.log_loss == pytest.approx(np.average(losses, weights=weights), abs=2e-3)  # loose descents
    assert model.score(X, stored) == np.mean(model.predict(X) == NAMES) > 0.8
    assert "classes     3, shares left" in describe(model)
