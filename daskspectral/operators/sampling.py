"""Rows that are not uniform on a manifold, weighed so that means over them are means over the manifold."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.basis import InvariantBasis
from daskspectral.registry import Registered, encode

Array = NDArray[np.floating[Any]]
RIDGE = 1e-6  # of the coefficients, whose functions have the mean square 1
STEPS = 50
ROUNDING = 1e-10
BLOCK = 4096


@dataclass(frozen=True, eq=False, repr=False)
class ImportanceWeights(Registered):
    """w(x) = exp(c.u(x)) with invariant functions u of a manifold: 1 over the density of the rows, up to a factor.

    The weighted means of the functions over the rows are those of the uniform probability, (1, 0, 0, ...). Only the
    density averaged over the group is estimated, and this is all that means of invariant functions depend on.
    `coefficients` (r,) are those of `basis`; w has the mean 1 over the rows from which it was estimated.
    """

    expects: ClassVar = {"basis": InvariantBasis}

    basis: InvariantBasis
    coefficients: Array

    def __call__(self, x: Array) -> Array:
        """w (c,) at points x (c, d)."""
        parts = [self.coefficients @ self.basis.values(x[i : i + BLOCK]) for i in range(0, len(x), BLOCK)]
        return np.asarray(np.exp(np.concatenate(parts))) if parts else np.empty(0)

    @cached_property
    def digest(self) -> str:
        """Of all that decides its values."""
        digest = hashlib.sha256(repr(encode(self.basis)).encode())
        digest.update(np.ascontiguousarray(self.coefficients, dtype=float).tobytes())
        return digest.hexdigest()[:16]

    def __repr__(self) -> str:
        return f"ImportanceWeights({self.basis.description}, {self.digest})"

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, ImportanceWeights) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)


def balanced(values: Array, weights: Array) -> Array:
    """The c (r,) that minimises log Σ_k p_k exp(c.u_k) + ridge |c|² / 2, for functions u (n, r) of mean 0.

    At the minimum Σ_k p_k exp(c.u_k) u_k = 0 up to the ridge: weights exp(c.u) give the rows, of the probabilities
    p = `weights` (n,), the means that the uniform probability has (entropy balancing; Hainmueller 2012). The minimum
    over all functions is minus the relative entropy of the uniform probability to that of the rows.
    """
    r = values.shape[1]
    c, height = np.zeros(r), 0.0
    for _ in range(STEPS):
        p = _tilted(values, weights, c)[0]
        first = p @ values
        slope = first + RIDGE * c
        if np.abs(slope).max(initial=0) < ROUNDING:
            break
        bend = (values * p[:, None]).T @ values - np.outer(first, first) + RIDGE * np.eye(r)
        step = scipy.linalg.solve(bend, slope, assume_a="sym")
        for _ in range(STEPS):  # halved until it descends
            lower = dual(values, weights, c - step) + 0.5 * RIDGE * float(np.sum((c - step) ** 2))
            if lower <= height + ROUNDING:
                break
            step /= 2
        c, height = c - step, lower
        if not within_reach(height, len(values)):
            break
    return c


def within_reach(height: float, rows: int) -> bool:
    """Whether a minimum of so many rows tells of more than a few of them: minus .7 times the entropy log n at least.

    Where no weights give the rows the means of the uniform probability, there is no minimum at all.
    """
    return bool(height > -0.7 * np.log(max(rows, 2)))


def dual(values: Array, weights: Array, c: Array) -> float:
    """log sum_k p_k exp(c.u_k) for probabilities p = `weights` (n,)."""
    return _tilted(values, weights, c)[1]


def _tilted(values: Array, weights: Array, c: Array) -> tuple[Array, float]:
    """The probabilities proportional to p exp(c.u), and the logarithm of their sum before."""
    with np.errstate(divide="ignore"):
        exponent = values @ c + np.log(weights)
    top = float(exponent.max())
    p = np.exp(exponent - top)
    total = float(p.sum())
    return p / total, top + float(np.log(total))
