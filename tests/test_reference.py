"""Matrices of 2000 points on the sphere by independent code; and moments with a basis of their own on the right.

`galerkin_small.npz`: the points `x`, the first 50 of which are the landmarks; for each kernel the means over
the points of phi phi^T (`R`), of the ambient and the tangential Dirichlet form (`L`, `L_tangential`), and the
lowest eigenvalues of the latter (`ev_tangential`). Kernels: (1 + x.y)^3, exp(-r^2), exp(-r).
"""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import Basis, Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.kernels import Exponential, Gaussian, Kernel, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.moments import Measure, Moments
from daskspectral.operators import Cross, Laplacian
from daskspectral.solve import SpectralProblem, Symmetric
from tests.common import assert_close, reference_arrays

KERNELS: dict[str, Kernel] = {"poly3": Polynomial(3), "gauss1": Gaussian(np.sqrt(0.5)), "exp1": Exponential()}


@pytest.fixture(scope="module")
def reference() -> Mapping[str, Any]:
    return reference_arrays("galerkin_small")


def means(kernel: Kernel, x: Any, operator: Laplacian, constant: bool = False) -> tuple[Any, Any]:
    part = LandmarkBasis(kernel, x[:50])
    basis = Concatenated((ConstantBasis(3), part)) if constant else part
    sums = Measure(basis, basis, operator.forms, operator=operator)([{"x": x}])
    return sums["form"] / len(x), sums["gram"] / len(x)


@pytest.mark.parametrize("name", KERNELS)
def test_reference_matrices(name: str, reference: Mapping[str, Any]) -> None:
    x = reference["x"]
    form, gram = means(KERNELS[name], x, Laplacian())
    if name == "exp1":
        # the reference took distances by a matrix product: rounding of coincident points left 2e-11 in it
        r = np.sqrt(((x[None] - x[:50, None]) ** 2).sum(axis=2))
        assert_close(gram, np.exp(-r) @ np.exp(-r).T / len(x), 1e-13)
        np.testing.assert_allclose(gram, reference["exp1_R"], rtol=0, atol=1e-10)
        assert_close(form, reference["exp1_L_zero_at_coincident"], 1e-12)
    else:
        assert_close(gram, reference[f"{name}_R"], 1e-12)
        assert_close(form, reference[f"{name}_L"], 1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_reference_tangential_form_and_its_eigenvalues(name: str, reference: Mapping[str, Any]) -> None:
    form, gram = means(KERNELS[name], reference["x"], Laplacian(Sphere(3)))
    assert_close(form, reference[f"{name}_L_tangential"], 1e-12)
    expected = reference[f"{name}_ev_tangential"]
    found = Symmetric().solve(SpectralProblem(form, gram, count=len(expected), cut=1e-10))
    # the Gaussian's Gram loses two directions at the cut, which the scaling of each function turns a little
    np.testing.assert_allclose(found.values, expected, rtol=1e-4 if name == "gauss1" else 1e-7, atol=2e-8)
    assert found.rank == {"poly3": 16, "gauss1": 48, "exp1": 50}[name]


RNG = np.random.default_rng(0)
N = 23
ROWS = {
    "x": RNG.standard_normal((N, 3)),
    "y": RNG.standard_normal((N, 2)),
    "future": RNG.standard_normal((N, 3)),
    "v": RNG.standard_normal(N),
    "weight": RNG.uniform(0.2, 3, N),
}
LANDMARKS, OTHERS = RNG.standard_normal((4, 3)), RNG.standard_normal((5, 2))
LEFT = Concatenated((ConstantBasis(3), LandmarkBasis(Gaussian(1.1), LANDMARKS)))
RIGHT = LandmarkBasis(Exponential(0.7), OTHERS)


def moments(operator: Any = None, rows: Any = slice(None), right_basis: Basis = RIGHT, **options: Any) -> Moments:
    operator = operator or Cross()
    batch = {name: v[rows] for name, v in ROWS.items()}
    sums = Measure(LEFT, right_basis, operator.forms, operator.functionals, operator)([batch])
    weight = float(batch["weight"].sum())
    return Moments(sums, weight, len(batch["x"]), LEFT, operator, right_basis=right_basis, **options)


def test_moments_add_and_are_kept(tmp_path: Path) -> None:
    total, whole = moments(rows=slice(9)) + moments(rows=slice(9, None)), moments()
    assert total.fingerprint == whole.fingerprint
    for name in whole.arrays:
        assert_close(total.arrays[name], whole.arrays[name])
    dsp.save(whole, tmp_path / "m.zarr")
    again = dsp.load(tmp_path / "m.zarr")
    assert again.fingerprint == whole.fingerprint == pickle.loads(pickle.dumps(whole)).fingerprint
    assert again.right_basis.size == 5
    assert (again + total).count == 2 * N


def test_moments_of_other_right_functions_do_not_add() -> None:
    other = moments(right_basis=LandmarkBasis(Exponential(0.7), OTHERS + np.spacing(OTHERS)))
    with pytest.raises(ValueError, match="different bases"):
        moments() + other
    with pytest.raises(ValueError, match="different operators"):
        moments() + moments(Cross(center=True))
