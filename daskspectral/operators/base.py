"""Base class of operators: the forms summed in one pass, their fields, and the spectral problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.errors import ParameterError
from daskspectral.forms import Atom, Field, Form, Functional, first_moment, first_moment_at, gram
from daskspectral.operators.density import Density
from daskspectral.operators.weights import banded_squares
from daskspectral.registry import CallRepr
from daskspectral.solve import Problem, SymmetricPencil
from daskspectral.validation import check_flag, check_type

Array = NDArray[np.floating[Any]]

Shapes = Mapping[str, tuple[int, ...]]  # of one row of each field
RESERVED = frozenset({"weight", "fold"})  # fields read by the pass itself
TESTED = "tested"  # field that is 1 for the rows by which an operator tests a fit, and 0 for others


@dataclass(frozen=True)
class DerivedField:
    """Field that an operator computes from others.

    Parameters
    ----------
    sources : tuple of str, default=()
        Names of the source fields.
    values : callable, optional
        Function that returns its values (c, ...) from the fields of a block; None if `Operator.prepared` adds them.
    placed : bool, default=False
        Whether the values depend on the positions of the points.

    See Also
    --------
    Operator.derived : Derived fields of an operator.

    Examples
    --------
    >>> squares = DerivedField(("x",), lambda fields: fields["x"] ** 2)
    >>> squares.values({"x": np.array([[2.0], [3.0]])}).ravel()
    array([4., 9.])
    """

    sources: tuple[str, ...] = ()
    values: Callable[[Mapping[str, Array]], Array] | None = None
    placed: bool = False


class Operator(CallRepr, ABC):
    """Bilinear form <f, L g> with the Gram forms of its functions and its spectral problem.

    A subclass is a dataclass with a `name` and a `form`, and overrides of the members below.

    Attributes
    ----------
    name : str
        Name of the operator in messages.
    density : float or Density
        Sampling density that is divided out of all sums, or its exponent.
    own_right_basis : bool
        Whether right functions have different variables, and a separate basis.
    center : bool
        Whether the means of the functions are subtracted.
    has_patterns : bool
        Whether products of functions and columns are summed, to regress points on functions.
    takes_gaps : bool
        Whether linear functions may be summed over rows with some missing values.
    resolution : float
        Differences of values below this, plus a thousandth of the largest value, are ignored.
    counts : frozenset of str
        Names of the sums of `statistics` that are never divided by the total weight.

    See Also
    --------
    SymmetricForm : Operator of a user-defined symmetric form.
    BilinearForm : Operator of any user-defined form.

    Examples
    --------
    >>> from daskspectral.operators import Schroedinger
    >>> operator = Schroedinger("energy")
    >>> operator.solver, operator.views, operator.data_fields
    ('symmetric', ('x',), frozenset({'energy'}))
    """

    name: str
    density: float | Density = 0.0
    own_right_basis: bool = False
    center: bool = False
    has_patterns: bool = True
    takes_gaps: bool = False
    resolution: float = 0.0
    counts: frozenset[str] = frozenset({"weight_squares"})

    @property
    @abstractmethod
    def form(self) -> Form:
        """Bilinear form <f, L g> of left functions f and right functions g."""

    @property
    def gram(self) -> Form:
        return gram

    @property
    def right_gram(self) -> Form | None:
        """Inner product of the right functions; None if it is `gram`."""
        return None

    @property
    def views(self) -> tuple[str, ...]:
        """Fields that hold points, in the order of `fit((x, y, ...))`; the first is `x`."""
        return ("x",)

    @property
    def right_view(self) -> str:
        """View at which right functions are evaluated."""
        return "x"

    @property
    def solver(self) -> Problem:
        """Spectral problem, such as `SymmetricPencil` or `TwoMetricSVD`."""
        return SymmetricPencil()

    def reported_values(self, values: Any) -> Any:
        """Convert values of the form to reported values (for example 1 - mu)."""
        return values

    @property
    def validation_operator(self) -> Operator | None:
        """Operator used for cross-validation; None if there is no variational principle."""
        return self if self.solver.compares(max(derivative_orders(self))) else None

    @property
    def annihilates_constants(self) -> bool:
        """Whether L 1 = 0: the constant function then joins the basis by default."""
        return self.form.annihilates_constants

    def slopes_squared(self, dimension: int) -> float | None:
        """Return the constant Σ |u|² if the form sums squared derivatives along u, d for Dirichlet; else None."""
        return None

    @property
    def forms(self) -> dict[str, Form]:
        """Forms that one pass sums, by the name of their moments."""
        right = {} if self.right_gram is None else {"right_gram": self.right_gram}
        return {"form": self.form, "gram": self.gram} | right

    @property
    def functionals(self) -> dict[str, Functional]:
        """Functionals that one pass sums: first moments of left and right functions."""
        right = {} if self.right_gram is None else {"right_first": first_moment_at(self.right_view)}
        return {"first": first_moment} | right

    def prepared(self, fields: Mapping[str, Array], scale: Array | None, columns: Any) -> Mapping[str, Array]:
        """Return a batch's fields as the forms read them, X in `columns` divided by `scale`."""
        return fields

    def statistics(self, fields: Mapping[str, Array]) -> dict[str, Array]:
        """Return further sums over a batch: squared weights, in bands without underflow or overflow."""
        return {"weight_squares": banded_squares(fields.get("weight", len(fields["x"])))}

    @property
    def derived(self) -> Mapping[str, DerivedField]:
        """Fields that the operator computes from those of the data, by name."""
        return {}

    @property
    def data_fields(self) -> frozenset[str]:
        """Names of the fields of the data other than the views."""
        read: frozenset[str] = frozenset().union(*(f.fields for f in self.forms.values()))
        return sources_of(self, read) - set(self.views)

    def is_compatible_with(self, measured: Operator) -> bool:
        """Return whether this is the measured operator, up to properties of the data."""
        return self == measured

    def check(self, shapes: Mapping[str, tuple[int, ...]], dimension: int, right_dimension: int | None = None) -> None:
        """Raise ValueError if functions of d variables or the rows of fields do not fit the operator.

        Parameters
        ----------
        shapes : mapping of str to tuple
            Shape of one row of each field of `data_fields`.
        dimension : int
            Number d of variables of the functions.
        right_dimension : int, optional
            Number of variables of the right functions, if they differ.
        """
        for name, form in self.forms.items():
            for p in form.products:
                for atom, right in ((p.left, name == "right_gram"), (p.right, name != "gram")):
                    d = right_dimension if right and right_dimension is not None else dimension
                    for alpha in (a.alpha for a in atom.leaves if a.kind == "partial" and len(a.alpha) != d):
                        raise ValueError(
                            f"partial() requires one order per coordinate, {d} for these data, got {alpha}"
                        )
        for field, tail in fields_read(self, dimension):
            if field.name in shapes:
                check_rows(field, shapes[field.name], tail)

    def check_points(self, x: Array) -> None:
        """Raise ValueError, or PointError for a row, if the operator does not fit the points (c, d)."""


