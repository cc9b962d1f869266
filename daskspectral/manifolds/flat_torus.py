"""Flat tori: products of circles, or a box with periodic sides; their functions are waves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import sqrt
from typing import final

import numpy as np
from scipy.sparse import csr_array

from daskspectral.errors import PointError
from daskspectral.manifolds.base import Array, Flat, Manifold, bounds_of, sides_fault
from daskspectral.manifolds.eigenspace import Eigenspace, Floats, IndexLevels, Integers, check_count, sums_within
from daskspectral.manifolds.invariants import Move, orbits, positions_among
from daskspectral.manifolds.isometry import Isometry, KillingField
from daskspectral.validation import check_integer


class Torus(Manifold):
    """Manifold of points with m orthogonal angles t of period 2π, of constant speed r.

    -Laplace-Beltrami has the eigenvalues Σ_i (k_i r_i)² over k in Z^m, with eigenfunctions exp(i k.t).
    """

    @property
    @abstractmethod
    def rates(self) -> Floats:
        """Norms r (m,) of the gradients of the angles."""

    @abstractmethod
    def angles(self, x: Array) -> Array:
        """Return the angles t (c, m) of points (c, d)."""

    @abstractmethod
    def pushforward(self, x: Array, direction: Array) -> Array:
        """Return the derivative (c, m) of the angles along directions."""

    @abstractmethod
    def affine(self, g: Isometry) -> tuple[Integers, Array]:
        """Return A (m, m), integers, and b (m,) of t -> A t + b."""

    @final
    def _level(self, level: int) -> tuple[float, int]:
        unit, spectrum = _spectrum(self)
        vectors, value = spectrum.level(level)
        return unit * value, 2 * len(vectors) if value else 1

    @final
    def _eigenspace(self, level: int, points: Iterator[Floats] | None) -> WaveSpace:
        unit, spectrum = _spectrum(self)
        vectors, value = spectrum.level(level)
        return WaveSpace(self, vectors, unit * value)


@final
@dataclass(frozen=True)
class FlatTorus(Torus):
    """Product of m ≥ 1 unit circles, (cos t_1, sin t_1, ..., cos t_m, sin t_m) in R^(2m).

    The eigenvalues are k.k over k in Z^m, with eigenfunctions exp(i k.t). Isometries are orthogonal matrices (2m, 2m)
    that map circles to circles.

    Parameters
    ----------
    m : int
        Number of circles.

    See Also
    --------
    PeriodicBox : The torus in angles.

    Examples
    --------
    >>> torus = FlatTorus(2)
    >>> torus.ambient, torus.dimension, torus.multiplicity(1)
    (4, 2, 4)
    """

    m: int

    def __post_init__(self) -> None:
        self._set(m=check_integer("m", self.m))

    @property
    def ambient(self) -> int:
        return 2 * self.m

    @property
    def dimension(self) -> int:
        return self.m

    @property
    def rates(self) -> Floats:
        return np.ones(self.m)

    def _normals(self, x: Array) -> Array:
        return self._frame(self._unit(x))

    def _tangents(self, x: Array) -> Array:
        unit = self._unit(x)
        return self._frame(np.stack([-unit[..., 1], unit[..., 0]], axis=-1))

    def _distance(self, x: Array) -> Array:
        off: Array = np.linalg.norm(np.linalg.norm(self._circles(x), axis=2) - 1, axis=1)
        return off

    def _sample(self, n: int, rng: np.random.Generator) -> Floats:
        t = rng.uniform(0.0, 2 * np.pi, (n, self.m))
        return np.stack([np.cos(t), np.sin(t)], axis=-1).reshape(n, 2 * self.m)

    def _circles(self, x: Array) -> Array:
        return x.reshape(len(x), self.m, 2)

    def _unit(self, x: Array) -> Array:
        circles = self._circles(x)
        radius = np.linalg.norm(circles, axis=2, keepdims=True)
        if not radius.all():
            row, circle, _ = np.unravel_index(radius.argmin(), radius.shape)
            raise PointError(f"expected points of {self!r}, received the origin of circle {circle} in", int(row), "")
        unit: Array = circles / radius
        return unit

    def _frame(self, plane: Array) -> Array:
        """Return the fields (m, c, 2m) plane[:, a] in the plane of circle a."""
        frame = np.zeros((self.m, len(plane), self.m, 2), dtype=plane.dtype)
        circle = np.arange(self.m)
        frame[circle, :, circle] = plane.transpose(1, 0, 2)
        return frame.reshape(self.m, len(plane), 2 * self.m)

    def angles(self, x: Array) -> Array:
        circles = self._circles(x)
        return np.arctan2(circles[..., 1], circles[..., 0])

    def pushforward(self, x: Array, direction: Array) -> Array:
        circles, v = self._circles(x), self._circles(direction)
        turned = circles[..., 0] * v[..., 1] - circles[..., 1] * v[..., 0]
        return np.asarray(turned / np.sum(circles * circles, axis=2))

    def affine(self, g: Isometry) -> tuple[Integers, Array]:
        blocks = g.matrix.reshape(self.m, 2, self.m, 2).transpose(0, 2, 1, 3)
        sign = np.rint(np.linalg.det(blocks)).astype(np.int64)  # 0 unless circle j is mapped to circle i
        i, j = np.nonzero(sign)
        shift = np.zeros(self.m)
        shift[i] = np.arctan2(blocks[i, j, 1, 0], blocks[i, j, 0, 0])  # the image of the angle 0
        return sign, shift


@final
@dataclass(frozen=True)
class PeriodicBox(Torus, Flat):
    """Box prod_i [lower_i, upper_i) with periodic sides L_i, in coordinates x (c, m).

    The eigenvalues are Σ_i (2π k_i / L_i)² over k in Z^m, with eigenfunctions exp(2π i Σ_i k_i x_i / L_i); values that
    agree to a relative 1e-9 are one level. Isometries are x -> A x + b with a signed permutation A that maps each side
    to a side of the same length.

    Parameters
    ----------
    lower : float or sequence of m floats
        Lower bounds.
    upper : float or sequence of m floats
        Upper bounds.

    See Also
    --------
    FlatTorus : The torus in cosines and sines.
    Interval : A box without periodicity.

    Examples
    --------
    >>> box = PeriodicBox([0, -1], [2 * np.pi, 1])
    >>> box.eigenvalues(6).round(2)
    array([0., 1., 1., 4., 4., 9.])
    >>> box.periods
    (6.283185307179586, 2.0)
    """

    def __init__(self, lower: Sequence[float], upper: Sequence[float]):
        a, b = bounds_of(lower, upper)
        self._set(lower=tuple(a.tolist()), upper=tuple(b.tolist()))

    @property
    def lengths(self) -> Floats:
        """Sides L (m,)."""
        return self.widths

    @property
    def rates(self) -> Floats:
        return np.asarray(2 * np.pi / self.lengths)

    @property
    def periods(self) -> tuple[float | None, ...]:
        return tuple(self.lengths.tolist())

    def angles(self, x: Array) -> Array:
        return np.asarray(x * self.rates)

    def pushforward(self, x: Array, direction: Array) -> Array:
        return self.angles(direction)

    def affine(self, g: Isometry) -> tuple[Integers, Array]:
        return np.rint(g.matrix).astype(np.int64), np.asarray(self.rates * g.shift)

    def _fault(self, g: Isometry) -> str | None:
        return sides_fault(g, self.lengths)


@final
@dataclass(frozen=True, eq=False)
class WaveSpace(Eigenspace):
    """Waves √2 cos(k.t), then √2 sin(k.t), with one frequency of each pair k, -k; 1 for k = 0.

    With t -> A t + b, exp(i k.t) becomes exp(i k.b) exp(i (Aᵀ k).t): D(g) is sparse. Along t' = w, exp(i k.t) is
    multiplied by i k.w.
    """

    torus: Torus
    frequencies: Integers
    eigenvalue: float

    @property
    def ambient(self) -> int:
        return self.torus.ambient

    @property
    def size(self) -> int:
        return 1 if self.constant else 2 * len(self.frequencies)

    @property
    def constant(self) -> bool:
        return not self.frequencies.any()

    def raw(self, x: Array) -> Array:
        if self.constant:
            return np.ones((1, len(x)))
        phase = self.frequencies @ self.torus.angles(x).T
        waves = np.concatenate([np.cos(phase), np.sin(phase)])
        waves *= sqrt(2)
        return waves

    def raw_along(self, x: Array, direction: Array) -> Array:
        if self.constant:
            return np.zeros((1, len(x)))
        phase = self.frequencies @ self.torus.angles(x).T
        speed = sqrt(2) * (self.frequencies @ self.torus.pushforward(x, direction).T)
        return np.concatenate([-speed * np.sin(phase), speed * np.cos(phase)])

    def action(self, g: Isometry) -> csr_array:
        if self.constant:
            return csr_array(np.ones((1, 1)))
        h = len(self.frequencies)
        target, phase = self._moved(g)
        k, sign = target[:h] % h, np.where(target[:h] < h, 1.0, -1.0)
        cosine, sine = np.cos(phase[:h]), np.sin(phase[:h])
        rows = np.arange(h)
        entries = np.concatenate([cosine, -sign * sine, sine, sign * cosine])
        where = np.concatenate([rows, rows, rows + h, rows + h]), np.concatenate([k, k + h, k, k + h])
        return csr_array((entries, where), shape=(2 * h, 2 * h))

    def derived_action(self, field: KillingField) -> csr_array:
        if self.constant:
            return csr_array((1, 1))
        h, speed = len(self.frequencies), self._speed(field)
        rows = np.arange(h)
        where = np.concatenate([rows, rows + h]), np.concatenate([rows + h, rows])
        return csr_array((np.concatenate([-speed, speed]), where), shape=(2 * h, 2 * h))

    def closed_form(self, isometries: Sequence[Isometry], algebra: Sequence[KillingField]) -> csr_array:
        """Return a sparse basis with one function for each closed orbit of frequencies (with k.w = 0 for flows).

        c_(Aᵀ k) = c_k exp(i k.b) along an orbit. The sum of the c_k e_k is real if the orbit contains -k with k; of
        two orbits k and -k one has the real part, the other the imaginary part.
        """
        if self.constant:
            return csr_array(np.ones((1, 1)))
        h = len(self.frequencies)
        orbit, phase, closed = orbits(2 * h, [self._moved(g) for g in isometries])
        for field in algebra:
            closed[orbit[np.tile(self._speed(field) != 0, 2)]] = False
        own = np.empty_like(closed, dtype=np.int64)
        own[orbit] = np.roll(orbit, h)  # the orbit of -k
        own -= np.arange(len(own))
        turn = np.empty(len(closed))  # one for each orbit, because phases are modulo 2 pi
        turn[orbit] = -(phase + np.roll(phase, h)) / 2
        turn[own < 0] += np.pi / 2
        angle = phase + turn[orbit]
        scale = 1 / np.sqrt(np.bincount(orbit) * np.where(own, 1, 2))[orbit]
        index, sign = np.tile(np.arange(h), 2), np.repeat([1.0, -1.0], h)
        rows, columns = np.concatenate([index, index + h]), np.tile((np.cumsum(closed) - 1)[orbit], 2)
        entries = np.concatenate([scale * np.cos(angle), -sign * scale * np.sin(angle)])
        kept = np.tile(closed[orbit], 2)  # entries of k and -k in one orbit are added
        return csr_array((entries[kept], (rows[kept], columns[kept])), shape=(2 * h, int(closed.sum())))

    def _speed(self, field: KillingField) -> Array:
        """Return k.w (r,), integers because a flow closes at 2 pi."""
        time = 1 / (1 + float(np.abs(field.matrix).sum(axis=1).max()))  # no angle is rotated by pi
        return np.asarray(np.rint(self.frequencies @ self.torus.affine(field.flow(time))[1] / time))

    def _moved(self, g: Isometry) -> Move:
        """Return the images A^T k of the frequencies (k, then -k), and their phases k.b."""
        matrix, shift = self.torus.affine(g)
        signed = np.concatenate([self.frequencies, -self.frequencies])
        return positions_among(signed @ matrix, signed), signed @ shift


@lru_cache(maxsize=32)
def _spectrum(torus: Torus) -> tuple[float, IndexLevels]:
    """Return the square of the shortest rate, and the levels in this unit."""
    shortest = float(torus.rates.min())
    return shortest**2, IndexLevels(partial(_within, torus.rates / shortest), 1.0)


def _within(rates: Floats, square: float) -> tuple[Integers, Floats]:
    """Return the k with Σ_i (k_i r_i)² ≤ square, up to sign, (r, m), and these sums."""
    k, sums = sums_within([(np.arange(2 + np.sqrt(square) // r) * r) ** 2 for r in rates], square)
    for i in range(k.shape[1]):
        flipped = np.flatnonzero((k[:, i] > 0) & k[:, :i].any(axis=1))
        check_count(len(k) + len(flipped))
        mirrored = k[flipped]
        mirrored[:, i] *= -1
        k, sums = np.concatenate([k, mirrored]), np.concatenate([sums, sums[flipped]])
    return k, sums
