"""Whitening by a truncated eigendecomposition of the Gram matrix: the rank is explicit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

CUTS = {"float64": 1e-10, "float32": 1e-6}
LEAST_CUTS = {"float64": 0.0, "float32": 1e-7}


@dataclass(frozen=True, eq=False)
class Whitening:
    """W (p, rank) with W^T Phi W = I, and the eigenvalues of the scaled Phi, descending (p,)."""

    matrix: Array
    spectrum: Array

    @property
    def rank(self) -> int:
        """How many directions the Gram matrix sees."""
        return int(self.matrix.shape[1])


def whiten(gram: Array, cut: float) -> Whitening:
    """Keep the eigenvectors of the Gram matrix (p, p) above `cut` times the largest eigenvalue.

    Each function is scaled to unit norm first, so that one of a large norm does not hide the others. Raises
    ValueError when every function vanishes on the data.
    """
    diagonal = np.diag(gram)
    scale = np.zeros(len(gram))
    seen = diagonal > 0
    scale[seen] = 1 / np.sqrt(diagonal[seen])
    if not seen.any():
        raise ValueError("every basis function is zero on every point; widen the kernel's scale")
    correlation = gram * scale[:, None] * scale
    values, vectors = scipy.linalg.eigh(0.5 * (correlation + correlation.T))
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int(np.count_nonzero(values > cut * values[0]))
    matrix = scale[:, None] * vectors[:, :rank] / np.sqrt(values[:rank])
    return Whitening(matrix, values)


def resolve_cut(rtol: float | None, dtype: str) -> float:
    """The relative cut: 1e-10 in float64, 1e-6 in float32 unless given. ValueError below what is sound."""
    if rtol is None:
        return CUTS[dtype]
    if not 0 <= rtol < 1 or rtol < LEAST_CUTS[dtype]:
        raise ValueError(
            f"rtol must lie in [{LEAST_CUTS[dtype]:g}, 1) for dtype {dtype}; it is {rtol!r}. Products of "
            "float32 features are right to about 1e-7, and smaller directions are noise"
        )
    return float(rtol)