Tail = tuple[int | None, ...]
"""Shape of one row of a field as a form reads it; None for any length."""


def fields_read(operator: Operator, dimension: int) -> Iterator[tuple[Field, Tail]]:
    """Yield the fields that the forms read, with the shape of one row."""
    for bilinear in operator.forms.values():
        for p in bilinear.products:
            if p.weight is not None:
                yield p.weight, ()
            for atom in (p.left, p.right):
                yield from ((weight, ()) for weight in atom.weights)
                read = (atom,) if atom.kind == "each" else atom.leaves
                yield from ((a.direction, _tail(a, dimension)) for a in read if a.direction is not None)


def sources_of(operator: Operator, names: Iterable[str]) -> frozenset[str]:
    """Return the names of the data fields that fields of the forms are computed from."""
    derived = operator.derived
    return frozenset(s for name in names for s in (derived[name].sources if name in derived else (name,)))


def with_derived(operator: Operator, fields: Mapping[str, Array]) -> dict[str, Array]:
    """Return the fields of a block with derived ones."""
    made = {name: made.values(fields) for name, made in operator.derived.items() if made.values is not None}
    return {**fields, **made}


def derivative_orders(operator: Operator) -> tuple[int, int]:
    """Return the highest orders of derivatives of left and right functions."""
    left, right = operator.form.orders
    left = max(left, *operator.gram.orders)
    return left, right if operator.right_gram is None else max(right, *operator.right_gram.orders)


