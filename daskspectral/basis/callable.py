"""Bases evaluated for a whole block at once, with gradients: user-defined functions and normalized RBF."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from daskspectral.basis.base import Array, Basis, Translation, unit_points
from daskspectral.basis.evaluation import Block, Evaluation
from daskspectral.errors import ParameterError, SmoothnessError
from daskspectral.forms import Atom
from daskspectral.landmarks import kmeans_plus_plus
from daskspectral.registry import Function as Saved
from daskspectral.validation import POSITIVE, check_flag, check_integer, check_number

Function = Callable[[Array], Array]


class Differentiated(Basis):
    """Basis evaluated, with its gradients, for a whole block at once.

    Examples
    --------
    >>> CallableBasis(lambda x: x.T, d=2).evaluate(np.array([[1.0, 2.0]]))
    array([[1.],
           [2.]])
    """

    @abstractmethod
    def evaluate(self, x: Array) -> Array:
        """Return phi_i(x_k), (p, c), at points (c, d)."""

    @abstractmethod
    def differentiate(self, x: Array) -> Array:
        """Return grad phi_i(x_k), (p, c, d), at points (c, d); raise SmoothnessError if it is not known."""

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return _DifferentiatedEvaluation(self, block)


@dataclass(frozen=True, eq=False)
class CallableBasis(Differentiated):
    """User-defined basis: p functions, evaluated together.

    Functions are called with float64 points, block by block, from several threads at once; the constructor calls them
    to determine p. A saved model keeps only import paths, so that functions to be saved must be defined in a module.

    Parameters
    ----------
    function : callable
        Functions x (c, d) -> (p, c).
    gradient : callable, optional
        Their gradients x (c, d) -> (p, c, d); without them forms with derivatives raise SmoothnessError.
    d : int
        Number of variables.
    holds_constant : bool
        True if the span contains the constant, so that estimators add none.

    Raises
    ------
    ValueError
        If a function returns another shape.

    See Also
    --------
    Basis : The interface, for functions with faster sums.
    daskspectral.testing.check_basis : Test of a user-defined basis.

    Examples
    --------
    >>> waves = CallableBasis(lambda x: np.sin(x).T, lambda x: np.cos(x).T[:, :, None], d=1)
    >>> waves.values(np.array([[0.0], [np.pi / 2]])).round(9)
    array([[0., 1.]])
    >>> waves.order
    1
    """

    expects: ClassVar = {"function": Saved, "gradient": Saved}

    function: Function
    gradient: Function | None = None
    d: int = field(kw_only=True)
    holds_constant: bool = field(default=False, kw_only=True)
    _size: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, given in (("function", self.function), ("gradient", self.gradient)):
            if not callable(given) and (given is not None or name == "function"):
                raise ParameterError(name, "a function x (c, d) -> (p, c), or its gradient -> (p, c, d)", given)
        check_flag("holds_constant", self.holds_constant)
        self._set(d=check_integer("d", self.d))
        with np.errstate(all="ignore"):
            shape = np.shape(self.function(unit_points(3, self.d)))
            if len(shape) != 2 or not shape[0] or shape[1] != 3:
                raise ValueError(_misshapen("function", self.function, shape, (3, self.d), "(p, c), here (p, 3)"))
            self._set(_size=shape[0])
            self.evaluate(unit_points(2, self.d))  # another number of points distinguishes p from c
            if self.gradient is not None:
                self.differentiate(unit_points(2, self.d))

    @property
    def size(self) -> int:
        return self._size

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def order(self) -> float:
        return 0 if self.gradient is None else 1

    @property
    def description(self) -> str:
        return f"the functions of {name_of(self.function)}"

    def remedy(self, order: int) -> str:
        if order == 1:
            return "Pass CallableBasis a gradient, a function x (c, d) -> (p, c, d)."
        return f"CallableBasis has first derivatives at most. {super().remedy(order)}"

    def evaluate(self, x: Array) -> Array:
        return self._shaped("function", self.function, x, (self.size, len(x)), "(p, c)")

    def differentiate(self, x: Array) -> Array:
        if self.gradient is None:
            raise SmoothnessError(f"{self.description} have no gradient. {self.remedy(1)}")
        return self._shaped("gradient", self.gradient, x, (self.size, *x.shape), "(p, c, d)")

    def _shaped(self, role: str, function: Function, x: Array, wanted: tuple[int, ...], letters: str) -> Array:
        values = np.asarray(function(x))
        if values.shape != wanted:
            raise ValueError(_misshapen(role, function, values.shape, x.shape, f"{letters}, here {wanted}"))
        return values


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a user's function for messages."""
    return getattr(function, "__name__", None) or repr(function)


def _misshapen(role: str, function: Function, shape: tuple[int, ...], points: tuple[int, ...], wanted: str) -> str:
    return (
        f"the {role} {name_of(function)} of a CallableBasis must return {wanted}, got shape {shape} at points {points}."
    )


