"""Functions for writing forms, tracing of forms, and standard forms such as the Gram and Dirichlet forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from daskspectral.forms.expressions import (
    ONE_WEIGHT,
    Atom,
    AtomProduct,
    Bilinear,
    Field,
    Fields,
    LinearExpression,
    LinearFunctional,
    Pairing,
    Term,
    collected,
    number,
)
from daskspectral.registry import Registered


@dataclass(frozen=True)
class Form(Registered):
    """Named bilinear form.

    Parameters
    ----------
    name : str
        Name of the traced function.
    expression : Bilinear
        Sum of products of f and g.

    See Also
    --------
    form : Trace a function into a form.

    Examples
    --------
    >>> stiff = form(lambda f, g, x: inner(grad(f), grad(g), weight=x.stiffness))
    >>> stiff.orders, stiff.symmetric, sorted(stiff.fields)
    ((1, 1), True, ['stiffness', 'x'])
    """

    expects: ClassVar = {"expression": Bilinear}

    name: str
    expression: Bilinear

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Form:
        """Return the form of a saved state; raise an error if its parts are not a form."""
        found = cls(state["name"], state["expression"])
        _ = found.orders, found.symmetric, found.fields
        return found

    @property
    def products(self) -> tuple[AtomProduct, ...]:
        """Distinct products."""
        return tuple(dict.fromkeys(p for _, p in self.expression.terms))

    @property
    def orders(self) -> tuple[int, int]:
        """Highest orders of derivatives of f and of g."""
        return max(p.left.order for p in self.products), max(p.right.order for p in self.products)

    @property
    def symmetric(self) -> bool:
        """True if H(f, g) = H(g, f) term by term."""
        factors = collected((a * part, (pair, w)) for a, p in self.expression.terms for part, pair, w in p.expanded)
        return all(factors.get((AtomProduct(p.right, p.left), w), 0.0) == a for (p, w), a in factors.items())

    @property
    def annihilates_constants(self) -> bool:
        """Whether H(f, 1) = 0 product by product."""
        return all(p.right.annihilates_constants for p in self.products)

    @property
    def fields(self) -> frozenset[str]:
        """Names of the required data fields."""
        return frozenset().union(*(p.fields for p in self.products))


@dataclass(frozen=True)
class Functional:
    """Named linear functional, such as a right-hand side.

    Parameters
    ----------
    name : str
        Name of the traced function.
    expression : LinearFunctional
        Sum of products of f and data.

    See Also
    --------
    functional : Trace a function into a functional.

    Examples
    --------
    >>> sorted(functional(lambda f, x: inner(f, x.y)).fields)
    ['x', 'y']
    """

    name: str
    expression: LinearFunctional

    @property
    def pairings(self) -> tuple[Pairing, ...]:
        """Distinct pairings."""
        return tuple(dict.fromkeys(p for _, p in self.expression.terms))

    @property
    def fields(self) -> frozenset[str]:
        """Names of the required data fields."""
        return frozenset().union(*(p.fields for p in self.pairings))


Forms = Mapping[str, Form]
Functionals = Mapping[str, Functional]


def grad(f: LinearExpression) -> LinearExpression:
    """Return the gradient of a function, to be paired with another gradient by `inner`.

    Parameters
    ----------
    f : LinearExpression
        The function f or g of a form.

    Returns
    -------
    LinearExpression
        A vector expression.

    See Also
    --------
    partial, along : Scalar derivatives.
    inner : Pair two expressions.

    Examples
    --------
    >>> form(lambda f, g, x: inner(grad(f), grad(g))).orders
    (1, 1)
    """
    return _derive(f, lambda atom: replace(atom, kind="gradient"))


def partial(f: LinearExpression, *alpha: int) -> LinearExpression:
    """Return the partial derivative for a multi-index: ``partial(f, 0, 2)`` is d² f / dx_2².

    Parameters
    ----------
    f : LinearExpression
        The function f or g of a form.
    *alpha : int
        Nonnegative order for each coordinate.

    Returns
    -------
    LinearExpression
        A scalar expression.

    See Also
    --------
    grad : All first derivatives.
    second : Second derivatives with a field of matrices.

    Examples
    --------
    >>> form(lambda f, g, x: inner(f, partial(g, 0, 2))).orders
    (0, 2)
    """
    if not alpha or any(isinstance(a, bool) or int(a) != a or a < 0 for a in alpha):
        raise ValueError(f"partial() needs one nonnegative integer order for each coordinate, got {alpha!r}")
    return _derive(f, lambda atom: replace(atom, kind="partial", alpha=tuple(int(a) for a in alpha)))


def along(f: LinearExpression, direction: Field) -> LinearExpression:
    """Return the directional derivative direction(x) · ∇f(x).

    Parameters
    ----------
    f : LinearExpression
        The function f or g of a form.
    direction : Field
        Field of directions (n, d).

    Returns
    -------
    LinearExpression
        A scalar expression.

    See Also
    --------
    along_each : Several directions for each row.

    Examples
    --------
    >>> sorted(form(lambda f, g, x: inner(f, along(g, x.velocity))).fields)
    ['velocity', 'x']
    """
    _check_field("along", direction, "x.direction")
    return _derive(f, lambda atom: replace(atom, kind="along", direction=direction))


def along_each(f: LinearExpression, directions: Field) -> LinearExpression:
    """Return the vector of directional derivatives directions_m(x) · ∇f(x).

    Parameters
    ----------
    f : LinearExpression
        The function f or g of a form.
    directions : Field
        Field of m directions for each row, (n, m, d).

    Returns
    -------
    LinearExpression
        A vector expression, to be paired with another by `inner`.

    See Also
    --------
    along : One direction for each row.

    Examples
    --------
    >>> form(lambda f, g, x: inner(along_each(f, x.tangents), along_each(g, x.tangents))).symmetric
    True
    """
    _check_field("along_each", directions, "x.tangents")
    return _derive(f, lambda atom: replace(atom, kind="each", direction=directions))


def second(f: LinearExpression, matrix: Field | None = None) -> LinearExpression:
    """Return Σ_ab matrix_ab(x) ∂_a ∂_b f(x), by default the Laplacian of f.

    Parameters
    ----------
    f : LinearExpression
        The function f or g of a form.
    matrix : Field, optional
        Field of matrices (n, d, d).

    Returns
    -------
    LinearExpression
        A scalar expression.

    See Also
    --------
    partial : One derivative of any order.

    Examples
    --------
    >>> form(lambda f, g, x: inner(f, second(g, x.covariance))).orders
    (0, 2)
    """
    if matrix is not None:
        _check_field("second", matrix, "x.covariance")
    return _derive(f, lambda atom: replace(atom, kind="second", direction=matrix))


def at(f: LinearExpression, view: Field) -> LinearExpression:
    """Return the function at other points of the same row, such as a second view or a later state.

    Parameters
    ----------
    f : LinearExpression
        Expression of f or g.
    view : Field
        Field of points (n, d).

    Returns
    -------
    LinearExpression
        The expression at these points.

    See Also
    --------
    gram_at : Gram form at a view.

    Examples
    --------
    >>> form(lambda f, g, x: inner(f, at(g, x.future))).products[0].right.view
    'future'
    """
    _check_field("at", view, "x.future")
    return replace(f, terms=tuple(replace(t, atom=replace(t.atom, view=view.name)) for t in f.terms))


def _check_field(function: str, field: object, example: str) -> None:
    if not isinstance(field, Field):
        raise ValueError(f"{function}() needs a field of the data, such as {example}, got {field!r}")


def _derive(f: LinearExpression, derivative: Callable[[Atom], Atom]) -> LinearExpression:
    if not isinstance(f, LinearExpression) or any(t.atom.kind != "value" or t.weight for t in f.terms):
        raise ValueError(
            "derivatives apply to f or g without weights: use partial() for higher orders, and multiply the "
            "derivative by fields, not f"
        )
    return replace(f, terms=tuple(replace(t, atom=derivative(t.atom)) for t in f.terms))


def inner(f: LinearExpression, g: LinearExpression | Field | float, weight: Field | None = None) -> Any:
    """Return the product of an expression of f and one of g, or of an expression of f and data.

    Parameters
    ----------
    f : LinearExpression
        Expression of f.
    g : LinearExpression, Field or float
        Expression of g for a bilinear form; a field (n,) or number for a functional.
    weight : Field, optional
        Field (n,) that multiplies the product.

    Returns
    -------
    Bilinear or LinearFunctional
        The product.

    See Also
    --------
    form, functional : Trace a function made of such products.

    Examples
    --------
    >>> form(lambda f, g, x: inner(f, g, weight=x.density) + 2 * inner(grad(f), grad(g))).orders
    (1, 1)
    """
    if not isinstance(f, LinearExpression):
        raise ValueError(f"inner() needs an expression of f as its first argument, got {f!r}")
    if not isinstance(g, LinearExpression):
        return _pairings(f, g, weight)
    if f.side == g.side:
        raise ValueError("inner() must pair an expression of f with one of g, got two of the same function")
    if f.side == "g":
        f, g = g, f
    terms = []
    for a in f.combined_terms:
        for b in g.combined_terms:
            if a.atom.kind != b.atom.kind and (a.atom.vector or b.atom.vector):
                raise ValueError(
                    "inner() pairs a gradient with a gradient, along_each() with along_each(), a scalar with a scalar"
                )
            product = AtomProduct(a.atom, b.atom, _weight(a.weight, b.weight, weight))
            terms.append((a.factor * b.factor, product))
    return Bilinear(tuple(terms))


def _pairings(f: LinearExpression, target: Field | float, weight: Field | None) -> LinearFunctional:
    field = target if isinstance(target, Field) else None
    scale = 1.0 if isinstance(target, Field) else number(target)
    if f.vector:
        raise ValueError("inner() pairs vectors with vectors of functions; for a field of directions use along()")
    return LinearFunctional(
        tuple((scale * t.factor, Pairing(t.atom, field, _weight(t.weight, weight))) for t in f.terms)
    )


def _weight(*weights: Field | None) -> Field | None:
    given = [w for w in weights if w is not None]
    if not all(isinstance(w, Field) for w in given):
        raise ValueError(f"a weight must be a field of the data, such as x.potential, got {given[-1]!r}")
    if len(given) > 1:
        raise ValueError(ONE_WEIGHT)
    return given[0] if given else None


def form(function: Callable[..., Bilinear]) -> Form:
    """Trace H(f, g, x) into a `Form`; also a decorator.

    Parameters
    ----------
    function : callable
        Function of the symbols f, g and x that returns a sum of products made by `inner`.

    Returns
    -------
    Form
        The form, with the name of the function.

    Raises
    ------
    ValueError
        If the expression is not bilinear in f and g.

    See Also
    --------
    functional : Linear functionals of f.

    Examples
    --------
    >>> @form
    ... def schroedinger(f, g, x):
    ...     return inner(grad(f), grad(g)) + inner(f, g, weight=x.potential)
    >>> schroedinger.name, schroedinger.symmetric
    ('schroedinger', True)
    """
    left, right = _symbol("f"), _symbol("g")
    expression = function(left, right, Fields())
    if not isinstance(expression, Bilinear):
        raise ValueError(
            f"form {function.__name__} must return products of f and g made by inner(), got {expression!r}"
        )
    return Form(function.__name__, expression)


def functional(function: Callable[..., LinearFunctional]) -> Functional:
    """Trace b(f, x) into a `Functional`; also a decorator.

    Parameters
    ----------
    function : callable
        Function of the symbols f and x that returns a sum of products made by `inner`.

    Returns
    -------
    Functional
        The functional, with the name of the function.

    Raises
    ------
    ValueError
        If the expression is not linear in f.

    See Also
    --------
    form : Bilinear forms of f and g.

    Examples
    --------
    >>> @functional
    ... def values(f, x):
    ...     return inner(f, x.y)
    >>> values.name, len(values.pairings)
    ('values', 1)
    """
    expression = function(_symbol("f"), Fields())
    if not isinstance(expression, LinearFunctional):
        raise ValueError(
            f"functional {function.__name__} must return products of f and data made by inner(), got {expression!r}"
        )
    return Functional(function.__name__, expression)


def _symbol(side: str) -> LinearExpression:
    return LinearExpression((Term(1.0, None, Atom("value")),), side)


def gram_at(view: str) -> Form:
    """Return the Gram form <f, g> of functions at another view.

    Parameters
    ----------
    view : str
        Name of the field of points.

    Returns
    -------
    Form
        The form.

    See Also
    --------
    gram : The form at x.

    Examples
    --------
    >>> gram_at("y").products[0].left.view
    'y'
    """

    @form
    def gram(f: Any, g: Any, x: Any) -> Any:
        return inner(at(f, Field(view)), at(g, Field(view)))

    return gram


gram = gram_at("x")
"""Gram form <f, g> in L2(rho)."""


@form
def dirichlet(f: Any, g: Any, x: Any) -> Any:
    """Return <grad f, grad g> in L2(rho), equation (3) of the Galerkin paper."""
    return inner(grad(f), grad(g))


def tangential_dirichlet(normals: int | None = None, tangents: int | None = None) -> Form:
    """Return the Dirichlet form of a submanifold, by normals to subtract or tangents to add.

    Parameters
    ----------
    normals : int, optional
        Number of orthonormal normals in the field `normal` (n, normals, d).
    tangents : int, optional
        Number of orthonormal tangents in the field `tangent` (n, tangents, d).

    Returns
    -------
    Form
        The form.

    See Also
    --------
    dirichlet : The form in the ambient space.

    Examples
    --------
    >>> sorted(tangential_dirichlet(normals=1).fields), sorted(tangential_dirichlet(tangents=2).fields)
    (['normal', 'x'], ['tangent', 'x'])
    """

    def parts(f: Any, g: Any, field: Field, count: int) -> Any:
        return sum((inner(along(f, field[a]), along(g, field[a])) for a in range(count)), start=Bilinear(()))

    @form
    def tangential_dirichlet(f: Any, g: Any, x: Any) -> Any:
        if tangents is not None:
            return parts(f, g, x.tangent, tangents)
        return inner(grad(f), grad(g)) - parts(f, g, x.normal, normals or 0)

    return tangential_dirichlet


def first_moment_at(view: str) -> Functional:
    """Return the functional E[f] of functions at another view.

    Parameters
    ----------
    view : str
        Name of the field of points.

    Returns
    -------
    Functional
        The functional.

    See Also
    --------
    first_moment : The functional at x.

    Examples
    --------
    >>> first_moment_at("y").pairings[0].atom.view
    'y'
    """

    @functional
    def first_moment(f: Any, x: Any) -> Any:
        return inner(at(f, Field(view)), 1.0)

    return first_moment


first_moment = first_moment_at("x")
"""Mean E[f], required for centering."""
