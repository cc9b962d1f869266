"""The mean over the rotations of space, acting on several vectors at once, in closed form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt
from typing import final

import numpy as np
from scipy.special import eval_gegenbauer, roots_gegenbauer

from daskspectral.manifolds.averages.base import LOST, ZonalAverage, characteristic, distinct, inverse_series, whole
from daskspectral.manifolds.eigenspace import Array

_BLOCK = 2**14  # matrices M at once: their entries stay in the cache


@final
@dataclass(frozen=True, eq=False)
class RotationAverage(ZonalAverage):
    """The mean over x -> (R x_1, ..., R x_k), R in SO(3), and over matrices P (n, k, k) that mix the vectors.

    The k vectors of x (3 k,) stand one after another. With x and v as matrices (3, k), v . g x = tr(Rᵀ M),
    M = V P Xᵀ, and tr(R(q)ᵀ M) = qᵀ N q in unit quaternions q, N symmetric (4, 4), for any s
    det(s - t N) = s^4 - 2 e_1 s² t² - 8 det(M) s t³ + (e_1² - 4 e_2) t^4, e_i the invariants of Mᵀ M.
    The mean of (qᵀ A q)^(-2) over the sphere of the q is det(A)^(-1/2). With A = 1 + t² - 2 t N the first is the
    generating function of the Gegenbauer polynomials C_j of index 2 (Szegoe, Orthogonal Polynomials, 4.7.23), so that
    E C_j(tr(Rᵀ M)) = h_j, Σ_j h_j t^j = det(1 + t² - 2 t N)^(-1/2), for R uniform. The roots of
    the determinant lie on the unit circle, and the recurrence of the h_j is stable; Z_l is a combination of the C_j.
    The matrices P are a finite group; P = -I makes it O(3).
    """

    mixing: Array

    @property
    def ambient(self) -> int:
        return 3 * int(self.mixing.shape[1])

    @cached_property
    def _even(self) -> bool:
        """Whether -I is among the matrices: functions of odd degree vanish."""
        return bool((np.abs(self.mixing + np.eye(self.mixing.shape[1])).max(axis=(1, 2)) < 1e-6).any())

    @cached_property
    def _halved(self) -> Array:
        """One of each pair P, -P, which have the same mean at even degrees; all without -I."""
        if not self._even:
            return self.mixing
        flat = self.mixing.reshape(len(self.mixing), -1)
        first = np.argmax(np.abs(flat) > 1e-6, axis=1)  # equal for P and -P
        return self.mixing[np.take_along_axis(flat, first[:, None], axis=1)[:, 0] > 0]

    @cached_property
    def _classes(self) -> tuple[Array, Array]:
        return distinct(characteristic(self.mixing))

    def invariant_polynomials(self, degree: int) -> int:
        """By Weyl's formula: 1 / det(1 - t P x R) is a(t) a(t z) a(t / z), a = 1 / det(1 - t P), z = e^(i θ), of
        which the mean with the weight 1 - cos(θ) of a rotation's angle is taken."""
        polynomials, shares = self._classes
        a = inverse_series(polynomials, degree)
        diagonal, next_to_it = np.zeros_like(a), np.zeros_like(a)  # coefficients of z^0 and z^1 in a(t z) a(t / z)
        half = np.arange(degree // 2 + 1)
        diagonal[:, 2 * half] = a[:, half] ** 2
        half = np.arange((degree + 1) // 2)
        next_to_it[:, 2 * half + 1] = a[:, half] * a[:, half + 1]
        product = np.sum(a * (diagonal - next_to_it)[:, ::-1], axis=1)
        return whole(float(shares @ product), f"degree {degree}")

    def reaches(self, degree: int) -> bool:
        size = sqrt(max(1, self.dimension(degree)))  # the root mean square of the kernel
        return index_two_loss(self.ambient, degree) <= LOST * size

    def terms(self, degree: int) -> int:
        return 3 * len(self._halved) * self.dimension(degree)

    def kernel(self, degree: int, v: Array, w: Array, direction: Array | None = None) -> Array:
        found = np.zeros((len(v), len(w)))
        if self._even and degree % 2:
            return found
        weights = in_index_two(self.ambient, degree)
        mixing, vectors = self._halved, w.reshape(len(w), -1, 3)
        directions = None if direction is None else direction.reshape(len(w), -1, 3)
        for rows, columns, moved in self._moved(mixing, v, len(w)):
            entries = _entries(moved, vectors[columns])
            along = None if directions is None else _entries(moved, directions[columns])
            part = _series(weights, entries, along)
            found[rows, columns] += part.reshape(-1, rows.stop - rows.start, part.shape[1]).sum(axis=0)
        return found / len(mixing)

    def _moved(self, mixing: Array, v: Array, count: int) -> Iterator[tuple[slice, slice, Array]]:
        """Slices of v and w, and V P for some P, (b m, k, 3)."""
        width = min(count, _BLOCK)
        rows = max(1, min(len(v), _BLOCK // width))
        together = max(1, _BLOCK // (width * rows))
        turned = mixing.transpose(0, 2, 1)
        for top in range(0, len(v), rows):
            some = slice(top, min(top + rows, len(v)))
            vectors = v[some].reshape(1, -1, mixing.shape[1], 3)
            for first in range(0, len(mixing), together):
                moved = turned[first : first + together, None] @ vectors
                for start in range(0, count, width):
                    yield some, slice(start, start + width), moved.reshape(-1, mixing.shape[1], 3)


def _entries(moved: Array, w: Array) -> list[list[Array]]:
    """M_ab = sum over vectors of v_a w_b, for moved points (m, k, 3) and w (c, k, 3): entries (m, c)."""
    left, right = moved.transpose(2, 0, 1), w.transpose(2, 1, 0)
    return [[left[a] @ right[b] for b in range(3)] for a in range(3)]


def _series(weights: Array, m: list[list[Array]], along: list[list[Array]] | None) -> Array:
    """sum_k weights_k h_k for matrices with entries m, or its derivative along matrices."""
    steps = [(a, b, (a + 1) % 3, (a + 2) % 3, (b + 1) % 3, (b + 2) % 3) for a in range(3) for b in range(3)]
    cofactor = {(a, b): m[i][k] * m[j][n] - m[i][n] * m[j][k] for a, b, i, j, k, n in steps}
    e1 = sum(m[a][b] * m[a][b] for a, b in cofactor)
    e2 = sum(c * c for c in cofactor.values())
    det = sum(m[0][b] * cofactor[0, b] for b in range(3))
    p: dict[int, Array | float] = {**_coefficients(e1, det, e1 * e1 - 4 * e2), 8: 1.0}
    p |= {j: c + p[j] for j, c in ((2, 4.0), (4, 6.0), (6, 4.0))}
    degree = len(weights) - 1
    h = [np.ones_like(e1)]
    for k in range(1, degree + 1):
        h.append(sum((((j / 2 - k) / k) * p[j]) * h[k - j] for j in p if j <= k) + np.zeros_like(e1))
    if along is None:
        return np.asarray(sum(c * value for c, value in zip(weights, h, strict=True) if c))
    slope_e1 = 2 * sum(m[a][b] * along[a][b] for a, b in cofactor)
    slope_e2 = 2 * sum(
        cofactor[a, b] * (along[i][k] * m[j][n] + m[i][k] * along[j][n] - along[i][n] * m[j][k] - m[i][n] * along[j][k])
        for a, b, i, j, k, n in steps
    )
    slope_det = sum(cofactor[a, b] * along[a][b] for a, b in cofactor)
    q = _coefficients(slope_e1, slope_det, 2 * e1 * slope_e1 - 4 * slope_e2)
    slopes = [np.zeros_like(e1)]
    for k in range(1, degree + 1):
        terms = [((j / 2 - k) / k) * p[j] * slopes[k - j] for j in p if j <= k]
        terms += [((j / 2 - k) / k) * q[j] * h[k - j] for j in q if j <= k]
        slopes.append(sum(terms) + np.zeros_like(e1))
    return np.asarray(sum(c * value for c, value in zip(weights, slopes, strict=True) if c))


def _coefficients(e1: Array | float, det: Array | float, e4: Array | float) -> dict[int, Array | float]:
    """The coefficients of det(1 + t^2 - 2 t N) - (1 + t^2)^4, which are linear in these: of t^2 to t^6."""
    return {2: -8 * e1, 3: -64 * det, 4: 16 * (e4 - e1), 5: -64 * det, 6: -8 * e1}


def in_index_two(d: int, degree: int) -> Array:
    """c_j of Z_l(t) = Σ_j c_j C_j(t), Gegenbauer polynomials of index 2, for Sᵈ⁻¹, (degree + 1,).

    The connection of Gegenbauer polynomials (Digital Library of Mathematical Functions, 18.18.16); positive for d > 6.
    """
    found, a = np.zeros(degree + 1), (d - 2) / 2
    for k in range(degree // 2 + 1):
        left = degree - k
        share = prod((a + i) / (3 + i) for i in range(left)) * prod((a - 2 + i) / (1 + i) for i in range(k))
        found[degree - 2 * k] = share * (degree + 2 - 2 * k) / 2 * (degree + a) / a
    return found


def index_two_loss(d: int, degree: int) -> float:
    """What summing these polynomials costs of the value 1 to rounding, for generic points of S^(d-1)."""
    t, shares = roots_gegenbauer(4 * degree + 50, (d - 2) / 2)
    orders = np.arange(degree + 1)
    means = np.abs(eval_gegenbauer(orders[:, None], 2.0, t)) @ (shares / shares.sum())
    return float(np.finfo(float).eps * np.abs(in_index_two(d, degree)) @ means)
