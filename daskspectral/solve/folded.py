"""Cross-validation of ridge regression from sums by fold: no row is read again, and no penalty is solved for alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.whitening import inverse_root, symmetric_part

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


def fold_errors(
    kinds: Sequence[FoldSums],
    shares: Array,
    whole: Sequence[tuple[Array, Array]],
    penalty: Array,
    alphas: Array,
    cut: float,
) -> NDArray[np.float64] | None:
    """The mean squared error (g, kinds) of each penalty (g,) on rows that it was not fitted to, summed over targets.

    `whole` are form and target of each kind over all rows, K = `penalty` (p, p). For every fold k with the share w_k of
    the weight, the penalised solution a of the means over all other rows,

        (A - A_k) a / (1 - w_k) + alpha K a = (b - b_k) / (1 - w_k),

    has on the fold the error squares_k - 2 a.b_k + a.A_k a. One eigendecomposition a fold serves all penalties, in
    functions S that are orthonormal in the norm K. Of these, sums with a relative rounding of `cut` tell those of more
    than its root apart: the others, of which A is like K², would be rounding, and matter for penalties below it alone.
    None where fewer than two folds can be left out.
    """
    judged = [k for k in range(len(shares)) if 0 < shares[k] < 1]
    if len(judged) < 2:
        return None
    s = inverse_root(symmetric_part(penalty), float(np.sqrt(cut)), driver="evd")
    form, target = (np.sum([parts[i] for parts in whole], axis=0) for i in (0, 1))
    form, target = _between(s, form), s.T @ target
    total = np.zeros((len(alphas), len(kinds)))
    for k in judged:
        found = []
        for kind in kinds:
            own, aimed, squares = kind.of(k)
            found.append((_between(s, own), s.T @ aimed, float(squares.sum())))
        rest = 1 - shares[k]
        others = form - np.sum([f for f, _, _ in found], axis=0)
        a = _ridge(others / rest, (target - np.sum([t for _, t, _ in found], axis=0)) / rest, alphas)
        for j, (seen, aimed, norm) in enumerate(found):
            image = (seen @ a.reshape(len(a), -1)).reshape(a.shape)
            error = norm - np.einsum("rgm,rgm->g", a, 2 * aimed[:, None] - image)
            total[:, j] += np.maximum(error, 10 * cut * norm)
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
    step = 0.5 * (before - after) / bend if bend > 0 else 0.0  # a half at most: the middle one is least
    spacing = np.log(alphas[i + 1] / alphas[i])
    return float(alphas[i] * np.exp(step * spacing))


def _between(s: Array, form: Array) -> Array:
    return symmetric_part(s.T @ form @ s)
