"""Products of cosines and sines along the axes as a left and a right factor, whose matrix product is a sum of modes.

An axis of order M has the real rows 1, cos(j t), sin(j t), j = 1, ..., M. One axis may be written in two digits,
j = a + (2 A + 1) b with |a| <= A, |b| <= B: its rows are those of two axes with the angles t and (2 A + 1) t. So any
lattice splits into two factors of about equal size, which are quick to form, and whose product a GEMM does well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
CACHE = 2**19  # bytes of both factors of a block, which share the second-level cache with what they are made from
ROWS = (128, 1024)  # of a block


@dataclass(frozen=True)
class Split:
    """Axes 0 to axis - 1 and the upper digit of `axis` on the left; its lower digit and the axes after it on the right.

    `orders` are those of the lattice, `low` and `high` those of the two digits.
    """

    orders: tuple[int, ...]
    axis: int
    low: int
    high: int

    @property
    def left(self) -> tuple[int, ...]:
        """The orders of the axes of the left factor."""
        return (*self.orders[: self.axis], self.high)

    @property
    def right(self) -> tuple[int, ...]:
        """The orders of the axes of the right factor."""
        return (self.low, *self.orders[self.axis + 1 :])

    @property
    def shape(self) -> tuple[int, int]:
        """The rows of both factors."""
        return _size(self.left), _size(self.right)

    def block_rows(self, copies: int = 1) -> int:
        """The points of a block, for so many copies of the left factor next to it."""
        left, right = self.shape
        wanted = CACHE / (8 * ((1 + copies) * left + right))
        return int(2 ** np.clip(round(math.log2(wanted)), *np.log2(ROWS)))

    def modes(self, sums: Array) -> ComplexArray:
        """sum exp(-i j.t), (w, 2 M_1 + 1, ...), from the sums of the products of all real rows, (w, left, right)."""
        virtual = (*self.left, *self.right)
        out = sums.reshape(len(sums), *(2 * order + 1 for order in virtual)).astype(complex)
        for axis, order in enumerate(virtual, 1):
            x = np.moveaxis(out, axis, 0)
            cos, sin = x[1 : order + 1], x[order + 1 :]
            turned = np.empty_like(sin)  # -i sin, without products, whose signs of zero would differ
            turned.real, turned.imag = sin.imag, -sin.real
            out = np.moveaxis(np.concatenate([(cos - turned)[::-1], x[:1], cos + turned]), 0, axis)
        out = out.reshape(len(sums), *self._padded)
        return np.ascontiguousarray(out[(slice(None), *self._centre)])

    def coefficients(self, modes: ComplexArray) -> Array:
        """Of the products of real rows, (k, left, right), in the real functions sum_j modes_j exp(i j.t)."""
        k, virtual = len(modes), (*self.left, *self.right)
        padded = np.zeros((k, *self._padded), dtype=complex)
        padded[(slice(None), *self._centre)] = modes
        out = padded.reshape(k, *(2 * order + 1 for order in virtual))
        for axis, order in enumerate(virtual, 1):
            x = np.moveaxis(out, axis, 0)
            below, above = x[:order][::-1], x[order + 1 :]
            out = np.moveaxis(np.concatenate([x[order : order + 1], above + below, 1j * (above - below)]), 0, axis)
        return np.ascontiguousarray(out.real.reshape(k, *self.shape))

    @property
    def _padded(self) -> tuple[int, ...]:
        """The lattice's shape, with all that the two digits reach."""
        sizes = [2 * order + 1 for order in self.orders]
        sizes[self.axis] = (2 * self.low + 1) * (2 * self.high + 1)
        return tuple(sizes)

    @property
    def _centre(self) -> tuple[slice, ...]:
        pairs = zip(self._padded, self.orders, strict=True)
        return tuple(slice(size // 2 - order, size // 2 + order + 1) for size, order in pairs)


def balanced(orders: tuple[int, ...], cost: Callable[[int, int], float]) -> Split:
    """The split with the least cost(rows of the left factor, rows of the right one)."""
    found: list[tuple[float, Split]] = []
    for axis, order in enumerate(orders):
        for low in range(order + 1):
            high = -(-(order - low) // (2 * low + 1))
            split = Split(orders, axis, low, high)
            found.append((cost(*split.shape), split))
    return min(found, key=lambda pair: pair[0])[1]


class Factors:
    """Room for both factors of a block of points, and what fills it."""

    def __init__(self, split: Split, rows: int):
        self.split = split
        left, right = split.shape
        self._left, self._right = np.empty((left, rows)), np.empty((right, rows))
        self._axes = [np.empty((2 * order + 1, rows)) for order in (*split.left, *split.right)]
        self._angles, self._first = np.empty((len(split.orders), rows)), np.empty((2, len(split.orders), rows))
        widest = max((*split.left, *split.right, 1))
        self._work = np.empty((2, (widest + 1) // 2, rows))
        parts = [part for part in (split.left[:-1], split.right[1:]) if part]
        self._products = [np.empty((max(map(_size, parts), default=1), rows)) for _ in range(2)]

    def of(self, angles: Array) -> tuple[Array, Array]:
        """The left (l, b) and the right factor (r, b) of angles (b, d); they are overwritten by the next call."""
        split, b = self.split, len(angles)
        t, first = self._angles[:, :b], self._first[..., :b]
        t[...] = angles.T
        np.cos(t, out=first[0])
        np.sin(t, out=first[1])
        axes = [rows[:, :b] for rows in self._axes]
        work = self._work[..., :b]
        s = split.axis
        for rows, axis in zip((*axes[:s], *axes[s + 1 :]), range(len(split.orders)), strict=True):
            _fill(rows, first[0, axis], first[1, axis], work)
        if split.high:
            _fill(axes[s], *_multiple(axes[s + 1], first[0, s], first[1, s]), work)
        else:
            axes[s][...] = 1.0
        return self._product(axes[: s + 1], self._left[:, :b]), self._product(axes[s + 1 :], self._right[:, :b])

    def _product(self, axes: Sequence[Array], out: Array) -> Array:
        """All products of one row of each axis, the last axis fastest."""
        axes = [rows for rows in axes if len(rows) > 1] or [axes[-1]]
        product = axes[0]
        for i, rows in enumerate(axes[1:], 2):
            size = len(product) * len(rows)
            room = out if i == len(axes) else self._products[i % 2][:size, : out.shape[1]]
            np.multiply(product[:, None], rows[None], out=room.reshape(len(product), len(rows), -1))
            product = room
        return product


def _size(orders: Sequence[int]) -> int:
    return math.prod(2 * order + 1 for order in orders)


def _fill(rows: Array, cos: Array, sin: Array, work: Array) -> None:
    """1, cos(j t), sin(j t) into rows (2 M + 1, b), by angle addition of the rows so far to the last of them."""
    order = len(rows) // 2
    rows[0] = 1.0
    if not order:
        return
    both = rows[1:].reshape(2, order, -1)
    both[0, 0], both[1, 0] = cos, sin
    done = 1
    while done < order:
        more = min(done, order - done)
        new, room = both[:, done : done + more], work[:, :more]
        np.multiply(both[:, :more], both[0, done - 1], out=new)
        np.multiply(both[::-1, :more], both[1, done - 1], out=room)
        new[0] -= room[0]
        new[1] += room[1]
        done += more


def _multiple(rows: Array, cos: Array, sin: Array) -> tuple[Array, Array]:
    """cos and sin of (2 A + 1) t, from the rows up to A and those of t."""
    order = len(rows) // 2
    if not order:
        return cos, sin
    c, s = rows[order], rows[-1]
    double, turn = (c - s) * (c + s), 2 * s * c
    return double * cos - turn * sin, turn * cos + double * sin
