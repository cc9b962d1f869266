"""The kernelised problem (1.9), by either method: against dense matrices, duals that are proofs, and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import example, given, settings
from hypothesis import strategies as st

from daskspectral.kernels import Gaussian, Kernel, Matern
from daskspectral.solve.factored import ascend
from daskspectral.solve.kernelised import (
    KernelisedProblem,
    LearnedKernel,
    _by_factor,
    _by_interior_point,
    _Cone,
    _System,
    least_eigenvalue,
    solve_kernelised,
)
from tests.solve.common import Array, spd

MATERN = Matern(2.5, 0.5)


def cloud(n: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, (n, 2))


def problem_of(kernel: Kernel, x: Array, weight: float, d: Array | None = None) -> KernelisedProblem:
    gram = kernel.values(x, x)
    u = gram.sum(axis=0) / np.sqrt(gram.sum())
    return KernelisedProblem.of(gram, u, np.diag(gram) - u**2 if d is None else d, weight)


def dense_cost(kernel: Kernel, x: Array, weight: float) -> Array:
    """(K_bar - lambda n^2 K^-1) / n^2, in equation (1.9)'s units."""
    gram = kernel.values(x, x)
    u = gram.sum(axis=0) / np.sqrt(gram.sum())
    return np.asarray((gram - np.outer(u, u)) / len(x) ** 2 - weight * np.linalg.inv(gram))


def outer(problem: KernelisedProblem, inner: Array) -> Array:
    return np.asarray(problem.features @ inner @ problem.features.T)


