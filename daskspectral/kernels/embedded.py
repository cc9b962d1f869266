"""Kernels of mapped points, k(e(x), e(y)): metrics and periodic columns."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from daskspectral.errors import ParameterError
from daskspectral.kernels.base import LEAST_SCALE, Array, Kernel, MultiIndex
from daskspectral.validation import check_number, is_sequence


@dataclass
class EmbeddedKernel(Kernel):
    """Kernel of mapped points e(x), e(y), with the map `embedded` and its directional derivative `pushforward`."""

    expects: ClassVar = {"kernel": Kernel}

    kernel: Kernel

    @property
    def order(self) -> float:
        return min(self.kernel.order, 2)

    @property
    def inner(self) -> Kernel:
        return self.kernel

    @property
    def stationary(self) -> bool:
        return self.kernel.stationary

    def pair(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return x (c, d), y (p, d), centered if the kernel is stationary."""
        if not self.stationary:
            return x, y
        center = y.mean(axis=0)
        return x - center, y - center

    @abstractmethod
    def pushforward(self, x: Array, direction: Array) -> Array:
        """Return the derivative (c, e) of e along directions (c, d)."""

    def second_derivative(self, x: Array, matrix: Array) -> Array:
        """Return sum_ab matrix_kab d_a d_b e(x_k), (c, e)."""
        return np.zeros_like(self.embedded(x))

    def values(self, x: Array, y: Array) -> Array:
        x, y = self.pair(x, y)
        return self.kernel.values(self.embedded(x), self.embedded(y))

    def diagonal(self, x: Array) -> Array:
        return self.kernel.diagonal(self.embedded(x))

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        x, y = self.pair(x, y)
        return self.kernel.along(self.embedded(x), self.embedded(y), self.pushforward(x, direction))

    def second(self, x: Array, y: Array, matrix: Array | None = None) -> Array:
        # sum_ab M_ab (J_a . Hess k J_b + d_a d_b e . grad k)
        d, (x, y) = x.shape[1], self.pair(x, y)
        eye = np.asarray(np.eye(d), like=x)
        matrix = np.broadcast_to(eye, (len(x), d, d)) if matrix is None else matrix
        units = np.broadcast_to(eye[:, None], (d, *x.shape))
        frame = np.stack([self.pushforward(x, unit) for unit in units], axis=1)
        ex, ey, second_derivative = self.embedded(x), self.embedded(y), self.second_derivative(x, matrix)
        spread = np.einsum("kae,kab,kbf->kef", frame, matrix, frame, optimize=True)
        found = self.kernel.second(ex, ey, spread)
        return found + self.kernel.along(ex, ey, second_derivative) if second_derivative.any() else found

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        total, d = self.check_derivative(alpha, x), x.shape[1]
        axes = [axis for axis, order in enumerate(alpha) for _ in range(order)]
        units = np.asarray(np.eye(d)[axes], like=x)
        if total == 0:
            return self.values(x, y)
        if total == 1:
            return self.along(x, y, np.broadcast_to(units[0], x.shape))
        return self.second(x, y, np.broadcast_to(np.multiply.outer(units[0], units[1]), (len(x), d, d)))

    def check_columns(self, x: Array, entries: str, count: int) -> None:
        """Raise ValueError unless points have `count` columns."""
        if x.shape[1] != count:
            raise ValueError(
                f"{type(self).__name__} needs one {entries} for each column: it has {count}, but the points have "
                f"{x.shape[1]} column{'s' if x.shape[1] != 1 else ''}"
            )


