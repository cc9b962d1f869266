"""Dual certificate of optimality: diag(y) - Abar is psd (appendix B, Fanuel et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.registry import Registered
from daskspectral.solve.whitening import symmetric_part

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Certificate(Registered):
    """Bound on the distance of a solution from the optimum.

    `least_eigenvalue` is that of diag(y) - Abar, y_i = (Abar B)_ii / d_i, or a lower bound; the optimum exceeds the
    objective by at most `gap` = max(0, -least_eigenvalue) sum d. `optimal` is True if the relative gap is within the
    tolerance. `products` counts products with the kernel. With landmarks, `approximation` estimates the relative error
    of E Eᵀ from 1000 probe rows: the distance from the matrix at half the landmarks, times the decrease of its change
    in one step of the full problem. For a `KernelEmbedding`, the eigenvalue is that of diag(y) - (K_bar / n² - λ K^+)
    in the range of K, and `error`, the largest |diag(B) - d| / d, must be within the tolerance too.
    """

    least_eigenvalue: float
    gap: float
    optimal: bool
    products: int = 0
    approximation: float | None = None
    error: float | None = None
    direction: Array | None = field(default=None, repr=False, compare=False)


def certificate(
    least: float, d_sum: float, objective: float, tolerance: float, direction: Array, products: int = 0
) -> Certificate:
    """Return the certificate of a least eigenvalue, with an ascent direction unless optimal."""
    gap = max(0.0, -least) * d_sum
    optimal = bool(gap <= tolerance * abs(objective))
    return Certificate(float(least), float(gap), optimal, products, direction=None if optimal else direction)


def certify_dense(matrix: Array, y: Array, d: Array, tolerance: float) -> Certificate:
    """Return the certificate for Abar (n, n)."""
    matrix = np.diag(y) - matrix
    values, vectors = scipy.linalg.eigh(symmetric_part(matrix), subset_by_index=(0, 0))
    return certificate(values[0], d.sum(), float(d @ y), tolerance, vectors[:, 0], len(y))
