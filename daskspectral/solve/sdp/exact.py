"""The problem over all n points: every pass is a product with the kernel.

Abar' = Abar - C Cᵀ with C = Abar L, L = E (Eᵀ Abar E)^(-1/2), is positive semidefinite where Abar is, and Abar' E is
0: the next columns of the embedding are those of the same problem with Abar' in place of Abar. As Abar' is
Abar (I - L Cᵀ), they extend to new points as the first ones do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.solve.sdp.ascent import Iterate, Problem
from daskspectral.solve.sdp.certificate import DENSE, Certificate, certify_dense, certify_lanczos
from daskspectral.solve.whitening import inverse_root, symmetric_part

Array = NDArray[np.floating[Any]]
OWN = 0.9  # share of the diagonal of A that the lengths of the coordinates leave out
WIDENING = 0.1  # what a new direction adds, as a share of a row's length
ZERO = 1e-12  # a diagonal of Abar below this share of what it was is rounding
PSEUDO = 1e-10  # eigenvalues of E^T Abar E below this share of the largest are zeros


@dataclass(frozen=True, eq=False)
class Deflated:
    """Abar = D K D - v vᵀ with D = diag(m)^(-1/2), v = √(m / sum m): equation (1.2), with v of unit norm.

    `product` is K, known by K @ h for h (n, c); `m` = K 1 (n,). Each of the pairs `removed`, L and C (n, s), subtracts
    C Cᵀ.
    """

    product: Any
    m: Array
    removed: tuple[tuple[Array, Array], ...] = ()

    def __matmul__(self, h: Array) -> Array:
        root = np.sqrt(self.m)[:, None]
        v = root / np.sqrt(self.m.sum())
        result: Array = self.product @ (h / root) / root - v * (v.T @ h)
        for _, c in self.removed:
            result = result - c @ (c.T @ h)
        return result

    def without(self, e: Array) -> Deflated:
        """Abar without the columns of E (n, r)."""
        pulled = self @ e
        turn = inverse_root(symmetric_part(e.T @ pulled), PSEUDO)
        return replace(self, removed=(*self.removed, (e @ turn, pulled @ turn)))

    def weights(self, h: Array) -> Array:
        """Weights w (n, c) of the kernel: Abar h at x_i is k(x_i, X) w / sqrt(m_i), here and at any new point."""
        for lifted, c in reversed(self.removed):
            h = h - lifted @ (c.T @ h)
        v = np.sqrt(self.m / self.m.sum())[:, None]
        return np.asarray((h - v * (v.T @ h)) / np.sqrt(self.m)[:, None])

    @property
    def bound(self) -> Array:
        """alpha(x_i) = 1/m_i - m_i / sum m, the diagonal of (1.2) for a kernel with k(x, x) = 1: equation (1.4)."""
        return np.asarray(1 / self.m - self.m / self.m.sum())

    @property
    def diagonal(self) -> Array:
        """The diagonal of Abar (n,)."""
        return np.asarray(self.bound - sum(np.square(c).sum(axis=1) for _, c in self.removed))


@dataclass(frozen=True, eq=False)
class ExactProblem(Problem):
    """Coordinates G (n, r), whose rows matter by their direction alone: E = √(d) h, h_i = g_i / |g_i| (C.1).

    The power step gives row i the squared length |(A h)_i| - 0.9 A_ii, A = diag(d)^(1/2) Abar diag(d)^(1/2): with the
    diagonal of A, which does not pull a row in any direction, left out, the Hessian is near I, whatever the bandwidth.
    """

    matrix: Any  # Abar, with a product @
    d: Array
    own: Array | None = None  # the diagonal of A (n,)

    def evaluate(self, point: Array) -> Iterate:
        root, length = np.sqrt(self.d)[:, None], np.linalg.norm(point, axis=1, keepdims=True)
        h = point / length
        pulled = root * (self.matrix @ (root * h))
        along = np.sum(pulled * h, axis=1, keepdims=True)
        across = pulled - along * h
        norm = np.linalg.norm(pulled, axis=1, keepdims=True)
        moved = norm > 0
        own = 0.0 if self.own is None else OWN * self.own[:, None]
        stiffness = np.maximum(norm - own, (1 - OWN) * norm)
        power = np.where(moved, pulled * np.sqrt(stiffness) / np.where(moved, norm, 1.0), point)
        lost = np.divide(across**2, norm, out=np.zeros_like(across), where=moved).sum()
        objective = float(along.sum())
        moment = (self.d[:, None] * h).T @ h
        return Iterate(point, objective, 2 * across / length, power, float(np.sqrt(lost / abs(objective))), moment)

    def embedding(self, point: Array) -> Array:
        """E (n, r)."""
        e: Array = np.sqrt(self.d)[:, None] * point / np.linalg.norm(point, axis=1, keepdims=True)
        return e

    def dual(self, e: Array) -> Array:
        """y_i = (Abar B)_ii / d_i, (n,)."""
        return np.asarray(np.sum((self.matrix @ e) * e, axis=1) / self.d)

    def certify(self, point: Array, tolerance: float) -> Certificate:
        e = self.embedding(point)
        y = self.dual(e)
        if len(y) <= DENSE:
            return certify_dense(self.matrix @ np.eye(len(y)), y, self.d, tolerance)
        return certify_lanczos(self.matrix, y, e, self.d, tolerance)

    @classmethod
    def of(cls, matrix: Deflated, d: Array) -> ExactProblem:
        """The problem of Abar, with its diagonal left out of the lengths of the coordinates."""
        return cls(matrix, d, d * matrix.diagonal)

    @property
    def spent(self) -> bool:
        return self.own is not None and not self.own.sum() > ZERO * float(self.d.sum())

    def deflated(self, point: Array) -> ExactProblem:
        return ExactProblem.of(self.matrix.without(self.embedding(point)), self.d)

    def widened(self, point: Array, direction: Array) -> Array:
        length = np.linalg.norm(point, axis=1)
        column = direction / np.sqrt(self.d)
        return np.column_stack([point, WIDENING * length * column / np.abs(column).max()])
