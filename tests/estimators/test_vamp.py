"""Cross(center=True) against VAMP written out in numpy, from the rows and not from the moments."""

import numpy as np
import pytest
import scipy.linalg

from daskspectral import SpectralDecomposition
from daskspectral.kernels import Gaussian, Linear
from daskspectral.operators import Cross


def vamp(f, g, weight):
    """Singular values, and left and right functions at the rows: f (n, p) and g (n, q) are the features.

    The features are made mean-free and orthonormal row by row, by a QR decomposition; no Gram matrix is formed.
    """
    root = np.sqrt(weight / weight.sum())[:, None]
    f, g = (root * (a - np.average(a, axis=0, weights=weight)) for a in (f, g))
    (q, _), (r, _) = (scipy.linalg.qr(a, mode="economic") for a in (f, g))
    u, values, vt = np.linalg.svd(q.T @ r, full_matrices=False)
    return values, q @ u / root, r @ vt.T / root


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((3000, 3)) + 1
    y = np.tanh(x @ rng.standard_normal((3, 4))) + 0.3 * rng.standard_normal((3000, 4)) - 2
    return x, y, rng.integers(1, 4, 3000).astype(float)


def check(estimator, pairs, f, g, weighted):
    x, y, weight = pairs
    estimator.fit((x, y), sample_weight=weight if weighted else None)
    values, left, right = vamp(f, g, weight if weighted else np.ones(len(x)))
    k = len(estimator.singular_values_)
    assert k == estimator.n_components
    np.testing.assert_allclose(estimator.singular_values_, values[:k], rtol=0, atol=1e-8)
    found, followed = estimator.transform(x), estimator.transform_right(y)  # centred like VAMP's
    signs = np.sign(np.sum(found * left[:, :k], axis=0))
    np.testing.assert_allclose(found * signs, left[:, :k], atol=1e-6)
    np.testing.assert_allclose(followed * signs, right[:, :k], atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_gaussian_features(pairs, weighted):
    x, y, _ = pairs
    at, right_at = x[::300], y[::250]
    estimator = SpectralDecomposition(
        Cross(center=True), Gaussian(1.0), landmarks=at, right_landmarks=right_at, n_components=6
    )
    f = np.exp(-((x[:, None] - at) ** 2).sum(axis=-1) / 2)
    g = np.exp(-((y[:, None] - right_at) ** 2).sum(axis=-1) / 2)
    check(estimator, pairs, f, g, weighted)


@pytest.mark.parametrize("weighted", [False, True])
def test_features_that_are_given_as_columns(pairs, weighted):
    x, y, _ = pairs
    estimator = SpectralDecomposition(
        Cross(center=True), Linear(), landmarks=np.eye(3), right_landmarks=np.eye(4), n_components=3
    )
    check(estimator, pairs, x, y, weighted)


def test_without_centring_the_means_matter(pairs):
    x, y, _ = pairs
    estimator = SpectralDecomposition(
        Cross(), Linear(), landmarks=np.eye(3), right_landmarks=np.eye(4), n_components=3
    ).fit((x, y))
    values, _, _ = vamp(x, y, np.ones(len(x)))
    assert abs(estimator.singular_values_[0] - values[0]) > 0.01
