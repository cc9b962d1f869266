"""KernelEmbedding and its problem (1.9): dense matrices, duals that are proofs, scikit-learn with the kernel."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import daskspectral as dsp
from daskspectral.embedding.kernel_problem import (
    KernelizedProblem,
    LearnedKernel,
    _by_factor,
    _by_interior_point,
    _judged,
    least_eigenvalue,
    maximize_factor,
    solve_kernelized,
)
from daskspectral.kernels import Gaussian, Kernel, Matern
from daskspectral.registry import decode, encode
from daskspectral.testing import check_kernel
from tests.solve.common import Array, skew, spd

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


def test_scikit_learn_accepts_the_kernel(est: dsp.KernelEmbedding) -> None:
    """A clone, a deep copy, a pickle and a saved state give the same numbers, cross-validated too."""
    kernel = est.learned_kernel_
    gram = kernel(NEW, X)
    again = decode(encode(kernel), Kernel)
    for each in (clone(kernel), copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel)), again):
        assert type(each) is type(kernel)
        np.testing.assert_array_equal(each(NEW, X), gram)
    check_kernel(kernel, 2, random_state=1)
    np.testing.assert_allclose(pairwise_kernels(X[:12], metric=kernel), kernel(X[:12], X[:12]), atol=1e-12)
    scores = cross_val_score(SVC(kernel=kernel), NEW, NEW_LABELS, cv=4)
    expected = cross_val_score(SVC(kernel="precomputed"), kernel(NEW, NEW), NEW_LABELS, cv=4)
    np.testing.assert_array_equal(scores, expected)
    np.testing.assert_allclose(gram, est.transform(NEW) @ est.embedding_.T, atol=1e-12)
    largest = est.embedding_[np.abs(est.embedding_).argmax(axis=0), np.arange(est.rank_)]
    assert (largest > 0).all()


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


# -- the problem, by either method -------------------------------------------------------------------------------------


MATERN = Matern(2.5, 0.5)
HADAMARD = scipy.linalg.hadamard(4) / 2


def cloud(n: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, (n, 2))


def problem_of(kernel: Kernel, x: Array, weight: float, counts: Array | None = None) -> KernelizedProblem:
    """With u of all points, of which each of the distinct ones x occurs `counts` times."""
    gram, counts = kernel.values(x, x), np.ones(len(x)) if counts is None else counts
    u = gram @ counts / np.sqrt(counts @ gram @ counts)
    return KernelizedProblem.of(gram + skew(gram), u, np.diag(gram) - u**2, weight, counts)


def outer(problem: KernelizedProblem, inner: Array) -> Array:
    return np.asarray(problem.features @ inner @ problem.features.T)


# -- a factor ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "n", "size", "most"), [(0, 12, 1e-6, 9), (1, 25, 100, 11), (2, 40, 1, 12), (2388, 14, 1, 20)]
)
def test_a_factor_and_its_proof_for_any_cost(seed: int, n: int, size: float, most: int) -> None:
    """Rows keep their lengths; diag(y) - C is psd with E in its kernel: no psd matrix with the diagonal is better."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((n, n))
    cost, d = size * (half + half.T), rng.uniform(0.5, 2, n)
    e, y, passes = maximize_factor(cost, d, rng.standard_normal((n, 9)), residual=1e-10, max_passes=200)
    np.testing.assert_allclose((e**2).sum(axis=1), d, rtol=1e-12)
    z = np.diag(y) - cost
    assert scipy.linalg.eigvalsh(z)[0] > -1e-7 * np.abs(y).max()
    assert np.linalg.norm(z @ e) < 1e-6 * np.linalg.norm(cost @ e)
    assert float(np.vdot(cost, e @ e.T)) == pytest.approx(d @ y, rel=1e-10)
    assert passes <= most + 1
    assert e.shape[1] * (e.shape[1] + 1) <= 2 * n  # columns that the optimum does not have are dropped
    assert maximize_factor(cost, d, e, residual=1e-3, max_passes=9)[2] == 0
    assert maximize_factor(cost, d, rng.standard_normal((n, 9)), residual=0.0, max_passes=3)[2] == 3


# -- the problem -------------------------------------------------------------------------------------------------------


