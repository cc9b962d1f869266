"""Sums of modes, against the direct double sum."""

import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.modes import functions, nufft, sums
from daskspectral.modes.sums import best_method, mode_sum, rows_at_once
from tests.modes.common import METHODS, direct

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
    sums = mode_sum(orders, method, eps)
    for start, stop in zip([0, *cuts], [*cuts, len(angles)], strict=True):
        sums.add(angles[start:stop], None if weights is None else weights[:, start:stop])
    return sums.result()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("orders", "weights"), [*CASES, ((2, 1, 3, 2), 2)])
def test_the_direct_sum(orders: Any, weights: Any, method: str) -> None:
    """To the last bit opposite modes are conjugate."""
    if len(orders) > nufft.DIMENSIONS and method == "nufft":
        pytest.skip("for three variables at most")
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
def test_any_chunks_and_any_order_give_the_same_sums(method: str, data: Any) -> None:
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
    wanted, sums = summed((6, 4, 6), method, angles, w, (0, 1100)), mode_sum((6, 4, 6), method)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: summed((6, 4, 6), method, angles, w, (0, 1100)), range(4)):
            np.testing.assert_array_equal(found, wanted)
    single, turned = np.asfortranarray(angles.astype(np.float32)), np.asfortranarray(w)
    np.testing.assert_array_equal(sums.result(), np.zeros((1, 13, 9, 13)))
    sums.add(single[:0], turned[:, :0])
    np.testing.assert_array_equal(sums.result(), np.zeros((3, 13, 9, 13)))
    sums.add(single[:1100], turned[:, :1100])
    first = sums.result()
    kept = first.copy()
    sums.add(single[1100:], turned[:, 1100:])
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(sums.result(), wanted)


def test_what_cannot_be_summed_is_an_error() -> None:
    sums, angles = mode_sum((1, 1), "matmul"), np.zeros((4, 2))
    sums.add(np.zeros((1, 2)), np.ones((2, 1)))
    for message, given_angles, weights in [
        (r"\(rows, 2\); these have \(4,\)", np.zeros(4), None),
        (r"\(number of weights, 4\); these have \(2, 3\)", angles, np.ones((2, 3))),
        ("have 2 weights, in every call; this one has 1", angles, None),
        ("must be finite", np.array([[0.0, np.inf]]), np.ones((2, 1))),
    ]:
        with pytest.raises(ValueError, match=message):
            sums.add(given_angles, weights)
    assert sums.result()[0, 1, 1] == pytest.approx(1)
    with pytest.raises(ValueError, match="'matmul' or 'nufft'; it is 'fft'"):
        mode_sum((1, 1), "fft")


def test_without_finufft_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match='one to 3 variables, and there are 4: take method="matmul"'):
        nufft.plan(1, (1, 1, 1, 1), EPS)
    monkeypatch.setitem(sys.modules, "finufft", None)
    assert not nufft.available()
    with pytest.raises(ImportError, match=r'pip install "daskspectral\[lattice\]"'):
        mode_sum((3,), "nufft")


def test_plans_are_those_that_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread; rows are sorted where the grid, of 16 bytes a point and twice upsampled, is above a megabyte."""
    package = SimpleNamespace(Plan=lambda *args, **options: (args, options))
    monkeypatch.setattr(nufft, "finufft", lambda: package)
    options = {"eps": 1e-7, "upsampfac": 2, "modeord": 0, "nthreads": 1}
    assert nufft.plan(1, (2, 3), 1e-7) == ((1, (5, 7)), {**options, "isign": -1, "spread_sort": 0})
    assert nufft.plan(2, (1, 1, 1), 1e-7) == ((2, (3, 3, 3)), {**options, "isign": 1, "spread_sort": 1})
    for order, sort in ((63, 0), (64, 1)):  # 16 (2 * 127)^2 = 1032256, 16 (2 * 129)^2 = 1065024
        assert nufft.plan(1, (order, order), 1e-7)[1]["spread_sort"] == sort


SMALLEST: dict[int, tuple[tuple[int, ...], ...]] = {  # below these, by the number of weights, products of matrices
    1: ((1,), (2, 1), (3, 3, 4)),
    2: ((1,), (2, 1), (2, 2, 3)),
    3: ((6,), (3, 4), (3, 3, 4)),
}


@pytest.mark.parametrize("weights", SMALLEST)
def test_the_table_of_methods(weights: int) -> None:
    for orders in SMALLEST[weights]:
        lower = (*orders[:-1], orders[-1] - 1)
        found = [best_method(each, weights, True) for each in (orders, lower)]
        assert found == ["nufft", "nufft" if orders == (1,) else "matmul"], orders
        assert best_method(orders, weights, False) == "matmul"
    assert best_method((9, 9, 9, 9), 1, True) == "matmul"


def test_the_bits_of_sums_are_those_of_these_splits() -> None:
    """How many axes are on the left, and the rows of a block: the same in every release."""
    of_sums, of_values = sums.split_for((13, 90), 3), functions.split_for((13, 90), 1)
    assert (of_sums.cut, of_sums.block_rows(3)) == (1, 256)
    assert (of_values.cut, of_values.block_rows(1)) == (1, 512)
    assert sums.split_for((2, 3, 40), 1).cut == 2


def test_rows_of_a_call_grow_with_the_grid_within_bounds() -> None:
    wanted = [2**15, 2**15, 2**16, 2**17, 2**18, 2**18]
    assert [rows_at_once("nufft", (m, m)) for m in (2, 11, 15, 18, 25, 100)] == wanted
    assert rows_at_once("matmul", (100, 100)) == 2**15


@pytest.mark.skipif(not nufft.available(), reason="needs finufft")
@pytest.mark.parametrize("sizes", [(0.0, 1e-30, 1.0), (1e-12, 1.0, 1e12), (1e12, 0.0, 1e-12), (0.0, 0.0, 0.0)])
def test_a_weight_that_grows_hides_none_beside_it(sizes: tuple[float, ...]) -> None:
    """One weight is 1, and the other of another size in each call."""
    rng, found = np.random.default_rng(0), mode_sum((4,), "nufft")
    angles = [rng.uniform(0, 2 * np.pi, (50, 1)) for _ in sizes]
    weights = [np.stack([np.ones(50), size * rng.uniform(1, 2, 50), np.ones(50)]) for size in sizes]
    for t, w in zip(angles, weights, strict=True):
        found.add(t, w)
    waves = np.exp(-1j * np.concatenate(angles) * np.arange(-4, 5))
    for one, wanted in zip(found.result(), np.hstack(weights) @ waves, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=0, atol=1e-7 * max(np.abs(wanted).max(), 1e-300))
