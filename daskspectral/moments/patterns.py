"""Regression of the columns on functions, from sums of the same pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.forms import Functional, functional, inner
from daskspectral.moments.autocovariance import directions_of
from daskspectral.moments.moments import Moments
from daskspectral.moments.pairwise import POINTS, SQUARES, SUMS

Array = NDArray[np.floating[Any]]
Functions = NDArray[np.inexact[Any]]

ZERO_VARIANCE = 1e-10  # of the second moment: variance below this is rounding of a constant


@functional
def points(f: Any, x: Any) -> Any:
    """Return <f, x>, with one column for each column of the points."""
    return inner(f, x.x)


MEASURED: dict[str, Functional] = {POINTS: points}


@dataclass(frozen=True, eq=False)
class Patterns:
    """Least-squares regression x ~ mean + Σ_i (f_i(x) - offset_i) maps_i on k functions.

    Attributes
    ----------
    mean : ndarray of shape (d,)
        Means of the columns.
    offset : ndarray of shape (k,)
        Means of the functions; 0 for centered functions.
    maps : ndarray of shape (k, d)
        Coefficients of the regression on all functions together.
    single : ndarray of shape (k, d)
        Coefficients of the regression on each function alone: the change of the columns per unit of the function.
    variances, total : ndarray of shape (k,) and (d,)
        Variances of the functions and of the columns.
    explained : ndarray of shape (k,)
        Share of the total variance of the prepared columns that each function explains alone.
    """

    mean: Array
    offset: Functions
    maps: Functions
    single: Functions
    variances: Array
    total: Array
    explained: Array

    def reconstructed(self, values: Functions) -> Array:
        """Reconstruct the points (n, d) from function values (n, k)."""
        return np.asarray((self.mean + (values - self.offset) @ self.maps).real)

    def of_columns(self, count: int) -> Patterns:
        """Return the regression of the first columns alone."""
        found = {name: getattr(self, name)[..., :count] for name in ("mean", "maps", "single", "total")}
        return replace(self, **found)

    def in_columns(self, preparation: Any, width: int, units: Any) -> Patterns:
        """Return the patterns in the `width` raw columns of X, 0 in unused ones, times `units`."""
        raw = preparation.of_directions.inverse
        return replace(
            self,
            mean=preparation.inverse(self.mean, width) * units,
            maps=raw(self.maps, width) * units,
            single=raw(self.single, width) * units,
            total=(raw(np.sqrt(self.total), width) * units) ** 2,
        )


def right_patterns_of(moments: Moments, coefficients: Functions) -> Patterns:
    """Return the regression of the right view on right functions (q, k).

    Points are computed from linear functions, the landmarks Q of the right basis: x = E x + Q^+ (Q x - E Q x).
    """
    q: Any = moments.right_basis.parts[-1] if moments.right_basis is not None else None
    if directions_of(moments.right_basis) is None:
        raise MissingSumsError(
            "patterns require moments of linear functions of both fields. Regress the columns on transform(y)"
        )
    r = q.size
    first, gram = moments.mean("right_first"), moments.mean("right_gram")
    covariance = gram - np.outer(first, first)
    lengths = np.einsum("rd,rd->r", q.landmarks, q.landmarks)
    columns = q.landmarks / lengths[:, None]  # transposed pseudo-inverse of orthogonal directions
    single = coefficients.T @ covariance[:, -r:] @ columns
    variances = np.einsum("qk,qr,rk->k", coefficients, covariance, coefficients)
    varies = variances > 0
    single = np.divide(single, variances[:, None], out=np.zeros_like(single), where=varies[:, None])
    total = np.einsum("rd,rs,sd->d", columns, covariance[-r:, -r:], columns, optimize=True)
    known, whole = np.sum(single**2, axis=1) * variances, float(total.sum())
    explained = known / whole if whole > 0 else np.zeros_like(known)
    mean = first[-r:] @ columns
    return Patterns(mean, np.zeros(len(variances)), single, single, variances, np.maximum(total, 0), explained)


class MissingSumsError(ValueError, AttributeError):
    """The sums for patterns are missing; an AttributeError, so that `hasattr` is False."""


def patterns_of(moments: Moments, coefficients: Functions) -> Patterns:
    """Return the regression on left functions with coefficients (p, k)."""
    if POINTS not in moments.arrays and not moments.spanned:
        raise MissingSumsError(
            "patterns require sums of products with columns, which are missing. Regress the columns on transform(X)"
        )
    products = moments.points(coefficients.conj().T)
    squares = moments.mean(SQUARES)
    gram = coefficients.conj().T @ moments.mean("gram") @ coefficients
    mean, offset = moments.mean(SUMS), moments.mean("first") @ coefficients
    second = np.diag(gram).real
    gram = gram - np.outer(offset.conj(), offset)
    products = products - np.outer(offset.conj(), mean)
    variances = np.maximum(np.diag(gram).real, 0)
    varies = variances > ZERO_VARIANCE * second
    maps, single = np.zeros_like(products), np.zeros_like(products)
    some = np.ix_(varies, varies)
    maps[varies] = np.linalg.pinv(gram[some], rcond=ZERO_VARIANCE, hermitian=True) @ products[varies]
    single[varies] = products[varies] / variances[varies, None]
    variances, total = np.where(varies, variances, 0), np.maximum(squares - mean**2, 0)
    known, whole = np.sum(np.abs(single) ** 2, axis=1) * variances, float(total.sum())
    explained = known / whole if whole > 0 else np.zeros_like(known)
    if moments.operator.center:  # values of the functions are centered
        offset = np.zeros_like(offset)
    return Patterns(mean, offset, maps, single, variances, total, explained)
