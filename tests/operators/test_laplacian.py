"""Sums of the Laplacian besides its form: the sampling density, and distances from the given manifold."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.errors import DensityWarning, ManifoldWarning
from daskspectral.kernels import Gaussian, Matern
from daskspectral.manifolds import Circle, Implicit, Manifold, Sphere
from daskspectral.operators import Laplacian
from daskspectral.operators.density import Density, estimate_density
from daskspectral.operators.laplacian import OFF
from daskspectral.registry import decode, encode
from tests.common import assert_close, unreliable
from tests.manifolds.test_manifolds import radial

pytestmark = unreliable

RATE = np.log(20)  # densities that rise twentyfold over a unit


def steep(n: int, seed: int) -> Any:
    """Points of the unit square, twenty times as dense on one side as on the other."""
    rng = np.random.default_rng(seed)
    return np.column_stack([np.log1p(rng.random(n) * np.expm1(RATE)) / RATE, rng.random(n)])


def angles(n: int, seed: int) -> Any:
    """Angles with the density proportional to 1 + .8 cos."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 2 * np.pi, 3 * n)
    return t[rng.random(3 * n) < (1 + 0.8 * np.cos(t)) / 1.8][:n]


TWENTY = Landmarks(Matern(1.5, 0.5), 20, drop_landmark_rows=False)


def make(operator: Laplacian, landmarks: Landmarks = TWENTY, n_components: int = 3) -> dsp.SpectralDecomposition:
    solver = dsp.solvers.Truncated()
    return dsp.SpectralDecomposition(operator, landmarks, n_components=n_components, solver=solver, random_state=0)


def test_a_circle_by_its_coordinates_and_by_its_angle() -> None:
    t, landmarks = angles(5000, 3), Landmarks(Gaussian(0.7), 30, drop_landmark_rows=False)
    x = np.column_stack([np.cos(t), np.sin(t)])
    tangential = make(Laplacian(Circle(), density=1.0), landmarks, 5).fit(x)
    np.testing.assert_allclose(tangential.eigenvalues_[1:], [1, 1, 4, 4], rtol=0.08)
    angular = make(Laplacian(density=1.0), replace(landmarks, periods={0: 2 * np.pi}), 5).fit(t[:, None])
    np.testing.assert_allclose(angular.eigenvalues_[1:], [1, 1, 4, 4], rtol=0.08)
    assert angular.density_.periods == (2 * np.pi,)
    ratio = angular.density_(np.array([[0.0], [np.pi / 2], [np.pi]]))
    np.testing.assert_allclose(ratio / ratio[1], [1.8, 1, 0.2], rtol=0.25)


def test_all_sums_are_those_of_rows_with_these_weights() -> None:
    t = angles(3000, 7)
    x, w = np.column_stack([np.cos(t), np.sin(t)]), np.random.default_rng(8).uniform(0, 2, 3000)
    model = make(Laplacian(Circle(), density=0.7)).fit(x, sample_weight=w)
    plain = make(Laplacian(Circle()), replace(TWENTY, points=model.basis_.parts[-1].landmarks))
    plain.fit(x, sample_weight=w * model.density_(x) ** -0.7)
    for name in ("form", "gram", "first"):
        assert_close(model.moments_.arrays[name], plain.moments_.arrays[name], 1e-12, what=name)
    assert model.moments_.weight == pytest.approx(w.sum())
    assert model.density_.counts.sum() == pytest.approx(w.sum())  # rows count by their weights in the density too
    np.testing.assert_allclose(np.average(model.density_.weights(x), weights=w), 1, rtol=1e-12)


