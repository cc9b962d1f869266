"""Periodic columns, boxes and their products: angles, cylinders, and what is refused before any task is sent."""

from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import Landmarks, TrigonometricBasis
from daskspectral.kernels import Exponential, Gaussian, Kernel, Periodic, Polynomial
from daskspectral.manifolds import Manifold, PeriodicBox, Product, Sphere
from daskspectral.operators import Cross, Laplacian, Transfer
from tests.common import unreliable

TURN = 2 * np.pi
ANGLES = np.random.default_rng(0).uniform(0, TURN, (3000, 1))


GAUSSIAN = Gaussian(1.0)
ROUND = Landmarks(GAUSSIAN, 20, periods={0: TURN})


def make(basis: Any, operator: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(operator, basis, **{"n_components": 5, "random_state": 0} | options)


def test_angles_and_a_cylinder() -> None:
    found = make(ROUND).fit(ANGLES)
    np.testing.assert_allclose(found.eigenvalues_, [0, 1, 1, 4, 4], rtol=0.07, atol=1e-9)
    assert make(Landmarks(GAUSSIAN, 20)).fit(ANGLES).eigenvalues_[1] < 0.5  # an interval of length 2 pi: 1/4, 1, ...
    x = np.column_stack([np.random.default_rng(1).uniform(0, np.pi, 3000), ANGLES])
    cylinder = make(Landmarks(GAUSSIAN, 80, periods={-1: TURN}), n_components=7).fit(x)
    np.testing.assert_allclose(cylinder.eigenvalues_[1:], [1, 1, 1, 2, 2, 4], rtol=0.08)


def test_it_is_the_kernel_that_is_periodic_and_the_box() -> None:
    x, periodic, box = ANGLES[:1000], Periodic(GAUSSIAN, (TURN,)), Laplacian(PeriodicBox([0], [TURN]))
    named, plain = make(ROUND).fit(x), Landmarks(GAUSSIAN, 20)
    for same in (Landmarks(periodic, 20), None), (plain, box), (Landmarks(periodic, 20, periods={0: TURN}), box):
        np.testing.assert_allclose(make(*same).fit(x).eigenvalues_, named.eigenvalues_, rtol=1e-9, atol=1e-12)


SPREAD, DRIFT = np.array([[0.3, 0.12], [0.12, 0.2]]), np.array([0.4, -0.7])


def turns(n: int, seed: int) -> Any:
    """Two angles that drift and diffuse together: exp(i k.x) has the eigenvalue exp(i k.DRIFT - k.SPREAD k / 2)."""
    return np.cumsum(DRIFT + np.random.default_rng(seed).multivariate_normal([0, 0], SPREAD, n), axis=0)


def decay(*k: int) -> complex:
    return complex(np.exp(1j * DRIFT @ k - k @ SPREAD @ k / 2))


TORUS = TrigonometricBasis((TURN, TURN), 6, 3)


def within(found: Any, errors: Any, exact: Any) -> Any:
    return (errors[:, 0] - 1e-9 <= exact) & (exact <= errors[:, 1] + 1e-9), np.abs(found - exact)


def test_coupled_angles_have_the_values_of_their_diffusion() -> None:
    """All eight pairs of values, each within its interval or hardly beyond; by rows, pairs of views, and complex."""
    x, k = turns(20_000, 0), [(0, 0), (0, 1), (1, -1), (1, 0), (1, -2)]
    exact = np.abs([decay(*k[0]), *(decay(*pair) for pair in k[1:] for _ in range(2))])
    koopman = make(TORUS, Transfer(1), n_components=9).fit(x)
    inside, error = within(koopman.singular_values_, koopman.singular_value_errors_, exact)
    assert inside.all()
    assert error.max() < 0.005
    assert koopman.reliable_.all()
    pairs = make(TORUS, Cross(), right_basis=TORUS, n_components=9, folds="blocks").fit((x[:-1], x[1:]))
    np.testing.assert_allclose(pairs.singular_values_, koopman.singular_values_, rtol=2e-3)
    complex_ = make(TORUS, Transfer(1, "eigen"), n_components=9).fit(x).eigenvalues_
    for pair in k:
        assert np.abs(complex_ - decay(*pair)).min() < 0.01


def test_each_view_has_the_periods_of_its_columns() -> None:
    x = turns(2000, 1)
    views = (x[:-1], x[1:, :1])
    with pytest.raises(ValueError, match="right_basis"):
        make(TORUS, Cross(), right_basis=TORUS).fit(views)
    model = make(TORUS, Cross(), right_basis=TrigonometricBasis((TURN,), 1), folds="blocks", n_components=3)
    np.testing.assert_allclose(model.fit(views).singular_values_, np.abs([1, decay(1, 0), decay(1, 0)]), atol=0.03)


BOX = PeriodicBox([0], [2 * np.pi])


def uniform(manifold: Manifold, n: int) -> Any:
    return manifold.sample(n, np.random.default_rng(1))


@pytest.mark.filterwarnings("ignore::daskspectral.RankWarning")
@pytest.mark.parametrize(
    ("manifold", "kernel", "count"),
    [
        (PeriodicBox([-105], [-103]), Gaussian("median"), 9),
        (PeriodicBox([0, -1], [2 * np.pi, 3]), Gaussian(1.0), 9),
        (Product(BOX, Sphere(3)), Gaussian(1.2), 12),
        (BOX, Polynomial(4), 9),
    ],
)
def test_landmark_kernels_on_a_box_are_periodic(manifold: Manifold, kernel: Kernel, count: int) -> None:
    model = make(Landmarks(kernel, 120), Laplacian(manifold), n_components=count).fit(uniform(manifold, 8000))
    tolerance = {"rtol": 0.08, "atol": 0.03 * manifold.eigenvalue(1)}
    np.testing.assert_allclose(model.eigenvalues_, manifold.eigenvalues(count), **tolerance)


@unreliable
def test_rows_outside_the_box_wrap() -> None:
    box = PeriodicBox([0, -1], [2 * np.pi, 3])
    x = uniform(box, 1000)
    moved = x + np.random.default_rng(2).integers(-3, 4, x.shape) * box.lengths
    model, other = (make(Landmarks(Exponential(2.0), 30), Laplacian(box)).fit(rows) for rows in (x, moved))
    np.testing.assert_allclose(model.transform(moved), model.transform(x), atol=1e-7)
    np.testing.assert_allclose(other.eigenvalues_, model.eigenvalues_, rtol=1e-8, atol=1e-8)