def check_given(operator: Operator, names: Iterable[str]) -> None:
    """Raise ValueError if fields are missing or not read."""
    wanted, found = operator.data_fields, frozenset(names)
    if missing := sorted(wanted - found):
        usage = f"Rows(X, fields={{{missing[0]!r}: array}})"
        raise ValueError(f"the operator {operator.name} requires the fields {', '.join(missing)}: pass {usage}")
    if views := [view for view in operator.views if view in found]:
        shown = ", ".join(operator.views)
        raise ValueError(f"{views[0]} is a view, not a field: pass it as fit(({shown}))")
    if unknown := sorted(found - wanted):
        reads = ", ".join(sorted(wanted)) or "no fields"
        raise ValueError(f"the operator {operator.name} reads {reads}; remove {', '.join(unknown)} from fields")


def _tail(atom: Atom, dimension: int) -> Tail:
    return {"second": (dimension, dimension), "each": (None, dimension)}.get(atom.kind, (dimension,))


def check_rows(field: Field, shape: tuple[int, ...], tail: Tail) -> None:
    """Raise ParameterError if the rows of a field have another shape than a form reads."""
    index = field.path
    fits = len(shape) == len(index) + len(tail)
    fits = fits and all(wanted in (None, found) for wanted, found in zip(tail, shape[len(index) :], strict=True))
    if not fits or any(not -s <= i < s for i, s in zip(index, shape, strict=False)):
        read = f"{field.name}[{', '.join(map(str, index))}]" if index else field.name
        shaped = f" of shape ({', '.join('m' if n is None else str(n) for n in tail)})" if tail else ""
        raise ParameterError(field.name, f"a field with {read}{shaped} at each row", shape)


def check_names(views: tuple[str, ...], *names: str) -> None:
    """Raise ValueError if names of data fields are reserved or not strings."""
    for name in names:
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of a field must be a nonempty string, got {name!r}")
        if name in views or name in RESERVED:
            taken = ", ".join(sorted({*views, *RESERVED}))
            raise ValueError(f"the name {name!r} of a field is reserved, as are {taken}: choose another name")


def chosen_solver(solver: str | Problem, form: Form, descending: bool = False, *, by_norm: bool = False) -> Problem:
    """Return the spectral problem of this name; raise ValueError if it is unknown or does not fit the form.

    `by_norm` allows problems relative to norms.
    """
    check_form(form)
    kinds = {k: kind for k, kind in Problem.family().items() if form.symmetric or not kind.needs_symmetry}
    others = " or ".join(repr(name) for name, kind in kinds.items() if by_norm or not kind.by_norm)
    if isinstance(solver, str) and solver not in Problem.family():
        raise ValueError(f"solver must be {others}, got {solver!r}")
    found = Problem.from_name(solver)
    if found.needs_symmetry and not form.symmetric:
        raise ValueError(f"the form {form.name} is not symmetric in f and g: correct it, or choose the solver {others}")
    if found.by_norm and not by_norm:
        raise ValueError(f"values of the solver {found!r} depend on norms of functions: choose the solver {others}")
    check_flag("descending", descending)
    if isinstance(found, SymmetricPencil) and descending >= found.descending:
        return SymmetricPencil(descending)
    if descending or isinstance(found, SymmetricPencil):
        raise ParameterError("descending", f"{not descending} for the order of solver={found!r}", descending)
    return found


def check_form(form: Any, symmetric: bool = False) -> None:
    """Raise TypeError if `form` is not a form, ValueError if it must be symmetric and is not."""
    check_type("form", form, Form, "a function H(f, g, x) decorated with @form")
    if symmetric:
        chosen_solver(SymmetricPencil(), form)
