"""Cross-validation of ridge regression from sums by fold: no row is read again, and no penalty is solved for alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
ROUNDING = 1e-16  # of the largest eigenvalue


@dataclass(frozen=True, eq=False)
class FoldSums:
    """Observations of one kind by fold: forms (K, p, p), targets (K, p, m) and squares (K, m), times `unit`.

    `unit` brings them to the scale of the means over all rows, so that folds that hold all rows add up to these.
    """

    forms: Array
    targets: Array
    squares: Array
    unit: float = 1.0

    def of(self, fold: int) -> tuple[Array, Array, Array]:
        """Form, target and squares of one fold."""
        return self.unit * self.forms[fold], self.unit * self.targets[fold], self.unit * self.squares[fold]


@dataclass(frozen=True, eq=False)
class Directions:
    """Z (p, r), in which the sum of all forms is diag(`seen`), the penalty diag(`paid`), the targets `target` (r, m).

    Errors below `floor` (one for each kind) are rounding.
    """

    matrix: Array
    seen: Array
    paid: Array
    target: Array
    floor: tuple[float, ...]


def fold_errors(
    kinds: Sequence[FoldSums], shares: Array, directions: Directions, alphas: Array
) -> NDArray[np.float64] | None:
    """The mean squared error (g, kinds) of each penalty (g,) on rows that it was not fitted to, summed over targets.

    For every fold k with the share w_k of the weight, the penalised solution a of the means over all other rows,

        (A - A_k) a / (1 - w_k) + alpha K a = (b - b_k) / (1 - w_k),

    has on the fold the error squares_k - 2 a.b_k + a.A_k a. One eigendecomposition a fold serves all penalties: Z is
    scaled so that K is the identity there. None where fewer than two folds can be left out.
    """
    z, root = directions.matrix, 1 / np.sqrt(np.maximum(directions.paid, 1e-300))
    judged = [k for k in range(len(shares)) if 0 < shares[k] < 1]
    if len(judged) < 2:
        return None
    total = np.zeros((len(alphas), len(kinds)))
    for k in judged:
        found = []
        for kind in kinds:
            form, target, squares = kind.of(k)
            found.append((_between(z, form), z.T @ target, float(squares.sum())))
        rest = 1 - shares[k]
        form = np.diag(directions.seen) - np.sum([f for f, _, _ in found], axis=0)
        target = directions.target - np.sum([t for _, t, _ in found], axis=0)
        a = root[:, None, None] * _ridge(root[:, None] * form * root / rest, root[:, None] * target / rest, alphas)
        for j, (seen, aimed, norm) in enumerate(found):
            image = (seen @ a.reshape(len(a), -1)).reshape(a.shape)
            error = norm - np.einsum("rgm,rgm->g", a, 2 * aimed[:, None] - image)
            total[:, j] += np.maximum(error, directions.floor[j] * shares[k])
    return total / float(shares[judged].sum())


def _ridge(form: Array, target: Array, alphas: Array) -> Array:
    """(form + alpha)^(-1) target for all penalties, (r, g, m)."""
    if len(alphas) == 1 and alphas[0] > 0:
        try:
            factor = scipy.linalg.cho_factor(form + alphas[0] * np.eye(len(form)))
        except scipy.linalg.LinAlgError:  # the form is positive to rounding only
            pass
        else:
            return np.asarray(scipy.linalg.cho_solve(factor, target))[:, None]
    values, vectors = scipy.linalg.eigh(form, driver="evd")
    turned = vectors.T @ target
    size = np.maximum(values, 0)[:, None] + alphas
    size[size <= ROUNDING * size.max(axis=0)] = np.inf
    shrunk = turned[:, None] / size[:, :, None]
    return np.asarray((vectors @ shrunk.reshape(len(values), -1)).reshape(shrunk.shape))


def best_penalty(alphas: Array, errors: Array) -> float:
    """The penalty of least error (g,), between the penalties that were tried where a parabola says so.

    Of several that are equally good it is the largest.
    """
    i = len(errors) - 1 - int(np.argmin(errors[::-1]))
    if not 0 < i < len(errors) - 1 or not errors[i] > 0:
        return float(alphas[i])
    before, here, after = np.log(errors[i - 1 : i + 2])
    bend = before - 2 * here + after
    step = 0.5 * (before - after) / bend if bend > 0 else 0.0
    spacing = np.log(alphas[i + 1] / alphas[i])
    return float(alphas[i] * np.exp(np.clip(step, -0.5, 0.5) * spacing))


def _between(z: Array, form: Array) -> Array:
    product = z.T @ form @ z
    return np.asarray(0.5 * (product + product.T))
