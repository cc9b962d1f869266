"""The symmetric eigenproblem by hand, from both ends, with a well far below zero; and largest variance for the norm."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import daskspectral as dsp
from daskspectral.basis import FourierBasis, Landmarks
from daskspectral.solve import GalerkinSystem, NormConstrained, SymmetricPencil, norm_root, whiten
from tests.common import unreliable
from tests.solve.common import gaussian, positive, skew, spd, symmetric


@pytest.mark.parametrize(("count", "descending", "ridge"), [(4, False, 0.0), (14, True, 0.1), (1, True, 0.0)])
def test_nonsingular_problems_are_scipys(count: int, descending: bool, ridge: float) -> None:
    rng = np.random.default_rng(count)
    phi, form = spd(7, rng), symmetric(7, rng)
    expected, vectors = scipy.linalg.eigh(form + ridge * np.trace(form) / 7 * np.eye(7), phi)
    step, k = -1 if descending else 1, min(count, 7)
    for sums in (form, form + skew(form)):  # as rounding makes them, and more: the symmetric part counts
        found = SymmetricPencil(descending).solve(GalerkinSystem(sums, phi, count=count, cut=1e-10, ridge=ridge))
        np.testing.assert_allclose(found.values, expected[::step][:k], atol=1e-10)
        np.testing.assert_allclose(np.abs(found.left), np.abs(vectors[:, ::step][:, :k]), atol=1e-8)
    assert positive(np.linalg.solve(whiten(phi, 1e-10).matrix, found.left))
    assert found.residuals.shape == (k,)
    assert found.residuals.max() < 1e-11
    assert found.right is found.left


X = np.random.default_rng(0).random((600, 2))


@unreliable
@pytest.mark.parametrize("basis", [Landmarks(dsp.kernels.Gaussian(0.4), 30), FourierBasis(5)])
def test_a_deep_potential_moves_every_value(basis: Any) -> None:
    deep = dsp.operators.Schroedinger("V")
    model = dsp.SpectralDecomposition(deep, basis, n_components=4, folds=None, random_state=0)
    values = [model.fit(dsp.Rows(X, fields={"V": np.full(len(X), v)})).eigenvalues_ for v in (0.0, -500.0)]
    np.testing.assert_allclose(values[1] + 500, values[0], rtol=0.05, atol=0.05)


def test_kernel_components_are_those_of_the_centered_kernel_matrix() -> None:
    """With every row a landmark and the constant among the functions: eigenvalues of H K H / n, functions of mean 0."""
    x = np.random.default_rng(0).standard_normal((14, 2))
    k = gaussian(x, x, 0.8)
    features = np.column_stack([np.ones(14), k])
    norm = scipy.linalg.block_diag(0.0, k)
    moments = features.T @ features / 14
    found = NormConstrained().solve(GalerkinSystem(moments, norm, count=5, cut=1e-10))
    centering = np.eye(14) - 1 / 14
    values, vectors = np.linalg.eigh(centering @ k @ centering / 14)
    np.testing.assert_allclose(found.values, values[::-1][:5], rtol=1e-9)
    functions = features @ found.left
    np.testing.assert_allclose(functions.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(np.abs(functions), np.sqrt(14) * np.abs(vectors[:, ::-1][:, :5]), atol=1e-7)
    np.testing.assert_allclose(found.left.T @ norm @ found.left, np.diag(1 / found.values), atol=1e-6)
    assert positive(found.left[1:] * np.sqrt(found.values))
    assert found.rank == 13
    assert found.residuals.max() < 1e-12
    assert found.right is found.left
    assert found.status.startswith("5 of 5 requested values; rank 13 of 15")


def test_of_a_part_the_leading_values_alone_are_found_however_many_are_equal() -> None:
    """Of a circulant matrix all come in pairs; a diagonal norm scales."""
    p = 401
    form = scipy.linalg.circulant(np.fft.ifft(1 / (0.01 + np.abs(np.fft.fftfreq(p)))).real)
    norm = np.diag(np.linspace(1, 2, p))
    scale = np.sqrt(np.diag(norm))
    for form_, norm_ in ((form, np.eye(p)), (scale[:, None] * form * scale, norm), (np.eye(p), np.eye(p))):
        whole = NormConstrained().solve(GalerkinSystem(form_, norm_, count=10, cut=1e-10))
        part = NormConstrained().solve(
            GalerkinSystem(form_, norm_, count=10, cut=1e-10, part=True, root=norm_root(norm_))
        )
        np.testing.assert_allclose(part.values, whole.values, rtol=1e-12)
        np.testing.assert_allclose(part.left.T @ norm_ @ part.left, np.diag(1 / part.values), atol=1e-12)
        np.testing.assert_allclose(form_ @ part.left, norm_ @ part.left * part.values, atol=1e-10)
        assert (part.rank, whole.rank) == (10, np.linalg.matrix_rank(form_))
    np.testing.assert_allclose(whole.values, 1)
