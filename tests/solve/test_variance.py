"""Theorem 1's variance term against its formula written out, and Bernstein's inequality turned round."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.solve.variance import bernstein_deviation, energy_basis, theorem_term
from tests.solve.common import spd, symmetric

CUT = 1e-12


@settings(max_examples=30)
@given(p=st.integers(1, 8), killed=st.integers(0, 3), seed=st.integers(0, 1000))
def test_the_form_is_diagonal_in_the_energy_basis_and_what_it_kills_is_off(p: int, killed: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    gram, form = spd(p + killed, rng, 0.2, 2), np.zeros((p + killed, p + killed))
    form[killed:, killed:] = symmetric(p, rng)
    energy = energy_basis(form, gram, CUT)
    assert (energy.deflated, energy.matrix.shape) == (killed, (p + killed, p))
    # the quotient by the killed functions has the Schur complement for its Gram matrix
    k, across = killed, gram[:killed, killed:]
    quotient = gram[k:, k:] - across.T @ np.linalg.solve(gram[:k, :k], across)
    expected = scipy.linalg.eigvalsh(form[k:, k:], quotient)
    np.testing.assert_allclose(energy.values, expected, rtol=1e-9)
    assert energy.inverse == pytest.approx(1 / np.abs(expected).min())
    u = energy.matrix
    np.testing.assert_allclose(u.T @ form @ u, np.diag(np.sign(expected)), atol=1e-10)
    np.testing.assert_allclose(u.T @ gram @ u, np.diag(1 / np.abs(expected)), atol=1e-9)
    np.testing.assert_allclose(gram[:k] @ u, 0, atol=1e-10)
    skew = np.triu(form, 1) - np.tril(form, -1)
    np.testing.assert_allclose(energy_basis(form + skew, gram, CUT).values, expected, rtol=1e-9)


def test_a_form_that_is_not_invertible_is_refused() -> None:
    with pytest.raises(ValueError, match=r"kills every function"):
        energy_basis(np.zeros((2, 2)), np.eye(2), CUT)
    v = np.array([1.0, 1.0])  # no function of the basis is killed, but their difference is
    with pytest.raises(ValueError, match=r"not invertible .* 2 eigenvalues .* leave out functions"):
        energy_basis(np.outer(v, v), np.eye(2), CUT)


@settings(max_examples=20)
@given(
    p=st.integers(1, 6), largest=st.floats(0.1, 10), count=st.integers(10, 10**9), delta=st.floats(1e-6, 0.9)
)  # fmt: skip
def test_theorem_1_as_printed(p: int, largest: float, count: int, delta: float) -> None:
    """The first term of (8), and the rows from which t <= 1/2, as Lemma 2 wants, and n is 3 log(2 p / delta)."""
    t = [math.sqrt(8 * p**2 * largest**2 / (3 * n) * math.log(2 * p / delta)) for n in (count, 1)]
    found, rows = theorem_term(7.0, p, largest, count, delta)
    assert found == pytest.approx(3 * 7 * t[0], rel=1e-9)
    assert rows == math.ceil(max(4 * t[1] ** 2, 3 * math.log(2 * p / delta)) * (1 - 1e-12))


@settings(max_examples=20)
@given(
    second=st.floats(1e-3, 1e3),
    peak=st.floats(1e-3, 1e3),
    rank=st.integers(1, 500),
    count=st.integers(1, 10**9),
    delta=st.floats(1e-9, 0.9),
)
def test_bernstein_is_turned_round(second: float, peak: float, rank: int, count: int, delta: float) -> None:
    t = bernstein_deviation(second, peak, rank, count, delta)
    exponent = -count * t**2 / 2 / (second + 2 * peak * t / 3)
    assert math.log(2 * rank) + exponent == pytest.approx(math.log(delta), rel=1e-9, abs=1e-9)