class _DifferentiatedEvaluation(Evaluation):
    """Values and gradients of one block, each computed at the first request."""

    def __init__(self, basis: Differentiated, block: Block):
        self.basis, self.block = basis, block
        self.points = block.x.astype(float, copy=False)

    @cached_property
    def value(self) -> Array:
        return self.block.weighted(self.basis.evaluate(self.points))

    @cached_property
    def slopes(self) -> Array:
        found = np.moveaxis(self.basis.differentiate(self.points), 2, 0)
        return np.ascontiguousarray(self.block.weighted(found))

    def along(self, direction: Array) -> Array:
        return np.asarray(np.einsum("dpc,cd->pc", self.slopes, direction.astype(self.block.dtype, copy=False)))

    def partial(self, alpha: tuple[int, ...]) -> Array:
        found: Array = self.slopes[alpha.index(1)]
        return found


ROUNDS = 20  # of k-means: with few, the quality of cells depends on the seeds
NEIGHBORS = 2  # whose distances are the spacing of centers


@dataclass(frozen=True, eq=False)
class NormalizedRBF(Differentiated):
    """Normalized Gaussians φ_i(x) = exp(-|x - y_i|² / 2 w²) / Σ_j exp(-|x - y_j|² / 2 w²).

    A smooth partition, bounded far from all centers, whose span contains the constant; as w tends to 0, the indicators
    of Voronoi cells, the states of a Markov state model. A few of them suit short trajectories.

    Parameters
    ----------
    centers : array of shape (p, d)
        Centers y.
    width : float
        Width w in the units of the columns.

    Raises
    ------
    ValueError
        If the centers are not finite numbers (p, d), or the width is not positive.

    See Also
    --------
    NearestCentroids : Sparse weights of the nearest centroids, for random walks.
    Landmarks : Functions of a kernel at landmarks.

    Examples
    --------
    >>> cells = NormalizedRBF(np.array([[0.0], [1.0]]), width=0.5)
    >>> cells.values(np.array([[0.0], [0.5], [100.0]])).round(3)
    array([[0.881, 0.5  , 0.   ],
           [0.119, 0.5  , 1.   ]])
    """

    order = 1
    description = "normalized radial basis functions"
    holds_constant = True

    centers: Array
    width: float

    def __post_init__(self) -> None:
        centers = np.ascontiguousarray(self.centers, dtype=float)
        if centers.ndim != 2 or not centers.size or not np.isfinite(centers).all():
            raise ValueError(f"centers must be finite numbers (p, d), got shape {centers.shape}.")
        self._set(centers=centers, width=check_number("width", self.width, POSITIVE))

    @classmethod
    def draw(
        cls, x: Array, p: int, ratio: float = 1.0, random_state: int | np.random.Generator | None = None
    ) -> NormalizedRBF:
        """Return p functions with centers by k-means of rows x (m, d).

        The width is the median spacing of the centers times `ratio`. There are fewer than p functions if x has fewer
        distinct rows. Raises ValueError for p outside 2..m, and if all rows are equal.
        """
        rows, rng = np.asarray(x, dtype=float), np.random.default_rng(random_state)
        center = rows[:1].copy()  # means of rows far from the origin lose digits
        rows = rows - center
        centers = rows[kmeans_plus_plus(rows, p, rng)]
        for _ in range(ROUNDS):
            cell = cdist(rows, centers, "sqeuclidean").argmin(axis=1)
            counts = np.bincount(cell, minlength=len(centers))
            sums = np.stack([np.bincount(cell, column, len(centers)) for column in rows.T], axis=1)
            centers = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centers)
        near = np.sort(cdist(centers, centers), axis=1)[:, 1 : 1 + NEIGHBORS]
        if not near.size:
            raise ValueError(
                f"NormalizedRBF.draw requires two distinct rows and 2 <= p <= m, got p={p} and x of shape {rows.shape}."
            )
        return cls(centers + center, ratio * float(np.median(near.mean(axis=1))))

    @property
    def size(self) -> int:
        return len(self.centers)

    def translated(self, delta: Array) -> Translation:
        return Translation.identity(replace(self, centers=self.centers + delta))

    @property
    def dimension(self) -> int:
        return int(self.centers.shape[1])

    def evaluate(self, x: Array) -> Array:
        exponents = cdist(self.centers, x, "sqeuclidean") / (-2 * self.width**2)
        values = np.exp(exponents - exponents.max(axis=0))
        return np.asarray(values / values.sum(axis=0))

    def differentiate(self, x: Array) -> Array:
        values = self.evaluate(x)
        mean = values.T @ self.centers
        return np.asarray(values[:, :, None] * (self.centers[:, None] - mean) / self.width**2)
