"""The graph Laplacian in a Galerkin basis, equation (16) of Cabannes and Bach (2024), over all pairs of points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from daskspectral.basis import Basis
from daskspectral.kernels import Kernel
from daskspectral.solve import GalerkinSystem, SymmetricPencil

BLOCK = 256  # points whose weights with all others are held at a time
CUT = 1e-10  # of the Gram matrix, relative to its largest eigenvalue


def forms(points: np.ndarray, weights: Kernel, bases: Sequence[Basis]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The form and the Gram matrix of each basis, as means over pairs and points; all bases share the weights.

    The form is Σ_ij w_ij (φ(x_i) - φ(x_j)) (φ(x_i) - φ(x_j))ᵀ / n² = 2 (Φ diag(W 1) Φᵀ - Φ W Φᵀ) / n², with the
    weights normalized by their mean degrees, w = D^(-1/2) w~ D^(-1/2).
    """
    n = len(points)
    raw = np.zeros(n)
    for rows, w in _half(points, weights):
        _add_degrees(raw, rows, w)
    root = 1 / np.sqrt(raw / n)
    phi = [basis.values(points) for basis in bases]
    features = [f - f[:, :1] for f in phi]  # the form knows differences alone: nearly constant functions keep digits
    degrees, cross = np.zeros(n), [np.zeros((len(f), len(f))) for f in phi]
    for rows, w in _half(points, weights):
        w = w * root[rows, None] * root[: rows.stop]
        _add_degrees(degrees, rows, w)
        w[:, : rows.start] *= 2  # pairs with points before the block, in both orders
        for total, f in zip(cross, features, strict=True):
            total += f[:, rows] @ (w @ f[:, : rows.stop].T)
    return [
        (_symmetric(2 * ((f * degrees) @ f.T - c)) / n**2, g @ g.T / n)
        for f, c, g in zip(features, cross, phi, strict=True)
    ]


def eigenvalues(form: np.ndarray, gram: np.ndarray, count: int, true: np.ndarray) -> np.ndarray:
    """Return at most `count` smallest eigenvalues, scaled to the sum of the true ones (appendix B.1)."""
    values = SymmetricPencil().solve(GalerkinSystem(form, gram, count=count, cut=CUT)).values
    return np.asarray(values * true[: len(values)].sum() / values.sum())


def _half(points: np.ndarray, weights: Kernel) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of points, and their weights with themselves and all points before."""
    for start in range(0, len(points), BLOCK):
        rows = slice(start, min(start + BLOCK, len(points)))
        yield rows, weights.values(points[: rows.stop], points[rows])


def _add_degrees(degrees: np.ndarray, rows: slice, w: np.ndarray) -> None:
    """Add the weights of a block to the degrees of its points and of the points before it."""
    degrees[rows] += w.sum(axis=1)
    degrees[: rows.start] += w[:, : rows.start].sum(axis=0)


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return 0.5 * (matrix + matrix.T)
