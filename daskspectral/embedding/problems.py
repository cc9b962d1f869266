"""Semidefinite problem over all n points, and at p landmarks: every pass is a product with the kernel.

The next columns of the embedding are those of the same problem with Abar' = Abar - C Cᵀ = Abar (I - L Cᵀ), C = Abar L,
L = E (Eᵀ Abar E)^(-1/2), for which Abar' E = 0; they extend to new points as the first ones do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.devices import largest
from daskspectral.embedding.ascent import AscentProblem, Iterate
from daskspectral.embedding.certificate import Certificate, certificate, certify_dense
from daskspectral.registry import Registered
from daskspectral.solve.whitening import inverse_root, symmetric_part, whiten

Array = NDArray[np.floating[Any]]
OWN = 0.9  # share of the diagonal of A excluded from the lengths of the coordinates
WIDENING = 0.1  # size of a new direction relative to a row's length, or to the norm of a state
ZERO = 1e-12  # a diagonal of Abar below this share of its initial value is rounding error
PSEUDO = 1e-10  # eigenvalues of E^T Abar E below this share of the largest are zeros


@dataclass(frozen=True, eq=False)
class DeflatedKernel:
    """Matrix Abar = D K D - v vᵀ of equation (1.2), D = diag(m)^(-1/2), v = √(m / sum m).

    `product` computes K @ h for h (n, c); `m` = K 1 (n,). Each of the pairs `removed`, L and C (n, s), subtracts C Cᵀ.
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

    def without(self, e: Array) -> DeflatedKernel:
        pulled = self @ e
        turn = inverse_root(symmetric_part(e.T @ pulled), PSEUDO)
        return replace(self, removed=(*self.removed, (e @ turn, pulled @ turn)))

    def weights(self, h: Array) -> Array:
        """Return w (n, c) with (Abar h)(x) = k(x, X) w / sqrt(m(x)) at any point."""
        for lifted, c in reversed(self.removed):
            h = h - lifted @ (c.T @ h)
        v = np.sqrt(self.m / self.m.sum())[:, None]
        return np.asarray((h - v * (v.T @ h)) / np.sqrt(self.m)[:, None])

    @property
    def bound(self) -> Array:
        """Bound alpha(x_i) = 1/m_i - m_i / sum m, equation (1.4), the diagonal of (1.2)."""
        return np.asarray(1 / self.m - self.m / self.m.sum())

    def diagonal(self) -> Array:
        return np.asarray(self.bound - sum(np.square(c).sum(axis=1) for _, c in self.removed))


@dataclass(frozen=True, eq=False)
class ExactProblem(AscentProblem):
    """Problem in coordinates G (n, r), whose rows matter by their direction alone.

    E = √(d) h, h_i = g_i / |g_i| (C.1). The power step assigns row i the squared length |(A h)_i| - 0.9 A_ii, A =
    diag(d)^(1/2) Abar diag(d)^(1/2): without the diagonal of A the Hessian is near I for any bandwidth.
    """

    matrix: Any  # Abar, with a product @ and its diagonal()
    d: Array

    @cached_property
    def own(self) -> Array:
        """Diagonal of A (n,)."""
        return np.asarray(self.d * self.matrix.diagonal())

    def evaluate(self, point: Array) -> Iterate:
        root, length = np.sqrt(self.d)[:, None], np.linalg.norm(point, axis=1, keepdims=True)
        h = point / length
        pulled = root * (self.matrix @ (root * h))
        along = np.sum(pulled * h, axis=1, keepdims=True)
        across = pulled - along * h
        norm = np.linalg.norm(pulled, axis=1, keepdims=True)
        moved = norm > 0
        stiffness = np.maximum(norm - OWN * self.own[:, None], (1 - OWN) * norm)
        power = np.where(moved, pulled * np.sqrt(stiffness) / np.where(moved, norm, 1.0), point)
        lost = np.divide(across**2, norm, out=np.zeros_like(across), where=moved).sum()
        objective = float(along.sum())
        moment = (self.d[:, None] * h).T @ h
        return Iterate(point, objective, 2 * across / length, power, float(np.sqrt(lost / abs(objective))), moment)

    def embedding(self, point: Array) -> Array:
        e: Array = np.sqrt(self.d)[:, None] * point / np.linalg.norm(point, axis=1, keepdims=True)
        return e

    def dual(self, e: Array) -> Array:
        """Return y_i = (Abar B)_ii / d_i, (n,)."""
        return np.asarray(np.sum((self.matrix @ e) * e, axis=1) / self.d)

    def certify(self, point: Array, tolerance: float) -> Certificate:
        y = self.dual(self.embedding(point))
        return certify_dense(self.matrix @ np.eye(len(y)), y, self.d, tolerance)

    @property
    def is_zero(self) -> bool:
        return not self.own.sum() > ZERO * float(self.d.sum())

    def deflated(self, point: Array) -> ExactProblem:
        return ExactProblem(self.matrix.without(self.embedding(point)), self.d)

    def with_column(self, point: Array, direction: Array) -> Array:
        length = np.linalg.norm(point, axis=1)
        column = direction / np.sqrt(self.d)
        return np.column_stack([point, WIDENING * length * column / np.abs(column).max()])


