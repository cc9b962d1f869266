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
    """Return which leading pairs of x (n, p) and y (n, q) exceed those of shifted rows.

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
    """Return scores (n, m) of leading principal components, of unit variance if `whiten`."""
    values = values - values.mean(axis=0)
    variances, vectors = np.linalg.eigh(values.T @ values / len(values))
    kept = np.argsort(-variances)[:MOST_COMPONENTS]
    kept = kept[variances[kept] > ROUNDING * max(float(variances.max(initial=0)), 1e-300)]
    scores = values @ vectors[:, kept]
    return np.asarray(scores / np.sqrt(variances[kept]) if whiten else scores)


def _validation_values(x: Array, y: Array, count: int, covariances: bool) -> Array:
    """Return the cross-validated correlations, or covariances, of leading pairs."""
    count = min(count, x.shape[1], y.shape[1])
    form = _Sums(x, y)
    if covariances:
        u, _, vt = np.linalg.svd(form.rest)
        return form.of(u[..., :count], vt[:, :count].mT) / len(x)
    one, two = _Sums(x, x), _Sums(y, y)
    roots = _roots(one.rest), _roots(two.rest)
    u, _, vt = np.linalg.svd(roots[0].mT @ form.rest @ roots[1])
    left, right = roots[0] @ u[..., :count], roots[1] @ vt[:, :count].mT
    squares = one.of(left, left) * two.of(right, right)
    return np.asarray(form.of(left, right) / np.sqrt(np.maximum(squares, 1e-300)))


class _Sums:
    """Covariances (10, p, q) of x and y over the `rest` of each block, and sums of products over the block itself."""

    def __init__(self, x: Array, y: Array):
        blocks = np.array_split(np.arange(len(x)), BLOCKS)
        sizes = np.array([len(block) for block in blocks])[:, None]
        products = np.stack([x[block].T @ y[block] for block in blocks])
        first, other = (np.stack([v[block].sum(axis=0) for block in blocks]) for v in (x, y))
        n = len(x) - sizes
        mean, others = (first.sum(axis=0) - first) / n, (other.sum(axis=0) - other) / n
        both = _outer(mean, others)
        self.rest = (products.sum(axis=0) - products) / n[..., None] - both
        self.block = products - _outer(first, others) - _outer(mean, other) + sizes[..., None] * both

    def of(self, left: Array, right: Array) -> Array:
        """Return the sums (k,) over all blocks of products of functions (10, p, k) and (10, q, k)."""
        return np.asarray(np.sum(left * (self.block @ right), axis=(0, 1)))


def _outer(one: Array, other: Array) -> Array:
    return np.asarray(one[:, :, None] * other[:, None])


def _roots(covariances: Array) -> Array:
    """Return R (b, p, p) with R R^T the pseudo-inverse of each covariance matrix."""
    variances, vectors = np.linalg.eigh(covariances)
    usable = variances > ROUNDING * variances.max(axis=1, keepdims=True)
    scale = np.divide(1, np.sqrt(np.abs(variances)), out=np.zeros_like(variances), where=usable)
    return np.asarray(vectors * scale[:, None])
