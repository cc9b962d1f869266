"""Sums of second derivatives: closed forms against partial derivatives one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskspectral.errors import SmoothnessError
from daskspectral.kernels import Exponential, Gaussian, Kernel, Matern, Polynomial

RNG = np.random.default_rng(0)
KERNELS: dict[str, Kernel] = {
    "Gaussian": Gaussian(0.8),
    "Matern 3/2": Matern(1.5, 1.2),
    "Matern 7/2": Matern(3.5, 1.2),
    "Polynomial": Polynomial(4, 0.5, 2.0),
    "sum": Gaussian(0.8) + Matern(2.5, 1.0),
    "product": Gaussian(0.8) * Matern(2.5, 1.0),
    "families": Gaussian(0.8) * Polynomial(2) + 2 * Polynomial(3),
}


def one_by_one(kernel: Kernel, x: Any, y: Any, matrix: Any) -> Any:
    d, total = x.shape[1], np.zeros((len(y), len(x)))
    for a in range(d):
        for b in range(d):
            alpha = tuple((k == a) + (k == b) for k in range(d))
            total += matrix[:, a, b] * kernel.partial(x, y, alpha)
    return total


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("d", [1, 3])
def test_second_derivatives(name: str, d: int) -> None:
    kernel, x, y = KERNELS[name], RNG.standard_normal((8, d)), RNG.standard_normal((5, d))
    x[0] = y[0]
    matrix = RNG.standard_normal((8, d, d))
    expected = one_by_one(kernel, x, y, matrix)
    np.testing.assert_allclose(kernel.second(x, y, matrix), expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    expected = one_by_one(kernel, x, y, np.broadcast_to(np.eye(d), (8, d, d)))
    np.testing.assert_allclose(kernel.second(x, y), expected, rtol=0, atol=1e-13 * np.abs(expected).max())


def test_far_from_the_origin() -> None:
    x, y, matrix = RNG.standard_normal((8, 2)), RNG.standard_normal((5, 2)), RNG.standard_normal((8, 2, 2))
    near, far = (Gaussian(0.8).second(x + shift, y + shift, matrix) for shift in (0.0, 1e3))
    np.testing.assert_allclose(far, near, rtol=0, atol=1e-11 * np.abs(near).max())


def test_a_rough_kernel_has_no_second_derivatives() -> None:
    with pytest.raises(SmoothnessError, match=r"Exponential\(scale=1.0\) has derivatives up to order 1, not 2"):
        Exponential(1.0).second(np.ones((2, 2)), np.zeros((1, 2)))
