"""Flat tori: circles side by side, a box with periodic sides, a cell of a lattice; their functions are waves."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import cos, isqrt, radians, sqrt
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from daskspectral.errors import PointError
from daskspectral.manifolds.base import Array, Flat, Manifold, bounds_of
from daskspectral.manifolds.eigenspace import TOGETHER, Eigenspace, Floats, IndexLevels, Integers, branches
from daskspectral.manifolds.invariants import Move, orbits, places
from daskspectral.manifolds.isometry import Isometry, KillingField
from daskspectral.validation import POSITIVE, check_number

_COUNTED = 3  # dimensions from which the frequencies of a cube are counted, not enumerated
_DEPENDENT = 1e-12  # the least singular value of vectors of length 1
_WHOLE = 1e-9  # how far a multiple of a lattice vector may be from a whole number
_DIGITS = 1e-2  # below, it is meant to be a whole number
_HALF = 0.5 + 1e-9  # a coefficient of 1/2 stays, however it is rounded


class Torus(Manifold):
    """A manifold of points with m angles t of period 2π, in which the metric is constant.

    -Laplace-Beltrami has the eigenvalues |Σ_i k_i r_i|² over k in Z^m, r_i the gradients of the angles, with
    eigenfunctions exp(i k.t).
    """

    @property
    @abstractmethod
    def rates(self) -> Floats:
        """The gradients of the angles (m, m), in orthonormal directions; fast where they are short."""

    @abstractmethod
    def angles(self, x: Array) -> Array:
        """t (c, m) of points (c, d)."""

    @abstractmethod
    def push(self, x: Array, direction: Array) -> Array:
        """The derivative of the angles along directions (c, d), (c, m)."""

    @abstractmethod
    def affine(self, g: Isometry) -> tuple[Integers, Array]:
        """A (m, m), integers, and b (m,) of the isometry in angles, t -> A t + b."""

    @final
    def _level(self, level: int) -> tuple[float, int]:
        unit, cube, spectrum = _spectrum(self)
        if cube:
            square, count = _sum_of_squares(self.dimension, level)
            return unit * square, count
        vectors, value = spectrum.level(level)
        return unit * value, 2 * len(vectors) if value else 1

    @final
    def _eigenspace(self, level: int, points: Iterator[Floats] | None) -> WaveSpace:
        unit, cube, spectrum = _spectrum(self)
        vectors, value = spectrum.level(level, _sum_of_squares(self.dimension, level)[0] if cube else None)
        return WaveSpace(self, vectors, unit * value)


@final
@dataclass(frozen=True)
class FlatTorus(Torus):
    """The product of m ≥ 1 unit circles, (cos t_1, sin t_1, ..., cos t_m, sin t_m) in R^(2m).

    -Laplace-Beltrami has the eigenvalues |k|² over k in Z^m, with eigenfunctions exp(i k.t): level by level,
    the sums n of m squares, with multiplicity r_m(n), the number of such k. Isometries are orthogonal matrices
    (2m, 2m) that take circles to circles. Where the data are the angles themselves, use `PeriodicBox`.

    Examples
    --------
    >>> torus = FlatTorus(2)
    >>> torus.ambient, torus.dimension, torus.multiplicity(1)
    (4, 2, 4)
    """

    m: int

    def __post_init__(self) -> None:
        self._set(m=operator.index(self.m))
        if self.m < 1:
            raise ValueError(f"expected m >= 1 circles, received m={self.m}")

    @property
    def ambient(self) -> int:
        return 2 * self.m

    @property
    def dimension(self) -> int:
        return self.m

    @property
    def rates(self) -> Floats:
        return np.eye(self.m)

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
        """Return the radial unit vector in each circle's plane, (c, m, 2)."""
        circles = self._circles(x)
        radius = np.linalg.norm(circles, axis=2, keepdims=True)
        if not radius.all():
            row, circle, _ = np.unravel_index(radius.argmin(), radius.shape)
            raise PointError(f"expected points of {self!r}, received the origin of circle {circle} in", int(row), "")
        unit: Array = circles / radius
        return unit

    def _frame(self, plane: Array) -> Array:
        """Return the m fields (m, c, 2m) of which field a is plane[:, a] in the coordinates of circle a."""
        frame = np.zeros((self.m, len(plane), self.m, 2), dtype=plane.dtype)
        circle = np.arange(self.m)
        frame[circle, :, circle] = plane.transpose(1, 0, 2)
        return frame.reshape(self.m, len(plane), 2 * self.m)

    def angles(self, x: Array) -> Array:
        circles = self._circles(x)
        return np.arctan2(circles[..., 1], circles[..., 0])

    def push(self, x: Array, direction: Array) -> Array:
        circles, v = self._circles(x), self._circles(direction)
        turned = circles[..., 0] * v[..., 1] - circles[..., 1] * v[..., 0]
        return np.asarray(turned / np.sum(circles * circles, axis=2))

    def affine(self, g: Isometry) -> tuple[Integers, Array]:
        blocks = g.matrix.reshape(self.m, 2, self.m, 2).transpose(0, 2, 1, 3)
        sign = np.rint(np.linalg.det(blocks)).astype(np.int64)  # 0 where circle j does not go to circle i
        i, j = np.nonzero(sign)
        shift = np.zeros(self.m)
        shift[i] = np.arctan2(blocks[i, j, 1, 0], blocks[i, j, 0, 0])  # the image of the angle 0
        return sign, shift


