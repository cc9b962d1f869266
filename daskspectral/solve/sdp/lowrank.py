"""The problem for any number of points: the kernel at p landmarks, a state of q × r numbers, one pass per iteration.

With ψ(x) = Wᵀ k(Y, x), W Wᵀ = k(Y, Y)^+, the kernel k(x, x') is ψ(x).ψ(x'); with σ = Σ_i ψ_i,
m_i = ψ_i.σ, M = |σ|² and P = I - σσᵀ / M, the rows F_i = P ψ_i / √(m_i) give Abar = F Fᵀ.
Blocks of rows come as kernel values k (p, c); W is applied to the sums, not to the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.devices import largest
from daskspectral.solve.sdp.ascent import Iterate, Problem
from daskspectral.solve.sdp.certificate import Certificate, certificate
from daskspectral.solve.whitening import symmetric_part, whiten

Array = NDArray[np.floating[Any]]
Sums = Mapping[str, Any]
WIDENING = 0.1  # what a new direction adds, as a share of the state's norm
CUT = 1e-10  # relative, of the eigenvalues of k(Y, Y)
NOTHING = 1e-6  # singular values of a state below this share of the largest are rounding


@dataclass(frozen=True, eq=False)
class Frame:
    """W (p, q) and σ (q,): all that a block needs to know of the other points.

    The orthonormal columns `removed` (q, s) are left out of P: with R = P Fᵀ E in their span, F (I - R R^+) Fᵀ is
    Abar - Abar E (Eᵀ Abar E)^+ Eᵀ Abar, the matrix of the columns that follow E.
    """

    whitening: Array
    sigma: Array
    removed: Array | None = None

    @classmethod
    def of(cls, gram: Array, total: Array) -> Frame:
        """From k(Y, Y) (p, p) and the sum of k(Y, x_i) over all points (p,)."""
        w = whiten(gram, CUT).matrix
        return cls(w, w.T @ total)

    @cached_property
    def masses(self) -> Array:
        """Coefficients (p,) of m: m_i = masses.k_i."""
        found: Array = self.whitening @ self.sigma
        return found

    @property
    def total(self) -> float:
        """M = sum_i m_i."""
        return float(self.sigma @ self.sigma)

    def projected(self, z: Array) -> Array:
        """P z."""
        found: Array = z - np.outer(self.sigma, self.sigma @ z) / self.total
        return found if self.removed is None else found - self.removed @ (self.removed.T @ found)

    def without(self, z: Array) -> Frame:
        """The frame of the columns that follow a state (q, r)."""
        z = self.projected(z)
        vectors, sizes, _ = np.linalg.svd(z, full_matrices=False)
        fresh = vectors[:, sizes > NOTHING * sizes[0]]
        return replace(self, removed=fresh if self.removed is None else np.hstack([self.removed, fresh]))

    def coefficients(self, z: Array) -> Array:
        """V (p, r) = W P z: psi_i^T P z = k_i^T V."""
        return np.asarray(self.whitening @ self.projected(z))

    def state(self, total: Array) -> Array:
        """P W^T of sums (p, r) over the rows."""
        return self.projected(self.whitening.T @ total)

    def square(self, total: Array) -> Array:
        """P W^T total W P of sums (p, p) over the rows, (q, q)."""
        inner = self.whitening.T @ total @ self.whitening
        half = self.projected(symmetric_part(inner))
        return self.projected(half.T)


@dataclass(frozen=True)
class Largest:
    """The largest of numbers, which adds up like a sum."""

    value: float = 0.0

    def __add__(self, other: Largest) -> Largest:
        return self if self.value >= other.value else other


@dataclass(frozen=True, eq=False)
class Pull:
    """The power step Σ_i √(d_i / m_i) k_i h_iᵀ (p, r), Σ_i √(d_i) |u_i|, and Eᵀ E (r, r).

    Eᵀ E = Σ_i d_i h_i h_iᵀ with u_i = Vᵀ k_i / √(m_i), h_i = u_i / |u_i|.
    """

    masses: Array
    total: float

    def __call__(self, k: Array, v: Array, d: Array | None) -> dict[str, Any]:
        both = np.column_stack([self.masses, v]).T @ k  # one product: k is read once
        m, u = both[0], both[1:].T
        bound = alpha(m, self.total) if d is None else d
        length = np.linalg.norm(u, axis=1, keepdims=True)
        h = u / np.where(length > 0, length, 1.0)
        weight = np.sqrt(bound / m)
        return {
            "state": k @ (weight[:, None] * h),
            "length": weight @ length[:, 0],
            "moment": (bound[:, None] * h).T @ h,
        }


@dataclass(frozen=True, eq=False)
class Prove:
    """sum_i k_i k_i^T / (m_i y_i) (p, p) with y_i = |u_i| / sqrt(d_i); sum d_i y_i, sum d_i, and the largest y_i."""

    masses: Array
    total: float

    def __call__(self, k: Array, v: Array, d: Array | None) -> dict[str, Any]:
        m = k.T @ self.masses
        bound = alpha(m, self.total) if d is None else d
        y = np.linalg.norm(k.T @ v, axis=1) / np.sqrt(m * bound)
        scaled = k / np.sqrt(m * y)
        return {
            "square": scaled @ scaled.T,
            "objective": bound @ y,
            "bound": bound.sum(),
            "largest": Largest(largest(y)),
        }


def alpha(m: Array, total: float) -> Array:
    """1 / m_i - m_i / sum m, the diagonal of Abar: equation (1.4)."""
    found: Array = 1 / m - m / total
    return found


@dataclass(frozen=True, eq=False)
class LowRankProblem(Problem):
    """Coordinates Z (q, r): the concave-convex form 2 Σ_i √(d_i) |F_iᵀ Z| - |P Z|² of the objective.

    Its maximum over Z is Tr(Abar B) at h_i = F_iᵀ Z / |F_iᵀ Z|, its gradient at Z is 2 (Z' - Z) with the power step
    Z' = Σ_i √(d_i) F_i h_iᵀ, and the Hessian is 2 (S - I) with S between 0 and I at the optimum. The h_i do not
    depend on the scale of Z: each point is scaled so that the objective is largest, where it equals |P Z|² and is no
    more than Tr(Abar B). `pull` and `prove` return the sums of `Pull` and `Prove` over all rows, for V (p, r).
    """

    frame: Frame
    pull: Callable[[Array], Sums]
    prove: Callable[[Array], Sums]

    def evaluate(self, point: Array) -> Iterate:
        sums = self.pull(self.frame.coefficients(point))
        z, following = self.frame.projected(point), self.frame.state(sums["state"])
        scale = float(sums["length"]) / float(np.vdot(z, z))
        z, objective = scale * z, scale * float(sums["length"])
        step = following - z
        residual = float(np.linalg.norm(step) / np.sqrt(objective))
        return Iterate(z, objective, 2 * step, following, residual, np.asarray(sums["moment"]))

    def certify(self, point: Array, tolerance: float) -> Certificate:
        """diag(y) - F Fᵀ is psd where no eigenvalue of Σ_i F_i F_iᵀ / y_i (q, q) is above 1.

        y belongs to the point at the scale at which the objective is largest, and equals d.y.
        """
        sums, norm = self.prove(self.frame.coefficients(point)), np.sum(self.frame.projected(point) ** 2)
        scale = float(sums["objective"] / norm)
        values, vectors = np.linalg.eigh(self.frame.square(sums["square"]))
        least = min(0.0, scale - float(values[-1])) * float(sums["largest"])
        objective = scale * float(sums["objective"])
        return certificate(least, float(sums["bound"]), objective, tolerance, vectors[:, -1])

    @property
    def spent(self) -> bool:
        return 1 + (0 if self.frame.removed is None else self.frame.removed.shape[1]) >= len(self.frame.sigma)

    def deflated(self, point: Array) -> LowRankProblem:
        return replace(self, frame=self.frame.without(self.evaluate(point).power))

    def widened(self, point: Array, direction: Array) -> Array:
        return np.column_stack([point, WIDENING * np.linalg.norm(point) * direction])
