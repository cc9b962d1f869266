"""Products of cosines and sines along the axes as a left and a right factor, whose matrix product is a sum of modes.

A frequency along an axis is written in digits, j = j_0 + n_0 (j_1 + n_1 (j_2 + ...)), |j_i| <= o_i, n_i = 2 o_i + 1.
A digit has the n_i real rows 1, cos(j s), sin(j s), where s is the angle t times the digit's place value. The products
of one row of each digit span the modes of the lattice; an entry of them takes one multiplication to form. Some of the
digits make the left factor, the others the right one, so both are about equally large, and a GEMM does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from daskspectral.devices import HOST, Device

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
Digits = tuple[int, ...]  # the orders o_i, the highest place first

CACHE = 2**20  # bytes of both factors of a block: they stay in the second-level cache
ROWS = (256, 1024)  # of a block
FORMING = 12.0  # multiplications in a matrix product that take as long as one entry of a factor,
DIGIT_ROW, DIGIT = 28.0, 140.0  # and as one entry of a row of a digit, and as the calls that each digit needs
WIDEST = 512  # orders of the lower digits of an axis that are tried, but for the whole axis
PRICES = (1.0, 8.0, 64.0, math.inf)  # of rows that are there only because the digits reach too far, among them


@dataclass(frozen=True)
class Split:
    """The digits of each axis of a lattice of these orders, and how many of all of them make the left factor."""

    orders: tuple[int, ...]
    digits: tuple[Digits, ...]
    cut: int

    @property
    def left(self) -> Digits:
        """The digits of the left factor."""
        return self._all[: self.cut]

    @property
    def right(self) -> Digits:
        """The digits of the right factor."""
        return self._all[self.cut :]

    @property
    def shape(self) -> tuple[int, int]:
        """The rows of both factors."""
        return size(self.left), size(self.right)

    def block_rows(self, copies: int = 1) -> int:
        """The points of a block, for so many copies of the left factor."""
        left, right = self.shape
        wanted = math.log2(CACHE / (8 * (copies * left + right)))
        return int(2 ** np.clip(math.floor(wanted), *np.log2(ROWS)))

    def modes(self, sums: Array) -> ComplexArray:
        """sum exp(-i j.t), (w, 2 M_1 + 1, ...), from the sums of the products of all real rows, (w, left, right)."""
        out = sums.reshape(len(sums), *(2 * order + 1 for order in self._all)).astype(complex)
        for axis, order in enumerate(self._all, 1):
            x = np.moveaxis(out, axis, 0)
            cos, turned = x[1 : order + 1], -1j * x[order + 1 :]
            out = np.moveaxis(np.concatenate([(cos - turned)[::-1], x[:1], cos + turned]), 0, axis)
        out = out.reshape(len(sums), *self._padded)
        return np.ascontiguousarray(out[(slice(None), *self._centre)])

    def coefficients(self, modes: ComplexArray) -> Array:
        """Of the products of real rows, (k, left, right), in the real functions sum_j modes_j exp(i j.t)."""
        k = len(modes)
        padded = np.zeros((k, *self._padded), dtype=complex)
        padded[(slice(None), *self._centre)] = modes
        out = padded.reshape(k, *(2 * order + 1 for order in self._all))
        for axis, order in enumerate(self._all, 1):
            x = np.moveaxis(out, axis, 0)
            below, above = x[:order][::-1], x[order + 1 :]
            out = np.moveaxis(np.concatenate([x[order : order + 1], above + below, 1j * (above - below)]), 0, axis)
        return np.ascontiguousarray(out.real.reshape(k, *self.shape))

    @property
    def _all(self) -> Digits:
        return tuple(order for digits in self.digits for order in digits)

    @property
    def _padded(self) -> tuple[int, ...]:
        """The lattice's shape, with all that the digits reach."""
        return tuple(size(digits) for digits in self.digits)

    @property
    def _centre(self) -> tuple[slice, ...]:
        pairs = zip(self._padded, self.orders, strict=True)
        return tuple(slice(n // 2 - order, n // 2 + order + 1) for n, order in pairs)


def size(digits: Sequence[int]) -> int:
    """The number of products of one row of each digit."""
    return math.prod(2 * order + 1 for order in digits)


def cheapest(orders: tuple[int, ...], cost: Callable[[int, int], float]) -> Split:
    """The split with the least cost(rows of the left factor, rows of the right one), in multiplications of a GEMM.

    The left factor takes the first axes and the upper digits of the next one. What it takes to form the digits is added
    to the cost.
    """
    best, least = None, math.inf
    for price in PRICES:
        whole = [digits_of(order, price) for order in orders]
        for axis, order in enumerate(orders):
            for low in sorted({*range(min(order, WIDEST)), order}):
                lower = digits_of(low, price)
                upper = digits_of(_upper(order, size(lower)), price)
                digits = (*whole[:axis], (*upper, *lower), *whole[axis + 1 :])
                split = Split(orders, digits, sum(map(len, digits[:axis])) + len(upper))
                total = cost(*split.shape) + sum(map(_digit_cost, (*split.left, *split.right)))
                if total < least:
                    best, least = split, total
    assert best is not None
    return best


@cache
def digits_of(order: int, price: float) -> Digits:
    """The digits that reach an order at the least cost, at a price of rows beyond the order; () for 0."""
    best: Digits = (order,) if order else ()
    least = sum(map(_digit_cost, best))
    if order and price < math.inf:
        for low in range(1, min(order, 16)):
            digits = (*digits_of(_upper(order, 2 * low + 1), price), low)
            beyond = size(digits) - 2 * order - 1
            total = sum(map(_digit_cost, digits)) + FORMING * (size(digits) + price * beyond)
            if total < least:
                best, least = digits, total
    return best


def _upper(order: int, lower: int) -> int:
    """The order of the digits above so many values of the lower ones."""
    return -(-(order - lower // 2) // lower)


def _digit_cost(order: int) -> float:
    return DIGIT + DIGIT_ROW * (2 * order + 1)


def factor_bytes(split: Split, rows: int, copies: int) -> int:
    """What `Factors` take."""
    left, right = split.shape
    d, orders = len(split.orders), (*split.left, *split.right)
    waves = 2 * d * (1 + max((*orders, 1)))
    digits = sum(2 * order + 1 for order in split._all)
    widest = max(copies * size(split.left[:-1]), size(split.right[:-1]))
    return 8 * rows * (copies * left + right + digits + waves + 1 + 2 * widest)


class Factors:
    """Room for both factors of a block of points, and what fills it."""

    def __init__(self, split: Split, rows: int, copies: int = 1, device: Device = HOST):
        self.split = split
        left, right = split.shape
        self._left, self._right = device.empty((copies * left, rows)), device.empty((right, rows))
        axes: dict[Digits, list[int]] = {}
        for axis, digits in enumerate(split.digits):
            axes.setdefault(digits, []).append(axis)
        self._alike = [
            (
                group,
                device.put(np.array(group)),
                [device.zeros((2 * order + 1, len(group), rows)) + 1 for order in digits],
            )
            for digits, group in axes.items()
        ]
        self._waves = device.empty((len(split.orders), rows), complex)
        self._powers = device.empty((max((*split.left, *split.right, 1)), len(split.orders), rows), complex)
        self._ones: Array = device.zeros((1, rows)) + 1
        widest = max(copies * size(split.left[:-1]), size(split.right[:-1]))
        self._products = device.empty((2, widest, rows))

    def of(self, angles: Array, weights: Array | None = None) -> tuple[Array, Array]:
        """The left (l, b) and the right factor (r, b) of angles (b, d); they are overwritten by the next call.

        With weights (w, b), the left factor times each of them, (w l, b).
        """
        b = len(angles)
        waves = self._waves[:, :b]
        np.cos(angles.T, out=waves.real)
        np.sin(angles.T, out=waves.imag)
        parts: dict[int, list[Array]] = {}
        for group, axes, places in self._alike:
            base = waves if len(group) == len(waves) else waves[axes]
            powers = self._powers[:, : len(group), :b]
            digits = [rows[..., :b] for rows in places]
            for rows in reversed(digits):
                _fill(rows, base, powers)
                if rows is not digits[0]:
                    last = powers[len(rows) // 2 - 1]
                    base = last * last * base
            parts |= {axis: [rows[:, i] for rows in digits] for i, axis in enumerate(group)}
        every = [rows for axis in range(len(waves)) for rows in parts[axis]]
        left, right = every[: self.split.cut], every[self.split.cut :]
        if weights is not None:
            left = [weights, *left]
        return self._product(left, self._left[:, :b]), self._product(right, self._right[:, :b])

    def _product(self, parts: Sequence[Array], out: Array) -> Array:
        """All products of one row of each part, those of the last part next to each other."""
        if not parts:
            return self._ones[:, : out.shape[1]]
        product = parts[0]
        for i, rows in enumerate(parts[1:], 2):
            n = len(product) * len(rows)
            room = out if i == len(parts) else self._products[i % 2, :n, : out.shape[1]]
            np.multiply(product[:, None], rows, out=room.reshape(len(product), len(rows), -1))
            product = room
        return product


def _fill(rows: Array, base: ComplexArray, powers: ComplexArray) -> None:
    """cos(j s) and sin(j s) into rows (2 o + 1, g, b) from exp(i s) (g, b), by way of powers exp(i j s)."""
    order = len(rows) // 2
    powers[0] = base
    done = 1
    while done < order:
        more = min(done, order - done)
        np.multiply(powers[:more], powers[done - 1], out=powers[done : done + more])
        done += more
    rows[1 : order + 1], rows[order + 1 :] = powers[:order].real, powers[:order].imag