@settings(max_examples=20)
@given(st.integers(0, 2**16), st.integers(12, 40), st.floats(-6, 2))
@example(2388, 14, 0.0)  # a column of the optimum is small
def test_a_factor_and_its_proof_for_any_cost(seed: int, n: int, exponent: float) -> None:
    """Rows keep their lengths; diag(y) - C is psd and kills E, so that no psd matrix with the diagonal is better."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((n, n))
    cost, d = 10**exponent * (half + half.T), rng.uniform(0.5, 2, n)
    e, y, passes = ascend(cost, d, rng.standard_normal((n, 9)), residual=1e-10, max_passes=200)
    np.testing.assert_allclose((e**2).sum(axis=1), d, rtol=1e-12)
    z = np.diag(y) - cost
    assert scipy.linalg.eigvalsh(z)[0] > -1e-7 * np.abs(y).max()
    assert np.linalg.norm(z @ e) < 1e-6 * np.linalg.norm(cost @ e)
    assert float(np.vdot(cost, e @ e.T)) == pytest.approx(d @ y, rel=1e-10)
    assert passes < 60
    assert e.shape[1] * (e.shape[1] + 1) <= 2 * n  # columns that the optimum does not have are dropped


@pytest.mark.parametrize(("n", "weight", "repeated"), [(40, 1e-2, 1), (40, 1e-6, 1), (25, 1e-3, 3)])
def test_proved_optimal_by_either_method(n: int, weight: float, repeated: int) -> None:
    """B psd with the diagonal d, diag(y) - cost psd, and equal values: checked on dense matrices of all points."""
    x = cloud(n)
    every, counts = np.repeat(x, repeated, axis=0), np.full(n, repeated)
    gram = MATERN.values(x, x)
    u = MATERN.values(every, x).sum(axis=1) / np.sqrt(repeated**2 * gram.sum())
    problem = KernelisedProblem.of(gram, u, np.diag(gram) - u**2, weight, counts)
    assert problem.n == n * repeated
    cost = (gram - np.outer(u, u)) / n**2 - weight * np.linalg.inv(gram)  # in units of all points
    if repeated > 1:
        cost = (gram - np.outer(u, u)) / problem.n**2 * repeated - weight * np.linalg.inv(gram) / repeated
    root = np.sqrt(counts)
    for method in (_by_factor, _by_interior_point):
        found = method(problem, 1e-9, 100)
        b = outer(problem, found.inner) / np.outer(root, root)
        np.testing.assert_allclose(np.diag(b), np.diag(gram) - u**2, rtol=1e-7)
        assert scipy.linalg.eigvalsh(b)[0] > -1e-10
        slack = scipy.linalg.eigvalsh(np.diag(found.dual) - problem.outer_cost)
        assert slack[0] > -10 * n * np.finfo(float).eps * slack[-1]  # the rounding of eigvalsh
        assert float(np.vdot(problem.outer_cost, b * np.outer(root, root))) == pytest.approx(found.objective, abs=1e-7)
        assert float(np.vdot(repeated * cost, b)) == pytest.approx(found.objective, rel=1e-6, abs=1e-7)
        assert found.dual @ problem.d - found.objective < 1e-7 * abs(found.objective)
        assert found.merit < 1e-7
        assert found.passes < 25


def test_the_steps_of_the_interior_point() -> None:
    """To 0.98 of the border of the cone; nearly dependent constraints are damped."""
    rng = np.random.default_rng(0)
    m, change = spd(5, rng), spd(5, rng)
    cone = _Cone.of(m)
    assert cone is not None
    np.testing.assert_allclose(cone.inverse(), np.linalg.inv(m), rtol=1e-9)
    np.testing.assert_allclose(np.sum(cone.divided(np.eye(5)) ** 2, axis=0), np.diag(np.linalg.inv(m)), rtol=1e-9)
    border = 1 / scipy.linalg.eigvalsh(9 * change, m)[-1]
    assert cone.length(-9 * change) == pytest.approx(0.98 * border)
    assert cone.length(change) == cone.length(-1e-9 * change) == 1
    assert _Cone.of(-m) is None
    np.testing.assert_allclose(_System.of(m).solve(np.ones(5)), np.linalg.solve(m, np.ones(5)), rtol=1e-9)
    units = np.array([1.0, 10.0])
    found = _System.of(np.outer(units, units)).solve(units)
    assert units @ found == pytest.approx(1, rel=1e-9)


def test_the_gap_holds_for_any_matrices() -> None:
    """Between a feasible B and any y, the optimum is within the gap; the least eigenvalue is a dense one."""
    x = cloud(30)
    problem = problem_of(MATERN, x, 1e-3)
    best = solve_kernelised(problem)
    cost = dense_cost(MATERN, x, 1e-3)
    for seed in range(5):
        y = best.dual + 0.1 * np.abs(best.dual).max() * np.random.default_rng(seed).standard_normal(30)
        least = least_eigenvalue(problem, y)
        dense = scipy.linalg.eigvalsh(np.diag(y) - cost)[0]
        assert least == pytest.approx(dense, abs=1e-10)
        assert best.objective <= problem.d @ y + max(0, -least) * problem.d.sum() + 1e-10


def test_strong_regularization() -> None:
    """Without the objective, lambda Tr(K^-1 B) alone: for two points by hand.

    K = [[1, c], [c, 1]], d = 1, b_12 = b: Tr(K^-1 B) = 2 (1 - c b) / (1 - c^2), least at b = 1 as c > 0.
    """
    x = np.array([[0.0], [0.3]])
    problem = problem_of(MATERN, x, 1e6, np.ones(2))
    found = solve_kernelised(problem)
    np.testing.assert_allclose(outer(problem, found.inner), np.ones((2, 2)), atol=1e-6)
    c = MATERN.values(x, x)[0, 1]
    assert found.objective == pytest.approx(-1e6 * 2 / (1 + c), rel=1e-6)


def test_one_point() -> None:
    problem = problem_of(MATERN, np.zeros((1, 2)), 0.5, np.array([3.0]))
    found = solve_kernelised(problem)
    assert outer(problem, found.inner)[0, 0] == pytest.approx(3.0, rel=1e-8)
    assert found.objective == pytest.approx(-1.5, rel=1e-8)


def test_singular_kernel_matrix() -> None:
    """A Gaussian's range: the answer lies in it, and a bound beside it says what may be missing."""
    x = cloud(200)
    gaussian = Gaussian(0.3)
    problem = problem_of(gaussian, x, 1e-3)
    assert problem.rank < 200
    found = solve_kernelised(problem)
    b = outer(problem, found.inner)
    projector = problem.vectors @ problem.vectors.T
    np.testing.assert_allclose(projector @ b @ projector, b, atol=1e-10)
    np.testing.assert_allclose(np.diag(b), problem.d, rtol=1e-5)
    assert found.gap >= found.dual @ problem.d - found.objective
    assert found.relative_gap < 1e-2


