"""The non-symmetric eigenproblem against scipy, known generators, and definitions of its orders and phases."""

import numpy as np
import pytest
import scipy.linalg

from daskspectral.solve import GalerkinSystem, NonNormal, Penalty, whiten
from daskspectral.solve.pencil import leading_pairs
from tests.solve.common import spd, symmetric

CUT = 1e-10


@pytest.mark.parametrize(("count", "ranking"), [(4, "real"), (12, "modulus")])
def test_nonsingular_problems_are_scipys(count: int, ranking: str) -> None:
    """Conjugate values have conjugate functions, with a definite phase."""
    rng = np.random.default_rng(11)
    phi, matrix = spd(9, rng), rng.standard_normal((9, 9))
    expected = scipy.linalg.eigvals(matrix, phi)
    key = expected.real if ranking == "real" else np.abs(expected)
    found = NonNormal(ranking).solve(GalerkinSystem(matrix, phi, count=count, cut=CUT))
    k = min(count, 9)
    np.testing.assert_allclose(found.values, expected[np.lexsort([-expected.imag, -key.round(9)])][:k], atol=1e-8)
    assert found.rank == 9
    left, right = found.left, found.right
    np.testing.assert_allclose(matrix @ right, phi @ right * found.values, atol=1e-10)
    np.testing.assert_allclose(left.conj().T @ matrix, found.values[:, None] * (left.conj().T @ phi), atol=1e-9)
    np.testing.assert_allclose(left.conj().T @ phi @ right, np.eye(k), atol=1e-9)
    np.testing.assert_allclose(np.einsum("ik,ij,jk->k", right.conj(), phi, right), 1, atol=1e-12)
    assert found.residuals.shape == (k,)
    assert found.residuals.max() < 1e-11
    whitened = np.linalg.solve(whiten(phi, CUT).matrix, right)
    largest = whitened[np.abs(whitened).argmax(axis=0), np.arange(k)]
    assert (largest.real > 0).all()
    np.testing.assert_allclose(largest.imag, 0, atol=1e-12)
    pairs = np.flatnonzero(found.values.imag[:-1] > 0)
    for side in (left, right):
        np.testing.assert_allclose(side[:, pairs + 1], side[:, pairs].conj(), atol=1e-10)


def test_orders() -> None:
    blocks = scipy.linalg.block_diag([[0.5]], [[-0.9]], [[0.3, -0.7], [0.7, 0.3]], [[0.9]], [[0.5, 0.1], [-0.1, 0.5]])
    real = NonNormal().solve(GalerkinSystem(blocks, np.eye(7), count=7, cut=CUT))
    expected = [0.9, 0.5 + 0.1j, 0.5, 0.5 - 0.1j, 0.3 + 0.7j, 0.3 - 0.7j, -0.9]
    np.testing.assert_allclose(real.values, expected, atol=1e-15)
    modulus = NonNormal("modulus").solve(GalerkinSystem(blocks, np.eye(7), count=6, cut=CUT))
    expected = [0.9, -0.9, 0.3 + 0.7j, 0.3 - 0.7j, 0.5 + 0.1j, 0.5 - 0.1j]
    np.testing.assert_allclose(modulus.values, expected, atol=1e-15)
    for gap, signs in ((1e-10, [1, 0, -1]), (0.7e-9, [0, 1, -1])):  # real parts that agree to nine digits, or do not
        turning = [[0.9 - gap, -0.1], [0.1, 0.9 - gap]]
        near = NonNormal().solve(
            GalerkinSystem(scipy.linalg.block_diag([[1.0]], turning, [[0.9]]), np.eye(4), count=4, cut=CUT)
        )
        assert np.sign(near.values.imag[1:].round(6)).tolist() == signs


def test_by_a_penalty_the_problem_is_that_on_leading_functions() -> None:
    """By an energy those of the energy; without one the left and right singular functions together."""
    rng = np.random.default_rng(3)
    gram, norm, energy, form = spd(80, rng), spd(80, rng), spd(80, rng, 0.1, 50), symmetric(80, rng)
    form += 0.3 * rng.standard_normal((80, 80))
    span = scipy.linalg.eigh(energy + 1e-3 * norm, gram)[1][:, :32]
    found = NonNormal().solve(GalerkinSystem(form, gram, count=5, cut=CUT, within=Penalty(1e-3 * norm, energy=energy)))
    inside = scipy.linalg.eigvals(span.T @ form @ span, span.T @ gram @ span)
    np.testing.assert_allclose(np.sort(inside.real)[::-1][:5], found.values.real, atol=1e-9)
    found = NonNormal().solve(GalerkinSystem(form, gram, count=5, cut=CUT, within=Penalty(1e-3 * norm)))
    span = np.hstack([part.matrix for part in leading_pairs(GalerkinSystem(form, gram), Penalty(1e-3 * norm), 5, CUT)])
    inside = scipy.linalg.eigvals(span.T @ form @ span, span.T @ gram @ span)
    np.testing.assert_allclose(np.sort(inside.real)[::-1][:5], found.values.real, atol=1e-8)
    whitened = np.linalg.solve(whiten(gram, CUT).matrix, found.right)
    assert (whitened[np.abs(whitened).argmax(axis=0), np.arange(5)].real > 0).all()
    assert found.rank == 80


def test_a_defective_operator_is_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        NonNormal().solve(GalerkinSystem(np.array([[-1.0, 1.0], [0.0, -1.0]]), np.eye(2), count=2, cut=CUT))
