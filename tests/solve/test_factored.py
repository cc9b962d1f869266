"""The damped Newton method on a factor: its dual is a proof, it agrees with the interior point in few steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.kernels import Matern
from daskspectral.solve import kernelised
from daskspectral.solve.factored import ascend
from daskspectral.solve.kernelised import KernelisedProblem

Array = NDArray[Any]


@settings(max_examples=25)
@given(st.integers(0, 2**16), st.integers(12, 40), st.floats(-6, 2))
@example(2388, 14, 0.0)  # a column of the optimum is small
def test_a_proof_for_any_cost(seed: int, n: int, exponent: float) -> None:
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


@pytest.mark.parametrize("weight", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_the_interior_point_agrees(weight: float, scale: float) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (120, 2))
    gram = Matern(1.5, scale).values(x, x)
    u = gram.sum(axis=0) / np.sqrt(gram.sum())
    problem = KernelisedProblem.of(gram, u, np.diag(gram) - u**2, weight)
    assert problem.rank == 120
    one = kernelised._by_factor(problem, 1e-9, 100)
    other = kernelised._by_interior_point(problem, 1e-9, 100)
    assert one.merit < 1e-8
    assert one.objective == pytest.approx(other.objective, rel=1e-7)
    assert one.objective >= other.objective - other.gap
    phi = problem.features
    np.testing.assert_allclose(phi @ one.inner @ phi.T, phi @ other.inner @ phi.T, atol=1e-3)
    assert one.passes < 25