def test_learned_kernel() -> None:
    """b(x_i, x_j) = B_ij, and C^-T B C^-1 with numpy's lower Cholesky factor elsewhere, term by term."""
    x, new = cloud(30), cloud(4, 1)
    problem = problem_of(MATERN, x, 1e-3)
    found = solve_kernelised(problem)
    values, kernel = LearnedKernel.of(MATERN, x, problem, found)
    b = outer(problem, found.inner)
    np.testing.assert_allclose(kernel(x, x), b, atol=1e-7)
    np.testing.assert_allclose(values, scipy.linalg.eigvalsh(b)[::-1][: len(values)], atol=1e-9)
    lower = np.linalg.cholesky(MATERN.values(x, x))
    middle = np.linalg.solve(lower, np.linalg.solve(lower, b).T)  # of the problem in the factor's coordinates
    extension = np.linalg.solve(lower.T, np.linalg.solve(lower.T, middle).T)
    k = MATERN.values(new, x)
    np.testing.assert_allclose(kernel(new, new), k.T @ extension @ k, atol=1e-6)
    np.testing.assert_allclose(kernel.diagonal(new), np.diag(kernel(new, new)), atol=1e-14)
    assert kernel(new[0], new[1]) == pytest.approx(kernel(new, new)[0, 1], abs=1e-14)
    assert scipy.linalg.eigvalsh(kernel(new, new))[0] > -1e-12


def test_derivatives_of_the_learned_kernel() -> None:
    x, new = cloud(20), cloud(3, 1)
    problem = problem_of(MATERN, x, 1e-3)
    _, kernel = LearnedKernel.of(MATERN, x, problem, solve_kernelised(problem))
    assert kernel.order == MATERN.order
    step = np.array([1e-5, 0.0])
    difference = (kernel.values(new + step, x) - kernel.values(new - step, x)) / 2e-5
    np.testing.assert_allclose(kernel.partial(new, x, (1, 0)), difference, atol=1e-6)


def test_kernels_that_are_not_psd() -> None:
    with pytest.raises(ValueError, match=r"expected a positive semi-definite kernel, received eigenvalues from -1"):
        KernelisedProblem.of(np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros(2), np.ones(2), 1.0)


def test_parameters_of_the_learned_kernel() -> None:
    one = np.ones((1, 1))
    kernel = LearnedKernel(MATERN, np.zeros((1, 2)), one, one)
    assert repr(kernel) == f"LearnedKernel(kernel={MATERN!r})"
    assert set(kernel.get_params()) == {"kernel", "points", "whitening", "factor", "kernel__nu", "kernel__scale"}
    kernel.set_params(kernel=Gaussian(1.0), factor=2 * one)
    assert kernel(np.zeros(2), np.ones(2)) == pytest.approx(4 * np.exp(-1))
    with pytest.raises(ValueError, match="LearnedKernel has no parameter 'scale'"):
        kernel.set_params(scale=1.0)
    for wrong in ({"factor": np.ones((3, 1))}, {"whitening": np.ones(1)}, {"points": np.ones((2, 2))}):
        with pytest.raises(ValueError, match=r"takes points \(n, d\), whitening \(n, q\) and a factor"):
            kernel.set_params(**wrong)
    with pytest.raises(ValueError, match="is made of a kernel"):
        LearnedKernel(1.0, np.zeros((1, 2)), one, one)  # type: ignore[arg-type]
