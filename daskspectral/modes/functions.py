"""Values and gradients of functions of a lattice at points."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.devices import ACCELERATOR_ROWS, HOST, Device
from daskspectral.modes.tensor import FORMING, Array, ComplexArray, Factors, Split, cheapest, checked_angles

VALUES_THERE = 2**26  # per block on an accelerator


class LatticeValues:
    """Values of k functions with coefficients (p, k), in the order of `basis.FourierLattice` of orders m.

    1, √2 cos(j.t), √2 sin(j.t), j one of each pair ±j in lexicographic order. Complex coefficients yield complex
    values.

    Examples
    --------
    >>> values = LatticeValues((1,), np.array([[1.0], [0.0], [np.sqrt(2)]]))
    >>> values(np.array([[0.0], [np.pi / 2]])).round(12).tolist()
    [[1.0], [3.0]]
    >>> values.gradient(np.array([[0.0]])).round(12).tolist()
    [[[2.0]]]
    """

    def __init__(self, orders: tuple[int, ...], coefficients: NDArray[Any], device: Device = HOST):
        size = math.prod(2 * order + 1 for order in orders)
        if coefficients.ndim != 2 or len(coefficients) != size:
            raise ValueError(f"coefficients must have shape ({size}, functions), got {coefficients.shape}")
        self.orders, self.device = orders, device
        self._is_complex = np.iscomplexobj(coefficients)
        if self._is_complex:
            coefficients = np.concatenate([coefficients.real, coefficients.imag], axis=1)
        self._modes = modes_of(orders, np.asarray(coefficients, dtype=float))

    def __call__(self, angles: Array) -> NDArray[Any]:
        """Return values (c, k) at angles t (c, d)."""
        return self._parts(self._evaluated(angles, self._modes))

    def gradient(self, angles: Array) -> NDArray[Any]:
        """Return derivatives with respect to the angles, (c, k, d)."""
        d = len(self.orders)
        modes = np.empty((len(self._modes), d, *self._modes.shape[1:]), dtype=complex)
        for axis, order in enumerate(self.orders):
            j = np.arange(-order, order + 1).reshape(-1, *(1,) * (d - 1 - axis))
            modes[:, axis].real, modes[:, axis].imag = -j * self._modes.imag, j * self._modes.real
        found = self._evaluated(angles, modes.reshape(-1, *self._modes.shape[1:]))
        return self._parts(found.reshape(len(angles), len(self._modes), d))

    def _parts(self, found: Array) -> NDArray[Any]:
        if not self._is_complex:
            return found
        k = found.shape[1] // 2
        out = np.empty((len(found), k, *found.shape[2:]), dtype=complex)
        out.real, out.imag = found[:, :k], found[:, k:]
        return out

    def _evaluated(self, angles: Array, modes: ComplexArray) -> Array:
        """Return values (c, k) of sum_j modes_j exp(i j.t)."""
        angles, device, k = checked_angles(angles, len(self.orders)), self.device, len(modes)
        out = np.empty((len(angles), k))
        if not out.size:
            return out
        split = split_for(self.orders, k)
        left, right = split.shape
        coefficients = device.put(split.coefficients(modes).reshape(k * left, right))
        size = split.block_rows(k)
        if device.accelerated:
            size = min(ACCELERATOR_ROWS, max(size, VALUES_THERE // (k * left)), len(angles))
        factors, products = Factors(split, size, device=device), device.empty((k * left, size))
        for start in range(0, len(angles), size):
            rows = slice(start, start + size)
            a, b = factors.of(device.put(angles[rows]))
            product = products if a.shape[1] == size else device.empty((k * left, a.shape[1]))
            np.matmul(coefficients, b, out=product)
            parts = product.reshape(k, left, -1)
            if left > 1:
                parts *= a
            out[rows] = device.get(parts.sum(axis=1).T)
        return out


def modes_of(orders: tuple[int, ...], coefficients: Array) -> ComplexArray:
    """Return F (k, 2 m_1 + 1, ...), index j + m, such that the functions are sum_j F_j exp(i j.t)."""
    p, k = coefficients.shape
    h = p // 2
    modes = np.empty((k, p), dtype=complex)
    upper = modes[:, h + 1 :]
    modes[:, h] = coefficients[0]
    upper.real, upper.imag = coefficients[1 : h + 1].T, -coefficients[h + 1 :].T
    upper *= np.sqrt(0.5)
    modes[:, :h] = upper[:, ::-1].conj()
    return modes.reshape(k, *(2 * order + 1 for order in orders))


@cache
def split_for(orders: tuple[int, ...], functions: int) -> Split:
    """Return the split of least cost for this number of functions."""

    def cost(left: int, right: int) -> float:
        return functions * left * right + FORMING * (left + right + 2 * functions * left)

    return cheapest(orders, cost)
