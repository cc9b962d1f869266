"""Whitening by a truncated eigendecomposition of the Gram matrix: the rank is explicit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.dense import eigh, symmetric_part
from daskspectral.solve.signs import fix_signs

Array = NDArray[np.floating[Any]]

CUTS = {"float64": 1e-10, "float32": 1e-6}
LEAST_CUTS = {"float64": 0.0, "float32": 1e-7}


@dataclass(frozen=True, eq=False)
class Whitening:
    """W (p, r) with Wᵀ Φ W = I, and the eigenvalues by which its directions were chosen, descending.

    `directions` is how many directions the data see, where W holds only the leading ones of them. `coordinates` (q, r)
    are its functions in the basis that `whiten` gives, which decides signs; None where they are that basis.
    """

    matrix: Array
    spectrum: Array
    directions: int | None = None
    coordinates: Array | None = None

    @property
    def rank(self) -> int:
        """How many directions the data see."""
        return int(self.matrix.shape[1]) if self.directions is None else self.directions

    def whitened(self, vectors: Any) -> Any:
        """The coefficients (q, k) in the whitened basis of combinations (r, k) of the functions."""
        return vectors.copy() if self.coordinates is None else np.asarray(self.coordinates @ vectors)


def whiten(gram: Array, cut: float, keep: NDArray[np.bool_] | None = None) -> Whitening:
    """Keep the eigenvectors of the Gram matrix (p, p) above `cut` times the largest eigenvalue.

    Each function is scaled to unit norm first, so that one of a large norm does not hide the others. Functions
    marked by `keep` (p,) stay in the span whatever the cut takes away: they come first, and the other functions are
    whitened orthogonally to them. Raises ValueError when every function vanishes on the data.
    """
    diagonal = np.diag(gram)
    scale = np.zeros(len(gram))
    seen = diagonal > 0
    scale[seen] = 1 / np.sqrt(diagonal[seen])
    if not seen.any():
        raise ValueError("every basis function is zero on every point; widen the kernel's scale")
    correlation = gram * scale[:, None] * scale
    symmetric = symmetric_part(correlation)
    keep = None if keep is None else keep & seen
    values: Array
    if keep is None or not keep.any():
        values, vectors = eigh(symmetric)
        values, vectors = values[::-1], vectors[:, ::-1].copy()
        fix_signs(vectors)
        rank = int(np.count_nonzero(values > cut * values[0]))
        matrix: Array = vectors[:, :rank] / np.sqrt(values[:rank])
    else:
        values = scipy.linalg.eigvalsh(symmetric)[::-1]
        matrix = _whiten_around(correlation, keep, cut * values[0])
    return Whitening(scale[:, None] * matrix, values)


def _whiten_around(correlation: Array, keep: NDArray[np.bool_], least: float) -> Array:
    """W with the functions `keep` in its span: they are whitened first, the others orthogonally to them."""
    first = _inverse_root(correlation[np.ix_(keep, keep)], least)
    projection = first @ first.T @ correlation[np.ix_(keep, ~keep)]
    rest = correlation[np.ix_(~keep, ~keep)] - correlation[np.ix_(~keep, keep)] @ projection
    second = _inverse_root(rest, least)
    matrix = np.zeros((len(correlation), first.shape[1] + second.shape[1]))
    matrix[keep, : first.shape[1]] = first
    matrix[keep, first.shape[1] :] = -projection @ second
    matrix[~keep, first.shape[1] :] = second
    return matrix


def _inverse_root(gram: Array, least: float) -> Array:
    """W (p, rank) with W^T gram W = I, from the eigenvalues above `least`, the largest first."""
    values, vectors = eigh(symmetric_part(gram))
    seen = values > least
    fix_signs(vectors)
    root: Array = (vectors[:, seen] / np.sqrt(values[seen]))[:, ::-1]
    return root


def resolve_cut(rtol: float | None, dtype: str) -> float:
    """The relative cut: `rtol`, or 1e-10 in float64 and 1e-6 in float32. Raises ValueError outside a sound range."""
    if rtol is None:
        return CUTS[dtype]
    if not 0 <= rtol < 1 or rtol < LEAST_CUTS[dtype]:
        raise ValueError(
            f"rtol must lie in [{LEAST_CUTS[dtype]:g}, 1) for dtype {dtype}; it is {rtol!r}. Products of "
            "float32 features are right to about 1e-7, and smaller directions are noise"
        )
    return float(rtol)