def test_the_density_is_a_ratio_of_two_kernel_sums() -> None:
    centers, counts, heights = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 4.0]), np.array([2.0, 1.0, 5.0])
    density = Density(0.5, centers, counts, heights, 0.7)
    for point in (-1.0, 0.2, 1.9, 3.0):
        k = np.exp(-((point - centers[:, 0]) ** 2) / (2 * 0.7**2))
        wanted = k @ counts / (k @ (counts / heights))
        np.testing.assert_allclose(density(np.array([[point]])), wanted, rtol=1e-13)
        np.testing.assert_allclose(density.weights(np.array([[point]])), wanted**-0.5, rtol=1e-13)
    np.testing.assert_allclose(density(np.array([[1e6], [-1e6]])), [5.0, 2.0])  # neither sum underflows
    assert replace(density, floor=3.0)(np.zeros((1, 1)))[0] == 3.0
    turned = Density(1.0, np.array([[0.5, 0], [-0.5, 0]]), counts[:2], heights[:2], 0.7, periods=(np.pi,))
    x = np.array([[0.4], [0.4 + np.pi]])  # on a circle of radius 1 / 2
    near, far = (np.exp(-(0.5 - c * np.cos(0.8) / 2) / (2 * 0.7**2)) for c in (1, -1))
    np.testing.assert_allclose(turned(x), (near + 2 * far) / (near / 2 + 2 * far), rtol=1e-12)


def test_it_is_clipped_at_its_quantile_with_a_warning() -> None:
    x = steep(4000, 13)
    density = make(Laplacian(density=1.0)).fit(x).density_
    assert density.clipped == pytest.approx(0.01, abs=0.003)
    assert estimate_density(x, 1.0, np.random.default_rng(0), clip=0.0).clipped == 0
    outliers = np.concatenate([x, np.random.default_rng(15).uniform(-40, 40, (20, 2))])
    with pytest.warns(DensityWarning):
        make(Laplacian(density=1.0), replace(TWENTY, points=x[:20])).fit(outliers)


def test_the_estimate_belongs_to_the_moments() -> None:
    x = steep(4000, 17)
    model = make(Laplacian(density=1.0)).fit(x[:3000])
    assert decode(encode(model.density_), Density) == model.density_
    with pytest.raises(ValueError, match="Laplacian"):
        clone(model).set_params(operator=Laplacian(density=0.5)).fit_moments(model.moments_)
    given = replace(TWENTY, points=model.basis_.parts[-1].landmarks)
    rest = make(model.moments_.operator, given).fit(x[3000:])
    updated = clone(model).fit_moments(model.moments_).update(x)
    assert updated.density_ == rest.density_ == model.density_
    assert_close(updated.moments_.arrays, (model.moments_ + rest.moments_).arrays, 1e-12)
    anew = make(Laplacian(density=1.0), given).fit(x[3000:])
    with pytest.raises(ValueError, match="different operators"):
        model.moments_ + anew.moments_


SPHERE = Sphere(3)
X = SPHERE.sample(2000, np.random.default_rng(0))
NOISE = 0.01 * np.random.default_rng(1).standard_normal((2000, 1))


def on(manifold: Manifold) -> dsp.SpectralDecomposition:
    landmarks = Landmarks(Gaussian(0.5), points=X[:20])
    return dsp.SpectralDecomposition(Laplacian(manifold), landmarks, n_components=3, solver=dsp.solvers.Truncated())


def test_the_distance_is_measured_as_a_weighted_sum() -> None:
    weights = np.random.default_rng(2).integers(0, 3, len(X)).astype(float)
    with pytest.warns(ManifoldWarning, match="Sphere"):
        model = on(SPHERE).fit(X * (1 + NOISE), sample_weight=weights)
    np.testing.assert_allclose(model.moments_.arrays[OFF], [weights @ NOISE[:, 0] ** 2], rtol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ManifoldWarning)
        single = on(SPHERE).fit(X.astype(np.float32))
    assert np.sqrt(single.moments_.arrays[OFF] / len(X)) < 1e-6  # rounding: measured, and not told


def test_manifolds_without_a_distance_have_no_off_manifold_distance() -> None:
    assert OFF not in on(Implicit(radial, 3)).fit(X * (1 + NOISE)).moments_.arrays
