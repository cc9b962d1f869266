"""Moments about another center, exact for functions whose span is translation invariant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.base import Translation
from daskspectral.moments.autocovariance import directions_of
from daskspectral.moments.pairwise import POINTS, PRESENT, SQUARES, SUMS, moved
from daskspectral.registry import digest_of, encode
from daskspectral.validation import is_sequence

if TYPE_CHECKING:
    from daskspectral.basis import Basis
    from daskspectral.moments.moments import Moments
    from daskspectral.operators import Operator

Array = NDArray[Any]
COLUMNS = 16  # maximum number of columns, evenly spaced, for the correlation of rows


def columns_of_order(d: int) -> NDArray[np.int64]:
    """Return the columns, of d, for which sums over runs are stored."""
    return np.unique(np.linspace(0, d - 1, min(d, COLUMNS)).astype(np.int64))


@dataclass(frozen=True, eq=False)
class _Shift:
    """Change of the functions of one side if points are shifted by `delta` (d,)."""

    delta: Array
    to: Translation

    @classmethod
    def of(cls, basis: Basis, before: Mapping[str, Any], mean: Array | None) -> _Shift | None:
        """Return the shift of prepared points to another mean of columns; None without invariance."""
        delta = np.zeros(basis.dimension) if before.get("mean") is None else np.array(before["mean"], float)
        if mean is not None:
            delta -= mean
        if before.get("scale") is not None:
            delta /= before["scale"]
        found = basis.translated(delta)
        return None if found is None else cls(delta, found)

    def first(self, first: Array, weight: float) -> Array:
        return np.asarray(self.to.matrix @ first + weight * self.to.constant)

    def basis(self, other: Basis) -> Basis:
        """Return the shifted functions, or the other ones if they are equal up to rounding."""
        rounding = 64 * float(np.finfo(float).eps * np.abs(self.delta).max(initial=0.0))
        return other if _near(encode(self.to.basis), encode(other), rounding) else self.to.basis


def _near(one: Any, other: Any, rounding: float) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_near(one[key], other[key], rounding) for key in one)
    if is_sequence(one) and is_sequence(other):
        return len(one) == len(other) and all(_near(a, b, rounding) for a, b in zip(one, other, strict=True))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and bool((np.abs(one - other) <= rounding).all())
    return digest_of(one) == digest_of(other)


def about(moments: Moments, wanted: Moments) -> Moments:
    """Return the moments with the centers of columns of `wanted`, unchanged if they cannot be computed.

    Sums over runs of squares of columns become NaN.
    """
    preparation, right = dict(moments.preparation), moments.preparation.get("right")
    mean, right_basis = wanted.preparation.get("mean"), moments.right_basis
    right_mean = (wanted.preparation.get("right") or {}).get("mean")
    shift = other = _Shift.of(moments.basis, preparation, mean)
    if right_basis is not None:
        other = _Shift.of(right_basis, *((preparation, mean) if right is None else (right, right_mean)))
    if shift is None or other is None:
        return moments
    names = {*moments.operator.forms, *moments.operator.functionals}
    has_constant = shift.to.constant.any() or other.to.constant.any()
    if has_constant and not names <= {"gram", "right_gram", "form", "first", "right_first"}:
        return moments
    order = moments.order
    if order is not None:
        order, delta = np.array(order), shift.delta[columns_of_order(len(shift.delta))]
        m = len(delta)
        order[2:, m:] = np.nan
        order[3, :m] += 2 * delta * order[2, :m] + order[0, :m] * delta**2
        order[2, :m] += order[0, :m] * delta
    preparation["mean"] = mean
    if right is not None:
        preparation["right"] = {**right, "mean": right_mean}
    basis = shift.basis(wanted.basis)
    if right_basis is not None and wanted.right_basis is not None:
        right_basis = other.basis(wanted.right_basis)
    sample = None if moments.sample is None else moments.sample.shifted(shift.delta)
    lagged, directions = moments.autocovariance, directions_of(moments.basis)
    lagged = None if lagged is None or directions is None else lagged.shifted(shift.delta, directions)
    functions: Any = {"basis": basis, "right_basis": right_basis, "preparation": preparation}
    shifted = partial(_shifted, moments.operator, shift, other)
    return moments.mapped(shifted, order=order, seen=None, sample=sample, autocovariance=lagged, **functions)


def _shifted(
    operator: Operator, left: _Shift, right: _Shift, sums: Mapping[str, Array], weight: float
) -> dict[str, Array]:
    if PRESENT in sums:
        deltas = [left.delta, right.delta] if "right_gram" in sums else [left.delta]
        return moved(sums, np.concatenate(deltas))
    found, firsts = dict(sums), {name: sums[name] for name in ("first", "right_first") if name in sums}
    for name in operator.forms.keys() & sums.keys() | {"gram", "right_gram"} & sums.keys():
        one, two = {"gram": (left, left), "right_gram": (right, right)}.get(name, (left, right))
        found[name] = one.to.matrix @ sums[name] @ two.to.matrix.T
        if one.to.constant.any() or two.to.constant.any():  # products of values
            other = firsts.get("right_first", firsts["first"])
            a, b = (firsts["first"] if own is left else other for own in (one, two))
            found[name] += np.outer(one.first(a, weight), two.to.constant) + np.outer(
                one.to.constant, two.first(b, 0.0)
            )
    for name in operator.functionals.keys() & sums.keys() | firsts.keys():
        own, known = (right if name == "right_first" else left), name in firsts
        found[name] = own.first(sums[name], weight) if known else own.to.matrix @ sums[name]
    if POINTS in sums:
        products = left.to.matrix @ sums[POINTS] + np.outer(left.to.constant, sums[SUMS])
        found[POINTS] = products + np.outer(left.first(sums["first"], weight), left.delta)
    if SUMS in sums:
        found[SQUARES] = sums[SQUARES] + left.delta * (2 * sums[SUMS] + weight * left.delta)
        found[SUMS] = sums[SUMS] + weight * left.delta
    return found
