"""Bilinear forms H(f, g, x) and functionals of f, written as the papers write them and kept as data.

    @form
    def schroedinger(f, g, x):
        return inner(grad(f), grad(g)) + inner(f, g, weight=x.potential)

The function is called once with symbols; what it returns is a small expression (a sum of products of atoms)
that can be compared, hashed, saved, and contracted by a basis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

__all__ = [
    "Bilinear",
    "Field",
    "Form",
    "Functional",
    "Linear",
    "along",
    "at",
    "form",
    "functional",
    "grad",
    "inner",
    "partial",
]

ONE_WEIGHT = "a product takes one field as its weight; multiply the fields beforehand"


@dataclass(frozen=True)
class Field:
    """A named field of the data: weights and targets (c,), directions (c, d); `index` picks [:, index]."""

    name: str
    index: int | None = None

    def __getitem__(self, index: int) -> Field:
        if self.index is not None:
            raise ValueError(f"field {self.name} is already indexed")
        return replace(self, index=index)


class Fields:
    """The symbol x of a form: every attribute is a field of that name."""

    def __getattr__(self, name: str) -> Field:
        if name.startswith("__"):
            raise AttributeError(name)
        return Field(name)


@dataclass(frozen=True)
class Atom:
    """One linear operation on a function: value, partial, derivative along a field, or gradient."""

    kind: str  # "value", "partial", "along" or "gradient"
    view: str = "x"  # the field that holds the points
    alpha: tuple[int, ...] = ()
    direction: Field | None = None

    @property
    def order(self) -> int:
        """Total order of the derivative."""
        return {"value": 0, "partial": sum(self.alpha), "along": 1, "gradient": 1}[self.kind]

    @property
    def fields(self) -> frozenset[str]:
        """Names of the data fields that it reads."""
        return frozenset({self.view} | ({self.direction.name} if self.direction else set()))


@dataclass(frozen=True)
class _Term:
    factor: float
    weight: Field | None
    atom: Atom


@dataclass(frozen=True)
class Linear:
    """A sum of weighted atoms of one function, f or g."""

    side: str
    terms: tuple[_Term, ...]

    def __add__(self, other: Linear) -> Linear:
        if not isinstance(other, Linear) or other.side != self.side:
            raise ValueError("a linear expression adds to one of the same function; inner(f, g) pairs two")
        if {t.atom.kind == "gradient" for t in self.terms + other.terms} == {True, False}:
            raise ValueError("a gradient (a vector) cannot be added to a scalar expression")
        return Linear(self.side, self.terms + other.terms)

    def __mul__(self, factor: float | Field) -> Linear:
        if isinstance(factor, Field):
            if any(t.weight for t in self.terms):
                raise ValueError(ONE_WEIGHT)
            return Linear(self.side, tuple(replace(t, weight=factor) for t in self.terms))
        scale = _number(factor)
        return Linear(self.side, tuple(replace(t, factor=t.factor * scale) for t in self.terms))

    __rmul__ = __mul__

    def __neg__(self) -> Linear:
        return -1.0 * self

    def __sub__(self, other: Linear) -> Linear:
        return self + -other


@dataclass(frozen=True)
class Product:
    """The pair (left atom, right atom) with an optional weight per row: one matrix to accumulate."""

    left: Atom
    right: Atom
    weight: Field | None = None

    @property
    def fields(self) -> frozenset[str]:
        """Names of the data fields that it reads."""
        weight = frozenset({self.weight.name}) if self.weight else frozenset()
        return self.left.fields | self.right.fields | weight


@dataclass(frozen=True)
class Bilinear:
    """sum_t factor_t product_t, in the order written."""

    terms: tuple[tuple[float, Product], ...]

    def __add__(self, other: Bilinear) -> Bilinear:
        if not isinstance(other, Bilinear):
            raise ValueError(f"products of f and g add to products of f and g, not to {type(other).__name__}")
        return Bilinear(self.terms + other.terms)

    def __radd__(self, other: int) -> Bilinear:
        if other == 0:  # the start of sum()
            return self
        return NotImplemented

    def __mul__(self, factor: float) -> Bilinear:
        scale = _number(factor)
        return Bilinear(tuple((scale * a, p) for a, p in self.terms))

    __rmul__ = __mul__

    def __neg__(self) -> Bilinear:
        return -1.0 * self

    def __sub__(self, other: Bilinear) -> Bilinear:
        return self + -other


@dataclass(frozen=True)
class Pairing:
    """An atom of f against a data field: one vector (p,) or matrix (p, m) to accumulate."""

    atom: Atom
    target: Field | None
    weight: Field | None = None

    @property
    def fields(self) -> frozenset[str]:
        """Names of the data fields that it reads."""
        extra = {f.name for f in (self.target, self.weight) if f is not None}
        return self.atom.fields | extra


@dataclass(frozen=True)
class LinearFunctional:
    """sum_t factor_t pairing_t."""

    terms: tuple[tuple[float, Pairing], ...]

    def __add__(self, other: LinearFunctional) -> LinearFunctional:
        if not isinstance(other, LinearFunctional):
            raise ValueError(f"products of f and data add to products of f and data, not to {type(other).__name__}")
        return LinearFunctional(self.terms + other.terms)

    def __radd__(self, other: int) -> LinearFunctional:
        if other == 0:  # the start of sum()
            return self
        return NotImplemented

    def __mul__(self, factor: float) -> LinearFunctional:
        scale = _number(factor)
        return LinearFunctional(tuple((scale * a, p) for a, p in self.terms))

    __rmul__ = __mul__

    def __neg__(self) -> LinearFunctional:
        return -1.0 * self

    def __sub__(self, other: LinearFunctional) -> LinearFunctional:
        return self + -other


@dataclass(frozen=True)
class Form:
    """A named bilinear form."""

    name: str
    expression: Bilinear

    @property
    def products(self) -> tuple[Product, ...]:
        """Its distinct products."""
        return tuple(dict.fromkeys(p for _, p in self.expression.terms))

    @property
    def orders(self) -> tuple[int, int]:
        """Highest derivative taken of f and of g."""
        return max(p.left.order for p in self.products), max(p.right.order for p in self.products)

    @property
    def symmetric(self) -> bool:
        """Whether H(f, g) = H(g, f) term by term."""
        factors: dict[Product, float] = {}
        for factor, p in self.expression.terms:
            factors[p] = factors.get(p, 0.0) + factor
        return all(factors.get(replace(p, left=p.right, right=p.left), 0.0) == a for p, a in factors.items())

    @property
    def fields(self) -> frozenset[str]:
        """Names of the data fields that it reads."""
        return frozenset().union(*(p.fields for p in self.products))


@dataclass(frozen=True)
class Functional:
    """A named linear functional: a right-hand side."""

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


def grad(f: Linear) -> Linear:
    """The gradient of a function, to be paired with another by `inner`."""
    return _derive(f, lambda atom: replace(atom, kind="gradient"))


def partial(f: Linear, *alpha: int) -> Linear:
    """The partial derivative for a multi-index: `partial(f, 0, 2)` is d^2 f / dx_2^2 in two dimensions."""
    if not alpha or any(isinstance(a, bool) or int(a) != a or a < 0 for a in alpha):
        raise ValueError(f"partial() takes one whole order of 0 or more a coordinate; it got {alpha!r}")
    return _derive(f, lambda atom: replace(atom, kind="partial", alpha=tuple(int(a) for a in alpha)))


def along(f: Linear, direction: Field) -> Linear:
    """direction(x) . grad f(x) for a field of directions (c, d)."""
    if not isinstance(direction, Field):
        raise ValueError(f"along() takes a field of the data, such as x.direction; it got {direction!r}")
    return _derive(f, lambda atom: replace(atom, kind="along", direction=direction))


def at(f: Linear, view: Field) -> Linear:
    """The function at other points of the same row: a second view, or the state a lag later."""
    if not isinstance(view, Field):
        raise ValueError(f"at() takes a field of the data, such as x.future; it got {view!r}")
    return Linear(f.side, tuple(replace(t, atom=replace(t.atom, view=view.name)) for t in f.terms))


def _derive(f: Linear, derivative: Callable[[Atom], Atom]) -> Linear:
    if not isinstance(f, Linear) or any(t.atom.kind != "value" or t.weight for t in f.terms):
        raise ValueError(
            "a derivative is taken of f or g itself: partial() with a multi-index gives the higher orders, "
            "and fields multiply the derivative"
        )
    return Linear(f.side, tuple(replace(t, atom=derivative(t.atom)) for t in f.terms))


def inner(f: Linear, g: Linear | Field | float, weight: Field | None = None) -> Any:
    """The product of two expressions (one of f, one of g), or of an expression of f and a data field."""
    if not isinstance(f, Linear):
        raise ValueError(f"inner() takes an expression of f first; it got {f!r}")
    if not isinstance(g, Linear):
        target = g if isinstance(g, Field) else None
        scale = 1.0 if isinstance(g, Field) else _number(g)
        if target is None and any(t.atom.kind == "gradient" for t in f.terms):
            raise ValueError("inner() pairs a gradient with a field of vectors (n, d), not with a number")
        return LinearFunctional(
            tuple((scale * t.factor, Pairing(t.atom, target, _weight(t.weight, weight))) for t in f.terms)
        )
    if f.side == g.side:
        raise ValueError("a bilinear form pairs f with g; both arguments of inner() are of the same function")
    if f.side == "g":
        f, g = g, f
    terms = []
    for a in f.terms:
        for b in g.terms:
            if (a.atom.kind == "gradient") != (b.atom.kind == "gradient"):
                raise ValueError("inner() pairs a gradient with a gradient, a scalar with a scalar")
            product = Product(a.atom, b.atom, _weight(a.weight, b.weight, weight))
            terms.append((a.factor * b.factor, product))
    return Bilinear(tuple(terms))


def _weight(*weights: Field | None) -> Field | None:
    given = [w for w in weights if w is not None]
    if not all(isinstance(w, Field) for w in given):
        raise ValueError(f"a weight is a field of the data, such as x.potential; it got {given[-1]!r}")
    if len(given) > 1:
        raise ValueError(ONE_WEIGHT)
    return given[0] if given else None


def _number(factor: object) -> float:
    if isinstance(factor, (Linear, Bilinear, LinearFunctional, Field)):
        raise ValueError(
            "expressions multiply by numbers, f and g by a field too; inner(f, g, weight=field) pairs two, "
            f"and the other factor was {factor!r}"
        )
    return float(factor)  # type: ignore[arg-type]


def form(function: Callable[..., Bilinear]) -> Form:
    """Trace H(f, g, x) once into a `Form`. Raises ValueError when it is not bilinear in f and g."""
    left, right = _symbol("f"), _symbol("g")
    expression = function(left, right, Fields())
    if not isinstance(expression, Bilinear):
        raise ValueError(
            f"form {function.__name__} must return products of f and g made by inner(); it returned {expression!r}"
        )
    return Form(function.__name__, expression)


def functional(function: Callable[..., LinearFunctional]) -> Functional:
    """Trace b(f, x) once into a `Functional`. Raises ValueError when it is not linear in f."""
    expression = function(_symbol("f"), Fields())
    if not isinstance(expression, LinearFunctional):
        raise ValueError(
            f"functional {function.__name__} must return products of f and data made by inner(); "
            f"it returned {expression!r}"
        )
    return Functional(function.__name__, expression)


def _symbol(side: str) -> Linear:
    return Linear(side, (_Term(1.0, None, Atom("value")),))


@form
def gram(f: Any, g: Any, x: Any) -> Any:
    """<f, g> in L2(rho)."""
    return inner(f, g)


@form
def dirichlet(f: Any, g: Any, x: Any) -> Any:
    """<grad f, grad g> in L2(rho), equation (3) of the Galerkin paper."""
    return inner(grad(f), grad(g))


def tangential_dirichlet(normals: int | None = None, tangents: int | None = None) -> Form:
    """The Dirichlet form of a submanifold: without the part along the normals, or the sum over tangents."""

    def parts(f: Any, g: Any, field: Field, count: int) -> Any:
        return sum((inner(along(f, field[a]), along(g, field[a])) for a in range(count)), start=Bilinear(()))

    @form
    def tangential_dirichlet(f: Any, g: Any, x: Any) -> Any:
        if tangents is not None:
            return parts(f, g, x.tangent, tangents)
        return inner(grad(f), grad(g)) - parts(f, g, x.normal, normals or 0)

    return tangential_dirichlet


def all_products(forms: Sequence[Form]) -> tuple[Product, ...]:
    """The distinct products of several forms: what one pass has to accumulate."""
    return tuple(dict.fromkeys(p for f in forms for p in f.products))


@functional
def first_moment(f: Any, x: Any) -> Any:
    """E[f]: the support of each basis function, and what centring needs."""
    return inner(f, 1.0)
