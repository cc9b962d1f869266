"""Generators of processes whose spectra are known, from `Measure` and dense linear algebra alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from daskspectral.basis import Basis, FourierBasis, LandmarkBasis, MonomialBasis
from daskspectral.kernels import Polynomial
from daskspectral.moments import Measure
from daskspectral.operators import Generator, Operator

ROOT = math.sqrt(2)


def spectrum(operator: Operator, basis: Basis, **batch: Any) -> Any:
    """Eigenvalues of form against gram, from the largest real part down."""
    sums = Measure(basis, basis, operator.forms, operator=operator)([batch])
    if operator.solver == "symmetric":
        return scipy.linalg.eigh(sums["form"], sums["gram"], eigvals_only=True)[::-1]
    values = scipy.linalg.eigvals(np.linalg.solve(sums["gram"], sums["form"]))
    return values[np.lexsort((np.round(values.imag, 9), -np.round(values.real, 9)))]


def levels(d: int, degree: int) -> Any:
    """0, -1, -2, ... with multiplicities C(k + d - 1, k)."""
    return -np.repeat(np.arange(degree + 1.0), [math.comb(k + d - 1, k) for k in range(degree + 1)])


@pytest.mark.parametrize(("d", "kernel"), [(1, False), (2, True)])
def test_ornstein_uhlenbeck(d: int, kernel: bool) -> None:
    """The generator maps polynomials of a degree to themselves: exact at any points."""
    rng = np.random.default_rng(0)
    x, degree = rng.uniform(-1.5, 1.5, (60, d)), 4
    basis: Basis = MonomialBasis(d, degree)
    if kernel:
        basis = LandmarkBasis(Polynomial(degree), rng.uniform(-1.5, 1.5, (math.comb(d + degree, d), d)))
    sigma = np.broadcast_to(ROOT * np.eye(d), (60, d, d))
    for operator, fields in ((Generator("b", diffusion=ROOT), {"b": -x}), (Generator("b", "s"), {"b": -x, "s": sigma})):
        values = spectrum(operator, basis, x=x, **fields)
        np.testing.assert_allclose(values, levels(d, degree), rtol=0, atol=1e-6 if kernel else 1e-9)


def test_a_torus_turned_by_its_drift() -> None:
    # b constant and sigma = s on waves: L e^{i w.x} = (i b.w - s^2 |w|^2 / 2) e^{i w.x}
    rng = np.random.default_rng(4)
    x, b, frequencies = rng.uniform(0, 2 * math.pi, (80, 2)), np.array([0.4, 1.1]), np.array([[1.0, 0], [1, 2]])
    values = spectrum(Generator(diffusion=0.8), FourierBasis(frequencies), x=x, drift=np.broadcast_to(b, (80, 2)))
    expected = [-0.32 - 0.4j, -0.32 + 0.4j, -1.6 - 2.6j, -1.6 + 2.6j]
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10)
