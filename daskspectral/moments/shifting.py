"""Moments about another center: exact, for functions whose span does not depend on the origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.moments.pairwise import POINTS, PRESENT, SQUARES, SUMS, moved

if TYPE_CHECKING:
    from daskspectral.basis import Basis
    from daskspectral.moments.moments import Moments

Array = NDArray[Any]
COLUMNS = 16  # of many columns, so many evenly spaced ones tell enough of the order of rows


def columns_of_order(d: int) -> NDArray[np.int64]:
    """The columns whose order is summed, of d."""
    return np.unique(np.linspace(0, d - 1, min(d, COLUMNS)).astype(np.int64))


@dataclass(frozen=True, eq=False)
class _Shift:
    """f(x + delta) = T f(x) + t for the functions f of one side: `delta` (d,), T = `turn` (p, p), t = `rest` (p,)."""

    delta: Array
    turn: Array
    rest: Array

    @classmethod
    def of(cls, basis: Basis, before: Mapping[str, Any], mean: Array | None) -> _Shift | None:
        """The shift of prepared points to another mean of their columns; None if the functions have none."""
        delta = np.zeros(basis.dimension) if before.get("mean") is None else np.array(before["mean"], float)
        if mean is not None:
            delta -= mean
        if before.get("scale") is not None:
            delta /= before["scale"]
        found = basis.translation(delta)
        return None if found is None else cls(delta, *found)

    def first(self, first: Array, weight: float) -> Array:
        """The sums of the functions there, from those here."""
        return np.asarray(self.turn @ first + weight * self.rest)


def about(moments: Moments, mean: Array | None, right_mean: Array | None) -> Moments | None:
    """The moments with the points about other means of the columns; None if they do not follow.

    Of the order of rows what is known of squares of columns does not follow, and is NaN.
    """
    preparation, right = dict(moments.preparation), moments.preparation.get("right")
    shift = other = _Shift.of(moments.basis, preparation, mean)
    if right is not None:
        preparation["right"] = {**right, "mean": right_mean}
    if moments.right_basis is not None:
        own = (preparation, mean) if right is None else (right, right_mean)
        other = _Shift.of(moments.right_basis, *own)
    if shift is None or other is None:
        return None
    names = {*moments.operator.forms, *moments.operator.functionals}
    if (shift.rest.any() or other.rest.any()) and not names <= {"gram", "right_gram", "form", "first", "right_first"}:
        return None
    shifted = _Shifted(moments, shift, other)
    arrays, folds = shifted(moments.arrays, moments.weight), moments.folds
    if folds is not None:
        groups = [shifted(folds.of(group), float(weight)) for group, weight in enumerate(folds.weight)]
        folds = replace(folds, arrays={name: np.stack([group[name] for group in groups]) for name in folds.arrays})
    order = moments.order
    if order is not None:
        order, delta = np.array(order), shift.delta[columns_of_order(len(shift.delta))]
        m = len(delta)
        order[3:, m:] = np.nan
        order[[4, 6], :m] += 2 * delta * order[3, :m] + order[0, :m] * delta**2
        order[3, :m] += order[0, :m] * delta
    measured = replace(moments.measured, preparation=preparation | {"mean": mean})
    return replace(moments, arrays=arrays, measured=measured, folds=folds, order=order, digests=None)


@dataclass(frozen=True, eq=False)
class _Shifted:
    """The sums over some rows after a shift of the left and of the right functions."""

    moments: Moments
    left: _Shift
    right: _Shift

    def __call__(self, sums: Mapping[str, Array], weight: float) -> dict[str, Array]:
        left, right, operator, found = self.left, self.right, self.moments.operator, dict(sums)
        if PRESENT in sums:
            deltas = [left.delta, right.delta] if "right_gram" in sums else [left.delta]
            return moved(sums, np.concatenate(deltas))
        firsts = {"first": left.first(sums["first"], 0.0)} if "first" in sums else {}
        if "right_first" in sums:
            firsts["right_first"] = right.first(sums["right_first"], 0.0)
        for name in operator.forms.keys() & sums.keys() | {"gram", "right_gram"} & sums.keys():
            one, two = {"gram": (left, left), "right_gram": (right, right)}.get(name, (left, right))
            value = one.turn @ sums[name] @ two.turn.T
            if one.rest.any() or two.rest.any():
                a = firsts["right_first" if name == "right_gram" and "right_first" in firsts else "first"]
                b = firsts["first" if name == "gram" or "right_first" not in firsts else "right_first"]
                value += np.outer(a, two.rest) + np.outer(one.rest, b) + weight * np.outer(one.rest, two.rest)
            found[name] = value
        for name in operator.functionals.keys() & sums.keys() | firsts.keys():
            own = right if name == "right_first" else left
            found[name] = own.first(sums[name], weight) if name in ("first", "right_first") else own.turn @ sums[name]
        if POINTS in sums:
            products = left.turn @ sums[POINTS] + np.outer(left.rest, sums[SUMS])
            found[POINTS] = products + np.outer(left.first(sums["first"], weight), left.delta)
        if SUMS in sums:
            found[SQUARES] = sums[SQUARES] + left.delta * (2 * sums[SUMS] + weight * left.delta)
            found[SUMS] = sums[SUMS] + weight * left.delta
        return found
