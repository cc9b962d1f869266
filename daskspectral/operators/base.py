"""What every operator declares: the forms that one pass measures, the fields that they read, the solver."""

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
from daskspectral.registry import Written
from daskspectral.solve import Problem, SymmetricPencil
from daskspectral.validation import check_flag, check_type

Array = NDArray[np.floating[Any]]

Shapes = Mapping[str, tuple[int, ...]]  # of one row of each field
RESERVED = frozenset({"weight", "fold"})  # fields that the pass itself reads
TESTED = "tested"  # the field that is 1 for the share of rows by which an operator tests a fit, and 0 for others


@dataclass(frozen=True)
class DerivedField:
    """Field that an operator computes from others.

    Attributes
    ----------
    sources : tuple of str
        Names of the fields that it is computed from.
    values : callable or None
        Returns its values (c, ...) from the fields of a block; None if `Operator.prepared` adds them to whole batches.
    placed : bool
        Whether they depend on where the points are.
    """

    sources: tuple[str, ...] = ()
    values: Callable[[Mapping[str, Array]], Array] | None = None
    placed: bool = False


class Operator(Written, ABC):
    """A bilinear form <f, L g>, the inner products of its functions, and the kind of its spectral problem.

    A subclass is a dataclass with a `name` and a `form`, and with those of the members below that differ.

    Attributes
    ----------
    name : str
        What the operator is called in messages.
    density : float or Density
        Density of the rows that is divided out of all sums, or its power before it is estimated.
    own_right_basis : bool
        Whether right functions are of other variables than the left ones, with a basis for themselves.
    center : bool
        Whether the means of the functions are subtracted.
    has_patterns : bool
        Whether products of functions and columns are summed, for the regression of points on functions.
    takes_gaps : bool
        Whether linear functions may be measured on rows with single missing values.
    resolution : float
        Differences of values that do not count, added to a thousandth of the largest value.
    counts : frozenset of str
        Names of the sums of `statistics` that are never divided by the total weight.

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
        """The bilinear form <f, L g> of left functions f and right functions g."""

    @property
    def gram(self) -> Form:
        """The inner product of the left functions."""
        return gram

    @property
    def right_gram(self) -> Form | None:
        """The inner product of the right functions; None where `gram` is theirs too."""
        return None

    @property
    def views(self) -> tuple[str, ...]:
        """The fields that hold points, in the order in which `fit((x, y, ...))` takes them; the first is `x`."""
        return ("x",)

    @property
    def right_view(self) -> str:
        """The view, a field of points, at which right functions are taken."""
        return "x"

    @property
    def solver(self) -> Problem:
        """The kind of problem: `SymmetricPencil`, `TwoMetricSVD`, `NonNormal`, `NormConstrained`, or a user's own."""
        return SymmetricPencil()

    def reported_values(self, values: Any) -> Any:
        """Convert values of the form to reported values (for example 1 - mu)."""
        return values

    @property
    def validation_operator(self) -> Operator | None:
        """The operator used for cross-validation; None if there is no variational principle."""
        return self if self.solver.compares(max(derivative_orders(self))) else None

    @property
    def annihilates_constants(self) -> bool:
        """Whether L 1 = 0, so that the constant function joins the basis by default."""
        return self.form.annihilates_constants

    def slopes_squared(self, dimension: int) -> float | None:
        """The sum of the squared lengths of the directions along which the form squares derivatives.

        d for the Dirichlet form in d = `dimension` variables; None where it varies from point to point, or the form is
        no sum of squares.
        """
        return None

    @property
    def forms(self) -> dict[str, Form]:
        """The forms that one pass measures, by the name of their moments."""
        right = {} if self.right_gram is None else {"right_gram": self.right_gram}
        return {"form": self.form, "gram": self.gram} | right

    @property
    def functionals(self) -> dict[str, Functional]:
        """The functionals that one pass measures: the first moments of the left and of the right functions."""
        right = {} if self.right_gram is None else {"right_first": first_moment_at(self.right_view)}
        return {"first": first_moment} | right

    def prepared(self, fields: Mapping[str, Array], scale: Array | None, columns: Any) -> Mapping[str, Array]:
        """The fields of a batch as the forms read them; X was reduced to `columns` and divided by `scale`."""
        return fields

    def statistics(self, fields: Mapping[str, Array]) -> dict[str, Array]:
        """Further sums over the rows of a batch: the squared weights, in bands that neither underflow nor overflow."""
        return {"weight_squares": banded_squares(fields.get("weight", len(fields["x"])))}

    @property
    def derived(self) -> Mapping[str, DerivedField]:
        """The fields that the operator computes from those of the data, by name."""
        return {}

    @property
    def data_fields(self) -> frozenset[str]:
        """Names of the fields that the user gives besides the views."""
        read: frozenset[str] = frozenset().union(*(f.fields for f in self.forms.values()))
        return sources_of(self, read) - set(self.views)

    def is_compatible_with(self, measured: Operator) -> bool:
        """Return whether this operator is the measured one, but for what the data decide, such as a density."""
        return self == measured

    def check(self, shapes: Mapping[str, tuple[int, ...]], dimension: int, right_dimension: int | None = None) -> None:
        """Raise ValueError if the operator cannot act on functions of d variables, or the rows of fields do not fit.

        Parameters
        ----------
        shapes : mapping of str to tuple
            Shape of one row of each field of `data_fields`.
        dimension, right_dimension : int
            Variables d of the functions, and of the right ones if they are of others.
        """
        for name, form in self.forms.items():
            for p in form.products:
                for atom, right in ((p.left, name == "right_gram"), (p.right, name != "gram")):
                    d = right_dimension if right and right_dimension is not None else dimension
                    for alpha in (a.alpha for a in atom.leaves if a.kind == "partial" and len(a.alpha) != d):
                        raise ValueError(f"partial() takes one order per coordinate, {d} for these data, got {alpha}")
        for field, tail in fields_read(self, dimension):
            if field.name in shapes:
                check_rows(field, shapes[field.name], tail)

    def check_points(self, x: Array) -> None:
        """Raise ValueError where the operator does not fit points (c, d) of the data.

        The error is a PointError, which names the row, where a single point does not fit.
        """


