"""Functions of a whole block of points at once, with their gradients: those of a user, and normalized RBF."""

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
    """Functions that are evaluated for a whole block at once, and their gradients, which need not be known.

    Examples
    --------
    >>> CallableBasis(lambda x: x.T, d=2).evaluate(np.array([[1.0, 2.0]]))
    array([[1.],
           [2.]])
    """

    @abstractmethod
    def evaluate(self, x: Array) -> Array:
        """phi_i(x_k) at points (c, d), (p, c)."""

    @abstractmethod
    def differentiate(self, x: Array) -> Array:
        """grad phi_i(x_k) at points (c, d), (p, c, d). Raises SmoothnessError where it is not known."""

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return _DifferentiatedEvaluation(self, block)


@dataclass(frozen=True, eq=False)
class CallableBasis(Differentiated):
    """The p functions that `function` evaluates, x (c, d) -> (p, c), with `gradient`, x (c, d) -> (p, c, d).

    They are called with float64 points, block by block, in several threads at once. To learn p they are called on a
    few points of the unit cube when the basis is made. `holds_constant=True` says that the span holds a constant, so
    that estimators add none. A saved model keeps only the import paths: to be saved, the functions must lie in a
    module. Raises ValueError where a function returns another shape.

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
            self.evaluate(unit_points(2, self.d))  # another number of points: p and c are not mistaken for each other
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
            return "give CallableBasis their gradient, a function x (c, d) -> (p, c, d)"
        return f"CallableBasis has first derivatives at most; {super().remedy(order)}"

    def evaluate(self, x: Array) -> Array:
        """phi_i(x_k), (p, c). Raises ValueError where the function returns another shape."""
        return self._shaped("function", self.function, x, (self.size, len(x)), "(p, c)")

    def differentiate(self, x: Array) -> Array:
        """grad phi_i(x_k), (p, c, d). Raises SmoothnessError without a gradient, ValueError for another shape."""
        if self.gradient is None:
            raise SmoothnessError(f"the gradient of {self.description} is not known; {self.remedy(1)}")
        return self._shaped("gradient", self.gradient, x, (self.size, *x.shape), "(p, c, d)")

    def _shaped(self, role: str, function: Function, x: Array, wanted: tuple[int, ...], letters: str) -> Array:
        values = np.asarray(function(x))
        if values.shape != wanted:
            raise ValueError(_misshapen(role, function, values.shape, x.shape, f"{letters}, here {wanted}"))
        return values


def name_of(function: Callable[..., Any]) -> str:
    """What messages call a user's function."""
    return getattr(function, "__name__", None) or repr(function)


def _misshapen(role: str, function: Function, shape: tuple[int, ...], points: tuple[int, ...], wanted: str) -> str:
    return (
        f"the {role} {name_of(function)} of a CallableBasis was given points {points} and returned shape {shape}; it "
        f"must return {wanted}: functions first, one row each"
    )


class _DifferentiatedEvaluation(Evaluation):
    """Values and gradients of one block, each computed once, at the first request."""

    def __init__(self, basis: Differentiated, block: Block):
        self.basis, self.block = basis, block
        self.points = block.x.astype(float, copy=False)

    @cached_property
    def value(self) -> Array:
        return self.block.weighted(self.basis.evaluate(self.points))

    @cached_property
    def slopes(self) -> Array:
        """The partial derivatives, axis by axis, (d, p, c)."""
        found = np.moveaxis(self.basis.differentiate(self.points), 2, 0)
        return np.ascontiguousarray(self.block.weighted(found))

    def along(self, direction: Array) -> Array:
        return np.asarray(np.einsum("dpc,cd->pc", self.slopes, direction.astype(self.block.dtype, copy=False)))

    def partial(self, alpha: tuple[int, ...]) -> Array:
        found: Array = self.slopes[alpha.index(1)]
        return found


ROUNDS = 20  # of k-means: with few, the chance of the first centres decides how good cells are
NEIGHBOURS = 2  # whose distances are the spacing of centres


@dataclass(frozen=True, eq=False)
class NormalizedRBF(Differentiated):
    """φ_i(x) = exp(-|x - y_i|² / 2 w²) / Σ_j exp(-|x - y_j|² / 2 w²) for centers y (p, d) and a width w.

    As w falls to 0 they become the indicators of the Voronoi cells of the centers, the states of a Markov state model;
    a width near the distance of neighboring centers makes them smooth. They are bounded far from all centers, and their
    span contains the constant. A few of them suit short trajectories, whose rows determine few functions. Raise
    ValueError if the centers are not finite numbers (p, d), or w is not positive.

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
            raise ValueError(f"centers are finite numbers (p, d), a point in each row; they have shape {centers.shape}")
        self._set(centers=centers, width=check_number("width", self.width, POSITIVE))

    @classmethod
    def draw(
        cls, x: Array, p: int, ratio: float = 1.0, random_state: int | np.random.Generator | None = None
    ) -> NormalizedRBF:
        """Return p functions for rows x (m, d): centers by k-means, w their median distance to neighbors times `ratio`.

        Fewer than p if fewer rows differ. Raise ValueError for p outside 2..m, and if all rows are equal.
        """
        rows, rng = np.asarray(x, dtype=float), np.random.default_rng(random_state)
        center = rows[:1].copy()  # means of rows far from zero lose digits
        rows = rows - center
        centers = rows[kmeans_plus_plus(rows, p, rng)]
        for _ in range(ROUNDS):
            cell = cdist(rows, centers, "sqeuclidean").argmin(axis=1)
            counts = np.bincount(cell, minlength=len(centers))
            sums = np.stack([np.bincount(cell, column, len(centers)) for column in rows.T], axis=1)
            centers = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centers)
        near = np.sort(cdist(centers, centers), axis=1)[:, 1 : 1 + NEIGHBOURS]
        if not near.size:
            raise ValueError(f"cells need two rows that differ, and p of 2 or more; p is {p}, and x {rows.shape}")
        return cls(centers + center, ratio * float(np.median(near.mean(axis=1))))

    @property
    def size(self) -> int:
        return len(self.centers)

    def translated(self, delta: Array) -> Translation:
        return Translation.same(replace(self, centers=self.centers + delta))

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
