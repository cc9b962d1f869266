"""Kernels of points that are mapped first: k(e(x), e(y)), with derivatives in x by the chain rule."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daskspectral.kernels.base import Array, Kernel, MultiIndex, is_number

Terms = dict[tuple[MultiIndex, MultiIndex], float]


@dataclass
class EmbeddedKernel(Kernel):
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

    @abstractmethod
    def terms(self, alpha: MultiIndex) -> Terms:
        """d^alpha k(e(x)) = sum_t coefficient_t e(x)^powers_t (d^beta_t k)(e(x)): {(beta, powers): coefficient}."""

    def bent(self, x: Array, matrix: Array) -> Array:
        """sum_ab matrix_kab d_a d_b e(x_k), (c, e): 0 where e is linear."""
        return np.zeros_like(self.embedded(x))

    def values(self, x: Array, y: Array) -> Array:
        return self.kernel.values(self.embedded(x), self.embedded(y))

    def diagonal(self, x: Array) -> Array:
        return self.kernel.diagonal(self.embedded(x))

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        return self.kernel.along(self.embedded(x), self.embedded(y), self.pushed(x, direction))

    def second(self, x: Array, y: Array, matrix: Array | None = None) -> Array:
        # sum_ab M_ab (J_a . Hess k J_b + d_a d_b e . grad k)
        d = x.shape[1]
        matrix = np.broadcast_to(np.eye(d, like=x), (len(x), d, d)) if matrix is None else matrix
        units = np.broadcast_to(np.eye(d, like=x)[:, None], (d, *x.shape))
        frame = np.stack([self.pushed(x, unit) for unit in units], axis=1)
        ex, ey, bent = self.embedded(x), self.embedded(y), self.bent(x, matrix)
        spread = np.einsum("kae,kab,kbf->kef", frame, matrix, frame, optimize=True)
        found = self.kernel.second(ex, ey, spread)
        return found + self.kernel.along(ex, ey, bent) if bent.any() else found

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        self.check_derivative(alpha, x)
        ex, ey = self.embedded(x), self.embedded(y)
        factors: dict[MultiIndex, Array] = defaultdict(lambda: np.zeros(len(x), like=x))
        for (beta, powers), coefficient in self.terms(alpha).items():
            if coefficient:
                factors[beta] += coefficient * np.prod(ex ** np.array(powers, like=x), axis=1)
        total = np.zeros((len(y), len(x)), like=x)
        for beta, factor in factors.items():
            total += factor * self.kernel.partial(ex, ey, beta)
        return total

    def check_columns(self, x: Array, entries: str, count: int) -> None:
        """Raise ValueError for points of another number of columns than there are `entries`, as messages call them."""
        if x.shape[1] != count:
            raise ValueError(
                f"{type(self).__name__} takes one {entries} for each column: it has {count}, and the points have "
                f"{x.shape[1]} column{'s' if x.shape[1] != 1 else ''}"
            )

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
        self.check_columns(x, "row of its matrix", len(self.matrix))
        found: Array = x @ np.asarray(self.root, like=x)
        return found

    def pushed(self, x: Array, direction: Array) -> Array:
        found: Array = direction @ np.asarray(self.root, like=direction)
        return found

    def moved(self, x: Array, step: Array) -> Array:
        return np.asarray(x + step @ np.linalg.pinv(self.root))

    def terms(self, alpha: MultiIndex) -> Terms:
        zero = (0,) * self.root.shape[1]
        terms: Terms = {(zero, zero): 1.0}
        for row, order in zip(self.root.tolist(), alpha, strict=True):
            for _ in range(order):  # d_a = sum_e A_ae d_e
                before, terms = terms, defaultdict(float)
                for (beta, _), c in before.items():
                    for e, factor in enumerate(row):
                        terms[raised(beta, e), zero] += c * factor
        return terms


def raised(index: MultiIndex, axis: int, by: int = 1) -> MultiIndex:
    """A multi-index with another entry along one axis."""
    return (*index[:axis], index[axis] + by, *index[axis + 1 :])
