"""Sums of modes as matrix products of two factors, which are products of cosines and sines along the axes.

An axis of frequencies up to o has the 2 o + 1 real rows 1, cos(j t), sin(j t); the first axes form the left factor,
the others the right one, and a GEMM sums over points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskspectral.devices import HOST, Device

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

CACHE = 2**20  # bytes of both factors of a block: they fit the second-level cache
ROWS = (256, 1024)  # of a block
FORMING = 12.0  # cost of one entry of a factor, in multiplications of a matrix product


@dataclass(frozen=True)
class Split:
    """Orders of the axes of a lattice, and the number of them in the left factor."""

    orders: tuple[int, ...]
    cut: int

    @property
    def left(self) -> tuple[int, ...]:
        return self.orders[: self.cut]

    @property
    def right(self) -> tuple[int, ...]:
        return self.orders[self.cut :]

    @property
    def shape(self) -> tuple[int, int]:
        return size(self.left), size(self.right)

    def block_rows(self, copies: int = 1) -> int:
        """Return the number of points of a block."""
        left, right = self.shape
        wanted = math.log2(CACHE / (8 * (copies * left + right)))
        return int(2 ** np.clip(math.floor(wanted), *np.log2(ROWS)))

    def modes(self, sums: Array) -> ComplexArray:
        """Return sum exp(-i j.t), (w, 2 M_1 + 1, ...), from real sums (w, left, right)."""
        out = sums.reshape(len(sums), *(2 * order + 1 for order in self.orders)).astype(complex)
        for axis, order in enumerate(self.orders, 1):
            x = np.moveaxis(out, axis, 0)
            cos, turned = x[1 : order + 1], -1j * x[order + 1 :]
            out = np.moveaxis(np.concatenate([(cos - turned)[::-1], x[:1], cos + turned]), 0, axis)
        return np.ascontiguousarray(out)

    def coefficients(self, modes: ComplexArray) -> Array:
        """Return the coefficients (k, left, right) of real products in sum_j modes_j exp(i j.t)."""
        out = modes
        for axis, order in enumerate(self.orders, 1):
            x = np.moveaxis(out, axis, 0)
            below, above = x[:order][::-1], x[order + 1 :]
            out = np.moveaxis(np.concatenate([x[order : order + 1], above + below, 1j * (above - below)]), 0, axis)
        return np.ascontiguousarray(out.real.reshape(len(modes), *self.shape))


def checked_angles(angles: Array, dimension: int) -> Array:
    """Return angles t (c, d) as doubles; raise ValueError for other shapes and nonfinite angles."""
    found = np.asarray(angles, dtype=float)
    if found.ndim != 2 or found.shape[1] != dimension:
        raise ValueError(f"angles must have shape (rows, {dimension}), got {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError("angles must be finite: drop other rows")
    return found


def size(orders: Sequence[int]) -> int:
    """Return the number of products of one row of each axis."""
    return math.prod(2 * order + 1 for order in orders)


def cheapest(orders: tuple[int, ...], cost: Callable[[int, int], float]) -> Split:
    """Return the split with the least cost(left rows, right rows), in multiplications of a GEMM."""
    return min((Split(orders, cut) for cut in range(len(orders) + 1)), key=lambda split: cost(*split.shape))


def factor_bytes(split: Split, rows: int, copies: int) -> int:
    """Return the bytes of `Factors`."""
    left, right = split.shape
    axes = sum(2 * order + 1 for order in split.orders)
    waves = 2 * (1 + max(split.orders))
    widest = max(copies * size(split.left[:-1]), size(split.right[:-1]))
    return 8 * rows * (copies * left + right + axes + waves + 1 + 2 * widest)


class Factors:
    """Buffers of both factors of a block of points."""

    def __init__(self, split: Split, rows: int, copies: int = 1, device: Device = HOST):
        self.split = split
        left, right = split.shape
        self._left, self._right = device.empty((copies * left, rows)), device.empty((right, rows))
        self._axes: list[Array] = [device.zeros((2 * order + 1, rows)) + 1 for order in split.orders]
        self._wave = device.empty(rows, complex)
        self._powers = device.empty((max((*split.orders, 1)), rows), complex)
        self._ones: Array = device.zeros((1, rows)) + 1
        widest = max(copies * size(split.left[:-1]), size(split.right[:-1]))
        self._products = device.empty((2, widest, rows))

    def of(self, angles: Array, weights: Array | None = None) -> tuple[Array, Array]:
        """Return the left (w l, b) and right factor (r, b) of angles (b, d), overwritten by the next call.

        The left factor is multiplied by each of the weights (w, b).
        """
        b = len(angles)
        wave = self._wave[:b]
        parts = [rows[:, :b] for rows in self._axes]
        for t, rows in zip(angles.T, parts, strict=True):
            np.cos(t, out=wave.real)
            np.sin(t, out=wave.imag)
            _fill(rows, wave, self._powers[:, :b])
        left, right = parts[: self.split.cut], parts[self.split.cut :]
        if weights is not None:
            left = [weights, *left]
        return self._product(left, self._left[:, :b]), self._product(right, self._right[:, :b])

    def _product(self, parts: Sequence[Array], out: Array) -> Array:
        """Return all products of one row of each part."""
        if not parts:
            return self._ones[:, : out.shape[1]]
        product = parts[0]
        for i, rows in enumerate(parts[1:], 2):
            n = len(product) * len(rows)
            room = out if i == len(parts) else self._products[i % 2, :n, : out.shape[1]]
            np.multiply(product[:, None], rows, out=room.reshape(len(product), len(rows), -1))
            product = room
        return product


def _fill(rows: Array, wave: ComplexArray, powers: ComplexArray) -> None:
    """Fill rows (2 o + 1, b) with cos(j t) and sin(j t) from exp(i t) (b,)."""
    order = len(rows) // 2
    powers[0] = wave
    done = 1
    while done < order:
        more = min(done, order - done)
        np.multiply(powers[:more], powers[done - 1], out=powers[done : done + more])
        done += more
    rows[1 : order + 1], rows[order + 1 :] = powers[:order].real, powers[:order].imag
