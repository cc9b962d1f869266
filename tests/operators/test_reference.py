"""Matrices of 2000 points on the sphere by independent code.

`galerkin_small.npz`: the points `x`, the first 50 of which are the landmarks; for each kernel the means over
the points of phi phi^T (`R`), of the ambient and the tangential Dirichlet form (`L`, `L_tangential`), and the
lowest eigenvalues of the latter (`ev_tangential`). Kernels: (1 + x.y)^3, exp(-r^2), exp(-r).
"""

from typing import Any

import numpy as np
import pytest

from daskspectral.basis import LandmarkBasis
from daskspectral.kernels import Exponential, Gaussian, Kernel, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.moments import Measure
from daskspectral.operators import Laplacian
from daskspectral.solve import GalerkinSystem, SymmetricPencil
from tests.common import assert_close, reference_arrays

KERNELS: dict[str, Kernel] = {"poly3": Polynomial(3), "gauss1": Gaussian(np.sqrt(0.5)), "exp1": Exponential()}
REFERENCE = reference_arrays("galerkin_small")


def means(kernel: Kernel, x: Any, operator: Laplacian) -> tuple[Any, Any]:
    basis = LandmarkBasis(kernel, x[:50])
    sums = Measure(basis, basis, operator.forms, operator=operator)([{"x": x}])
    return sums["form"] / len(x), sums["gram"] / len(x)


@pytest.mark.parametrize("name", KERNELS)
def test_reference_matrices(name: str) -> None:
    x = REFERENCE["x"]
    form, gram = means(KERNELS[name], x, Laplacian())
    if name == "exp1":
        # the reference took distances by a matrix product: rounding of coincident points left 2e-11 in it
        r = np.sqrt(((x[None] - x[:50, None]) ** 2).sum(axis=2))
        assert_close(gram, np.exp(-r) @ np.exp(-r).T / len(x), 1e-13)
        np.testing.assert_allclose(gram, REFERENCE["exp1_R"], rtol=0, atol=1e-10)
        assert_close(form, REFERENCE["exp1_L_zero_at_coincident"], 1e-12)
    else:
        assert_close(gram, REFERENCE[f"{name}_R"], 1e-12)
        assert_close(form, REFERENCE[f"{name}_L"], 1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_reference_tangential_form_and_its_eigenvalues(name: str) -> None:
    form, gram = means(KERNELS[name], REFERENCE["x"], Laplacian(Sphere(3)))
    assert_close(form, REFERENCE[f"{name}_L_tangential"], 1e-12)
    expected = REFERENCE[f"{name}_ev_tangential"]
    found = SymmetricPencil().solve(GalerkinSystem(form, gram, count=len(expected), cut=1e-10))
    # the Gaussian's Gram loses two directions at the cut, which the scaling of each function turns a little
    np.testing.assert_allclose(found.values, expected, rtol=1e-4 if name == "gauss1" else 1e-7, atol=2e-8)
    assert found.rank == {"poly3": 16, "gauss1": 48, "exp1": 50}[name]
