"""What forms are written with, the functions that trace them, and the forms that every spectral problem measures."""

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
    """A named bilinear form.

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
        """The inverse of `state`. Whatever parts that make no form raise, they raise here."""
        found = cls(state["name"], state["expression"])
        _ = found.orders, found.symmetric, found.fields
        return found

    @property
    def products(self) -> tuple[AtomProduct, ...]:
        """Its distinct products."""
        return tuple(dict.fromkeys(p for _, p in self.expression.terms))

    @property
    def orders(self) -> tuple[int, int]:
        """Highest derivative taken of f and of g."""
        return max(p.left.order for p in self.products), max(p.right.order for p in self.products)

    @property
    def symmetric(self) -> bool:
        """Whether H(f, g) = H(g, f) term by term."""
        factors = collected((a * part, (pair, w)) for a, p in self.expression.terms for part, pair, w in p.expanded)
        return all(factors.get((AtomProduct(p.right, p.left), w), 0.0) == a for (p, w), a in factors.items())

    @property
    def fields(self) -> frozenset[str]:
        """Names of the data fields that it reads."""
        return frozenset().union(*(p.fields for p in self.products))


@dataclass(frozen=True)
class Functional:
    """A named linear functional: a right-hand side.

    Examples
    --------
    >>> sorted(functional(lambda f, x: inner(f, x.y)).fields)
    ['x', 'y']
    """

    name: str
    expression: LinearFunctional

    @property
    def pairings(self) -> tuple[Pairing, ...]:
        """Its distinct pairings."""
        return tuple(dict.fromkeys(p for _, p in self.expression.terms))

    @property
    def fields(self) -> frozenset[str]:
        """Names of the data fields that it reads."""
        return frozenset().union(*(p.fields for p in self.pairings))


Forms = Mapping[str, Form]
Functionals = Mapping[str, Functional]


def grad(f: LinearExpression) -> LinearExpression:
    """The gradient of a function, to be paired with another by `inner`.

    Examples
    --------
    >>> form(lambda f, g, x: inner(grad(f), grad(g))).orders
    (1, 1)
    """
    return _derive(f, lambda atom: replace(atom, kind="gradient"))


def partial(f: LinearExpression, *alpha: int) -> LinearExpression:
    """The partial derivative for a multi-index: `partial(f, 0, 2)` is d² f / dx_2² in two dimensions.

    Examples
    --------
    >>> form(lambda f, g, x: inner(f, partial(g, 0, 2))).orders
    (0, 2)
    """
    if not alpha or any(isinstance(a, bool) or int(a) != a or a < 0 for a in alpha):
        raise ValueError(f"partial() takes one whole order of 0 or more for each coordinate; it got {alpha!r}")
    return _derive(f, lambda atom: replace(atom, kind="partial", alpha=tuple(int(a) for a in alpha)))


def along(f: LinearExpression, direction: Field) -> LinearExpression:
    """direction(x) · ∇f(x) for a field of directions (c, d).

    Examples
    --------
    >>> sorted(form(lambda f, g, x: inner(f, along(g, x.velocity))).fields)
    ['velocity', 'x']
    """
    _check_field("along", direction, "x.direction")
    return _derive(f, lambda atom: replace(atom, kind="along", direction=direction))


def along_each(f: LinearExpression, directions: Field) -> LinearExpression:
    """directions_m(x) · ∇f(x) for each m of a field (c, m, d): a vector, to be paired with another by `inner`.

    Examples
    --------
    >>> form(lambda f, g, x: inner(along_each(f, x.tangents), along_each(g, x.tangents))).symmetric
    True
    """
    _check_field("along_each", directions, "x.tangents")
    return _derive(f, lambda atom: replace(atom, kind="each", direction=directions))


def second(f: LinearExpression, matrix: Field | None = None) -> LinearExpression:
    """Σ_ab matrix_ab(x) ∂_a ∂_b f(x) for a field of matrices (c, d, d); without one, the Laplacian of f.

    Examples
    --------
    >>> form(lambda f, g, x: inner(f, second(g, x.covariance))).orders
    (0, 2)
    """
    if matrix is not None:
        _check_field("second", matrix, "x.covariance")
    return _derive(f, lambda atom: replace(atom, kind="second", direction=matrix))


def at(f: LinearExpression, view: Field) -> LinearExpression:
    """The function at other points of the same row: a second view, or the state a lag later.

    Examples
    --------
    >>> form(lambda f, g, x: inner(f, at(g, x.future))).products[0].right.view
    'future'
    """
    _check_field("at", view, "x.future")
    return replace(f, terms=tuple(replace(t, atom=replace(t.atom, view=view.name)) for t in f.terms))


def _check_field(function: str, field: object, example: str) -> None:
    if not isinstance(field, Field):
        raise ValueError(f"{function}() takes a field of the data, such as {example}; it got {field!r}")


def _derive(f: LinearExpression, derivative: Callable[[Atom], Atom]) -> LinearExpression:
    if not isinstance(f, LinearExpression) or any(t.atom.kind != "value" or t.weight for t in f.terms):
        raise ValueError(
            "a derivative is taken of f or g itself: for higher orders use partial() with a multi-index, and multiply "
            "the derivative by fields, not f"
        )
    return replace(f, terms=tuple(replace(t, atom=derivative(t.atom)) for t in f.terms))


def inner(f: LinearExpression, g: LinearExpression | Field | float, weight: Field | None = None) -> Any:
    """The product of two expressions (one of f, one of g), or of a scalar expression of f and a data field.

    Examples
    --------
    >>> form(lambda f, g, x: inner(f, g, weight=x.density) + 2 * inner(grad(f), grad(g))).orders
    (1, 1)
    """
    if not isinstance(f, LinearExpression):
        raise ValueError(f"inner() takes an expression of f first; it got {f!r}")
    if not isinstance(g, LinearExpression):
        return _pairings(f, g, weight)
    if f.side == g.side:
        raise ValueError("a bilinear form pairs f with g; both arguments of inner() are of the same function")
    if f.side == "g":
        f, g = g, f
    terms = []
    for a in f.together:
        for b in g.together:
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
        raise ValueError("inner() pairs vectors with vectors of functions; with a field of directions, take along()")
    return LinearFunctional(
        tuple((scale * t.factor, Pairing(t.atom, field, _weight(t.weight, weight))) for t in f.terms)
    )


def _weight(*weights: Field | None) -> Field | None:
    given = [w for w in weights if w is not None]
    if not all(isinstance(w, Field) for w in given):
        raise ValueError(f"a weight is a field of the data, such as x.potential; it got {given[-1]!r}")
    if len(given) > 1:
        raise ValueError(ONE_WEIGHT)
    return given[0] if given else None


def form(function: Callable[..., Bilinear]) -> Form:
    """Trace H(f, g, x) once into a `Form`. Raises ValueError when it is not bilinear in f and g.

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
            f"form {function.__name__} must return products of f and g made by inner(); it returned {expression!r}"
        )
    return Form(function.__name__, expression)


def functional(function: Callable[..., LinearFunctional]) -> Functional:
    """Trace b(f, x) once into a `Functional`. Raises ValueError when it is not linear in f.

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
            f"functional {function.__name__} must return products of f and data made by inner(); "
            f"it returned {expression!r}"
        )
    return Functional(function.__name__, expression)


def _symbol(side: str) -> LinearExpression:
    return LinearExpression((Term(1.0, None, Atom("value")),), side)


def gram_at(view: str) -> Form:
    """<f, g> of functions at another view.

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
"""<f, g> in L2(rho)."""


@form
def dirichlet(f: Any, g: Any, x: Any) -> Any:
    """<grad f, grad g> in L2(rho), equation (3) of the Galerkin paper."""
    return inner(grad(f), grad(g))


def tangential_dirichlet(normals: int | None = None, tangents: int | None = None) -> Form:
    """The Dirichlet form of a submanifold: less the part along the normals, or summed over the tangents.

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
    """E[f] of functions at another view.

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
"""E[f]: the support of each basis function, and what centring needs."""
