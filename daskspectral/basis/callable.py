"""A basis of a user's own functions, with their gradients where the operator needs them; any basis of that kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from daskspectral.basis.base import Array, Basis, unit_points
from daskspectral.basis.evaluation import Block, Evaluation
from daskspectral.errors import SmoothnessError
from daskspectral.forms import Atom
from daskspectral.kernels.base import check_flag, whole
from daskspectral.registry import Function as Saved

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
        for given in (self.function, *(() if self.gradient is None else (self.gradient,))):
            if not callable(given):
                raise TypeError(
                    "CallableBasis takes a function x (c, d) -> (p, c) and optionally its gradient "
                    f"x (c, d) -> (p, c, d); it got {given!r}"
                )
        object.__setattr__(self, "d", whole("d, the number of variables,", self.d))
        check_flag("holds_constant of CallableBasis", self.holds_constant)
        with np.errstate(all="ignore"):
            shape = np.shape(self.function(unit_points(3, self.d)))
            if len(shape) != 2 or not shape[0] or shape[1] != 3:
                raise ValueError(_misshapen("function", self.function, shape, (3, self.d), "(p, c), here (p, 3)"))
            object.__setattr__(self, "_size", shape[0])
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
        return f"the functions of {_name(self.function)}"

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

    def probe(self) -> Array:
        x = unit_points(3, self.d)
        parts = [self.evaluate(x)[:, :, None]] + ([] if self.gradient is None else [self.differentiate(x)])
        return np.concatenate(parts, axis=2)


def _name(function: Function) -> str:
    return getattr(function, "__name__", None) or repr(function)


def _misshapen(role: str, function: Function, shape: tuple[int, ...], points: tuple[int, ...], wanted: str) -> str:
    return (
        f"the {role} {_name(function)} of a CallableBasis was given points {points} and returned shape {shape}; it "
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
