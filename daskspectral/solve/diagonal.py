"""Ridge regression with a penalty for each function: solutions, their cross-validation, and the best penalty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.folded import FoldSums, best_penalty
from daskspectral.solve.ridge import LEAST_FREE, ROBUST, Observed, solve_ridge
from daskspectral.solve.whitening import symmetric_part

Array = NDArray[np.floating[Any]]
CUT = 1e-13  # of directions of the Gram matrix: harmonics of n points are well conditioned, or not determined at all
ROUNDING = 1e-15  # of sums of squares
LEAST = 1e-9  # of the functions' squares: the least penalty of the last function that no fold has judged
STRIDE = 10.0  # between penalties that are tried first


def leading(kind: Observed, size: int) -> Observed:
    """The means of the first functions, by fold too."""
    folds = kind.folds
    if folds is not None:
        folds = FoldSums(folds.forms[:, :size, :size], folds.targets[:, :size], folds.squares, folds.unit)
    return Observed(kind.form[:size, :size], kind.target[:size], kind.squares, kind.count, folds)


def solve_diagonal(form: Array, target: Array, penalty: Array) -> Array:
    """(form + diag(penalty))^(-1) target; directions of no more than rounding are left out."""
    return _inverse(form, penalty)(target)


def generalised(observed: Sequence[Observed], penalty: Array, alpha: float) -> float:
    """The robust generalised cross-validation of `solve_ridge` at one alpha."""
    form = np.sum([kind.form for kind in observed], axis=0)
    solve = _inverse(form, alpha * penalty)
    a, whole, total = solve(np.sum([kind.target for kind in observed], axis=0)), solve(form), 0.0
    for kind in observed:
        hat = whole if len(observed) == 1 else solve(kind.form)
        free = 1 - float(np.trace(hat)) / kind.count
        if free < LEAST_FREE:
            return float("inf")
        variance = float(np.sum(hat * whole.T)) / kind.count
        total += _missed(kind.form, kind.target, kind.squares, a) / free**2 * (1 + ROBUST * variance**2)
    return total


def held_out(observed: Sequence[Observed], shares: Array, penalty: Array, alpha: float) -> float:
    """The mean squared error of the folds that can be left out, each by the solution of the others."""
    form = np.sum([kind.form for kind in observed], axis=0)
    target = np.sum([kind.target for kind in observed], axis=0)
    error, judged = 0.0, judges(shares)
    for k in judged:
        own = [kind.folds.of(k) for kind in observed if kind.folds is not None]
        rest = 1 - float(shares[k])
        others = (form - np.sum([f for f, _, _ in own], axis=0)) / rest
        aimed = (target - np.sum([b for _, b, _ in own], axis=0)) / rest
        a = solve_diagonal(others, aimed, alpha * penalty)
        error += sum(_missed(f, b, squares, a) for f, b, squares in own)
    return error / float(shares[judged].sum())


def judges(shares: Array | None) -> list[int]:
    """The folds that can be left out, at least two; none without folds."""
    found = [] if shares is None else [k for k in range(len(shares)) if 0 < shares[k] < 1]
    return found if len(found) > 1 else []


def best_on_folds(observed: Sequence[Observed], shares: Array, penalty: Array, start: float | None) -> float:
    """The alpha of least error on folds that are left out: from `start` downhill, or among all that matter."""
    lowest, highest = _bounds(observed, penalty)
    count = max(2, 1 + int(np.ceil(np.log(highest / lowest) / np.log(STRIDE))))
    alphas = np.geomspace(lowest, highest, count)
    found: dict[int, float] = {}

    def error(i: int) -> float:
        if i not in found:
            found[i] = held_out(observed, shares, penalty, float(alphas[i]))
        return found[i]

    coarse = range(count - 1, -1, -2)
    at = min(coarse, key=error) if start is None else int(np.argmin(np.abs(np.log(alphas / start))))
    while True:
        near = [i for i in (at + 1, at, at - 1) if 0 <= i < count]
        better = min(near, key=error)
        if better == at:
            break
        at = better
    if not 0 < at < count - 1:
        return float(alphas[at])
    part = slice(at - 1, at + 2)
    refined = best_penalty(alphas[part], np.array([error(i) for i in range(at - 1, at + 2)]))
    return refined if held_out(observed, shares, penalty, refined) < error(at) else float(alphas[at])


def best_generalised(observed: Sequence[Observed], penalty: Array) -> float:
    """The alpha of least generalised cross-validation, at least 1e-9 over the penalty of the last function.

    The score takes all rows to have the leverage of their mean, and of functions that blow up where rows are few it
    sees nothing: the least penalty bounds them.
    """
    paid = penalty > 0
    if not paid.any():
        return 0.0
    free = ~paid & (np.diag(np.sum([kind.form for kind in observed], axis=0)) > 0)
    centred = [_without(kind, free, paid) for kind in observed]
    if not sum(float(np.trace(kind.form)) for kind in centred) > 0:
        return 0.0
    found = solve_ridge(centred, np.diag(penalty[paid]), cut=CUT).alpha
    scale = float(np.trace(np.sum([kind.form for kind in observed], axis=0))) / len(penalty)
    return max(found, LEAST * scale / float(penalty.max()))


def _without(kind: Observed, free: NDArray[np.bool_], paid: NDArray[np.bool_]) -> Observed:
    """What is left to the functions that are paid for, after those that are free have done all they can."""
    own = free & (np.diag(kind.form) > 0)
    form, target = kind.form[np.ix_(paid, paid)], kind.target[paid]
    if not own.any():
        return Observed(form, target, kind.squares, kind.count)
    across = kind.form[np.ix_(own, paid)]
    a = np.linalg.lstsq(kind.form[np.ix_(own, own)], np.column_stack([across, kind.target[own]]), rcond=CUT)[0]
    shift, level = a[:, : len(form)], a[:, len(form) :]
    squares = np.maximum(kind.squares - np.sum(level * kind.target[own], axis=0), 0)
    return Observed(form - across.T @ shift, target - across.T @ level, squares, max(kind.count - int(own.sum()), 1.0))


def _bounds(observed: Sequence[Observed], penalty: Array) -> tuple[float, float]:
    """Penalties below which the last function is free to rounding, and above which the first has no say."""
    paid = penalty[penalty > 0]
    scale = float(np.trace(np.sum([kind.form for kind in observed], axis=0))) / len(penalty)
    if not len(paid) or not scale > 0:
        return 1.0, 1.0
    return float(1e-15 * scale / paid.max()), float(1e2 * scale / paid.min())


def _missed(form: Array, target: Array, squares: Array, a: Array) -> float:
    """The squared residual, of which rounding leaves some."""
    norm = float(squares.sum())
    return max(norm - float(np.sum(a * (2 * target - form @ a))), ROUNDING * norm)


def _inverse(form: Array, penalty: Array) -> Callable[[Array], Array]:
    """(form + diag(penalty))^(-1), but for directions of no more than rounding."""
    total = symmetric_part(form)
    total[np.diag_indices_from(total)] += penalty
    diagonal = np.diag(total)
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    total *= scale[:, None] * scale
    total[np.diag_indices_from(total)] = 1.0
    try:
        factor = scipy.linalg.cho_factor(total)
    except scipy.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(total, driver="evd")
        kept = values > CUT * values[-1]
        basis = vectors[:, kept]
        return lambda b: np.asarray(scale[:, None] * (basis @ ((basis.T @ (scale[:, None] * b)) / values[kept, None])))
    return lambda b: np.asarray(scale[:, None] * scipy.linalg.cho_solve(factor, scale[:, None] * b))