class _Lattice(Torus, Flat):
    """R^m modulo the sums of m lattice vectors, in Cartesian coordinates."""

    @property
    def _short(self) -> Floats:
        """Short vectors (m, m) of the lattice, to which `rates` / 2π are dual."""
        return _reduced(self)[0]

    @final
    @property
    def rates(self) -> Floats:
        return _reduced(self)[1]

    @final
    @property
    def periods(self) -> tuple[float | None, ...]:
        """The sides where the lattice has vectors along the axes; otherwise None for each coordinate."""
        a = np.abs(self._short)
        along = a > 1e-12 * a.max(axis=1, keepdims=True)
        return tuple(a.max(axis=0).tolist()) if along.sum() == len(a) else (None,) * len(a)

    @final
    def angles(self, x: Array) -> Array:
        return np.asarray(x @ self.rates.T)

    @final
    def push(self, x: Array, direction: Array) -> Array:
        return self.angles(direction)

    @final
    def affine(self, g: Isometry) -> tuple[Integers, Array]:
        return np.rint(self._multiples(g)).astype(np.int64), np.asarray(self.rates @ g.shift)

    @final
    def _fault(self, g: Isometry) -> str | None:
        vectors, multiples = self._short, self._multiples(g)
        off = np.abs(multiples - np.rint(multiples)).max(axis=0)
        worst = int(off.argmax())
        if off[worst] <= _WHOLE:
            return None
        fault = (
            f"it takes {vectors[worst].tolist()}, a vector of the lattice, to "
            f"{(vectors[worst] @ g.matrix.T).tolist()}, which is none"
        )
        if off[worst] < _DIGITS:
            fault += f" by {off[worst]:.2g} of a vector; give the vectors with all their digits, as .hexagonal does"
        return fault

    def _multiples(self, g: Isometry) -> Array:
        """The images of the vectors in the vectors, those of vector j in column j, (m, m)."""
        return np.asarray(self.rates @ g.matrix @ self._short.T / (2 * np.pi))