# -- at p landmarks: a state of q × r numbers, one pass over the rows per iteration ------------------------------------


Sums = Mapping[str, Any]
CUT = 1e-10  # relative cut of the eigenvalues of k(Y, Y)
NOTHING = 1e-6  # singular values of a state below this share of the largest are rounding errors


@dataclass(frozen=True, eq=False)
class Degrees(Registered):
    """Degrees m(x) = weights.k(Y, x), their `total` over rows, and bounds d(x) = 1 / m(x) - m(x) / total (1.4).

    `longest` is the largest bound of a row of the fit; None if unknown, or if bounds are given.
    """

    weights: Array
    total: float
    longest: float | None = None

    def bound(self, m: Array, given: Array | None = None) -> Array:
        """Return d (c,) at points with masses m (c,), unless bounds are given."""
        found: Array = 1 / m - m / self.total
        return found if given is None else given


@dataclass(frozen=True, eq=False)
class LandmarkWhitening:
    """Whitening of the kernel at landmarks, W (p, q), and sums σ (q,) over all points.

    The orthonormal columns `removed` (q, s) are left out of P: with R = P Fᵀ E in their span, F (I - R R^+) Fᵀ is the
    matrix of the columns after E.
    """

    whitening: Array
    sigma: Array
    removed: Array | None = None

    @classmethod
    def of(cls, gram: Array, total: Array) -> LandmarkWhitening:
        """Return the whitening for k(Y, Y) (p, p) and the sum of k(Y, x_i) over all points (p,)."""
        w = whiten(gram, CUT).matrix
        return cls(w, w.T @ total)

    @cached_property
    def masses(self) -> Degrees:
        """Return the degrees m_i = sigma.psi_i, with the total |sigma|^2."""
        return Degrees(self.whitening @ self.sigma, float(self.sigma @ self.sigma))

    def projected(self, z: Array) -> Array:
        """Return P z."""
        found: Array = z - np.outer(self.sigma, self.sigma @ z) / self.masses.total
        return found if self.removed is None else found - self.removed @ (self.removed.T @ found)

    def without(self, z: Array) -> LandmarkWhitening:
        """Return the whitening for the columns after a state (q, r)."""
        z = self.projected(z)
        vectors, sizes, _ = np.linalg.svd(z, full_matrices=False)
        fresh = vectors[:, sizes > NOTHING * sizes[0]]
        return replace(self, removed=fresh if self.removed is None else np.hstack([self.removed, fresh]))

    def coefficients(self, z: Array) -> Array:
        """Return V (p, r) = W P z: psi_i^T P z = k_i^T V."""
        return np.asarray(self.whitening @ self.projected(z))

    def state(self, total: Array) -> Array:
        """Return P W^T of sums (p, r) over the rows."""
        return self.projected(self.whitening.T @ total)

    def square(self, total: Array) -> Array:
        """Return P W^T total W P of sums (p, p) over the rows, (q, q)."""
        inner = self.whitening.T @ total @ self.whitening
        half = self.projected(symmetric_part(inner))
        return self.projected(half.T)


@dataclass(frozen=True)
class Maximum:
    """Maximum, which adds up like a sum."""

    value: float = 0.0

    def __add__(self, other: Maximum) -> Maximum:
        return self if self.value >= other.value else other


