"""Ridge regression from moments, (A + alpha K) a = b, with alpha by generalised cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray

from daskspectral.solve.whiten import whiten

Array = NDArray[np.floating[Any]]

CUTS = {"float64": 1e-15, "float32": 1e-6}  # ten times the rounding of the sums, relative to the largest direction
GRID = 5  # penalties a decade
LEAST_FREE = 1e-3  # share of the observations that a fit leaves free; below it the score is 0 / 0


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Coefficients (p, m) at the penalty `alpha`, and how they were found.

    `score` is the generalised cross-validation at `alpha`; `alphas` and `scores` (g,) are the curve that was searched,
    ascending. `rank` counts the directions that the moments resolve; `freedom` is the trace of the hat matrix.
    """

    coefficients: Array
    alpha: float
    score: float
    rank: int
    freedom: float
    alphas: Array
    scores: Array


def solve_ridge(
    form: Array,
    penalty: Array,
    target: Array,
    squares: Array,
    *,
    observations: int,
    alpha: float | None = None,
    cut: float = CUTS["float64"],
) -> RidgeFit:
    """Minimise a.A a - 2 a.b + squares + alpha a.K a for each column b of `target` (p, m).

    A = `form` and K = `penalty` are (p, p); they, b and `squares` (m,), the squared norms of what is fitted, are means
    over the rows. Without `alpha`, one alpha for all columns has the least score over a number of `observations`:

        GCV(alpha) = residual / (1 - tr(A (A + alpha K)^(-1)) / observations)^2

    A and K may be singular to rounding, both in the same directions: those below `cut` times the largest of
    A + alpha K are left out, and those in which A is no more than rounding. One decomposition gives the curve, a
    second one at its minimum the refined alpha and the coefficients.
    """
    if not np.trace(form) > 0:
        raise ValueError("every basis function is zero on every point; widen the kernel's scale")
    if alpha is not None:
        pencil = _Pencil.at(alpha, form, penalty, target, squares, observations, cut)
        return pencil.fit(alpha, np.array([alpha]), np.array([pencil.score(alpha)]))
    # directions of relative size sqrt(cut), where A, which is like K^2, reaches rounding, weigh the same in both
    anchor = float(np.sqrt(cut) * np.trace(form) / np.trace(penalty))
    pencil = _Pencil.at(anchor, form, penalty, target, squares, observations, cut)
    low, high = np.log10(1e-3 * anchor), np.log10(100 * pencil.largest)
    alphas = np.logspace(low, high, round(GRID * (high - low)) + 1)
    scores = np.array([pencil.score(a) for a in alphas])
    found = float(alphas[::-1][np.argmin(scores[::-1])])  # the largest of several that are equally good
    pencil = _Pencil.at(found, form, penalty, target, squares, observations, cut)
    return pencil.fit(pencil.best_near(found), alphas, scores)


@dataclass(frozen=True, eq=False)
class _Pencil:
    """A + alpha K on the directions that matter near one alpha: Z.T A Z = diag(seen), Z.T K Z = diag(paid)."""

    directions: Array  # Z (p, r)
    seen: Array
    paid: Array
    target: Array  # Z.T b (r, m)
    squares: Array
    observations: int
    floor: float

    @classmethod
    def at(
        cls, anchor: float, form: Array, penalty: Array, target: Array, squares: Array, observations: int, cut: float
    ) -> _Pencil:
        """Diagonalise both on the directions above the cut of A + anchor K, which becomes the identity there."""
        total = form + anchor * penalty
        whitening = whiten(total, cut)
        w = whitening.matrix
        reduced = w.T @ form @ w
        seen, turned = scipy.linalg.eigh(0.5 * (reduced + reduced.T))
        z = w @ turned
        rounding = 0.1 * cut * whitening.spectrum[0] * (np.diag(total) @ z**2)
        z, seen = z[:, seen > rounding], seen[seen > rounding]
        paid = np.maximum(np.einsum("ij,ij->j", z, penalty @ z), 0)
        return cls(z, seen, paid, z.T @ target, squares, observations, 10 * cut * float(squares.sum()) + 1e-300)

    @property
    def largest(self) -> float:
        """The largest alpha at which some direction still keeps half of its coefficient."""
        return float(np.max(self.seen / np.maximum(self.paid, 1e-300)))

    def freedom(self, alpha: float) -> float:
        """The trace of the hat matrix."""
        return float(np.sum(self.seen / (self.seen + alpha * self.paid)))

    def score(self, alpha: float) -> float:
        """Generalised cross-validation, summed over the targets; infinite where the fit leaves nothing free."""
        free = 1 - self.freedom(alpha) / self.observations
        if free < LEAST_FREE:
            return float("inf")
        shrunk = (1 / (self.seen + alpha * self.paid))[:, None]
        explained = np.sum(self.target**2 * shrunk * (2 - shrunk * self.seen[:, None]))
        return max(float(self.squares.sum() - explained), self.floor) / free**2

    def best_near(self, alpha: float) -> float:
        """The alpha of least score within a factor of ten."""

        def height(log: float) -> float:
            return float(np.log(min(self.score(10**log), 1e300)))

        bounds = np.log10(alpha) - 1, np.log10(alpha) + 1
        result = scipy.optimize.minimize_scalar(height, bounds=bounds, method="bounded", options={"xatol": 1e-5})
        return float(10**result.x) if result.fun < height(np.log10(alpha)) else alpha

    def fit(self, alpha: float, alphas: Array, scores: Array) -> RidgeFit:
        """The solution at one alpha."""
        shrunk = (1 / (self.seen + alpha * self.paid))[:, None]
        return RidgeFit(
            self.directions @ (shrunk * self.target),
            alpha,
            self.score(alpha),
            len(self.seen),
            self.freedom(alpha),
            alphas,
            scores,
        )
