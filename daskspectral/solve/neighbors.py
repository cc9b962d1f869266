"""Neighbor graph of points, for an independent test of slow functions.

Ratios of the energies of fitted and slowest functions of the graph are 1.2 to 1.7 for good fits, 2.4 to 5.4 for a
tight roll whose turns are not resolved.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

NEIGHBORS, IN_LINE = 10, 16  # neighbors of each point; the same for points along curves
CURVE = 1.5  # local dimension below which points are along curves
LEAST_POINTS = 30
SHARE = 8  # points per neighbor, for few points
TREE = 3  # maximum number of columns for trees and sparse matrices
NEGLIGIBLE = 1e-6  # of the last energy: smaller differences are neglected
ROUNDING = 1e-10  # of the square of a function below which it is linearly dependent
SHIFT = 1e-6  # of the mean degree, added to make the matrix definite
GUARD, STEPS = 4, 5  # additional random functions, and inverse iterations, for errors of 1e-4


def energy_ratios(points: Array, functions: Array, weights: Array | None = None) -> Array:
    """Return the ratios of energies of functions to those of the slowest functions of a neighbor graph.

    Parameters
    ----------
    points : ndarray of shape (m, d)
        Points.
    functions : array of shape (m, k)
        Values of k functions; only their span modulo the constant matters.
    weights : array of shape (m,), optional
        Positive weights of the points.

    Returns
    -------
    array of shape (q,)
        theta_i / mu_i, theta_i the Ritz values of the graph Laplacian in the span of q independent functions beyond the
        constant, mu_i its lowest eigenvalues beyond the first. Empty below 30 points.
    """
    m = len(points)
    if m < LEAST_POINTS:
        return np.empty(0)
    laplacian, root = _laplacian(points, weights)
    trial = _orthonormal(functions, root)
    if not trial.size:
        return np.empty(0)
    energies = np.linalg.eigvalsh(trial.T @ (laplacian @ trial))
    slowest = _slowest(laplacian, root, trial, dense=points.shape[1] > TREE)
    floor = NEGLIGIBLE * slowest[-1]
    return np.asarray((energies + floor) / (np.maximum(slowest, 0) + floor))


def _laplacian(points: Array, weights: Array | None) -> tuple[Any, Array]:
    """Return the graph Laplacian, scaled by the roots (m,) of the weights on both sides, and these roots.

    Edges are w_ij = 1 / (r_ij² + rho_i² / 4) for the nearest neighbors j of i, the last at the distance rho_i,
    symmetrized, times the geometric mean of the weights.
    """
    m = len(points)
    distances, neighbors = _nearest(points, IN_LINE)
    inner, outer = distances[:, IN_LINE // 2 - 1], distances[:, -1]
    spread = float(np.median(np.log(outer[inner > 0] / inner[inner > 0]))) if (inner > 0).any() else 0.0
    k = min(IN_LINE if np.log(2) < CURVE * spread else NEIGHBORS, max(4, m // SHARE))
    distances, neighbors = distances[:, :k], neighbors[:, :k]
    edges = 1 / (distances**2 + distances[:, -1:] ** 2 / 4)
    root = np.ones(m)
    if weights is not None:
        root = np.sqrt(weights / weights.mean())
        edges *= root[:, None] * root[neighbors]
    graph: Any = scipy.sparse.csr_matrix((edges.ravel(), (np.repeat(np.arange(m), k), neighbors.ravel())), (m, m))
    graph = (graph + graph.T) / 2
    laplacian = scipy.sparse.diags(np.asarray(graph.sum(axis=1)).ravel()) - graph
    scale = scipy.sparse.diags(1 / root)
    return scale @ laplacian @ scale, root


def _nearest(points: Array, k: int) -> tuple[Array, NDArray[np.intp]]:
    """Return ascending distances (m, k) to the nearest other points, and their indices."""
    m, d = points.shape
    if d <= TREE:
        from scipy.spatial import KDTree

        distances, found = (np.asarray(part) for part in KDTree(points).query(points, k + 1))
        others = found != np.arange(m)[:, None]
        others[others.all(axis=1), -1] = False  # a coincident point came first
        return distances[others].reshape(m, k), found[others].reshape(m, k)
    centered = points - points.mean(axis=0)
    squares = np.einsum("nd,nd->n", centered, centered)
    squared = squares[:, None] - 2 * centered @ centered.T + squares
    np.fill_diagonal(squared, np.inf)
    found = np.argpartition(squared, k - 1, axis=1)[:, :k]
    near = np.take_along_axis(squared, found, axis=1)
    order = np.argsort(near, axis=1, kind="stable")
    distances = np.sqrt(np.maximum(np.take_along_axis(near, order, axis=1), 0))
    return distances, np.take_along_axis(found, order, axis=1)


def _orthonormal(functions: Array, root: Array) -> Array:
    """Return an orthonormal basis (m, q) of weighted functions, without the constant."""
    constant = root / np.linalg.norm(root)
    beyond = functions * root[:, None]
    beyond = beyond - np.outer(constant, constant @ beyond)
    u, s, _ = np.linalg.svd(beyond, full_matrices=False)
    return np.asarray(u[:, s**2 > ROUNDING * np.linalg.norm(functions * root[:, None], axis=0).max(initial=0.0) ** 2])


def _slowest(laplacian: Any, root: Array, trial: Array, *, dense: bool) -> Array:
    """Return the q lowest eigenvalues beyond that of the constant, ascending, for q trial functions (m, q).

    By inverse iterations from the trial functions and random ones.
    """
    m, q = trial.shape
    inverse: Any
    shifted = laplacian + SHIFT * laplacian.diagonal().mean() * scipy.sparse.eye(m)
    if dense:  # many common neighbors fill the factors of a sparse matrix
        factor = scipy.linalg.cho_factor(shifted.toarray(), overwrite_a=True, check_finite=False)
        inverse = partial(scipy.linalg.cho_solve, factor, check_finite=False)
    else:
        inverse = scipy.sparse.linalg.splu(shifted.tocsc()).solve
    block = np.linalg.qr(np.column_stack([root, trial, np.random.default_rng(0).standard_normal((m, GUARD))]))[0]
    blocks = []
    for _ in range(STEPS):
        block = np.linalg.qr(inverse(block))[0]
        blocks.append(block)
    span = np.linalg.qr(np.hstack(blocks))[0]
    return np.linalg.eigvalsh(span.T @ (laplacian @ span))[1 : q + 1]
