"""Significance test of pairs of two fields, by circular shifts of one field against the other.

Shifts keep the autocorrelation of both fields and remove their dependence. Pairs of leading principal components are
cross-validated on ten blocks of rows; a pair is significant if its validation value exceeds the largest first value of
19 shifts, which happens by chance with probability 1/20.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

SHIFTS, LEAST_SHIFT = 19, 12
BLOCKS = 10
MOST_COMPONENTS = 40
LEAST_ROWS = 2 * LEAST_SHIFT + SHIFTS
ROUNDING = 1e-10


def beyond_chance(x: Array, y: Array, count: int, *, covariances: bool) -> NDArray[np.bool_]:
    """Return which of the `count` leading pairs of x (n, p) and y (n, q) exceed those of shifted rows, (count,).

    Pairs maximize correlations, or `covariances`. A pair after one that does not exceed them is False.
    """
    one, two = (_components(values, whiten=not covariances) for values in (x, y))
    values = _validation_values(one, two, count, covariances)
    steps = np.linspace(LEAST_SHIFT, len(x) - LEAST_SHIFT, SHIFTS).astype(int)
    null = max(float(_validation_values(one, np.roll(two, step, axis=0), 1, covariances)[0]) for step in steps)
    found = np.zeros(count, bool)
    found[: len(values)] = np.minimum.accumulate(values > null)
    return found


def _components(values: Array, whiten: bool) -> Array:
    """Return scores (n, m) of leading principal components of columns (n, p), of unit variance if `whiten`."""
    values = values - values.mean(axis=0)
    variances, vectors = np.linalg.eigh(values.T @ values / len(values))
    kept = np.argsort(-variances)[:MOST_COMPONENTS]
    kept = kept[variances[kept] > ROUNDING * max(float(variances.max(initial=0)), 1e-300)]
    scores = values @ vectors[:, kept]
    return np.asarray(scores / np.sqrt(variances[kept]) if whiten else scores)


def _validation_values(x: Array, y: Array, count: int, covariances: bool) -> Array:
    """Return the cross-validated correlations, or covariances, of leading pairs."""
    count = min(count, x.shape[1], y.shape[1])
    products, squares = np.zeros(count), np.zeros((2, count))
    for block in np.array_split(np.arange(len(x)), BLOCKS):
        rest = np.ones(len(x), bool)
        rest[block] = False
        parts = [values[rest] - values[rest].mean(axis=0) for values in (x, y)]
        roots = [np.eye(part.shape[1]) if covariances else _root(part) for part in parts]
        u, _, vt = np.linalg.svd(roots[0].T @ (parts[0].T @ parts[1]) @ roots[1] / rest.sum())
        turns = roots[0] @ u[:, :count], roots[1] @ vt[:count].T
        scores = [(v[block] - v[rest].mean(axis=0)) @ turn for v, turn in zip((x, y), turns, strict=True)]
        products += np.sum(scores[0] * scores[1], axis=0)
        squares += [np.sum(score**2, axis=0) for score in scores]
    if covariances:
        return np.asarray(products / len(x))
    return np.asarray(products / np.sqrt(np.maximum(squares.prod(axis=0), 1e-300)))


def _root(values: Array) -> Array:
    """Return R such that R R^T is the inverse covariance of centered columns."""
    variances, vectors = np.linalg.eigh(values.T @ values / len(values))
    usable = variances > ROUNDING * variances.max()
    return np.asarray(vectors[:, usable] / np.sqrt(variances[usable]))
