"""The attributes of an estimator from the moments of its operator: values, functions, and their error bars."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, LandmarkBasis
from daskspectral.kernels import Linear
from daskspectral.moments.counting import advise_weights
from daskspectral.moments.intervals import errors_of, held_out_by_folds
from daskspectral.moments.moments import Moments
from daskspectral.moments.problem import Posed
from daskspectral.moments.trust import Solved, advise_manifold, advise_rank
from daskspectral.solvers import Solving

Array = NDArray[np.floating[Any]]
LEAST_HALVED = 16  # landmarks, below which half of them tell nothing


def _is_approximate(basis: Basis) -> bool:
    """Whether more landmarks would give more functions of the kernel."""
    if not isinstance(basis, LandmarkBasis):
        return False
    return not (isinstance(basis.kernel, Linear) and np.linalg.matrix_rank(basis.landmarks) == basis.dimension)


def solve_moments(
    moments: Moments,
    *,
    count: int,
    solver: Solving,
    penalty: float | None,
    compared: bool = False,
    half: Moments | None = None,
) -> dict[str, Any]:
    """The attributes of an estimator from moments of its operator, under the names that the operator's solver gives.

    `penalty` is c of a penalised `solver`, None for one by rank cut; `compared` says that the
    kernel and its scale were chosen on rows held out. `half` are the same moments of fewer functions, by which it is
    told how much the number of functions decides; otherwise half of the landmarks tell it. Warns of what makes the
    answer less than it seems (`moments.trust`).

    Raises ValueError where every function of a side vanishes, the sums are not finite, or the weights are all zero.
    """
    options: dict[str, Any] = {"count": count, "rtol": solver.rtol, "ridge": solver.ridge, "penalty": penalty}
    posed = Posed(moments, min_support=solver.min_support, **options)
    spectrum = posed.solve(posed.means, posed.rows)
    left, right, own = posed.left, posed.right, moments.operator.solver
    advise_manifold(moments)
    advise_weights(moments)
    errors = errors_of(posed, moments.folds, spectrum, moments.undercut)
    approximate = [b for b in moments.basis.parts if _is_approximate(b.core)]
    if approximate or not own.by_norm:  # all components of the columns are no low rank
        advise_rank(spectrum, left.basis, count, right=right.basis)
    shown = {"left": left.spread(spectrum.left), "right": right.spread(spectrum.right)}
    halved = [b for b in approximate if b.size >= LEAST_HALVED]
    approximation = np.full(len(spectrum.values), np.nan)
    fewer: Posed | None = None
    if half is not None:
        fewer = Posed(half, min_support=0.0, **options)
    elif halved:
        fewer = Posed(moments, min_support=0.0, half=True, **options)
    folds = moments.folds if half is None else half.folds
    if fewer is not None and not errors.reason and folds is not None:
        beyond = held_out_by_folds(fewer, folds)
        known = min(len(beyond), len(approximation))
        approximation[:known] = np.abs(beyond[:known] - errors.held_out[:known])
    solved = Solved(posed, moments, spectrum, errors, approximation)
    solved.advise(compared=compared)
    return {
        own.values: spectrum.values,
        **{name: shown[side] for name, side in own.functions.items()},
        "rank_": spectrum.rank,
        "residuals_": spectrum.residuals,
        "status_": f"{spectrum.status}; {errors.reason}" if errors.reason else spectrum.status,
        "support_": left.support,
        **({"right_support_": right.support} if own.two_sided else {}),
        own.errors: errors.intervals,
        "standard_errors_": errors.standard,
        "held_out_": errors.held_out,
        "groups_": errors.groups,
        "function_errors_": errors.angles,
        "approximation_": approximation,
        "trusted_": solved.trusted,
        "constants_": min(posed.nulls, len(spectrum.values)),
    }
