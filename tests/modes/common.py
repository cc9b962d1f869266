"""What the tests of modes share: the two methods, lattices, and their functions by closed form."""

import itertools
from typing import Any

import numpy as np
import pytest

from daskspectral.basis import FourierLattice
from daskspectral.modes import nufft

NUFFT = pytest.param("nufft", marks=pytest.mark.skipif(not nufft.available(), reason="finufft is not installed"))
METHODS = ["matmul", NUFFT]
ERRORS = {"matmul": 1e-12, "nufft": 1e-8}
"""Relative errors of sums by each method; eps of the transform is 1e-9."""
ORDERS: dict[int, Any] = {1: (7,), 2: (3, 2), 3: (1, 2, 1)}


def lattice_of(d: int, method: str = "matmul", orders: Any = None) -> FourierLattice:
    """A lattice of d variables, with sides of its own, the last but one periodic."""
    periods = None if d < 2 else [*[None] * (d - 2), 3.0, None]
    box: Any = [(-1.1, 1.1 + a / 4) for a in range(d)]
    return FourierLattice(orders or ORDERS[d], box=box, periods=periods, method=method, eps=1e-9)


def waves(lattice: FourierLattice, x: Any, alpha: tuple[int, ...] = ()) -> Any:
    """d^alpha of 1, sqrt2 cos and sqrt2 sin of w_k.(x - center), one pair of frequencies after another, (p, c)."""
    alpha = alpha or (0,) * lattice.dimension
    grid = itertools.product(*(range(-m, m + 1) for m in lattice.orders))
    half = [k for k in grid if k > (0,) * len(k)]
    parts = []
    for turn in (0, 1):  # cos, and sin = cos a quarter turn back
        for k in half:
            w = 2 * np.pi * np.array(k) / lattice.period
            phase = (x - lattice.domain.center) @ w + (sum(alpha) - turn) * np.pi / 2
            parts.append(np.sqrt(2) * np.prod(w ** np.array(alpha)) * np.cos(phase))
    return np.array([np.full(len(x), float(not any(alpha))), *parts])


def direct(orders: tuple[int, ...], angles: Any, weights: Any) -> Any:
    """Modes as they are defined, one frequency after another, for weights (w, n) or None."""
    weights = np.ones((1, len(angles))) if weights is None else weights
    out = np.empty((len(weights), *(2 * order + 1 for order in orders)), dtype=complex)
    for index in np.ndindex(out.shape[1:]):
        out[(slice(None), *index)] = weights @ np.exp(-1j * (angles @ (np.array(index) - orders)))
    return out


def circles(orders: tuple[int, ...]) -> FourierLattice:
    """A lattice whose variables are angles."""
    return FourierLattice(orders, periods=(2 * np.pi,) * len(orders))
