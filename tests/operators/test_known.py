"""Operators whose spectra are known, from `Measure` and dense linear algebra alone: covariances and generators."""

import math
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from sklearn.decomposition import PCA, KernelPCA

import daskspectral as dsp
from daskspectral.basis import Basis, LandmarkBasis, MonomialBasis, RandomFourierFeatures
from daskspectral.errors import ReliabilityWarning
from daskspectral.kernels import Polynomial
from daskspectral.moments import Measure
from daskspectral.operators import Covariance, Generator, Operator
from tests.common import assert_close


def correlated(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Rows far from the origin, with d variances from 1 to 9 along hidden axes."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return rng.standard_normal((n, d)) * np.linspace(3, 1, d) @ axes + 280


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("n", "d"), [(1000, 12), (150, 400)])
def test_without_a_kernel_it_is_principal_component_analysis(n: int, d: int) -> None:
    """With more columns than rows, too, where functions are directions of the rows."""
    x = correlated(n, d)
    with pytest.warns(ReliabilityWarning) if n < d else nullcontext():
        found = dsp.SpectralDecomposition(Covariance(), n_components=4, random_state=0).fit(x)
    wanted = PCA(4, svd_solver="full").fit(x)
    variances = wanted.explained_variance_ * (n - 1) / n
    assert_close(found.eigenvalues_, variances, 1e-10)
    scores = wanted.transform(x) / np.sqrt(variances)
    functions = found.transform(x)
    assert_close(functions * np.sign(np.sum(functions * scores, axis=0)), scores, 1e-8)


def test_with_a_kernel_it_is_kernel_pca() -> None:
    x = np.random.default_rng(0).standard_normal((200, 3))
    landmarks = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.5), points=x)
    found = dsp.SpectralDecomposition(Covariance(), landmarks, n_components=5, folds=None).fit(x)
    wanted = KernelPCA(5, kernel="rbf", gamma=1 / (2 * 1.5**2)).fit(x)
    assert_close(found.eigenvalues_ * len(x), wanted.eigenvalues_, 1e-10)


def test_the_score_is_the_variance_explained_about_the_means_of_the_fit() -> None:
    x, new = correlated(2000, 5, 1), correlated(3000, 5, 2) @ np.diag([1, 1, 1, 1, 1.2])
    found = dsp.SpectralDecomposition(Covariance(), n_components=2, random_state=0).fit(x)
    assert_close(found.validation_values_, found.eigenvalues_, 0.02)
    explained = np.mean(PCA(2).fit(x).transform(new) ** 2, axis=0).sum()
    assert found.score(new) == pytest.approx(explained, rel=1e-9)


ROOT = math.sqrt(2)


def spectrum(operator: Operator, basis: Basis, **batch: Any) -> Any:
    """Eigenvalues of form against gram, from the largest real part down."""
    sums = Measure(basis, basis, operator.forms, operator=operator)([batch])
    if operator.solver == "symmetric":
        return scipy.linalg.eigh(sums["form"], sums["gram"], eigvals_only=True)[::-1]
    values = scipy.linalg.eigvals(np.linalg.solve(sums["gram"], sums["form"]))
    return values[np.lexsort((np.round(values.imag, 9), -np.round(values.real, 9)))]


def levels(d: int, degree: int) -> Any:
    """0, -1, -2, ... with multiplicities C(k + d - 1, k)."""
    return -np.repeat(np.arange(degree + 1.0), [math.comb(k + d - 1, k) for k in range(degree + 1)])


@pytest.mark.parametrize(("d", "kernel"), [(1, False), (2, True)])
def test_ornstein_uhlenbeck(d: int, kernel: bool) -> None:
    """The generator maps polynomials of a degree to themselves: exact at any points."""
    rng = np.random.default_rng(0)
    x, degree = rng.uniform(-1.5, 1.5, (60, d)), 4
    basis: Basis = MonomialBasis(d, degree)
    if kernel:
        basis = LandmarkBasis(Polynomial(degree), rng.uniform(-1.5, 1.5, (math.comb(d + degree, d), d)))
    sigma = np.broadcast_to(ROOT * np.eye(d), (60, d, d))
    for operator, fields in ((Generator("b", diffusion=ROOT), {"b": -x}), (Generator("b", "s"), {"b": -x, "s": sigma})):
        values = spectrum(operator, basis, x=x, **fields)
        np.testing.assert_allclose(values, levels(d, degree), rtol=0, atol=1e-6 if kernel else 1e-9)


def test_a_torus_turned_by_its_drift() -> None:
    # b constant and sigma = s on waves: L e^{i w.x} = (i b.w - s^2 |w|^2 / 2) e^{i w.x}
    rng = np.random.default_rng(4)
    x, b, frequencies = rng.uniform(0, 2 * math.pi, (80, 2)), np.array([0.4, 1.1]), np.array([[1.0, 0], [1, 2]])
    values = spectrum(
        Generator(diffusion=0.8), RandomFourierFeatures(frequencies), x=x, drift=np.broadcast_to(b, (80, 2))
    )
    expected = [-0.32 - 0.4j, -0.32 + 0.4j, -1.6 - 2.6j, -1.6 + 2.6j]
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10)
