"""Values and gradients of functions of a lattice, against their closed forms."""

from typing import Any

import numpy as np
import pytest

from daskspectral.modes.functions import LatticeValues
from tests.modes.common import circles, waves
from tests.stand_in import STAND_IN

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


def test_points_do_not_depend_on_their_neighbours() -> None:
    angles, coefficients = problem((6, 9), 3, 2500)
    angles = angles.astype(np.float32).astype(float)
    values = LatticeValues((6, 9), coefficients)
    whole, some = values(angles), [0, 7, 1023, 1024, 2499, 7]
    np.testing.assert_allclose(values(angles[some]), whole[some], rtol=0, atol=1e-11)
    np.testing.assert_array_equal(values(angles.astype(np.float32)), whole)  # the same bits on repeats
    assert values(angles[:0]).shape == (0, 3)
    assert values.gradient(angles[:0]).shape == (0, 3, 2)
    assert LatticeValues((6, 9), coefficients[:, :0])(angles).shape == (len(angles), 0)
