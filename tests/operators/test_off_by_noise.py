"""Rows off the manifold that was named: the measured distance, the warning, and the rows that stay an error."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.errors import ManifoldWarning, PointError
from daskspectral.kernels import Gaussian
from daskspectral.manifolds import Circle, FlatTorus, Implicit, Manifold, PeriodicBox, Product, Sphere
from daskspectral.operators import Laplacian
from daskspectral.operators.laplacian import OFF

pytestmark = pytest.mark.filterwarnings("ignore::daskspectral.errors.TrustWarning")  # of few landmarks
SPHERE = Sphere(3)
X = SPHERE.sample(6000, np.random.default_rng(0))
NOISE = 0.01 * np.random.default_rng(1).standard_normal((6000, 1))


def make(manifold: Manifold | None, **changes: Any) -> dsp.SpectralDecomposition:
    defaults: dict[str, Any] = {"kernel": Gaussian(0.5), "n_landmarks": 100, "n_components": 9, "random_state": 0}
    defaults |= {"solver": "cut", "exclude_landmarks": True, "landmarks": "uniform"}
    return dsp.SpectralDecomposition(Laplacian(manifold), **(defaults | changes))


def test_the_distance_is_measured_and_what_it_does_is_true(tmp_path: Path) -> None:
    with pytest.warns(ManifoldWarning, match=r"the rows lie 0\.01 off .*Sphere.*leave the manifold out"):
        noisy = make(SPHERE).fit(X * (1 + NOISE))
    assert noisy.eigenvalues_[1] < 0.1  # a second eigenvalue 0, as the warning says
    assert make(SPHERE).fit(X).eigenvalues_[1] > 1.8
    assert make(None).fit(X * (1 + NOISE)).eigenvalues_[1] > 1.8
    noisy.save(tmp_path / "m.zarr")
    dsp.load(tmp_path / "m.zarr")  # says nothing
    with pytest.warns(ManifoldWarning):
        noisy.update(np.concatenate([X * (1 + NOISE), X[:100]]))


def test_the_mean_square_is_a_weighted_sum() -> None:
    weights = np.random.default_rng(2).integers(0, 3, len(X)).astype(float)
    with pytest.warns(ManifoldWarning):
        model = make(SPHERE, landmarks=X[:20], n_components=3).fit(X * (1 + NOISE), sample_weight=weights)
    np.testing.assert_allclose(model.moments_.arrays[OFF], [weights @ NOISE[:, 0] ** 2], rtol=1e-9)


@pytest.mark.parametrize(("points", "far"), [(X.astype(np.float32), 1e-7), (X * (1 + 1e-4 * NOISE), 1e-6)])
def test_rounding_is_none_of_it(points: Any, far: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ManifoldWarning)
        model = make(SPHERE, landmarks=X[:20], n_components=3).fit(points)
    assert np.sqrt(model.moments_.arrays[OFF] / len(X)) == pytest.approx(far, rel=1)  # measured, and not told


def test_a_row_far_off_is_an_error() -> None:
    x = X * (1 + NOISE)
    x[1234] *= 1.5
    with pytest.raises(PointError, match=r"to within 0\.25, received row 1234 at distance 0\.[45]"):
        make(SPHERE, landmarks=X[:20], n_components=3).fit(x)


def test_manifolds_without_a_distance_and_without_normals_measure_none() -> None:
    def outward(x: Any) -> Any:
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    implicit, box = Implicit(outward, 3), PeriodicBox([0], [2 * np.pi])
    assert OFF not in make(implicit, landmarks=X[:20], n_components=3).fit(X * (1 + NOISE)).moments_.arrays
    t = np.random.default_rng(3).uniform(0, 20, (2000, 1))
    assert OFF not in make(box, kernel=Gaussian(1.0), n_landmarks=10, n_components=3).fit(t).moments_.arrays
    both = np.column_stack([X[:2000], t])
    assert Product(implicit, box).known_distance(both) is None
    model = make(Product(implicit, box), landmarks=both[:50], n_components=3).fit(both)
    assert OFF not in model.moments_.arrays
    np.testing.assert_allclose(Product(SPHERE, box).known_distance(2 * both), 1, rtol=1e-12)


@pytest.mark.parametrize("manifold", [Circle(), FlatTorus(2)])
def test_other_manifolds_warn_too(manifold: Manifold) -> None:
    x = manifold.sample(2000, np.random.default_rng(4))
    x += 1e-3 * np.random.default_rng(5).standard_normal(x.shape)
    model = make(manifold, kernel=Gaussian(1.0), landmarks=x[:30], n_components=3)
    with pytest.warns(ManifoldWarning, match="the rows lie 0.001"):
        model.fit(x)
