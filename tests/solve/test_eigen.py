"""The non-symmetric eigenproblem against scipy and known generators; symmetric ones from the top down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.basis import MonomialBasis
from daskspectral.forms import Form, along, form, gram, inner, partial
from daskspectral.moments import Measure
from daskspectral.solve import Eigen, Problem, Symmetric, whiten
from daskspectral.solve.eigen import fix_phases
from tests.solve.common import spd

CUT = 1e-10


@form
def ito(f: Any, g: Any, x: Any) -> Any:
    """<f, b.grad g + Laplacian of g>: the generator of dX = b dt + sqrt(2) dW in the plane."""
    return inner(f, along(g, x.drift)) + inner(f, partial(g, 2, 0)) + inner(f, partial(g, 0, 2))


def polynomial_generator(drift: Any, degree: int, seed: int = 0, **options: Any) -> Any:
    """Polynomials map to polynomials: the spectrum is exact whatever points measure the moments."""
    x = np.random.default_rng(seed).standard_normal((200, 2))
    basis = MonomialBasis(2, degree)
    forms: dict[str, Form] = {"form": ito, "gram": gram}
    sums = Measure(basis, basis, forms)([{"x": x, "drift": x @ np.asarray(drift).T}])
    return (
        Eigen().solve(Problem(sums["form"] / len(x), sums["gram"] / len(x), cut=CUT, **options)),
        sums["gram"] / len(x),
        x,
    )


def test_the_rotating_ornstein_uhlenbeck_process() -> None:
    found, phi, x = polynomial_generator([[-1, -2], [2, -1]], 2, count=6)
    # sums of -1 + 2i and -1 - 2i; real parts that agree to rounding leave the order to the imaginary ones
    expected = [0, -1 + 2j, -1 - 2j, -2 + 4j, -2, -2 - 4j]
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-10)
    assert found.values[0] == pytest.approx(0, abs=1e-13)
    constant, first = found.right[:, 0], found.right[:, 1]
    np.testing.assert_allclose(constant, [1, 0, 0, 0, 0, 0], rtol=0, atol=1e-10)
    # on average x + i y turns by the angle 2 t in the time t and shrinks by exp(-t)
    values = MonomialBasis(2, 2).values(x).T @ first
    turning = x[:, 0] + 1j * x[:, 1]
    ratio = values / turning
    np.testing.assert_allclose(ratio, ratio[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.left.conj().T @ phi @ found.right, np.eye(6), rtol=0, atol=1e-9)


def test_a_linear_drift_without_rotation_has_sums_of_its_rates() -> None:
    found, _, _ = polynomial_generator([[-1, 0.7], [0, -2.5]], 3, count=20)
    expected = sorted((-(i + 2.5 * j) for i in range(4) for j in range(4 - i)), reverse=True)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-8)
    assert found.values.dtype == np.complex128


@settings(max_examples=50, deadline=None)
@given(
    p=st.integers(1, 12),
    count=st.integers(1, 14),
    seed=st.integers(0, 1000),
    order=st.sampled_from(["real", "modulus"]),
)
def test_nonsingular_problems_are_scipys(p: int, count: int, seed: int, order: Any) -> None:
    rng = np.random.default_rng(seed)
    phi, matrix = spd(p, rng), rng.standard_normal((p, p))
    expected = scipy.linalg.eigvals(matrix, phi)
    found = Eigen().solve(Problem(matrix, phi, count=count, cut=CUT, ranking=order))
    k = min(count, p)
    assert found.rank == p
    assert found.values.dtype == found.left.dtype == found.right.dtype == np.complex128
    key = expected.real if order == "real" else np.abs(expected)
    ours = found.values.real if order == "real" else np.abs(found.values)
    np.testing.assert_allclose(ours, np.sort(key)[::-1][:k], rtol=0, atol=1e-8)
    assert np.abs(found.values[:, None] - expected).min(axis=1).max() < 1e-8
    left, right = found.left, found.right
    np.testing.assert_allclose(matrix @ right, phi @ right * found.values, rtol=0, atol=1e-10)
    size = np.abs(left).max()
    np.testing.assert_allclose(left.conj().T @ matrix, found.values[:, None] * (left.conj().T @ phi), atol=1e-10 * size)
    np.testing.assert_allclose(left.conj().T @ phi @ right, np.eye(k), rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(np.einsum("ik,ij,jk->k", right.conj(), phi, right), 1, rtol=0, atol=1e-12)
    assert found.residuals.shape == (k,)
    assert found.residuals.max() < 1e-11


@settings(max_examples=25, deadline=None)
@given(r=st.integers(1, 6), extra=st.integers(0, 6), seed=st.integers(0, 1000))
def test_singular_problems_are_solved_on_the_range(r: int, extra: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    phi, matrix, mix = spd(r, rng), rng.standard_normal((r, r)), rng.standard_normal((r, r + extra))
    found = Eigen().solve(Problem(mix.T @ matrix @ mix, mix.T @ phi @ mix, count=20, cut=CUT))
    assert found.rank == r == len(found.values)
    expected = scipy.linalg.eigvals(matrix, phi)
    condition = np.linalg.cond(scipy.linalg.eig(matrix, phi)[1])
    assert np.abs(found.values[:, None] - expected).min(axis=1).max() < 1e-8 * max(1, condition)


def test_conjugate_values_have_conjugate_functions_with_a_definite_phase() -> None:
    rng = np.random.default_rng(11)
    phi, matrix = spd(9, rng), rng.standard_normal((9, 9))
    found = Eigen().solve(Problem(matrix, phi, count=9, cut=CUT))
    whitened = np.linalg.lstsq(whiten(phi, CUT).matrix, found.right, rcond=None)[0]
    largest = whitened[np.abs(whitened).argmax(axis=0), np.arange(9)]
    assert (largest.real > 0).all()
    np.testing.assert_allclose(largest.imag, 0, rtol=0, atol=1e-12)
    pairs = np.flatnonzero(found.values.imag > 0)
    assert len(pairs)
    for i in pairs:
        assert found.values[i + 1] == found.values[i].conjugate()
        np.testing.assert_allclose(found.right[:, i + 1], found.right[:, i].conj(), rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.left[:, i + 1], found.left[:, i].conj(), rtol=0, atol=1e-10)
    alone = found.values.imag == 0
    assert alone.any()
    assert not found.right[:, alone].imag.any()
    again = Eigen().solve(Problem(matrix, phi, count=9, cut=CUT))
    assert np.array_equal(again.right, found.right)


def test_phases() -> None:
    columns = np.array([[3j, 1 + 1j, -1.0], [1.0, 2 - 2j, 1.0 + 1e-9]])
    norms = np.sqrt([10, 10, 2])
    # of equal magnitudes the first decides
    expected = np.array([[3, (1 + 1j) * (1 + 1j) / np.sqrt(2), 1], [-1j, 2 * np.sqrt(2), -1]]) / norms
    np.testing.assert_allclose(fix_phases(columns), expected, rtol=0, atol=1e-8)


def test_orders() -> None:
    blocks = scipy.linalg.block_diag([[0.5]], [[-0.9]], [[0.3, -0.7], [0.7, 0.3]], [[0.9]], [[0.5, 0.1], [-0.1, 0.5]])
    real = Eigen().solve(Problem(blocks, np.eye(7), count=7, cut=CUT))
    np.testing.assert_allclose(
        real.values, [0.9, 0.5 + 0.1j, 0.5, 0.5 - 0.1j, 0.3 + 0.7j, 0.3 - 0.7j, -0.9], rtol=0, atol=1e-15
    )
    modulus = Eigen().solve(Problem(blocks, np.eye(7), count=6, cut=CUT, ranking="modulus"))
    np.testing.assert_allclose(
        modulus.values, [0.9, -0.9, 0.3 + 0.7j, 0.3 - 0.7j, 0.5 + 0.1j, 0.5 - 0.1j], rtol=0, atol=1e-15
    )


def test_functions_that_the_operator_kills_have_the_eigenvalue_zero() -> None:
    rng = np.random.default_rng(5)
    root, matrix = rng.standard_normal((6, 6)), -spd(6, rng) + 0.1 * rng.standard_normal((6, 6))
    root[2] = root[0] + 1e-4 * root[2]  # almost the function 0: the cut takes their difference away
    matrix[:, 0] = 0
    found = Eigen().solve(Problem(matrix, root @ root.T, count=6, cut=1e-6))
    kernel = np.abs(found.values).argmin()
    assert abs(found.values[kernel]) < 1e-13
    direction = found.right[:, kernel] / found.right[0, kernel]
    np.testing.assert_allclose(direction, [1, 0, 0, 0, 0, 0], rtol=0, atol=1e-9)


def test_a_defective_operator_is_named() -> None:
    with pytest.raises(np.linalg.LinAlgError, match=r"defective on this basis: at the eigenvalue -1\+0j"):
        Eigen().solve(Problem(np.array([[-1.0, 1.0], [0.0, -1.0]]), np.eye(2), count=2, cut=CUT))
    repeated = Eigen().solve(Problem(-np.eye(3), np.eye(3), count=3, cut=CUT))  # repeated, and not defective
    np.testing.assert_allclose(repeated.left.conj().T @ repeated.right, np.eye(3), rtol=0, atol=1e-14)


@settings(max_examples=25, deadline=None)
@given(p=st.integers(1, 10), count=st.integers(1, 12), seed=st.integers(0, 1000))
def test_symmetric_problems_from_the_top(p: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    phi, negative = spd(p, rng), -spd(p, rng)
    expected = scipy.linalg.eigvalsh(negative, phi)[::-1][: min(count, p)]
    found = Symmetric().solve(Problem(negative, phi, count=count, cut=CUT, descending=True))
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12 * p)
    np.testing.assert_allclose(negative @ found.left, phi @ found.left * found.values, rtol=0, atol=1e-11)
    opposite = Symmetric().solve(Problem(-negative, phi, count=count, cut=CUT))
    np.testing.assert_allclose(found.values, -opposite.values, rtol=0, atol=1e-12 * p)
    assert found.residuals.max() < 1e-12 * p
    general = Eigen().solve(Problem(negative, phi, count=count, cut=CUT))
    np.testing.assert_allclose(general.values, expected, rtol=0, atol=1e-8)
