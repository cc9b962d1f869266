"""Periodic columns, boxes and their products: angles, cylinders, and what is refused before any task is sent."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.kernels import Exponential, Gaussian, Kernel, Matern, Periodic, Polynomial
from daskspectral.manifolds import Manifold, PeriodicBox, Product, Sphere
from daskspectral.operators import Laplacian, Transfer

TURN = 2 * np.pi
ANGLES = np.random.default_rng(0).uniform(0, TURN, (5000, 1))


GAUSSIAN = Gaussian(1.0)
ROUND = Landmarks(GAUSSIAN, 20, periods={0: TURN})


def make(basis: Any, operator: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(operator, basis, **{"n_components": 5, "random_state": 0} | options)


def test_angles_and_a_cylinder() -> None:
    found = make(ROUND).fit(ANGLES)
    np.testing.assert_allclose(found.eigenvalues_, [0, 1, 1, 4, 4], rtol=0.05, atol=1e-9)
    assert make(Landmarks(GAUSSIAN, 20)).fit(ANGLES).eigenvalues_[1] < 0.5  # an interval of length 2 pi: 1/4, 1, ...
    x = np.column_stack([np.random.default_rng(1).uniform(0, np.pi, 5000), ANGLES])
    cylinder = make(Landmarks(GAUSSIAN, 120, periods={-1: TURN}), n_components=7).fit(x)
    np.testing.assert_allclose(cylinder.eigenvalues_[1:], [1, 1, 1, 2, 2, 4], rtol=0.08)


def test_it_is_the_kernel_that_is_periodic_and_the_box() -> None:
    x, periodic, box = ANGLES[:1000], Periodic(GAUSSIAN, (TURN,)), Laplacian(PeriodicBox([0], [TURN]))
    named, plain = make(ROUND).fit(x), Landmarks(GAUSSIAN, 20)
    for same in (Landmarks(periodic, 20), None), (plain, box), (Landmarks(periodic, 20, periods={0: TURN}), box):
        np.testing.assert_allclose(make(*same).fit(x).eigenvalues_, named.eigenvalues_, rtol=1e-9, atol=1e-12)


def test_right_functions_and_transfer() -> None:
    rng = np.random.default_rng(3)
    steps = np.cumsum(0.3 * rng.standard_normal((5000, 1)), axis=0)  # turns that are never taken back
    right = Landmarks(Matern(1.5, 1.0), 20, periods={0: TURN})
    koopman = make(ROUND, Transfer(1), n_components=3, right_basis=right).fit(steps)
    np.testing.assert_allclose(koopman.singular_values_, [1, np.exp(-0.045), np.exp(-0.045)], rtol=0.02)
    assert koopman.right_basis_.parts[-1].kernel == Periodic(Matern(1.5, 1.0), (TURN,))


def test_a_regression_on_angles(tmp_path: Path) -> None:
    x = ANGLES[:500]
    basis = Landmarks(GAUSSIAN, 30, periods={np.int64(0): TURN})
    model = dsp.HermiteRegressor(basis, alpha=1e-9, random_state=0)
    model.fit(x, np.sin(x[:, 0]), gradients=np.cos(x)).save(tmp_path / "m.zarr")
    again, grid = dsp.load(tmp_path / "m.zarr"), np.linspace(-9, 9, 50)[:, None]
    np.testing.assert_allclose(again.predict(grid), np.sin(grid[:, 0]), atol=1e-4)
    np.testing.assert_allclose(again.predict_gradient(grid), np.cos(grid), atol=1e-3)
    assert again.get_params()["basis__periods"] == {0: TURN} == clone(model).basis.periods


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(
    ("periods", "operator", "standardize", "message"),
    [
        ({0: 0.0}, None, False, r"a period is a positive number .* of column 0 it is 0.0"),
        ({3: 1.0}, None, False, "names the column 3, and X has 2 columns, 0 to 1"),
        ({0: TURN}, None, True, "standardize=True would change the units of X, and"),
        ({0: TURN}, Laplacian(PeriodicBox([0, 0], [1, 1])), False, r"asks for \(6.28.*; give them"),
    ],
    ids=str,
)
def test_periods_that_cannot_work(periods: Any, operator: Any, standardize: bool, message: str) -> None:
    x = dsp.Rows(np.column_stack([ANGLES, ANGLES]), standardize=standardize)
    with pytest.raises((ValueError, TypeError), match=message):
        make(Landmarks(GAUSSIAN, 20, periods=periods), operator).fit(x)


BOX = PeriodicBox([0], [2 * np.pi])
UNIT = PeriodicBox([0], [1])


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


def test_rows_outside_the_box_wrap() -> None:
    box = PeriodicBox([0, -1], [2 * np.pi, 3])
    x = uniform(box, 1000)
    moved = x + np.random.default_rng(2).integers(-3, 4, x.shape) * box.lengths
    model, other = (make(Landmarks(Exponential(2.0), 30), Laplacian(box)).fit(rows) for rows in (x, moved))
    np.testing.assert_allclose(model.transform(moved), model.transform(x), atol=1e-7)
    np.testing.assert_allclose(other.eigenvalues_, model.eigenvalues_, rtol=1e-8, atol=1e-8)


def test_the_ends_of_a_box_meet_for_the_median_and_for_landmarks() -> None:
    x = np.concatenate([uniform(UNIT, 300) % 0.01, 1 - uniform(UNIT, 300) % 0.01])  # one cluster, about 0
    model = make(Landmarks(Gaussian("median"), 5, method="farthest"), Laplacian(UNIT), n_components=2).fit(x)
    scale = model.kernel_.get_params()["kernel__scale"]
    assert scale == pytest.approx(np.median(np.abs((x - x.T + 0.5) % 1 - 0.5)[np.triu_indices(600, 1)]), rel=0.01)
    far = uniform(UNIT, 20) % 0.01 + 0.3
    points = model.set_params(basis__count=2).fit(np.concatenate([x, far])).basis_.parts[1].landmarks
    assert np.sum((points > 0.29) & (points < 0.33)) == 1  # and not both ends
