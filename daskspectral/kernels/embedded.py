"""Kernels of points that are mapped first: k(e(x), e(y)), with derivatives in x by the chain rule."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daskspectral.errors import SmoothnessError
from daskspectral.kernels.base import Array, Kernel, MultiIndex, ParameterKernel, check_index, is_number


@dataclass
class EmbeddedKernel(ParameterKernel):
    """kernel(e(x), e(y)) for a map e, `embedded`, whose derivative along directions is `pushed`."""

    expects: ClassVar = {"kernel": Kernel}

    kernel: Kernel

    @property
    def order(self) -> float:
        return self.kernel.order

    @property
    def inner(self) -> Kernel:
        return self.kernel

    @abstractmethod
    def pushed(self, x: Array, direction: Array) -> Array:
        """The derivative of e at x (c, d) along directions (c, d), (c, e)."""

    def values(self, x: Array, y: Array) -> Array:
        return self.kernel.values(self.embedded(x), self.embedded(y))

    def diagonal(self, x: Array) -> Array:
        return self.kernel.diagonal(self.embedded(x))

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        return self.kernel.along(self.embedded(x), self.embedded(y), self.pushed(x, direction))

    def check(self) -> None:
        given: Any = self.kernel
        if not isinstance(given, Kernel):
            raise ValueError(f"{type(self).__name__} takes a kernel, such as Gaussian(1.0); it got {given!r}")


@dataclass
class Mahalanobis(EmbeddedKernel):
    """kernel(x A, y A) for a matrix A (d, e): distances are √((x - y) A Aᵀ (x - y)ᵀ), one scale for each direction.

    A symmetric A is the root of the metric A Aᵀ. Derivatives are taken in x. The rows of A are given as nested lists,
    and points have d columns. Raises ValueError for a matrix that is none, and for points of other columns.

    Examples
    --------
    >>> from daskspectral.kernels import Gaussian
    >>> kernel = Mahalanobis(Gaussian(1.0), [[1.0, 0.0], [0.0, 0.01]])
    >>> kernel(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])).round(3)
    array([[0.607, 1.   ]])
    """

    matrix: Sequence[Sequence[float]]

    def __str__(self) -> str:
        return f"{self.kernel} in a metric of {len(self.matrix)} directions"

    def check(self) -> None:
        super().check()
        nested = isinstance(self.matrix, (tuple, list)) and all(isinstance(row, (tuple, list)) for row in self.matrix)
        even = nested and len({len(row) for row in self.matrix}) == 1
        if not even or not all(is_number(a) for row in self.matrix for a in row) or not self.root.any():
            raise ValueError(
                "Mahalanobis takes a matrix (d, e) as nested lists of finite numbers, not all 0, such as "
                f"[[1.0, 0.0], [0.0, 0.1]]; it got {self.matrix!r}"
            )

    @property
    def root(self) -> Array:
        """A (d, e)."""
        return np.asarray(self.matrix, dtype=float)

    def embedded(self, x: Array) -> Array:
        if x.shape[1] != len(self.matrix):
            raise ValueError(
                f"Mahalanobis takes one row of its matrix for each column: it has {len(self.matrix)}, and the points "
                f"have {x.shape[1]} column{'s' if x.shape[1] != 1 else ''}"
            )
        found: Array = x @ np.asarray(self.root, like=x)
        return found

    def pushed(self, x: Array, direction: Array) -> Array:
        found: Array = direction @ np.asarray(self.root, like=direction)
        return found

    def moved(self, x: Array, step: Array) -> Array:
        return np.asarray(x + step @ np.linalg.pinv(self.root))

    def second(self, x: Array, y: Array, matrix: Array | None = None) -> Array:
        a = np.asarray(self.root, like=x)
        spread = np.broadcast_to(a.T @ a, (len(x), *2 * a.shape[1:])) if matrix is None else a.T @ matrix @ a
        return self.kernel.second(self.embedded(x), self.embedded(y), spread)

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        check_index(alpha, x.shape[1])
        if sum(alpha) > self.order:
            raise SmoothnessError(f"{self} has derivatives up to order {self.order:g}, not {sum(alpha)}")
        terms: dict[MultiIndex, float] = {(0,) * self.root.shape[1]: 1.0}
        for row, order in zip(self.root.tolist(), alpha, strict=True):
            for _ in range(order):  # d_a = sum_e A_ae d_e
                raised: dict[MultiIndex, float] = defaultdict(float)
                for beta, c in terms.items():
                    for e, factor in enumerate(row):
                        raised[(*beta[:e], beta[e] + 1, *beta[e + 1 :])] += c * factor
                terms = raised
        ex, ey = self.embedded(x), self.embedded(y)
        total = np.zeros((len(y), len(x)), like=x)
        for beta, c in terms.items():
            if c:
                total += c * self.kernel.partial(ex, ey, beta)
        return total
