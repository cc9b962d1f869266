"""Theorem 1's variance term against its formula written out, and Bernstein's inequality turned round."""

import math

import numpy as np
import pytest
import scipy.linalg

from daskspectral.solve.variance import bernstein_deviation, energy_basis, theorem_term
from tests.solve.common import skew, spd, symmetric


def test_the_form_is_diagonal_in_the_energy_basis_and_what_it_kills_is_off() -> None:
    """The quotient by the killed functions has the Schur complement for its Gram matrix."""
    rng = np.random.default_rng(0)
    for k in (0, 2):
        gram, form = spd(5 + k, rng, 0.2, 2), np.zeros((5 + k, 5 + k))
        form[k:, k:] = symmetric(5, rng)
        across = gram[:k, k:]
        quotient = gram[k:, k:] - across.T @ np.linalg.solve(gram[:k, :k], across)
        expected = scipy.linalg.eigvalsh(form[k:, k:], quotient)
        changed = form.copy()
        changed[k:, k:] += skew(form[k:, k:])
        energy = energy_basis(changed, gram, 1e-12)
        assert energy.deflated == k
        np.testing.assert_allclose(energy.values, expected, rtol=1e-9)
        assert energy.inverse == pytest.approx(1 / np.abs(expected).min())
        u = energy.matrix
        np.testing.assert_allclose(u.T @ form @ u, np.diag(np.sign(expected)), atol=1e-10)
        np.testing.assert_allclose(gram[:k] @ u, 0, atol=1e-10)


def test_a_form_that_is_not_invertible_is_refused() -> None:
    with pytest.raises(ValueError, match=r"kills every function"):
        energy_basis(np.zeros((2, 2)), np.eye(2), 1e-12)
    eps = float(np.finfo(float).eps)
    assert energy_basis(np.diag([1.0, 25 * eps]), np.eye(2), 1e-12).deflated == 0
    with pytest.raises(ValueError, match=r"not invertible .* 2 eigenvalues .* leave out functions"):
        energy_basis(np.diag([1.0, 16 * eps]), np.eye(2), 1e-12)


def test_theorem_1_as_printed_and_bernstein_turned_round() -> None:
    """The first term of (8), and the rows from which t <= 1/2, as Lemma 2 wants, and n is 3 log(2 p / delta)."""
    for p, largest, count, delta in ((3, 2.0, 1000, 0.05), (1, 0.1, 50, 0.3)):
        t = [math.sqrt(8 * p**2 * largest**2 / (3 * n) * math.log(2 * p / delta)) for n in (count, 1)]
        found, rows = theorem_term(7.0, p, largest, count, delta)
        assert found == pytest.approx(3 * 7 * t[0], rel=1e-9)
        assert rows == math.ceil(max(4 * t[1] ** 2, 3 * math.log(2 * p / delta)) * (1 - 1e-12))
        deviation = bernstein_deviation(1.5, largest, p, count, delta)
        exponent = -count * deviation**2 / 2 / (1.5 + 2 * largest * deviation / 3)
        assert (deviation > 0, 2 * p * math.exp(exponent)) == (True, pytest.approx(delta))