Tail = tuple[int | None, ...]
"""The shape of one row of a field as a form reads it; None for any length."""


def fields_read(operator: Operator, dimension: int) -> Iterator[tuple[Field, Tail]]:
    """Yield the fields that the forms read besides points, each with the shape of one row as it is read."""
    for bilinear in operator.forms.values():
        for p in bilinear.products:
            if p.weight is not None:
                yield p.weight, ()
            for atom in (p.left, p.right):
                yield from ((weight, ()) for weight in atom.weights)
                read = (atom,) if atom.kind == "each" else atom.leaves
                yield from ((a.direction, _tail(a, dimension)) for a in read if a.direction is not None)


def sources_of(operator: Operator, names: Iterable[str]) -> frozenset[str]:
    """Return the names of the fields of the data from which fields of the forms come."""
    derived = operator.derived
    return frozenset(s for name in names for s in (derived[name].sources if name in derived else (name,)))


def with_derived(operator: Operator, fields: Mapping[str, Array]) -> dict[str, Array]:
    """Return the fields of a block with those that the operator computes from them."""
    made = {name: made.values(fields) for name, made in operator.derived.items() if made.values is not None}
    return {**fields, **made}


def derivative_orders(operator: Operator) -> tuple[int, int]:
    """Return the highest orders of derivatives that forms take of left and of right functions."""
    left, right = operator.form.orders
    own = operator.right_gram
    left = max(left, *operator.gram.orders)
    return left, right if own is None else max(right, *own.orders)


def check_given(operator: Operator, names: Iterable[str]) -> None:
    """Raise ValueError if fields are missing, or given and not read."""
    wanted, found = operator.data_fields, frozenset(names)
    if missing := sorted(wanted - found):
        given = f"Rows(X, fields={{{missing[0]!r}: array}})"
        raise ValueError(f"the operator {operator.name} reads the fields {', '.join(missing)}: give them as {given}")
    if views := [view for view in operator.views if view in found]:
        shown = ", ".join(operator.views)
        raise ValueError(f"{views[0]} is a view of each row, not a field: give it as fit(({shown}))")
    if unknown := sorted(found - wanted):
        reads = ", ".join(sorted(wanted)) or "no fields"
        raise ValueError(f"the operator {operator.name} reads {reads}; fields also has {', '.join(unknown)}")


def _tail(atom: Atom, dimension: int) -> Tail:
    return {"second": (dimension, dimension), "each": (None, dimension)}.get(atom.kind, (dimension,))


def check_rows(field: Field, shape: tuple[int, ...], tail: Tail) -> None:
    """Raise ValueError where a field with rows of this shape does not hold what a form reads from it."""
    index = field.path
    fits = len(shape) == len(index) + len(tail)
    fits = fits and all(wanted in (None, found) for wanted, found in zip(tail, shape[len(index) :], strict=True))
    if not fits or any(not -s <= i < s for i, s in zip(index, shape, strict=False)):
        read = f"{field.name}[{', '.join(map(str, index))}]" if index else field.name
        of = f" of shape ({', '.join('m' if n is None else str(n) for n in tail)})" if tail else ""
        raise ParameterError(field.name, f"a field of which a form reads {read}{of} at each row", shape)


def check_names(views: tuple[str, ...], *names: str) -> None:
    """Raise ValueError for names of data fields that already mean something else."""
    for name in names:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a field of the data is named by a string; got {name!r}")
        if name in views or name in RESERVED:
            taken = ", ".join(sorted({*views, *RESERVED}))
            raise ValueError(f"a field cannot be named {name!r}: {taken} are taken; give it another name")


def chosen_solver(solver: str | Problem, form: Form, descending: bool = False, *, by_norm: bool = False) -> Problem:
    """Return the kind of problem of this name, `descending` or not.

    Raises ValueError if it is unknown, unsuitable (relative to norms unless `by_norm`) or has no order to choose,
    TypeError if `form` is no form.
    """
    check_form(form)
    kinds = {k: kind for k, kind in Problem.family().items() if form.symmetric or not kind.needs_symmetry}
    others = " or ".join(repr(name) for name, kind in kinds.items() if by_norm or not kind.by_norm)
    if isinstance(solver, str) and solver not in Problem.family():
        raise ValueError(f"solver must be {others}; it is {solver!r}")
    found = Problem.named(solver)
    if found.needs_symmetry and not form.symmetric:
        raise ValueError(f"the form {form.name} is not symmetric in f and g: mend it, or take the solver {others}")
    if found.by_norm and not by_norm:
        raise ValueError(f"values of the solver {found!r} are not of the operator alone: take the solver {others}")
    check_flag("descending", descending)
    if isinstance(found, SymmetricPencil) and descending >= found.descending:
        return SymmetricPencil(descending)
    if descending or isinstance(found, SymmetricPencil):
        raise ParameterError("descending", f"{not descending} for the order of solver={found!r}", descending)
    return found


def check_form(form: Any, symmetric: bool = False) -> None:
    """Raise TypeError for anything but a form, ValueError for a form that is not symmetric but must be."""
    check_type("form", form, Form, "a function H(f, g, x) decorated with @form")
    if symmetric:
        chosen_solver(SymmetricPencil(), form)
