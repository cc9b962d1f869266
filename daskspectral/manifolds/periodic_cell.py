"""A cell of a lattice whose opposite sides are glued: a flat torus in Cartesian coordinates, oblique or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import cos, radians, sqrt
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskspectral.manifolds.base import Array, Manifold, axes
from daskspectral.manifolds.eigenspace import Eigenspace
from daskspectral.manifolds.frequencies import Rows, reduced, shells
from daskspectral.manifolds.isometry import Isometry, orthogonal_fault
from daskspectral.manifolds.waves import Chart, WaveSpace

_DEPENDENT = 1e-12  # the least singular value of vectors of length 1
_WHOLE = 1e-10  # how far a multiple of a lattice vector may be from a whole number
_DIGITS = 1e-2  # below, it is meant to be a whole number


@final
@dataclass(frozen=True)
class PeriodicCell(Manifold):
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

    vectors: Rows

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
        object.__setattr__(self, "vectors", tuple(map(tuple, a.tolist())))

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
        for name, length in ({"a": a} | ({} if c is None else {"c": c})).items():
            _check_length(name, length)
        plane = [[a, 0.0], [-a / 2, a * sqrt(0.75)]]
        return cls(plane if c is None else [[*plane[0], 0.0], [*plane[1], 0.0], [0.0, 0.0, c]])

    @classmethod
    def fcc(cls, a: float) -> Self:
        """The primitive cell of the face-centred cubic lattice with cubes of side a: a quarter of a cube."""
        _check_length("a", a)
        return cls(a / 2 * (np.ones((3, 3)) - np.eye(3)))

    @classmethod
    def bcc(cls, a: float) -> Self:
        """The primitive cell of the body-centred cubic lattice with cubes of side a: half of a cube."""
        _check_length("a", a)
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
    def dimension(self) -> int:
        return len(self.vectors)

    @property
    def lattice(self) -> NDArray[np.float64]:
        return np.array(self.vectors)

    @property
    def periods(self) -> tuple[float | None, ...]:
        """The sides where the lattice has vectors along the axes; otherwise None for each coordinate."""
        a = np.abs(_bases(self.vectors)[0])
        along = a > 1e-12 * a.max(axis=1, keepdims=True)
        return tuple(a.max(axis=0).tolist()) if along.sum() == len(a) else (None,) * len(a)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"vectors": self.vectors}

    def _normals(self, x: Array) -> Array:
        return np.zeros((0, *x.shape), dtype=x.dtype)

    def _tangents(self, x: Array) -> Array:
        return axes(x)

    def _distance(self, x: Array) -> Array:
        return np.asarray(0 * x.sum(axis=1))  # NaN where a coordinate is not finite

    def _level(self, level: int) -> tuple[float, int]:
        vectors, square = self._shell(level)
        return 4 * np.pi**2 * square, 2 * len(vectors) if square else 1

    def _sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.asarray(rng.uniform(0.0, 1.0, (n, self.ambient)) @ self.lattice)

    def _eigenspace(self, level: int) -> Eigenspace:
        vectors, square = self._shell(level)
        return WaveSpace(CellChart(*_bases(self.vectors)), vectors, 4 * np.pi**2 * square)

    def _restored(self, level: int, points: Iterator[NDArray[np.float64]]) -> Eigenspace:
        return self._eigenspace(level)

    def _fault(self, g: Isometry) -> str | None:
        fault = orthogonal_fault(g)
        if fault is not None:
            return fault
        vectors, dual = _bases(self.vectors)
        multiples = dual @ g.matrix @ vectors.T  # column j: the image of vector j in the vectors
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

    def _shell(self, level: int) -> tuple[NDArray[np.int64], float]:
        """The frequencies k of a level, in the dual of the reduced vectors, and |sum_i k_i b_i|^2."""
        return shells(tuple(map(tuple, _bases(self.vectors)[1].tolist()))).shell(level, self)


@final
@dataclass(frozen=True, eq=False)
class CellChart(Chart):
    """Angles t_i = 2 pi b_i.x, for vectors (m, m) of a lattice and their dual b (m, m)."""

    vectors: NDArray[np.float64]
    dual: NDArray[np.float64]

    @property
    def ambient(self) -> int:
        return len(self.vectors)

    def angles(self, x: Array) -> Array:
        return np.asarray(x @ (2 * np.pi * self.dual.T))

    def push(self, x: Array, direction: Array) -> Array:
        return np.asarray(direction @ (2 * np.pi * self.dual.T))

    def affine(self, g: Isometry) -> tuple[NDArray[np.int64], Array]:
        return np.rint(self.dual @ g.matrix @ self.vectors.T).astype(np.int64), 2 * np.pi * self.dual @ g.shift


@lru_cache(maxsize=64)
def _bases(vectors: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Reduced vectors of the lattice, (m, m), and their dual, (m, m)."""
    found = reduced(np.array(vectors))
    return found, np.asarray(np.linalg.inv(found).T, dtype=np.float64)


def _cosine(degrees: float) -> float:
    """The cosine, exact where it is 0 or 1/2."""
    exact = {90.0: 0.0, 60.0: 0.5, 120.0: -0.5}
    return exact.get(float(degrees), cos(radians(degrees)))


def _check_length(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"expected a length {name}, a number above 0, received {value!r}")
    if not 0 < value < np.inf:
        raise ValueError(f"expected a finite length {name} above 0, received {value!r}")
