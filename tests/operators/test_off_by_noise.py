"""Rows off the manifold that was named: the measured distance, the warning, and the rows that stay an error."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.errors import ManifoldWarning, PointError
from daskspectral.kernels import Gaussian
from daskspectral.manifolds import Implicit, Manifold, PeriodicBox, Product, Sphere
from daskspectral.operators import Laplacian
from daskspectral.operators.laplacian import OFF

pytestmark = pytest.mark.filterwarnings("ignore::daskspectral.errors.TrustWarning")  # of few landmarks
SPHERE = Sphere(3)
X = SPHERE.sample(2000, np.random.default_rng(0))
NOISE = 0.01 * np.random.default_rng(1).standard_normal((2000, 1))


def make(manifold: Manifold | None, **changes: Any) -> dsp.SpectralDecomposition:
    defaults: dict[str, Any] = {"kernel": Gaussian(0.5), "landmarks": X[:20], "n_components": 3, "solver": "cut"}
    return dsp.SpectralDecomposition(Laplacian(manifold), **(defaults | changes))


def test_the_distance_is_measured_as_a_weighted_sum() -> None:
    weights = np.random.default_rng(2).integers(0, 3, len(X)).astype(float)
    with pytest.warns(ManifoldWarning, match=r"the rows lie 0\.01 off .*Sphere.*leave the manifold out"):
        model = make(SPHERE).fit(X * (1 + NOISE), sample_weight=weights)
    np.testing.assert_allclose(model.moments_.arrays[OFF], [weights @ NOISE[:, 0] ** 2], rtol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ManifoldWarning)
        single = make(SPHERE).fit(X.astype(np.float32))
    assert np.sqrt(single.moments_.arrays[OFF] / len(X)) < 1e-6  # rounding: measured, and not told


def test_a_row_far_off_is_an_error() -> None:
    x = X * (1 + NOISE)
    x[1234] *= 1.5
    with pytest.raises(PointError, match=r"to within 0\.25, received row 1234 at distance 0\.[45]"):
        make(SPHERE).fit(x)


def test_manifolds_without_a_distance_and_without_normals_measure_none() -> None:
    def outward(x: Any) -> Any:
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    implicit, box = Implicit(outward, 3), PeriodicBox([0], [2 * np.pi])
    assert OFF not in make(implicit).fit(X * (1 + NOISE)).moments_.arrays
    t = np.random.default_rng(3).uniform(0, 20, (2000, 1))
    both = np.column_stack([X[:2000], t])
    assert Product(implicit, box).known_distance(both) is None
    np.testing.assert_allclose(Product(SPHERE, box).known_distance(2 * both), 1, rtol=1e-12)
