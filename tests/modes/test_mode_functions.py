"""Values and gradients of functions of a lattice, against its own dense evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.basis.evaluation import Arena, Block
from daskspectral.basis.lattice import FourierLattice
from daskspectral.forms import Atom
from daskspectral.modes import functions, nufft
from daskspectral.modes.functions import LatticeValues, evaluation_method

EPS = 1e-9
ORDERS = [(1,), (23,), (200,), (3, 4), (15, 15), (30, 2), (1, 2, 3), (5, 4, 5), (2, 1, 3, 2), (2, 2, 2, 2)]
NUFFT = pytest.param("nufft", marks=pytest.mark.skipif(not nufft.available(), reason="finufft is not installed"))
METHODS = ["matmul", NUFFT]
CASES = [(orders, "matmul") for orders in ORDERS] + [
    pytest.param(*(orders, "nufft"), marks=NUFFT.marks) for orders in ORDERS if len(orders) <= nufft.DIMENSIONS
]


def lattice(orders: tuple[int, ...]) -> FourierLattice:
    """With angles for variables."""
    periods = (2 * np.pi,) * len(orders)
    return FourierLattice(orders, periods=periods).laid(len(orders), None, periods)


def problem(orders: tuple[int, ...], k: int, n: int = 70, *, is_complex: bool = False) -> tuple[Any, Any]:
    """Angles a little beyond a period, and coefficients of k functions."""
    rng = np.random.default_rng(len(orders) + k)
    coefficients = rng.standard_normal((lattice(orders).size, k))
    if is_complex:
        coefficients = coefficients + 1j * rng.standard_normal(coefficients.shape)
    return rng.uniform(-5, 5, (n, len(orders))), coefficients


def assert_close(found: np.ndarray, wanted: np.ndarray, method: str, scale: float, eps: float = EPS) -> None:
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=0, atol=scale * (1e-12 if method == "matmul" else 10 * eps))


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize(("orders", "method"), CASES)
def test_values(orders, k, is_complex, method):
    angles, coefficients = problem(orders, k, is_complex=is_complex)
    wanted = lattice(orders).values(angles).T @ coefficients
    found = LatticeValues(orders, coefficients, method)(angles)
    assert_close(found, wanted, method, np.abs(coefficients).sum(axis=0).max())


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize(("orders", "method"), CASES)
def test_gradients(orders, k, is_complex, method):
    angles, coefficients = problem(orders, k, is_complex=is_complex)
    at = lattice(orders).at(Block({"x": angles}, np.dtype(float), Arena()), ())
    units = np.eye(len(orders), dtype=int)
    wanted = np.stack(
        [at.feature(Atom("partial", alpha=tuple(map(int, unit)))).T @ coefficients for unit in units], axis=-1
    )
    found = LatticeValues(orders, coefficients, method).gradient(angles)
    assert_close(found, wanted, method, max(orders) * np.abs(coefficients).sum(axis=0).max())


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_points_do_not_depend_on_their_neighbours(method, data):
    orders = data.draw(st.sampled_from([(20,), (6, 9), (3, 2, 4)]))
    n = data.draw(st.integers(1, 2500))
    chosen = data.draw(st.lists(st.integers(0, n - 1), max_size=6))
    angles, coefficients = problem(orders, 3, n)
    values = LatticeValues(orders, coefficients, method)
    scale = np.abs(coefficients).sum(axis=0).max()
    np.testing.assert_allclose(values(angles[chosen]), values(angles)[chosen], rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_bits_on_repeats(method):
    angles, coefficients = problem((6, 6), 4, 3000)
    values = LatticeValues((6, 6), coefficients, method)
    np.testing.assert_array_equal(values(angles), values(angles))
    np.testing.assert_array_equal(values.gradient(angles), values.gradient(angles))


@pytest.mark.parametrize("method", METHODS)
def test_angles_in_single_precision_are_taken_in_double(method):
    angles, coefficients = problem((6, 6), 4)
    single = angles.astype(np.float32)
    values = LatticeValues((6, 6), coefficients, method)
    np.testing.assert_array_equal(values(single), values(single.astype(float)))


@pytest.mark.parametrize("method", METHODS)
def test_a_call_of_several_pieces(method, monkeypatch):
    angles, coefficients = problem((6, 6), 3, 3000)
    monkeypatch.setattr(functions, "NUFFT_ROWS", 700)
    wanted = lattice((6, 6)).values(angles).T @ coefficients
    assert_close(LatticeValues((6, 6), coefficients, method)(angles), wanted, method, 500)


@pytest.mark.parametrize("method", METHODS)
def test_no_points_and_no_functions(method):
    angles, coefficients = problem((3, 2), 4)
    values = LatticeValues((3, 2), coefficients, method)
    assert values(angles[:0]).shape == (0, 4)
    assert values.gradient(angles[:0]).shape == (0, 4, 2)
    assert LatticeValues((3, 2), coefficients[:, :0], method)(angles).shape == (len(angles), 0)


@pytest.mark.skipif(not nufft.available(), reason="finufft is not installed")
@pytest.mark.parametrize("eps", [1e-6, 1e-12])
def test_the_precision_of_the_nonuniform_transform_is_eps(eps):
    angles, coefficients = problem((20, 7), 3, 400)
    wanted = lattice((20, 7)).values(angles).T @ coefficients
    found = LatticeValues((20, 7), coefficients, "nufft", eps)(angles)
    assert_close(found, wanted, "nufft", np.abs(coefficients).sum(axis=0).max(), eps)
    assert eps < 1e-9 or np.abs(found - wanted).max() > 1e-12  # the argument arrives


def test_what_cannot_be_evaluated_is_an_error():
    angles, coefficients = problem((3, 2), 4)
    with pytest.raises(ValueError, match=r"shape \(35, functions\); these have \(35,\)"):
        LatticeValues((3, 2), coefficients[:, 0])
    with pytest.raises(ValueError, match=r"shape \(15, functions\); these have \(35, 4\)"):
        LatticeValues((2, 1), coefficients)
    with pytest.raises(ValueError, match="'matmul' or 'nufft'; it is 'fft'"):
        LatticeValues((3, 2), coefficients, "fft")
    with pytest.raises(ValueError, match=r"\(rows, 2\); these have \(70, 1\)"):
        LatticeValues((3, 2), coefficients)(angles[:, :1])
    if nufft.available():
        with pytest.raises(ValueError, match="one to 3 variables, and there are 4"):
            LatticeValues((1, 1, 1, 1), np.zeros((81, 1)), "nufft")(np.zeros((1, 4)))
    with pytest.raises(ValueError, match="must be finite"):
        LatticeValues((3, 2), coefficients).gradient(np.full((2, 2), np.nan))


@pytest.mark.parametrize(
    ("orders", "k", "wanted"),
    [
        ((200,), 16, "nufft"),
        ((15, 15), 1, "nufft"),
        ((15, 15), 16, "nufft"),
        ((10, 10), 16, "matmul"),
        ((5, 5, 5), 1, "matmul"),
        ((2, 2, 2, 2), 16, "matmul"),
    ],
)
def test_the_table_of_methods(orders, k, wanted):
    assert evaluation_method(orders, k, True) == wanted
    assert evaluation_method(orders, k, False) == "matmul"
    coefficients = np.zeros((lattice(orders).size, k))
    assert LatticeValues(orders, coefficients).method == (wanted if nufft.available() else "matmul")
