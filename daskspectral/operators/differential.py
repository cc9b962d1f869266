"""Differential operators: a partial derivative, general ones (equation (10)), given directions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daskspectral.errors import ParameterError
from daskspectral.forms import Field, Form, LinearExpression, along, form, inner, partial
from daskspectral.operators.base import Array, DerivedField, Operator, check_names, chosen_solver
from daskspectral.operators.diffusion import diffusion_form
from daskspectral.solve import Problem, SymmetricPencil, TwoMetricSVD
from daskspectral.validation import check_integer, check_number

Index = tuple[int, ...]
Pair = tuple[Index, Index]
Coefficient = float | str | Field
AXIS = Field("unit vector")


@dataclass(frozen=True)
class PartialDerivative(Operator):
    """Partial derivative along one axis, by singular values or eigenvalues.

    Parameters
    ----------
    axis : int
        Column of the derivative, from 0.
    solver : {"singular", "eigen"}, default="singular"
        Values that are computed.

    See Also
    --------
    DifferentialOperator : General differential operator.
    TangentPropagation : Derivatives along given directions.

    Examples
    --------
    >>> PartialDerivative(0).solver
    'singular'
    """

    axis: int
    solver: Any = "singular"
    name = "partial derivative"

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", check_integer("axis", self.axis, 0))
        object.__setattr__(self, "solver", chosen_solver(self.solver, self.form))

    @property
    def form(self) -> Form:
        @form
        def derivative(f: Any, g: Any, x: Any) -> Any:
            return inner(f, along(g, AXIS))

        return derivative

    @property
    def derived(self) -> Mapping[str, DerivedField]:
        return {AXIS.name: DerivedField(("x",), self._direction)}

    def _direction(self, fields: Mapping[str, Array]) -> Array:
        x = fields["x"]
        return np.broadcast_to(np.eye(x.shape[1])[self.axis], x.shape)

    def check(self, shapes: Mapping[str, tuple[int, ...]], dimension: int, right_dimension: int | None = None) -> None:
        if self.axis >= dimension:
            raise ValueError(f"axis must be below the number of columns, {dimension}, got {self.axis}")


@dataclass(frozen=True, init=False)
class DifferentialOperator(Operator):
    """Differential operator sum c_ab ∂_a f(x) ∂_b g(x) over pairs of multi-indices (equation (10)).

    A symmetric form has eigenvalues; any other form has singular values, or complex eigenvalues with solver="eigen".

    Parameters
    ----------
    coefficients : mapping
        Coefficients c_ab of pairs of multi-indices such as ((2, 0), (0, 0)): numbers, or the name of a field (n,) of
        the data or an entry of a field (`Field("matrix")[0, 1]`).
    solver : str or Problem, optional
        By default "symmetric" for a symmetric form and "singular" for others.
    descending : bool, default=False
        Whether eigenvalues of a symmetric form descend.

    Raises
    ------
    ValueError
        If pairs are repeated or have different lengths.

    See Also
    --------
    PartialDerivative : A single derivative.
    BilinearForm : Operator of any user-defined form.

    Examples
    --------
    >>> operator = DifferentialOperator({((1, 0), (1, 0)): 2.0, ((0, 0), (0, 0)): "potential"})
    >>> operator.solver, operator.data_fields
    ('symmetric', frozenset({'potential'}))
    """

    expects: ClassVar = {"coefficients": Field, "solver": Problem}

    coefficients: tuple[tuple[Pair, float | Field], ...]
    solver: Any = "symmetric"
    descending: bool = False
    name = "differential operator"

    def __init__(
        self,
        coefficients: Mapping[Pair, Coefficient] | Iterable[tuple[Pair, Coefficient]],
        solver: str | Problem | None = None,
        descending: bool = False,
    ):
        pairs = coefficients.items() if isinstance(coefficients, Mapping) else coefficients
        object.__setattr__(self, "coefficients", _read(pairs))
        default: Problem = SymmetricPencil(descending) if self.form.symmetric else TwoMetricSVD()
        chosen = chosen_solver(default if solver is None else solver, self.form, descending)
        object.__setattr__(self, "solver", chosen)
        object.__setattr__(self, "descending", descending)

    @property
    def form(self) -> Form:
        lefts, rights = ({pair[side] for pair, _ in self.coefficients} for side in (0, 1))
        # one matrix product for each multi-index of the side with fewer
        near, far = (0, 1) if len(lefts) <= len(rights) else (1, 0)

        @form
        def differential(f: Any, g: Any, x: Any) -> Any:
            groups: dict[Index, Any] = {}
            for pair, c in self.coefficients:
                groups[pair[near]] = groups.get(pair[near], 0) + _derivative((f, g)[far], pair[far]) * c
            return sum(inner(_derivative((f, g)[near], alpha), terms) for alpha, terms in groups.items())

        return differential


def _derivative(f: LinearExpression, alpha: Index) -> LinearExpression:
    return partial(f, *alpha) if any(alpha) else f


def _read(pairs: Iterable[Any]) -> tuple[tuple[Pair, float | Field], ...]:
    """Return the coefficients in a fixed order, or raise ParameterError."""
    try:
        items = [(tuple(alpha), tuple(beta), c) for (alpha, beta), c in pairs]
    except (TypeError, ValueError) as error:
        expected = "a mapping of pairs of multi-indices to numbers or fields, such as {((1, 0), (1, 0)): 2.0}"
        raise ParameterError("coefficients", expected, pairs) from error
    found = {(_multi_index(alpha), _multi_index(beta)): _coefficient(c) for alpha, beta, c in items}
    lengths = {len(alpha) for pair in found for alpha in pair}
    if len(found) < len(items) or len(lengths) != 1 or 0 in lengths:
        raise ParameterError("coefficients", "distinct pairs of multi-indices, one order per coordinate", pairs)
    return tuple(sorted(found.items(), key=lambda item: item[0]))


def _multi_index(alpha: Index) -> Index:
    return tuple(check_integer("an order of a multi-index", order, 0) for order in alpha)


def _coefficient(c: Any) -> float | Field:
    if isinstance(c, (str, Field)):
        named = Field(c) if isinstance(c, str) else c
        check_names(("x",), named.name)
        return named
    return check_number("a coefficient", c)


@dataclass(frozen=True)
class TangentPropagation(Operator):
    """Mean squared derivative E <∇f(x), u>² along directions u of each row (equation (19)).

    Directions uniform on the sphere of radius √d yield the Laplacian, with more variance.

    Parameters
    ----------
    directions : str, default="direction"
        Name of the field of directions, (n, d), or (n, m, d) for their mean.

    See Also
    --------
    AnisotropicDiffusion : Weighted derivatives in all directions.
    Laplacian : Equal weights in all directions.

    Examples
    --------
    >>> TangentPropagation("rotation").data_fields
    frozenset({'rotation'})
    """

    directions: str = "direction"
    name = "tangent propagation"

    def __post_init__(self) -> None:
        check_names(("x",), self.directions)

    @property
    def form(self) -> Form:
        return diffusion_form(self._each)

    @property
    def _each(self) -> Field:
        return Field(f"{self.directions} of each row")

    @property
    def derived(self) -> Mapping[str, DerivedField]:
        return {self._each.name: DerivedField((self.directions,), self._directions)}

    def _directions(self, fields: Mapping[str, Array]) -> Array:
        directions = fields[self.directions]
        each = directions[:, None] if directions.ndim == 2 else directions
        return np.asarray(each / math.sqrt(each.shape[1]))

    def check(self, shapes: Mapping[str, tuple[int, ...]], dimension: int, right_dimension: int | None = None) -> None:
        super().check(shapes, dimension, right_dimension)
        shape = shapes.get(self.directions, (dimension,))
        if len(shape) not in (1, 2) or shape[-1] != dimension or 0 in shape:
            expected = f"a field whose rows have the shape ({dimension},) or (m, {dimension})"
            raise ParameterError(self.directions, expected, shape)
