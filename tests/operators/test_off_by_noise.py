"""Rows off the manifold that was named: the measured distance, and the warning."""

import warnings
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.errors import ManifoldWarning
from daskspectral.kernels import Gaussian
from daskspectral.manifolds import Implicit, Manifold, Sphere
from daskspectral.operators import Laplacian
from daskspectral.operators.laplacian import OFF

pytestmark = pytest.mark.filterwarnings("ignore::daskspectral.errors.TrustWarning")  # of few landmarks
SPHERE = Sphere(3)
X = SPHERE.sample(2000, np.random.default_rng(0))
NOISE = 0.01 * np.random.default_rng(1).standard_normal((2000, 1))


def make(manifold: Manifold) -> dsp.SpectralDecomposition:
    landmarks = dsp.basis.Landmarks(Gaussian(0.5), points=X[:20])
    return dsp.SpectralDecomposition(Laplacian(manifold), landmarks, n_components=3, solver=dsp.solvers.Cut())


def test_the_distance_is_measured_as_a_weighted_sum() -> None:
    weights = np.random.default_rng(2).integers(0, 3, len(X)).astype(float)
    with pytest.warns(ManifoldWarning, match=r"the rows lie 0\.01 off .*Sphere.*leave the manifold out"):
        model = make(SPHERE).fit(X * (1 + NOISE), sample_weight=weights)
    np.testing.assert_allclose(model.moments_.arrays[OFF], [weights @ NOISE[:, 0] ** 2], rtol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ManifoldWarning)
        single = make(SPHERE).fit(X.astype(np.float32))
    assert np.sqrt(single.moments_.arrays[OFF] / len(X)) < 1e-6  # rounding: measured, and not told


def test_manifolds_without_a_distance_measure_none() -> None:
    def outward(x: Any) -> Any:
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    assert OFF not in make(Implicit(outward, 3)).fit(X * (1 + NOISE)).moments_.arrays