@dataclass
class Mahalanobis(EmbeddedKernel):
    """Kernel in the metric A Aᵀ, kernel(x A, y A), with derivatives up to order 2.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the mapped points.
    matrix : array-like of shape (d, e)
        A, stored as a read-only array. A symmetric A is the root of the metric.

    Raises
    ------
    ValueError
        If A is not a matrix of finite numbers, or points have another number of columns than d.

    See Also
    --------
    Periodic : Kernel with periodic columns.

    Examples
    --------
    >>> from daskspectral.kernels import Gaussian
    >>> kernel = Mahalanobis(Gaussian(1.0), [[1.0, 0.0], [0.0, 0.01]])
    >>> kernel(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])).round(3)
    array([[0.607, 1.   ]])
    """

    matrix: ArrayLike

    def __str__(self) -> str:
        return f"{self.kernel} in a metric of {min(self.root.shape)} directions"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mahalanobis):
            return NotImplemented
        return self.kernel == other.kernel and np.array_equal(self.root, other.root)

    def check(self) -> None:
        super().check()
        root = np.array(self.matrix, dtype=float)
        if root.ndim != 2 or not np.isfinite(root).all() or not root.any():
            raise ParameterError("matrix", "a matrix (d, e) of finite numbers, not all 0", self.matrix)
        root.flags.writeable = False
        self.matrix = root

    @property
    def root(self) -> Array:
        return np.asarray(self.matrix, dtype=float)

    @property
    def rotated(self) -> Array:
        """Matrix B (e, min(d, e)) with B Bᵀ = Aᵀ A, so that |z B| = |z Aᵀ| for embedded points z."""
        root = self.root
        return root.T if root.shape[0] <= root.shape[1] else np.linalg.qr(root)[1].T

    def embedded(self, x: Array) -> Array:
        self.check_columns(x, "row of its matrix", len(self.root))
        return np.asarray(x @ np.asarray(self.root, like=x), like=x)

    def pushforward(self, x: Array, direction: Array) -> Array:
        return np.asarray(direction @ np.asarray(self.root, like=direction), like=direction)

    def moved(self, x: Array, step: Array) -> Array:
        root = self.root
        d, e = root.shape
        if e > d:  # A Aᵀ = R Rᵀ with R (d, d)
            root = np.linalg.qr(root.T)[1].T
        elif e < d:  # in the directions that the metric measures alone
            step = step[:, :e] * math.sqrt(d / e)
        return np.asarray(x + step @ np.linalg.pinv(root))


@dataclass
class Periodic(EmbeddedKernel):
    """Kernel with periodic columns, such as angles, each mapped to a circle, with derivatives up to order 2.

    A column x_a of period L becomes L / (2π) (cos(2π x_a / L), sin(2π x_a / L)): distances are chords.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the mapped points.
    periods : sequence of float or None
        Period of each column, in its units; None for columns that are not periodic.

    Raises
    ------
    ValueError
        If points have another number of columns.

    See Also
    --------
    Mahalanobis : Kernel in another metric.

    Examples
    --------
    >>> from daskspectral.kernels import Gaussian
    >>> kernel = Periodic(Gaussian(0.1), (1.0, None))
    >>> kernel(np.array([[0.0, 5.0]]), np.array([[1.0, 5.0], [0.5, 5.0]])).round(3)
    array([[1.   , 0.006]])
    """

    periods: Sequence[float | None]

    @property
    def flat(self) -> Kernel:
        return self.kernel

    def check(self) -> None:
        super().check()
        periods: Any = self.periods
        if not is_sequence(periods) or all(p is None for p in periods):
            expected = "one period or None for each column, such as (6.28, None), and one period at least"
            raise ParameterError("periods", expected, periods)
        for period in periods:
            if period is not None:
                check_number("periods", period, f"({LEAST_SCALE:g}, {1 / LEAST_SCALE:g})")

    def embedded(self, x: Array) -> Array:
        return np.stack([column for pair in self._columns(x) for column in pair], axis=1)

    def pushforward(self, x: Array, direction: Array) -> Array:
        parts: list[Array] = []
        for v, column, period in zip(direction.T, self._columns(x), self.periods, strict=True):
            if period is None:
                parts.append(v)
            else:
                rate = 2 * math.pi / period
                parts += [-rate * column[1] * v, rate * column[0] * v]
        return np.stack(parts, axis=1)

    def second_derivative(self, x: Array, matrix: Array) -> Array:
        # d_a d_a e = -(2 pi / L)^2 e on the circle of a
        parts: list[Array] = []
        for axis, (column, period) in enumerate(zip(self._columns(x), self.periods, strict=True)):
            curvature = 0.0 if period is None else -((2 * math.pi / period) ** 2)
            parts += [curvature * matrix[:, axis, axis] * part for part in column]
        return np.stack(parts, axis=1)

    def _columns(self, x: Array) -> list[tuple[Array, ...]]:
        self.check_columns(x, "period or None", len(self.periods))
        columns: list[tuple[Array, ...]] = []
        for column, period in zip(x.astype(float, copy=False).T, self.periods, strict=True):
            if period is None:
                columns.append((column,))
            else:
                radius = period / (2 * math.pi)
                columns.append((radius * np.cos(column / radius), radius * np.sin(column / radius)))
        return columns