@dataclass(frozen=True, eq=False)
class GradientTask:
    """Power step Σ_i √(d_i / m_i) k_i h_iᵀ (p, r), Σ_i √(d_i) |u_i|, and Eᵀ E = Σ_i d_i h_i h_iᵀ (r, r).

    u_i = Vᵀ k_i / √(m_i), h_i = u_i / |u_i|.
    """

    masses: Degrees

    def __call__(self, k: Array, v: Array, d: Array | None) -> dict[str, Any]:
        both = np.column_stack([self.masses.weights, v]).T @ k  # one product reads k once
        m, u = both[0], both[1:].T
        bound = self.masses.bound(m, d)
        length = np.linalg.norm(u, axis=1, keepdims=True)
        h = u / np.where(length > 0, length, 1.0)
        weight = np.sqrt(bound / m)
        return {
            "state": k @ (weight[:, None] * h),
            "length": weight @ length[:, 0],
            "moment": (bound[:, None] * h).T @ h,
        }


@dataclass(frozen=True, eq=False)
class CertificateTask:
    """Sums over rows for the certificate.

    sum_i k_i k_i^T / (m_i y_i) (p, p), sum d_i y_i, sum d_i, and the largest y_i = |u_i| / sqrt(d_i).
    """

    masses: Degrees

    def __call__(self, k: Array, v: Array, d: Array | None) -> dict[str, Any]:
        m = k.T @ self.masses.weights
        bound = self.masses.bound(m, d)
        y = np.linalg.norm(k.T @ v, axis=1) / np.sqrt(m * bound)
        scaled = k / np.sqrt(m * y)
        return {
            "square": scaled @ scaled.T,
            "objective": bound @ y,
            "bound": bound.sum(),
            "largest": Maximum(largest(y)),
        }


@dataclass(frozen=True, eq=False)
class LowRankProblem(AscentProblem):
    """Problem in coordinates Z (q, r) at landmarks, in concave-convex form.

    The objective 2 Σ_i √(d_i) |F_iᵀ Z| - |P Z|² has the maximum Tr(Abar B) at h_i = F_iᵀ Z / |F_iᵀ Z|, the gradient 2
    (Z' - Z) with the power step Z' = Σ_i √(d_i) F_i h_iᵀ, and the Hessian 2 (S - I), 0 ≤ S ≤ I at the optimum. Points
    are scaled so that the objective is largest, |P Z|².
    """

    whitened: LandmarkWhitening
    gradient_sums: Callable[[Array], Sums]
    certificate_sums: Callable[[Array], Sums]

    def evaluate(self, point: Array) -> Iterate:
        sums = self.gradient_sums(self.whitened.coefficients(point))
        z, following = self.whitened.projected(point), self.whitened.state(sums["state"])
        scale = float(sums["length"]) / float(np.vdot(z, z))
        z, objective = scale * z, scale * float(sums["length"])
        step = following - z
        residual = float(np.linalg.norm(step) / np.sqrt(objective))
        return Iterate(z, objective, 2 * step, following, residual, np.asarray(sums["moment"]))

    def certify(self, point: Array, tolerance: float) -> Certificate:
        """Return the certificate at a point.

        diag(y) - F Fᵀ is psd if no eigenvalue of Σ_i F_i F_iᵀ / y_i (q, q) exceeds 1. y is that of the point scaled to
        the largest objective, which equals d.y.
        """
        sums, norm = (
            self.certificate_sums(self.whitened.coefficients(point)),
            np.sum(self.whitened.projected(point) ** 2),
        )
        scale = float(sums["objective"] / norm)
        values, vectors = np.linalg.eigh(self.whitened.square(sums["square"]))
        least = min(0.0, scale - float(values[-1])) * float(sums["largest"])
        objective = scale * float(sums["objective"])
        return certificate(least, float(sums["bound"]), objective, tolerance, vectors[:, -1])

    @property
    def is_zero(self) -> bool:
        return 1 + (0 if self.whitened.removed is None else self.whitened.removed.shape[1]) >= len(self.whitened.sigma)

    def deflated(self, point: Array) -> LowRankProblem:
        return replace(self, whitened=self.whitened.without(self.evaluate(point).power))

    def with_column(self, point: Array, direction: Array) -> Array:
        return np.column_stack([point, WIDENING * np.linalg.norm(point) * direction])
