"""KernelEmbedding: the problem it states, scikit-learn with the kernel it learns, containers, saving."""

import copy
import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import daskspectral as dsp
from daskspectral.embedding import kernelised
from daskspectral.kernels import Gaussian, Kernel, Matern
from daskspectral.registry import decode, encode
from daskspectral.testing import check_kernel

X = make_moons(90, noise=0.05, random_state=0)[0]
NEW, NEW_LABELS = make_moons(40, noise=0.05, random_state=1)


def make(**changes: Any) -> dsp.KernelEmbedding:
    return dsp.KernelEmbedding(**({"kernel": Matern(2.5, 0.7), "regularization": 1e-3} | changes))


@pytest.fixture(scope="module")
def est() -> dsp.KernelEmbedding:
    return make().fit(X)


def test_the_problem_it_states() -> None:
    """Objective, constraints and bound from dense matrices; y may be negative."""
    est = make(regularization=1e-2).fit(X)
    k = Matern(2.5, 0.7).values(X, X)
    u = k.sum(axis=0) / np.sqrt(k.sum())
    b = est.embedding_ @ est.embedding_.T
    cost = (k - np.outer(u, u)) / 90**2 - 1e-2 * np.linalg.inv(k)
    assert est.objective_ == pytest.approx(float(np.vdot(cost, b)), rel=1e-4)
    np.testing.assert_allclose(np.diag(b), np.diag(k) - u**2, rtol=1e-6)
    assert est.dual_ @ np.diag(b) == pytest.approx(est.objective_, rel=1e-5)
    assert est.dual_.min() < 0
    cost = 0.5 * (cost + cost.T)  # the inverse is not symmetric, by 4e-9
    assert np.linalg.eigvalsh(np.diag(est.dual_) - cost)[0] > -1e-12
    assert est.certificate_.optimal
    assert est.certificate_.gap < 1e-7 * abs(est.objective_)
    assert est.certificate_.least_eigenvalue > -1e-12
    np.testing.assert_allclose(est.embedding_.T @ est.embedding_, np.diag(est.spectrum_), atol=1e-7)
    assert est.rank_ == est.embedding_.shape[1] <= 6
    assert est.range_ == 90


def test_scikit_learn_takes_the_kernel(est: dsp.KernelEmbedding) -> None:
    """A clone, a deep copy, a pickle and a saved state give the same numbers, cross-validated too."""
    kernel = est.learned_kernel_
    gram = kernel(NEW, X)
    again = decode(encode(kernel), Kernel)
    for each in (clone(kernel), copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel)), again):
        assert type(each) is type(kernel)
        np.testing.assert_array_equal(each(NEW, X), gram)
    check_kernel(kernel, 2)
    np.testing.assert_allclose(pairwise_kernels(X[:12], metric=kernel), kernel(X[:12], X[:12]), atol=1e-12)
    scores = cross_val_score(SVC(kernel=kernel), NEW, NEW_LABELS, cv=4)
    expected = cross_val_score(SVC(kernel="precomputed"), kernel(NEW, NEW), NEW_LABELS, cv=4)
    np.testing.assert_array_equal(scores, expected)
    np.testing.assert_allclose(gram, est.transform(NEW) @ est.embedding_.T, atol=1e-12)
    largest = est.embedding_[np.abs(est.embedding_).argmax(axis=0), np.arange(est.rank_)]
    assert (largest > 0).all()


def test_containers_and_saving(est: dsp.KernelEmbedding, tmp_path: Path) -> None:
    blocks = da.from_array(X, chunks=(40, 1))
    np.testing.assert_array_equal(make().fit(blocks).embedding_, est.embedding_)
    np.testing.assert_allclose(est.transform(blocks).compute(), est.embedding_, atol=1e-9)
    dsp.save(est, tmp_path / "model.zarr")
    loaded = dsp.load(tmp_path / "model.zarr")
    assert loaded.certificate_ == est.certificate_
    np.testing.assert_array_equal(loaded.transform(NEW), est.transform(NEW))
    np.testing.assert_array_equal(loaded.dual_, est.dual_)
    with pytest.raises(ValueError, match=r"cannot be saved: only functions"):
        dsp.save(make(d=lambda x: np.ones(len(x))).fit(X), tmp_path / "other.zarr")


def test_unproved_answers_are_not_called_optimal(est: dsp.KernelEmbedding) -> None:
    hasty = make(max_passes=1).fit(X)
    assert not hasty.certificate_.optimal
    assert hasty.objective_ + hasty.certificate_.gap >= est.objective_ > hasty.objective_
    with pytest.warns(dsp.RankWarning):
        found = make(kernel=Gaussian(0.5)).fit(X)
    assert found.range_ < 90
    np.testing.assert_allclose(found.learned_kernel_.diagonal(X), np.sum(found.embedding_**2, axis=1), rtol=1e-9)
    assert found.certificate_.gap >= found.dual_ @ np.sum(found.embedding_**2, axis=1) - found.objective_ - 1e-9
    for options in (
        {"kernel": Gaussian(1.0), "max_passes": 1, "d": 1 + 0.5 * X[:, 0] ** 2},
        {"kernel": Gaussian(5.0), "d": 1 + 0.9 * np.cos(7 * np.arange(90.0))},
    ):
        with pytest.warns(dsp.RankWarning), pytest.raises(ValueError, match="no kernel was found"):
            make(**options).fit(X)


@pytest.mark.parametrize(
    ("changes", "x", "name"),
    [
        ({"kernel": "rbf"}, X, "rbf"),
        ({"d": np.array([1.0, 1.0, 1.0, 2.0])}, X[[0, 1, 2, 1]], "rows 1 and 3"),
        ({}, X[[0, 0]], "row 0"),
        ({"bandwidth": 2.0}, X, "bandwidth"),
    ],
)
def test_bad_input(changes: dict[str, Any], x: Any, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        make(**changes).fit(x)


def test_more_rows_than_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernelised, "available", lambda: 1000)
    with pytest.raises(MemoryError):
        make().fit(X)