def test_a_problem_and_the_report_of_its_solution() -> None:
    """In the range of K every matrix of the module, from those of all points, some of which occur twice."""
    rng = np.random.default_rng(0)
    x, counts = cloud(8), np.array([1, 2, 1, 3, 1, 1, 2, 1.0])
    problem, root = problem_of(MATERN, x, 0.02, counts), np.sqrt(counts)
    k = MATERN.values(x, x) * np.outer(root, root)
    u = k @ root / np.sqrt(root @ k @ root)
    d, phi = np.diag(k) - u**2, problem.features
    np.testing.assert_allclose(phi @ phi.T, k, atol=1e-12)
    np.testing.assert_allclose([problem.u, problem.d], [u, d])
    np.testing.assert_allclose(problem.outer_cost, (k - np.outer(u, u)) / 144 - 0.02 * np.linalg.inv(k), atol=1e-8)
    lifted = np.linalg.inv(phi.T @ phi) @ phi.T  # C is the outer cost in the coordinates of phi
    inside = phi.T @ (k - np.outer(u, u)) @ phi / 144 - 0.02 * np.eye(8)
    np.testing.assert_allclose(problem.cost, inside, atol=1e-12)
    np.testing.assert_allclose(phi @ lifted, np.eye(8), atol=1e-8)
    b, y = spd(8, rng), rng.standard_normal(8)
    np.testing.assert_allclose(problem.slack(y), phi.T @ np.diag(y) @ phi - problem.cost, atol=1e-12)
    least = scipy.linalg.eigvalsh(np.diag(y) - problem.outer_cost)[0]
    assert least_eigenvalue(problem, y) == pytest.approx(least, rel=1e-8)
    diagonal = np.diag(phi @ b @ phi.T)
    for shift in (0.0, 50.0):  # y that does not prove, and y that does
        found = _judged(problem, b, y + shift, 7)
        objective, dual = np.vdot(problem.cost, b), d @ (y + shift)
        off = abs((d - diagonal) @ (y + shift)) + max(0, -least - shift) * d.sum()
        gap = max(0, diagonal @ (y + shift) - objective) + off
        assert (found.objective, found.passes) == (pytest.approx(objective), 7)
        assert found.gap == pytest.approx(gap, rel=1e-7)
        assert found.relative_gap == pytest.approx(gap / max(abs(objective), abs(dual)), rel=1e-7)
        assert found.error == pytest.approx(np.abs(diagonal / d - 1).max())
        assert found.merit == max(found.relative_gap, found.error)


@pytest.mark.parametrize(("n", "weight", "repeated"), [(40, 1e-2, 1), (40, 1e-6, 1), (25, 1e-3, 3)])
def test_proved_optimal_by_either_method(n: int, weight: float, repeated: int) -> None:
    """B psd with the diagonal d, diag(y) - cost psd, and equal values: checked on dense matrices of all points."""
    problem = problem_of(MATERN, cloud(n), weight, np.full(n, float(repeated)))
    for method, most in ((_by_factor, 9), (_by_interior_point, 11)):
        found = method(problem, 1e-9, 100)
        b = outer(problem, found.inner)
        np.testing.assert_allclose(np.diag(b), problem.d, rtol=1e-7)
        assert scipy.linalg.eigvalsh(b)[0] > -1e-10
        slack = scipy.linalg.eigvalsh(np.diag(found.dual) - problem.outer_cost)
        assert slack[0] > -10 * n * np.finfo(float).eps * slack[-1]  # the rounding of eigvalsh
        assert float(np.vdot(problem.outer_cost, b)) == pytest.approx(found.objective, rel=1e-6, abs=1e-7)
        assert found.dual @ problem.d - found.objective < 1e-7 * abs(found.objective)
        assert found.merit < 1e-7
        assert found.passes <= most


@pytest.mark.parametrize(
    ("gram", "rank"),
    [
        *((HADAMARD * [1, 1, 1, least] @ HADAMARD, rank) for least, rank in ((2e-10, 4), (0.7e-10, 3), (-0.7e-8, 3))),
        (np.array([[0.0, 1.0], [1.0, 0.0]]), None),
        (np.diag([1.0, -1.5e-8]), None),
        (np.zeros((2, 2)), None),
    ],
)
def test_kernels_that_are_not_psd_are_refused(gram: Array, rank: int | None) -> None:
    n = len(gram)
    if rank is None:
        with pytest.raises(ValueError, match="semi-definite"):
            KernelizedProblem.of(gram, np.zeros(n), np.ones(n), 1.0)
    else:
        assert KernelizedProblem.of(gram, np.zeros(n), np.ones(n), 1.0).rank == rank


# -- the kernel that is learned ----------------------------------------------------------------------------------------


def test_learned_kernel() -> None:
    """b(x, y) = k_x^T K^+ B K^+ k_y, of points some of which occur twice."""
    x, new, counts = cloud(30), cloud(4, 1), np.arange(30) % 2 + 1.0
    problem = problem_of(MATERN, x, 1e-3, counts)
    found = solve_kernelized(problem)
    values, kernel = LearnedKernel.of(MATERN, x, problem, found)
    root = np.sqrt(counts)
    b = outer(problem, found.inner) / np.outer(root, root)
    np.testing.assert_allclose(kernel(x, x), b, atol=1e-7)
    np.testing.assert_allclose(values, scipy.linalg.eigvalsh(b * np.outer(root, root))[::-1][: len(values)], atol=1e-9)
    features = kernel.features(x)
    np.testing.assert_allclose(features.T @ (counts[:, None] * features), np.diag(values), atol=1e-7)
    assert (features[np.abs(features).argmax(axis=0), np.arange(len(values))] > 0).all()
    half = np.linalg.solve(MATERN.values(x, x), MATERN.values(new, x))
    np.testing.assert_allclose(kernel(new, new), half.T @ b @ half, atol=1e-6)
    np.testing.assert_allclose(kernel.diagonal(new), np.diag(kernel(new, new)), atol=1e-14)
    assert kernel(new[0], new[1]) == pytest.approx(kernel(new, new)[0, 1], abs=1e-14)
    assert np.isnan(kernel.features(np.array([[np.nan, 0.0], [0.0, 0.0]]))).any(axis=1).tolist() == [True, False]
    assert kernel.order == MATERN.order
