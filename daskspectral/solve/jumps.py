"""Leading functions of a random walk from rows to centroids and back.

For M = sum w a aᵀ (p, p), with weights a of centroids, and D = M 1, D^(-1/2) M D^(-1/2) = V s² Vᵀ. The functions a(x)
D^(-1/2) V / s are orthonormal in M, and the values of the form D - M are 1/s² - 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
CLEAR = 0.22  # a gap is clear if an eigenvalue is below this fraction of the next one: 1 / 4 in a chain without gaps
GAP = 3e-5  # eigenvalues below this are compared as 0
CLOSED = 1e-5  # 1 - s below which the walk does not leave a component
LEAST = 1e-6  # s² below which functions are rounding


def walk_eigenpairs(gram: Array, size: int) -> tuple[Array, Array, Array]:
    """Return s² (size,) of the leading nonconstant functions, descending, V (p, size), and D^(1/2)."""
    root = np.sqrt(np.maximum(gram.sum(axis=1), 0.0))
    scale = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    matrix = gram * scale[:, None] * scale
    constant = root / max(np.linalg.norm(root), np.finfo(float).tiny)
    matrix -= np.outer(constant, constant)
    p, size = len(gram), min(size, len(gram))
    if not size:
        return np.empty(0), np.empty((p, 0)), root
    values, vectors = scipy.linalg.eigh(
        matrix, subset_by_index=(p - size, p - 1)
    )  # Lanczos iteration misses multiple values
    return values[::-1], vectors[:, ::-1], root


def jump_span(gram: Array, size: int) -> Array:
    """Return the constant and at most `size` leading functions, orthonormal in M."""
    values, vectors, root = walk_eigenpairs(gram, size)
    kept = values > LEAST
    scale = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    functions = scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])
    total = root @ root
    return np.column_stack([np.full(len(gram), 1 / np.sqrt(total)), functions])


def walk_values(gram: Array, most: int) -> Array:
    """Return the `most` smallest eigenvalues 1 - s beyond the constant's, 1 if missing."""
    found = 1 - np.sqrt(np.maximum(walk_eigenpairs(gram, most)[0], 0.0))
    return np.concatenate([found, np.ones(most - len(found))])


def gap_ratio(values: Array) -> Array:
    """Return the ratios (λ_k + e) / (λ_(k + 1) + e), e = 3e-5, of ascending eigenvalues."""
    return np.asarray((values[:-1] + GAP) / (values[1:] + GAP))


def has_gap(values: Array) -> bool:
    """Return whether there is a clear gap before the last of ascending eigenvalues."""
    return len(values) < 2 or bool(gap_ratio(values[-2:])[0] < CLEAR)
