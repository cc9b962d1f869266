"""Sums of modes, against the direct double sum."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.modes import nufft
from daskspectral.modes.sums import ModeSum, best_method, mode_sum, rows_at_once

EPS = 1e-9
ORDERS = [(4,), (37,), (400,), (3, 4), (30, 2), (30, 30), (1, 2, 3), (10, 6, 8), (2, 1, 3, 2), (4, 4, 4, 4)]
NUFFT = pytest.param("nufft", marks=pytest.mark.skipif(not nufft.available(), reason="finufft is not installed"))
METHODS = ["matmul", NUFFT]
CASES = [(orders, "matmul") for orders in ORDERS] + [
    pytest.param(*(orders, "nufft"), marks=NUFFT.marks) for orders in ORDERS if len(orders) <= nufft.DIMENSIONS
]


def direct(orders: tuple[int, ...], angles: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The sums as they are defined, one mode after another."""
    weights = np.ones((1, len(angles))) if weights is None else weights
    out = np.empty((len(weights), *(2 * order + 1 for order in orders)), dtype=complex)
    for index in np.ndindex(out.shape[1:]):
        j = np.array(index) - orders
        out[(slice(None), *index)] = weights @ np.exp(-1j * (angles @ j))
    return out


def rows(orders: tuple[int, ...], n: int, weights: int | None, seed: int = 0) -> tuple[np.ndarray, np.ndarray | None]:
    """Angles and weights at random, the angles a little beyond a period."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-4, 4, (n, len(orders))), None if weights is None else rng.standard_normal((weights, n))


def summed(orders: tuple[int, ...], method: str, angles: Any, weights: Any, cuts: Any = (), eps: float = EPS) -> Any:
    """The modes, from calls that end at the cuts."""
    sums = mode_sum(orders, method, eps)
    for start, stop in zip([0, *cuts], [*cuts, len(angles)], strict=True):
        sums.add(angles[start:stop], None if weights is None else weights[:, start:stop])
    return sums.result()


@pytest.mark.parametrize("weights", [None, 1, 2, 3])
@pytest.mark.parametrize(("orders", "method"), CASES)
def test_the_direct_sum(orders, weights, method):
    angles, w = rows(orders, 60, weights)
    found, wanted = summed(orders, method, angles, w), direct(orders, angles, w)
    scale = len(angles) if w is None else np.abs(w).sum(axis=1).max()
    assert found.shape == wanted.shape
    assert found.dtype == np.complex128
    tolerance = 1e-12 if method == "matmul" else 10 * EPS
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("eps", [1e-6, 1e-12])
def test_the_precision_of_the_nonuniform_transform_is_eps(method, eps):
    angles, w = rows((20, 7), 500, 3)
    found, wanted = summed((20, 7), method, angles, w, eps=eps), direct((20, 7), angles, w)
    error = np.abs(found - wanted).max() / np.abs(w).sum(axis=1).max()
    assert error < 10 * eps
    assert method == "matmul" or eps < 1e-9 or error > 1e-3 * eps  # the argument arrives


@pytest.mark.parametrize("method", METHODS)
def test_angles_far_outside_a_period(method):
    angles, _ = rows((6, 3), 50, None)
    turns = 2 * np.pi * np.random.default_rng(1).integers(-5, 6, angles.shape)
    found, wanted = summed((6, 3), method, angles + turns, None), summed((6, 3), method, angles, None)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=50 * (1e-12 if method == "matmul" else 10 * EPS))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weights", [None, 1, 2, 5])
@pytest.mark.parametrize("orders", [(9,), (5, 14), (3, 4, 2), (10, 10, 10)])
def test_opposite_modes_are_conjugate_to_the_last_bit(orders, weights, method):
    found = summed(orders, method, *rows(orders, 700, weights))
    np.testing.assert_array_equal(np.flip(found, axis=tuple(range(1, found.ndim))).conj(), found)


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_any_chunks_give_the_same_sums(method, data):
    four = [(2, 2, 1, 2)] if method == "matmul" else []
    orders = data.draw(st.sampled_from([(40,), (7, 12), (3, 2, 4), *four]))
    n = data.draw(st.integers(0, 3000))
    weights = data.draw(st.sampled_from([None, 1, 3]))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    angles, w = rows(orders, n, weights, seed=n)
    order = np.random.default_rng(n).permutation(n)
    whole = summed(orders, method, angles, w)
    scale = 1e-13 * (n if w is None else np.abs(w).sum(axis=1).max(initial=0.0))
    np.testing.assert_allclose(summed(orders, method, angles, w, cuts), whole, rtol=0, atol=scale)
    shuffled = summed(orders, method, angles[order], None if w is None else w[:, order], cuts)
    np.testing.assert_allclose(shuffled, whole, rtol=0, atol=scale)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weights", [None, 3])
@pytest.mark.parametrize("orders", [(400,), (30, 30), (6, 4, 6)])
def test_the_same_calls_give_the_same_bits_in_any_thread(orders, weights, method):
    angles, w = rows(orders, 5000, weights)
    arguments = (orders, method, angles, w, (1, 1100, 4000))
    wanted = summed(*arguments)
    with ThreadPoolExecutor(4) as pool:
        for found in [summed(*arguments), *pool.map(lambda _: summed(*arguments), range(4))]:
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("method", METHODS)
def test_calls_without_rows_add_nothing(method):
    assert not mode_sum((3, 2), method).result().any()
    sums = mode_sum((3, 2), method)
    sums.add(np.empty((0, 2)), np.empty((4, 0)))
    np.testing.assert_array_equal(sums.result(), np.zeros((4, 7, 5)))
    angles, w = rows((3, 2), 9, 4)
    sums.add(angles, w)
    sums.add(angles[:0], w[:, :0])
    np.testing.assert_array_equal(sums.result(), summed((3, 2), method, angles, w))


@pytest.mark.parametrize("method", METHODS)
def test_a_result_may_be_taken_between_calls(method):
    angles, w = rows((5, 5), 400, 2)
    sums = mode_sum((5, 5), method)
    sums.add(angles[:150], w[:, :150])
    first = sums.result()
    kept = first.copy()
    sums.add(angles[150:], w[:, 150:])
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(sums.result(), summed((5, 5), method, angles, w, (150,)))


@pytest.mark.parametrize("method", METHODS)
def test_columns_of_a_larger_array_need_no_copy_by_the_caller(method):
    angles, w = rows((5, 3), 300, 2)
    wide, tall = np.zeros((300, 4)), np.zeros((300, 2))
    wide[:, 1:3], tall[...] = angles, w.T
    np.testing.assert_array_equal(summed((5, 3), method, wide[:, 1:3], tall.T), summed((5, 3), method, angles, w))


@pytest.mark.parametrize("method", METHODS)
def test_angles_in_single_precision_are_summed_in_double(method):
    angles, _ = rows((5, 3), 300, None)
    single = angles.astype(np.float32)
    found, wanted = summed((5, 3), method, single, None), summed((5, 3), method, single.astype(float), None)
    np.testing.assert_array_equal(found, wanted)


def bad(sums: ModeSum) -> list[tuple[str, Any]]:
    angles = np.zeros((4, 2))
    return [
        (r"\(rows, 2\); these have \(4, 3\)", lambda: sums.add(np.zeros((4, 3)))),
        (r"\(number of weights, 4\); these have \(4,\)", lambda: sums.add(angles, np.ones(4))),
        (r"\(number of weights, 4\); these have \(2, 3\)", lambda: sums.add(angles, np.ones((2, 3)))),
        ("have 2 weights, in every call; this one has 1", lambda: sums.add(angles)),
        ("must be finite", lambda: sums.add(np.array([[0.0, np.nan]]), np.ones((2, 1)))),
        ("must be finite", lambda: sums.add(np.array([[0.0, np.inf]]), np.ones((2, 1)))),
    ]


@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_be_summed_is_an_error(method):
    sums = mode_sum((1, 1), method)
    sums.add(np.zeros((1, 2)), np.ones((2, 1)))
    for message, call in bad(sums):
        with pytest.raises(ValueError, match=message):
            call()
    assert sums.result()[0, 1, 1] == pytest.approx(1)
    if method == "nufft":
        with pytest.raises(ValueError, match='one to 3 variables, and there are 4: take method="matmul"'):
            mode_sum((1, 1, 1, 1), method)
    with pytest.raises(ValueError, match="'matmul' or 'nufft'; it is 'fft'"):
        mode_sum((1, 1), "fft")


def test_without_finufft_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "finufft", None)
    assert not nufft.available()
    with pytest.raises(ImportError, match=r'pip install "daskspectral\[lattice\]"'):
        mode_sum((3,), "nufft")
    mode_sum((3,), "matmul").add(np.zeros((1, 1)))


@pytest.mark.parametrize(
    ("orders", "weights", "wanted"),
    [
        ((200,), 1, "nufft"),
        ((15, 15), 1, "nufft"),
        ((15, 15), 6, "nufft"),
        ((3, 3), 3, "matmul"),
        ((5, 5, 5), 1, "nufft"),
        ((2, 2, 2), 2, "matmul"),
        ((2, 2, 2, 2), 1, "matmul"),
        ((9, 9, 9, 9), 1, "matmul"),
    ],
)
def test_the_table_of_methods(orders, weights, wanted):
    assert best_method(orders, weights, True) == wanted
    assert best_method(orders, weights, False) == "matmul"


@pytest.mark.parametrize("orders", [(3000,), (700, 1), (13, 90)])
def test_lattices_that_need_many_digits(orders):
    angles, w = rows(orders, 5, 2)
    found, wanted = summed(orders, "matmul", angles, w), direct(orders, angles, w)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11)


def test_rows_of_a_call_grow_with_the_grid_within_bounds():
    assert [rows_at_once("nufft", (m, m)) for m in (2, 15, 25, 50, 100)] == [2**15, 2**16, 2**18, 2**18, 2**18]
    assert rows_at_once("matmul", (100, 100)) == 2**15
