"""What the columns do where a function is large: regression of the points on functions, from sums of the same pass."""

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

ZERO_VARIANCE = 1e-10  # of the second moments: what is less is a constant and its rounding


@functional
def points(f: Any, x: Any) -> Any:
    """<f, x>, one column for each column of the points."""
    return inner(f, x.x)


MEASURED: dict[str, Functional] = {POINTS: points}


@dataclass(frozen=True, eq=False)
class Patterns:
    """The least-squares regression of points x (d,) on k functions: x ~ mean + Σ_i (f_i(x) - offset_i) maps_i.

    `mean` (d,) and `offset` (k,) are the means of columns and functions; 0 of functions less their means. `maps` (k, d)
    regress on all functions together, `single` (k, d) on each alone: what the columns do where the function rises by 1.
    `variances` (k,) are those of the functions, `total` (d,) those of the columns, `explained` (k,) the share of the
    total variance of the points, standardized and weighted like those of the fit, that each function explains alone.
    """

    mean: Array
    offset: Functions
    maps: Functions
    single: Functions
    variances: Array
    total: Array
    explained: Array

    def reconstructed(self, values: Functions) -> Array:
        """The points (n, d) that these values (n, k) of the functions tell of."""
        return np.asarray((self.mean + (values - self.offset) @ self.maps).real)

    def in_columns(self, preparation: Any, width: int, units: Any) -> Patterns:
        """The same for the raw columns of X, of which there are `width`, times `units`; 0 in those that were left out.

        The points are those of a `preparation` (`data.source.Preparation`).
        """
        raw = preparation.of_directions.inverse
        return replace(
            self,
            mean=preparation.inverse(self.mean, width) * units,
            maps=raw(self.maps, width) * units,
            single=raw(self.single, width) * units,
            total=(raw(np.sqrt(self.total), width) * units) ** 2,
        )


def right_patterns_of(moments: Moments, coefficients: Functions) -> Patterns:
    """Return the regression of the points of the right view on each right function with these coefficients (q, k).

    Points follow from all linear functions of them, the landmarks Q of the right basis: x = E x + Q^+ (Q x - E Q x).
    """
    q: Any = moments.right_basis.parts[-1] if moments.right_basis is not None else None
    if directions_of(moments.right_basis) is None:
        raise MissingSumsError("these moments are not of linear functions of both fields: regress on transform(y)")
    r = q.size
    first, gram = moments.mean("right_first"), moments.mean("right_gram")
    covariance = gram - np.outer(first, first)
    lengths = np.einsum("rd,rd->r", q.landmarks, q.landmarks)
    columns = q.landmarks / lengths[:, None]  # the pseudo-inverse of orthogonal directions, transposed
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
    """The pass did not sum what patterns take: the attribute is missing, as scikit-learn's displays understand it."""


def patterns_of(moments: Moments, coefficients: Functions) -> Patterns:
    """The regression on the functions with these coefficients (p, k) in the left basis.

    Raises ValueError where the pass did not measure what it takes.
    """
    if POINTS not in moments.arrays and not moments.spanned:
        raise MissingSumsError(
            "these moments hold no products of functions and columns: regress the columns on transform(X) instead"
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
    if moments.operator.center:  # values of the functions are given less their means
        offset = np.zeros_like(offset)
    return Patterns(mean, offset, maps, single, variances, total, explained)
