"""Multinomial logistic regression from gradients alone: a bound of the Hessian, factored once, guides the descent."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
MEMORY = 10  # pairs of steps and changes of the gradient
ENOUGH = 1e-4  # of the decrease that the gradient promises
ROUNDING = 1e-15  # of the objective


def probabilities(scores: Array) -> Array:
    """exp(s_k) / sum_l exp(s_l) for scores (..., K, c), along the classes."""
    shifted = scores - scores.max(axis=-2, keepdims=True)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=-2, keepdims=True)
    return np.asarray(shifted)


@dataclass(frozen=True, eq=False)
class ClassMeans:
    """What one pass tells of rows with labels: `gram` (r, r), the means of u uᵀ, and the `shares` (K,) of the classes.

    `constant` is the value of the first function, which is a constant; `weights` (r,) are those of the penalty
    Σ_j weights_j |c_j|², 0 for the constant.
    """

    gram: Array
    shares: Array
    constant: float
    weights: Array

    @property
    def intercept(self) -> Array:
        """Coefficients (r, K) of the constant alone, by which every row has the shares as its probabilities."""
        logs = np.log(self.shares)
        start = np.zeros((len(self.gram), len(self.shares)))
        start[0] = (logs - logs.mean()) / self.constant
        return start

    @property
    def largest(self) -> float:
        """The penalty above which the bound of the Hessian is the penalty's, but for the constant."""
        roots = 1 / np.sqrt(self.weights[1:])
        scaled = 0.5 * roots[:, None] * self.gram[1:, 1:] * roots
        return float(scipy.linalg.eigvalsh(scaled, subset_by_index=[len(scaled) - 1] * 2)[0]) if len(scaled) else 1.0

    def bound(self, alpha: float, excess: float = 1.0) -> FixedHessian:
        """The bound of the Hessian at one penalty; `excess` is by how much means over some of the rows may be larger.

        The mean log loss has a Hessian of at most (I - 1 1ᵀ / K) / 2 times the Gram matrix (Boehning 1992), which is
        1 / 2 on coefficients that add up to 0 over the classes.
        """
        matrix = 0.5 * excess * self.gram + np.diag(alpha * self.weights)
        matrix[np.diag_indices_from(matrix)] += 1e-14 * np.trace(matrix) / len(matrix)
        return FixedHessian(scipy.linalg.cho_factor(matrix), alpha * self.weights)


@dataclass(frozen=True, eq=False)
class FixedHessian:
    """The factor of a matrix B (r, r) that bounds the Hessian of every class, and the penalty's weights (r,) in it."""

    factor: Any
    weights: Array

    def solve(self, gradient: Array) -> Array:
        """B^(-1) times a gradient (r, K)."""
        return np.asarray(scipy.linalg.cho_solve(self.factor, gradient, check_finite=False))

    def penalised(self, point: Array, loss: float, gradient: Array) -> tuple[float, Array]:
        """The objective and its gradient (r, K) at coefficients (r, K), from those of the mean log loss."""
        paid = self.weights[:, None] * point
        return loss + 0.5 * float(np.sum(point * paid)), gradient + paid


@dataclass(eq=False)
class Descent:
    """A descent of the penalised log loss: `point` (r, K) is to be evaluated next, `best` is the lowest so far.

    Steps are those of limited-memory BFGS whose first metric is the bound B. Where one does not lower the objective
    enough, the next is -B⁻¹ gradient from the best point, which lowers it by half its squared length in B at least.
    The objective at `best` never rises but for rounding.
    """

    hessian: FixedHessian
    point: Array
    tolerance: float
    best: Array | None = None
    value: float = np.inf
    gap: float = np.inf
    """Half the squared gradient in the metric of B: the least by which the objective can still fall."""
    done: bool = False
    _gradient: Array | None = None
    _promised: float = 0.0
    _safe: bool = True
    _pairs: deque[tuple[Array, Array, float]] = field(default_factory=lambda: deque(maxlen=MEMORY))

    def receive(self, loss: float, gradient: Array) -> None:
        """Take the mean log loss at `point` and its gradient (r, K), and choose the next point, unless it is `done`."""
        if self.done:
            return
        value, gradient = self.hessian.penalised(self.point, loss, gradient)
        if self.best is None:
            self._keep(value, gradient)
        elif value <= self.value - ENOUGH * self._promised + ROUNDING * abs(self.value):
            assert self._gradient is not None
            step, change = self.point - self.best, gradient - self._gradient
            curvature = float(np.sum(step * change))
            if curvature > 0:
                self._pairs.append((step, change, curvature))
            self._keep(value, gradient)
        elif self._safe:  # a safe step lowers the objective by what it promises: what is left is rounding
            self.done = True
        else:
            self._pairs.clear()
        if not self.done:
            self._advance()

    def _keep(self, value: float, gradient: Array) -> None:
        self.best, self.value, self._gradient = self.point, min(value, self.value), gradient
        self.gap = 0.5 * float(np.sum(gradient * self.hessian.solve(gradient)))
        self.done = self.gap <= self.tolerance

    def _advance(self) -> None:
        assert self.best is not None
        assert self._gradient is not None
        direction = self._direction(self._gradient)
        slope = float(np.sum(direction * self._gradient))
        self._safe = not self._pairs
        if slope >= 0:
            self._pairs.clear()
            direction, self._safe = -self.hessian.solve(self._gradient), True
            slope = float(np.sum(direction * self._gradient))
        self._promised = -slope
        self.point = self.best + direction

    def _direction(self, gradient: Array) -> Array:
        """Minus the metric of limited-memory BFGS times the gradient, by the two-loop recursion."""
        q, shares = gradient.copy(), []
        for step, change, curvature in reversed(self._pairs):
            share = float(np.sum(step * q)) / curvature
            q -= share * change
            shares.append(share)
        q = self.hessian.solve(q)
        if self._pairs:
            step, change, curvature = self._pairs[-1]
            q *= curvature / float(np.sum(change * self.hessian.solve(change)))
        for (step, change, curvature), share in zip(self._pairs, reversed(shares), strict=True):
            q += (share - float(np.sum(change * q)) / curvature) * step
        return -q
