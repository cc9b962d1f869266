"""Dirichlet forms of kernel functions at landmarks from a few products of matrices a block."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskspectral.basis.base import Array
from daskspectral.basis.evaluation import Arena
from daskspectral.kernels import DotKernel, RadialKernel


class RadialGradientSum:
    """L = (M + Mᵀ)/2 - (Δ o G)/2 with M = (s o T) Tᵀ and G = T Tᵀ (Algorithm 3 by polarisation).

    The landmarks (p, d) are centred as the points are.
    """

    def __init__(self, kernel: RadialKernel, landmarks: Array, dtype: Any, arena: Arena):
        p = len(landmarks)
        self.landmarks, self.ratio, self.slope = landmarks, kernel.proportional, kernel.slope
        self.m = arena.zeros((p, p))
        self.g = None if self.ratio is not None else arena.zeros((p, p))
        self.buffer = arena.get("product", (p, p), dtype)

    def add(self, evaluation: Any) -> None:
        t = evaluation.q if self.ratio is not None else evaluation.t
        np.matmul(evaluation.weighted_distances(t), t.T, out=self.buffer)
        self.m += self.buffer
        if self.g is not None:
            np.matmul(t, t.T, out=self.buffer)
            self.g += self.buffer

    def result(self, gram: Array) -> Array:
        y = self.landmarks
        squares = np.einsum("id,id->i", y, y)
        delta = -2 * y @ y.T  # in place from here on: fresh pages cost more than the arithmetic
        delta += squares[:, None] + squares
        np.maximum(delta, 0, out=delta)
        np.fill_diagonal(delta, 0)
        delta *= gram if self.g is None else self.g
        m = self.m if self.ratio is None else self.m * (2 / self.ratio)  # M was summed with exponents; now with s
        found: Array = m + m.T
        found -= delta
        found *= 0.5 * (self.slope if self.ratio is None else self.ratio) ** 2
        return found


class DotGradientSum:
    """L = (q'(X) q'(X)^T) o (Y Y^T) (Algorithm 2)."""

    def __init__(self, kernel: DotKernel, landmarks: Array, dtype: Any, arena: Arena):
        self.landmarks, self.slope = landmarks, kernel.slope
        self.g = arena.zeros((len(landmarks), len(landmarks)))
        self.buffer = arena.get("product", self.g.shape, dtype)

    def add(self, evaluation: Any) -> None:
        np.matmul(evaluation.t, evaluation.t.T, out=self.buffer)
        self.g += self.buffer

    def result(self, gram: Array) -> Array:
        found: Array = self.slope**2 * self.g * (self.landmarks @ self.landmarks.T)
        return found
