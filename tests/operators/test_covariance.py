"""The covariance operator against principal components, with a kernel and without, and on rows held out."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.decomposition import PCA, KernelPCA

import daskspectral as dsp
from daskspectral.errors import TrustWarning
from daskspectral.operators import Covariance
from tests.common import assert_close


def correlated(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Rows far from the origin, with d variances from 1 to 9 along hidden axes."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return rng.standard_normal((n, d)) * np.linspace(3, 1, d) @ axes + 280


@pytest.mark.parametrize(("n", "d"), [(1000, 12), (150, 400)])
def test_without_a_kernel_it_is_principal_component_analysis(n: int, d: int) -> None:
    """With more columns than rows, too, where landmarks are the rows."""
    x = correlated(n, d)
    with pytest.warns(TrustWarning) if n < d else nullcontext():
        found = dsp.SpectralDecomposition(Covariance(), n_components=4, random_state=0).fit(x)
    wanted = PCA(4, svd_solver="full").fit(x)
    variances = wanted.explained_variance_ * (n - 1) / n
    assert_close(found.eigenvalues_, variances, 1e-10)
    scores = wanted.transform(x) / np.sqrt(variances)
    functions = found.transform(x)
    assert_close(functions * np.sign(np.sum(functions * scores, axis=0)), scores, 1e-8)


def test_with_a_kernel_it_is_kernel_pca() -> None:
    x = np.random.default_rng(0).standard_normal((200, 3))
    kernel = dsp.kernels.Gaussian(1.5)
    found = dsp.SpectralDecomposition(Covariance(), kernel, landmarks=x, n_components=5, folds=None).fit(x)
    wanted = KernelPCA(5, kernel="rbf", gamma=1 / (2 * 1.5**2)).fit(x)
    assert_close(found.eigenvalues_ * len(x), wanted.eigenvalues_, 1e-10)


def test_weights_count_rows() -> None:
    x, w = correlated(300, 3), np.tile([1, 2, 3], 100)
    found = dsp.SpectralDecomposition(Covariance(), n_components=3).fit(x, sample_weight=w).eigenvalues_
    assert_close(found, np.linalg.eigvalsh(np.cov(x.T, fweights=w, bias=True))[::-1], 1e-10)


def test_the_score_is_the_variance_explained_about_the_means_of_the_fit() -> None:
    x, new = correlated(2000, 5, 1), correlated(3000, 5, 2) @ np.diag([1, 1, 1, 1, 1.2])
    found = dsp.SpectralDecomposition(Covariance(), n_components=2, random_state=0).fit(x)
    assert_close(found.held_out_, found.eigenvalues_, 0.02)
    explained = np.mean(PCA(2).fit(x).transform(new) ** 2, axis=0).sum()
    assert found.score(new) == pytest.approx(explained, rel=1e-9)
