"""Maximise Tr(C E Eᵀ) over E (n, r) with rows of given lengths, by a damped Newton method on the factor E.

At a maximum Z = diag(y) - C, y_i = e_i.(C E)_i / d_i, has Z E = 0, and where Z is psd too, E Eᵀ is optimal among all
psd matrices with the diagonal d (Burer and Monteiro 2003; Boumal, Voroninski and Bandeira 2016). For a shift t that
makes Z_t = Z + t I positive definite, a step is the change X of least Tr(Xᵀ Z_t X) / 2 - Tr(Xᵀ C E) with e_i.x_i = 0:

    X = Z_t⁻¹ (C E - diag(y) E - diag(v) E),    (Z_t⁻¹ o E Eᵀ) v = diag(Z_t⁻¹ (C E - diag(y) E) Eᵀ)

two Cholesky factors and an inverse (n, n), whatever the condition of C; rows are then brought to their lengths again.
With t falling with the gradient, it converges faster than linearly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

RANK = 6  # columns at the start
_SMALL = 1e-3  # singular values of E below this share of the largest are dropped
_SETTLED = 1e-4  # the residual from which on small columns are dropped
_PATIENCE = 4  # steps that neither the objective nor the residual gains by: rounding
_ROUNDING = 1e-12  # of the objective, relative
_NEAR = 1e-9  # a fall of the objective that may be rounding, where the residual falls
_MOST = 1e3  # of the largest |y|: a larger shift is a step along the gradient that gains nothing

STEP = 0.98  # of the way to the border of the cone of positive definite matrices


@dataclass(frozen=True, eq=False)
class Cone:
    """A positive definite matrix (q, q), by its lower Cholesky factor."""

    lower: Array

    @classmethod
    def of(cls, matrix: Array) -> Cone | None:
        """None where the matrix is not positive definite."""
        try:
            return cls(scipy.linalg.cholesky(matrix, lower=True, check_finite=False))
        except np.linalg.LinAlgError:
            return None

    def inverse(self) -> Array:
        """The matrix inverted."""
        below = np.tril(scipy.linalg.lapack.dpotri(self.lower, lower=1)[0])
        return np.asarray(below + np.tril(below, -1).T)

    def divided(self, right: Array) -> Array:
        """L^-1 R, whose squared columns are r.M^-1 r."""
        return np.asarray(scipy.linalg.solve_triangular(self.lower, right, lower=True, check_finite=False))

    def length(self, change: Array) -> float:
        """The step, 1 at most, by which the matrix moves along a change and remains positive definite."""
        moved = scipy.linalg.lapack.dsygst(change, self.lower, itype=1, lower=1)[0]
        least = float(scipy.linalg.eigvalsh(moved, lower=True, subset_by_index=(0, 0), check_finite=False)[0])
        return 1.0 if least > -STEP else STEP / -least


def ascend(cost: Array, d: Array, start: Array, *, residual: float, max_passes: int) -> tuple[Array, Array, int]:
    """E (n, r), y (n,) and the steps taken, from directions `start` (n, r) of the rows.

    It ends where |Z E| is at most `residual` |C E|, at the rounding of the objective, or after `max_passes`; of the
    last steps the one of least residual is returned.
    """
    e = _lengthened(start, d)
    now = _evaluated(cost, d, e)
    best, since = (now, e), 0
    shift = float(np.abs(now[1]).max())
    passes = 0
    while passes < max_passes and best[0][2] > residual and since < _PATIENCE:
        passes += 1
        objective, y, size, slope = now
        most, found = _MOST * max(shift, float(np.abs(y).max())), None
        while shift < most:
            step = _step(cost, e, y, slope, shift)
            if step is not None:
                moved = _lengthened(e + step, d)
                found = _evaluated(cost, d, moved)
                rise = (found[0] - objective) / abs(objective)
                if rise > _ROUNDING or (rise > -_NEAR and found[2] < size):
                    break
                found = None
            shift *= 4
        if found is None:
            break
        shift *= min(0.25, found[2] / size)
        e, now = moved, found
        if now[2] <= _SETTLED:
            e, now = _without_small(cost, d, e, now)
        best = (now, e) if now[2] < best[0][2] else best
        since = 0 if best[1] is e or rise > _NEAR else since + 1
    return best[1], best[0][1], passes


def _lengthened(e: Array, d: Array) -> Array:
    """Rows of length sqrt(d)."""
    return np.asarray(e * (np.sqrt(d) / np.linalg.norm(e, axis=1))[:, None])


def _evaluated(cost: Array, d: Array, e: Array) -> tuple[float, Array, float, Array]:
    """Tr(C E E^T), y, the residual, and C E - diag(y) E."""
    pulled = cost @ e
    y = np.einsum("nr,nr->n", pulled, e) / d
    slope = pulled - y[:, None] * e
    return float(y @ d), y, float(np.linalg.norm(slope) / np.linalg.norm(pulled)), slope


def _step(cost: Array, e: Array, y: Array, slope: Array, shift: float) -> Array | None:
    """X, None where Z + shift I is not positive definite."""
    z = -cost
    z.flat[:: len(z) + 1] += y + shift
    inside = Cone.of(z)
    if inside is None:
        return None
    inverse = inside.inverse()
    try:
        factor = scipy.linalg.cho_factor(inverse * (e @ e.T), lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    v = scipy.linalg.cho_solve(factor, np.einsum("nr,nr->n", inverse @ slope, e))
    return np.asarray(inverse @ (slope - v[:, None] * e))


def _without_small(
    cost: Array, d: Array, e: Array, now: tuple[float, Array, float, Array]
) -> tuple[Array, tuple[float, Array, float, Array]]:
    """The factor without columns that the maximum does not have."""
    values, turn = np.linalg.eigh(e.T @ e)
    kept = values > _SMALL**2 * values[-1]
    if kept.all():
        return e, now
    e = _lengthened(e @ turn[:, kept], d)
    return e, _evaluated(cost, d, e)