@final
@dataclass(frozen=True)
class PeriodicBox(_Lattice):
    """prod_i [lower_i, upper_i) with periodic sides L_i = upper_i - lower_i, in coordinates x (c, m): [-1, 1)^10 is
    PeriodicBox([-1] * 10, [1] * 10), and m angles live on PeriodicBox([0] * m, [2 * numpy.pi] * m).

    Any finite coordinates are a point, x_i + L_i the same as x_i. The metric is the Euclidean one of the coordinates:
    -Laplace-Beltrami has the eigenvalues Σ_i (2π k_i / L_i)² over k in Z^m, with eigenfunctions
    exp(2π i Σ_i k_i x_i / L_i); values that agree to a relative 1e-9 are one level. Isometries are
    x -> A x + b with a signed permutation A that takes each side to a side of the same length.

    Examples
    --------
    >>> box = PeriodicBox([0, -1], [2 * np.pi, 1])
    >>> box.eigenvalues(6).round(2)
    array([0., 1., 1., 4., 4., 9.])
    >>> box.periods
    (6.283185307179586, 2.0)
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __init__(self, lower: Sequence[float], upper: Sequence[float]):
        a, b = bounds_of(lower, upper)
        self._set(lower=tuple(a.tolist()), upper=tuple(b.tolist()))

    @property
    def ambient(self) -> int:
        return len(self.lower)

    @property
    def lengths(self) -> Floats:
        """The sides L (m,)."""
        return np.asarray(np.array(self.upper) - np.array(self.lower))

    @property
    def lattice(self) -> Floats:
        return np.diag(self.lengths)

    def _sample(self, n: int, rng: np.random.Generator) -> Floats:
        return rng.uniform(self.lower, self.upper, (n, self.ambient))


@final
@dataclass(frozen=True)
class PeriodicCell(_Lattice):
    """R^m with points x and x + a the same for the vectors a of a lattice: the cell of a crystal, oblique or not.

    The rows of `vectors` (m, m) span the lattice; any basis of it will do, in any unit of length. Points are rows of
    Cartesian coordinates, inside the cell or not. With the dual vectors b_i, b_i.a_j = 1 for i = j and otherwise 0,
    -Laplace-Beltrami has the eigenvalues |2π Σ_i k_i b_i|² over k in Z^m, with eigenfunctions
    exp(2π i Σ_i k_i b_i.x); values that agree to a relative 1e-9 are one level. Isometries are x -> A x + b with
    an orthogonal A that takes the lattice to itself. `groups.SpaceGroup` makes those of crystals.

    `PeriodicCell.hexagonal(a, c)`, `.fcc(a)`, `.bcc(a)` and `.from_parameters(a, b, c, alpha, beta, gamma)` have the
    vectors of common cells. Raises ValueError for vectors that are dependent or not finite.

    Examples
    --------
    >>> cell = PeriodicCell([[1, 0], [-1 / 2, np.sqrt(3) / 2]])
    >>> [cell.multiplicity(level) for level in range(6)]  # one 0, then hexagons
    [1, 6, 6, 6, 12, 6]
    >>> round(cell.eigenvalue(1) / (4 * np.pi**2), 9)  # 1 / sin(120 degrees)^2
    1.333333333
    """

    vectors: tuple[tuple[float, ...], ...]

    def __init__(self, vectors: ArrayLike):
        a = np.array(vectors, dtype=np.float64)
        if a.ndim != 2 or a.shape[0] != a.shape[1] or not a.size:
            raise ValueError(f"expected m lattice vectors of m coordinates, the rows of (m, m), received {a.shape}")
        if not np.isfinite(a).all():
            raise ValueError(f"expected finite lattice vectors, received {a.tolist()}")
        lengths = np.linalg.norm(a, axis=1, keepdims=True)
        if not lengths.all() or np.linalg.svd(a / lengths, compute_uv=False)[-1] < _DEPENDENT:
            raise ValueError(
                f"expected independent lattice vectors, received {a.tolist()}, which lie in a space of fewer than "
                f"{len(a)} dimensions; for a lattice of lower dimension give its vectors in as many coordinates"
            )
        self._set(vectors=tuple(map(tuple, a.tolist())))

    @classmethod
    def hexagonal(cls, a: float, c: float | None = None) -> Self:
        """The cell of two vectors of length a at 120 degrees, in the plane; with c, a third one of length c along z.

        Examples
        --------
        >>> PeriodicCell.hexagonal(2.0, 5.0).lattice.round(3)
        array([[ 2.   ,  0.   ,  0.   ],
               [-1.   ,  1.732,  0.   ],
               [ 0.   ,  0.   ,  5.   ]])
        """
        cell = cls.from_parameters(a, a, a if c is None else c, gamma=120.0)
        return cls(cell.lattice[:2, :2]) if c is None else cell

    @classmethod
    def fcc(cls, a: float) -> Self:
        """The primitive cell of the face-centred cubic lattice with cubes of side a: a quarter of a cube."""
        check_number("a", a, POSITIVE)
        return cls(a / 2 * (np.ones((3, 3)) - np.eye(3)))

    @classmethod
    def bcc(cls, a: float) -> Self:
        """The primitive cell of the body-centred cubic lattice with cubes of side a: half of a cube."""
        check_number("a", a, POSITIVE)
        return cls(a / 2 * (np.ones((3, 3)) - 2 * np.eye(3)))

    @classmethod
    def from_parameters(
        cls, a: float, b: float, c: float, alpha: float = 90.0, beta: float = 90.0, gamma: float = 90.0
    ) -> Self:
        """The cell of three vectors with lengths a, b, c: the first along x, the second in the plane of x and y.

        alpha is the angle between b and c, beta between a and c, gamma between a and b, in degrees. Raises ValueError
        for angles that no three vectors have.

        Examples
        --------
        >>> PeriodicCell.from_parameters(1.0, 2.0, 3.0, beta=120.0).lattice.round(3) + 0.0
        array([[ 1.   ,  0.   ,  0.   ],
               [ 0.   ,  2.   ,  0.   ],
               [-1.5  ,  0.   ,  2.598]])
        """
        cosines = [_cosine(angle) for angle in (alpha, beta, gamma)]
        sine = sqrt(1 - cosines[2] ** 2)
        y = (cosines[0] - cosines[1] * cosines[2]) / sine if sine else np.inf
        rest = 1 - cosines[1] ** 2 - y**2
        if not (min(a, b, c) > 0 and rest > 1e-12):
            raise ValueError(
                f"expected lengths above 0 and angles that three vectors can have, received a={a}, b={b}, c={c} and "
                f"alpha={alpha}, beta={beta}, gamma={gamma} degrees"
            )
        return cls([[a, 0, 0], [b * cosines[2], b * sine, 0], [c * cosines[1], c * y, c * sqrt(rest)]])

    @property
    def ambient(self) -> int:
        return len(self.vectors)

    @property
    def lattice(self) -> Floats:
        return np.array(self.vectors)

    def _sample(self, n: int, rng: np.random.Generator) -> Floats:
        return np.asarray(rng.uniform(0.0, 1.0, (n, self.ambient)) @ self.lattice)


@lru_cache(maxsize=64)
def _reduced(cell: _Lattice) -> tuple[Floats, Floats]:
    """Shorter, less oblique vectors (m, m) of a lattice, and 2π times their dual (m, m); the sides of a box.

    Lenstra, Lenstra and Lovasz 1982, with the factor 0.99. Vectors that are reduced to rounding stay as they are, so
    that the result does not depend on how ties are rounded.
    """
    b = cell.lattice
    k = len(b) if isinstance(cell, PeriodicBox) else 1
    while k < len(b):
        lower = _triangle(b).T  # row i: b_i in the orthogonal frame of the rows
        for j in reversed(range(k)):
            times = lower[k, j] / lower[j, j]
            if abs(times) > _HALF:
                b[k] -= np.rint(times) * b[j]
                lower[k] -= np.rint(times) * lower[j]
        if lower[k, k] ** 2 < 0.99 * lower[k - 1, k - 1] ** 2 - lower[k, k - 1] ** 2:
            b[[k - 1, k]] = b[[k, k - 1]]
            k = max(k - 1, 1)
        else:
            k += 1
    return b, np.asarray(np.linalg.inv(b / (2 * np.pi)).T)


def _cosine(degrees: float) -> float:
    """The cosine, exact where it is 0 or 1/2."""
    exact = {90.0: 0.0, 60.0: 0.5, 120.0: -0.5}
    return exact.get(float(degrees), cos(radians(degrees)))


@final
@dataclass(frozen=True, eq=False)
class WaveSpace(Eigenspace):
    """√2 cos(k.t), then √2 sin(k.t), over one frequency of each pair k, -k; the function 1 for k = 0.

    With t -> A t + b, exp(i k.t) becomes exp(i k.b) exp(i (Aᵀ k).t): D(g) is sparse, and invariant functions are
    read off the orbits of frequencies. Along t' = w, exp(i k.t) is multiplied by i k.w.
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
        """Whether its frequency is 0."""
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
        speed = sqrt(2) * (self.frequencies @ self.torus.push(x, direction).T)
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
        """One function for each orbit of frequencies whose phases close up, and whose k.w are 0 for a flow; sparse.

        c_(Aᵀ k) = c_k exp(i k.b) is carried along the orbit. Turned so that c_(-k) is the conjugate of c_k, the sum of
        the c_k e_k is real where the orbit holds -k with k; of two orbits k and -k one has the real part, the other the
        imaginary part.
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
        turn = np.empty(len(closed))  # one for each orbit, as phases are so modulo 2 pi
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
        """k.w of each frequency (r,), whole numbers, as a flow closes at 2 pi."""
        time = 1 / (1 + float(np.abs(field.matrix).sum(axis=1).max()))  # no angle turns by pi
        return np.asarray(np.rint(self.frequencies @ self.torus.affine(field.flow(time))[1] / time))

    def _moved(self, g: Isometry) -> Move:
        """Where each of the frequencies (k, then -k) goes, A^T k, and its phase k.b."""
        matrix, shift = self.torus.affine(g)
        signed = np.concatenate([self.frequencies, -self.frequencies])
        return places(signed @ matrix, signed), signed @ shift


@lru_cache(maxsize=32)
def _spectrum(torus: Torus) -> tuple[float, bool, IndexLevels]:
    """The square of the shortest rate, whether all are alike and orthogonal, and the levels in this unit.

    The frequencies of a cube of `_COUNTED` dimensions or more can be counted without being enumerated.
    """
    shortest = float(np.linalg.norm(torus.rates, axis=1).min())
    basis = torus.rates / shortest
    cube = len(basis) >= _COUNTED and np.allclose(basis, np.eye(len(basis)), rtol=0, atol=1e-12)
    return shortest**2, cube, IndexLevels(torus, partial(_within, basis), 4.0)


def _sum_of_squares(m: int, level: int) -> tuple[int, int]:
    """The number n that is the sum of m squares, from 0 on, and in how many ways."""
    limit = 16
    while len(found := _sums_of_squares(m, limit)) <= level:
        limit *= 2
    return found[level]


@lru_cache(maxsize=64)
def _sums_of_squares(m: int, limit: int) -> tuple[tuple[int, int], ...]:
    """(n, r_m(n)) for the n <= limit with r_m(n) > 0: coefficients of (sum_k z^(k^2))^m, exact."""
    counts = np.zeros(limit + 1, dtype=object)
    counts[0] = 1
    for _ in range(m):
        total = counts.copy()
        for k in range(1, isqrt(limit) + 1):
            total[k * k :] += 2 * counts[: limit + 1 - k * k]
        counts = total
    return tuple((n, int(r)) for n, r in enumerate(counts) if r)


def _within(basis: Floats, square: float) -> tuple[Integers, Floats] | None:
    """The k with |k B|² ≤ square, one of each pair k, -k, (r, m), and these values; None where they are too many.

    Coordinate by coordinate, from the last on, within the bounds that a triangular factor of B gives (Fincke and Pohst
    1985): none is missed, whatever the angles between the rows of B.
    """
    m = len(basis)
    factor = _triangle(basis)
    known, rest = np.zeros((1, 0), dtype=np.int64), np.full(1, square * (1 + TOGETHER))
    for i in reversed(range(m)):
        centre = -(known @ factor[i, i + 1 :]) / factor[i, i]
        radius = np.sqrt(rest) / abs(factor[i, i])
        first, last = np.ceil(centre - radius), np.floor(centre + radius)
        found = branches(np.maximum(last - first + 1, 0))
        if found is None:
            return None
        rows, number = found
        k = first[rows].astype(np.int64) + number
        known = np.column_stack([k, known[rows]])
        rest = np.maximum(rest[rows] - (factor[i, i] * (k - centre[rows])) ** 2, 0.0)
    leading = known[np.arange(len(known)), (known != 0).argmax(axis=1)]
    known = known[leading >= 0]
    return known, ((known @ basis) ** 2).sum(axis=1)


def _triangle(basis: Floats) -> Floats:
    """R (m, m), upper, with B^T = Q R."""
    factor: Any = np.linalg.qr(basis.T, mode="r")
    return np.asarray(factor)
