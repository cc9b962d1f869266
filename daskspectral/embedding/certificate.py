"""The dual certificate, which proves an embedding optimal: is diag(y) - Abar psd (appendix B, Fanuel et al. 2022)?"""

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
    """A bound on how far from the optimum a solution can be.

    `least_eigenvalue` is the least eigenvalue of diag(y) - Abar for y_i = (Abar B)_ii / d_i, or a lower bound of it.
    Where it is negative, y - least_eigenvalue is dual feasible, and the optimum is above the objective by no more than
    gap = max(0, -least_eigenvalue) sum d. `optimal` says whether the gap, relative to the objective, is within the
    tolerance asked for. `products` counts the vectors that the kernel was multiplied by for the proof.

    With landmarks the certificate is of the problem at the landmarks. `approximation` then estimates the error of its
    Gram matrix E Eᵀ, relative to that of the full problem, from 1000 probe rows: how far the matrix is from that at
    half the landmarks, shrunk as one step of the full problem moves it less.

    Of a `KernelEmbedding`, the eigenvalue is that of diag(y) - (K_bar / n² - λ K^+) in the range of K, all in the units
    of the objective, and `error` is the largest |diag(B) - d| / d, which must be within the tolerance too.
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
    """The certificate from a least eigenvalue; it keeps the direction of further ascent where it is not optimal."""
    gap = max(0.0, -least) * d_sum
    optimal = bool(gap <= tolerance * abs(objective))
    return Certificate(float(least), float(gap), optimal, products, direction=None if optimal else direction)


def certify_dense(matrix: Array, y: Array, d: Array, tolerance: float) -> Certificate:
    """Return the certificate from Abar (n, n)."""
    matrix = np.diag(y) - matrix
    values, vectors = scipy.linalg.eigh(symmetric_part(matrix), subset_by_index=(0, 0))
    return certificate(values[0], d.sum(), float(d @ y), tolerance, vectors[:, 0], len(y))
