"""Sums of modes, against the direct double sum, and functions of a lattice, against their closed forms."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.modes import nufft
from daskspectral.modes.functions import LatticeValues
from daskspectral.modes.sums import mode_sum
from daskspectral.modes.tensor import Factors, Split, factor_bytes
from tests.modes.common import METHODS, circles, direct, waves
from tests.stand_in import STAND_IN

EPS = 1e-9
CASES = [((37,), 1), ((30, 2), None), ((3, 4), 3), ((1, 2, 3), 2), ((5, 6, 2), None), ((400,), 1)]


def rows(orders: tuple[int, ...], n: int, weights: int | None, seed: int = 0) -> tuple[Any, Any]:
    """Angles and weights at random, the angles far beyond a period."""
    rng = np.random.default_rng(seed)
    turns = 2 * np.pi * rng.integers(-3, 4, (n, len(orders)))
    angles = rng.uniform(-4, 4, (n, len(orders))) + turns
    return angles, None if weights is None else rng.standard_normal((weights, n))


def summed(orders: tuple[int, ...], method: str, angles: Any, weights: Any, cuts: Any = (), eps: float = EPS) -> Any:
    """The modes, from calls that end at the cuts."""
    sums = mode_sum(orders, method, eps, weights=1 if weights is None else len(weights))
    for start, stop in zip([0, *cuts], [*cuts, len(angles)], strict=True):
        sums.add(angles[start:stop], None if weights is None else weights[:, start:stop])
    return sums.result()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("orders", "weights"), CASES)
def test_the_direct_sum(orders: Any, weights: Any, method: str) -> None:
    """To the last bit opposite modes are conjugate."""
    angles, w = rows(orders, 1300, weights)
    found, wanted = summed(orders, method, angles, w, (0, 50, 50, 1200)), direct(orders, angles, w)
    assert found.dtype == np.complex128
    scale = len(angles) if w is None else np.abs(w).sum(axis=1).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=scale * (1e-12 if method == "matmul" else 10 * EPS))
    np.testing.assert_array_equal(np.flip(found, axis=tuple(range(1, found.ndim))).conj(), found)
    if method == "nufft" and w is not None:
        rough = summed(orders, method, angles, w, eps=1e-6)
        assert 1e-9 * scale < np.abs(rough - wanted).max() < 1e-5 * scale  # the argument arrives


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=10)
@given(data=st.data())
def test_sums_do_not_depend_on_chunks_and_order(method: str, data: Any) -> None:
    orders = data.draw(st.sampled_from([(40,), (7, 12), (3, 2, 4)]))
    n, weights = data.draw(st.integers(0, 3000)), data.draw(st.sampled_from([None, 1, 3]))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    angles, w = rows(orders, n, weights, seed=n)
    order = np.random.default_rng(n).permutation(n)
    scale = 1e-12 * (n if w is None else np.abs(w).sum(axis=1).max(initial=0.0))
    shuffled = summed(orders, method, angles[order], None if w is None else w[:, order], cuts)
    np.testing.assert_allclose(shuffled, summed(orders, method, angles, w), rtol=0, atol=scale)


@pytest.mark.parametrize("method", METHODS)
def test_results_are_the_same_bits_in_any_thread_and_between_calls(method: str) -> None:
    """Of rows in any layout, and of angles of single precision."""
    angles, w = rows((6, 4, 6), 3000, 3)
    angles = angles.astype(np.float32).astype(float)
    wanted, sums = summed((6, 4, 6), method, angles, w, (0, 1100)), mode_sum((6, 4, 6), method, weights=3)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: summed((6, 4, 6), method, angles, w, (0, 1100)), range(4)):
            np.testing.assert_array_equal(found, wanted)
    single, turned = np.asfortranarray(angles.astype(np.float32)), np.asfortranarray(w)
    sums.add(single[:0], turned[:, :0])
    np.testing.assert_array_equal(sums.result(), np.zeros((3, 13, 9, 13)))
    sums.add(single[:1100], turned[:, :1100])
    first = sums.result()
    kept = first.copy()
    sums.add(single[1100:], turned[:, 1100:])
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(sums.result(), wanted)


def test_bad_rows_change_no_sums() -> None:
    sums = mode_sum((1, 1), "matmul", weights=2)
    sums.add(np.zeros((1, 2)), np.ones((2, 1)))
    with pytest.raises(ValueError, match="angles"):
        sums.add(np.array([[0.0, np.inf]]), np.ones((2, 1)))
    assert sums.result()[0, 1, 1] == pytest.approx(1)


@pytest.mark.skipif(not nufft.available(), reason="finufft")
@pytest.mark.parametrize("sizes", [(0.0, 1e-30, 1.0), (1e-12, 1.0, 1e12), (1e12, 0.0, 1e-12), (0.0, 0.0, 0.0)])
def test_a_weight_that_grows_does_not_hide_others(sizes: tuple[float, ...]) -> None:
    """One weight is 1, and the other of another size in each call."""
    rng, found = np.random.default_rng(0), mode_sum((4,), "nufft", weights=3)
    angles = [rng.uniform(0, 2 * np.pi, (50, 1)) for _ in sizes]
    weights = [np.stack([np.ones(50), size * rng.uniform(1, 2, 50), np.ones(50)]) for size in sizes]
    for t, w in zip(angles, weights, strict=True):
        found.add(t, w)
    exponentials = np.exp(-1j * np.concatenate(angles) * np.arange(-4, 5))
    for one, wanted in zip(found.result(), np.hstack(weights) @ exponentials, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=0, atol=1e-7 * max(np.abs(wanted).max(), 1e-300))


# values and gradients of functions, against their closed forms


ORDERS = [((200,), 2), ((3, 4), 5), ((1, 2, 3), 4)]


def problem(orders: tuple[int, ...], k: int, n: int = 70, *, is_complex: bool = False) -> tuple[Any, Any]:
    """Angles a little beyond a period, and coefficients of k functions."""
    rng = np.random.default_rng(len(orders) + k)
    coefficients = rng.standard_normal((circles(orders).size, k))
    if is_complex:
        coefficients = coefficients + 1j * rng.standard_normal(coefficients.shape)
    return rng.uniform(-5, 5, (n, len(orders))), coefficients


@pytest.mark.parametrize(("orders", "k"), ORDERS)
def test_values_and_gradients(orders: Any, k: int) -> None:
    """Of real functions and complex ones, on the host and on an accelerator."""
    lattice, units = circles(orders), np.eye(len(orders), dtype=int)
    for is_complex in (False, True):
        angles, coefficients = problem(orders, k, is_complex=is_complex)
        scale = np.abs(coefficients).sum(axis=0).max() * 1e-12
        wanted = np.stack([waves(lattice, angles, tuple(unit)).T @ coefficients for unit in units], axis=-1)
        for values in (LatticeValues(orders, coefficients), LatticeValues(orders, coefficients, STAND_IN)):
            for found, right, size in (
                (values(angles), waves(lattice, angles).T @ coefficients, scale),
                (values.gradient(angles), wanted, max(orders) * scale),
            ):
                assert found.dtype == right.dtype
                np.testing.assert_allclose(found, right, rtol=0, atol=size)


def test_points_do_not_depend_on_their_neighbors() -> None:
    angles, coefficients = problem((6, 9), 3, 2500)
    angles = angles.astype(np.float32).astype(float)
    values = LatticeValues((6, 9), coefficients)
    whole, some = values(angles), [0, 7, 1023, 1024, 2499, 7]
    np.testing.assert_allclose(values(angles[some]), whole[some], rtol=0, atol=1e-11)
    np.testing.assert_array_equal(values(angles.astype(np.float32)), whole)  # the same bits on repeats
    assert values(angles[:0]).shape == (0, 3)
    assert values.gradient(angles[:0]).shape == (0, 3, 2)
    assert LatticeValues((6, 9), coefficients[:, :0])(angles).shape == (len(angles), 0)


def test_room_for_factors_is_as_it_was_planned() -> None:
    for orders, cut, copies in (((9,), 1, 1), ((2, 7), 1, 3), ((3, 2, 4), 2, 2), ((3, 2, 4), 1, 1)):
        split = Split(orders, cut)
        room = vars(Factors(split, 50, copies))
        arrays = [room["_left"], room["_right"], *room["_axes"], room["_wave"], room["_powers"], room["_ones"]]
        assert sum(a.nbytes for a in [*arrays, room["_products"]]) == factor_bytes(split, 50, copies)
