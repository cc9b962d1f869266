"""Expressions of forms: plain data that can be compared, hashed, saved and contracted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

from daskspectral.registry import Registered

ONE_WEIGHT = "a product has at most one field as its weight; multiply several fields beforehand"
VECTORS = frozenset({"gradient", "each"})
What = TypeVar("What")


@dataclass(frozen=True)
class Field(Registered):
    """Named field of the data: weights and targets (n,), directions (n, d), matrices (n, d, d).

    Parameters
    ----------
    name : str
        Name of the field.
    index : int or tuple of int, optional
        Selects [:, index] of a field with more axes: x.field[1] or x.field[0, 1].

    See Also
    --------
    Fields : The symbol x of a form.

    Examples
    --------
    >>> Field("matrix")[0, 1].path
    (0, 1)
    """

    name: str
    index: int | tuple[int, ...] | None = None

    def __getitem__(self, index: int | tuple[int, ...]) -> Field:
        if self.index is not None:
            raise ValueError(f"field {self.name} is already indexed; index several axes at once: x.field[0, 1]")
        return replace(self, index=index)

    @property
    def path(self) -> tuple[int, ...]:
        """Index as a tuple, empty if there is no index."""
        if self.index is None:
            return ()
        return self.index if isinstance(self.index, tuple) else (self.index,)

    def of(self, fields: Mapping[str, Any]) -> Any:
        """Return the values (c, ...) in the fields of a block."""
        return fields[self.name][(slice(None), *self.path)]

    __iter__ = None


class Fields:
    """Symbol x of a form: the attribute ``x.name`` is the field `name` of the data.

    See Also
    --------
    Field : One field.

    Examples
    --------
    >>> Fields().potential
    Field(name='potential', index=None)
    """

    def __getattr__(self, name: str) -> Field:
        if name.startswith("__"):
            raise AttributeError(name)
        return Field(name)


@dataclass(frozen=True)
class Atom(Registered):
    """Linear operation on a function.

    Scalars: value, partial derivative, derivative along a field, second derivatives with a field of matrices, and
    sums; vectors: gradient, derivatives along several directions.

    Parameters
    ----------
    kind : str
        Scalars: "value", "partial", "along", "second", "sum"; vectors: "gradient", "each".
    view : str
        Field of the points.
    alpha : tuple of int
        Multi-index of a partial derivative.
    direction : Field, optional
        Directions or matrices.
    terms : tuple of Term
        Terms of a sum.

    See Also
    --------
    Term : A weighted atom.

    Examples
    --------
    >>> Atom("partial", alpha=(2, 0)).order
    2
    """

    kind: str  # scalar: "value", "partial", "along", "second", "sum"; vector: "gradient", "each"
    view: str = "x"  # the field that holds the points
    alpha: tuple[int, ...] = ()
    direction: Field | None = None
    terms: tuple[Term, ...] = ()

    @property
    def order(self) -> int:
        """Total order of the derivative; for sums the highest one."""
        if self.kind == "sum":
            return max(t.atom.order for t in self.terms)
        return {"value": 0, "partial": sum(self.alpha), "second": 2}.get(self.kind, 1)

    @property
    def vector(self) -> bool:
        """True for a vector; `inner` pairs two vectors by a sum over coordinates."""
        return self.kind in VECTORS

    @property
    def leaves(self) -> tuple[Atom, ...]:
        """Operations required of a basis: the atoms of a sum, otherwise the atom."""
        if self.kind == "sum":
            return tuple(dict.fromkeys(leaf for t in self.terms for leaf in t.atom.leaves))
        return (replace(self, kind="along"),) if self.kind == "each" else (self,)

    @property
    def summands(self) -> tuple[Term, ...]:
        """Terms of a sum, otherwise the atom as the only term."""
        return self.terms if self.kind == "sum" else (Term(1.0, None, self),)

    @property
    def annihilates_constants(self) -> bool:
        """True if it is 0 for constant functions: a derivative, or a difference of values."""
        return not any(collected((t.factor, t.weight) for t in self.summands if not t.atom.order).values())

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the fields of points at which it is evaluated."""
        return tuple(dict.fromkeys(leaf.view for leaf in self.leaves))

    @property
    def weights(self) -> tuple[Field, ...]:
        """Fields that multiply the terms of a sum."""
        return tuple(t.weight for t in self.terms if t.weight is not None)

    @property
    def fields(self) -> frozenset[str]:
        """Names of the required data fields."""
        if self.kind == "sum":
            return frozenset().union(*(t.atom.fields for t in self.terms), {w.name for w in self.weights})
        return frozenset({self.view} | ({self.direction.name} if self.direction else set()))


@dataclass(frozen=True)
class Term(Registered):
    """Atom times a number and an optional field.

    Parameters
    ----------
    factor : float
        The number.
    weight : Field or None
        Field (n,).
    atom : Atom
        The operation.

    See Also
    --------
    LinearExpression : A sum of terms.

    Examples
    --------
    >>> from daskspectral.forms import form, inner
    >>> twice = form(lambda f, g, x: inner(2 * f, g))
    >>> twice.expression.terms[0][0]
    2.0
    """

    expects: ClassVar = {"weight": Field, "atom": Atom}

    factor: float
    weight: Field | None
    atom: Atom


Atom.expects = {"direction": Field, "terms": Term}


@dataclass(frozen=True)
class Expression(Registered):
    """Sum of terms with numeric factors, with the arithmetic of a vector space."""

    what: ClassVar[str]
    terms: tuple[Any, ...]

    def _check(self, other: Any) -> None:
        if not isinstance(other, type(self)):
            raise ValueError(f"{self.what} can be added to {self.what} only, got {type(other).__name__}")

    def __add__(self, other: Self) -> Self:
        self._check(other)
        return replace(self, terms=self.terms + other.terms)

    def __radd__(self, other: int) -> Self:
        if other == 0:  # the start of sum()
            return self
        return NotImplemented

    def __mul__(self, factor: float) -> Self:
        scale = number(factor)
        return replace(self, terms=tuple((scale * factor, term) for factor, term in self.terms))

    def __rmul__(self, factor: float) -> Self:
        return self * factor

    def __truediv__(self, divisor: float) -> Self:
        scale = number(divisor)
        if not scale:
            raise ValueError("an expression cannot be divided by 0")
        return self * (1 / scale)

    def __neg__(self) -> Self:
        return -1.0 * self

    def __sub__(self, other: Self) -> Self:
        return self + -other


@dataclass(frozen=True)
class LinearExpression(Expression):
    """Sum of weighted atoms of one function, f or g.

    Parameters
    ----------
    terms : tuple of Term
        The terms.
    side : str
        "f" or "g".

    See Also
    --------
    Bilinear : Products of two of them.

    Examples
    --------
    >>> from daskspectral.forms import form, inner, partial
    >>> slope = form(lambda f, g, x: inner(f, partial(g, 1) + 3 * g))
    >>> slope.orders
    (0, 1)
    """

    side: str

    def _check(self, other: Any) -> None:
        if not isinstance(other, LinearExpression) or other.side != self.side:
            raise ValueError("expressions of f and of g cannot be added; inner(f, g) pairs the two")
        if {t.atom.vector for t in self.terms + other.terms} == {True, False}:
            raise ValueError("a gradient (a vector) cannot be added to a scalar expression")

    def __mul__(self, factor: float | Field) -> Self:
        if not isinstance(factor, Field):
            scale = number(factor)
            return replace(self, terms=tuple(replace(t, factor=scale * t.factor) for t in self.terms))
        if any(t.weight for t in self.terms):
            raise ValueError(ONE_WEIGHT)
        return replace(self, terms=tuple(replace(t, weight=factor) for t in self.terms))

    @property
    def vector(self) -> bool:
        """True for vectors such as gradients."""
        return any(t.atom.vector for t in self.terms)

    @property
    def combined_terms(self) -> tuple[Term, ...]:
        """Terms, with all scalar ones combined into one, so that pairing costs one matrix product."""
        factors = collected((t.factor, (t.weight, t.atom)) for t in self.terms)
        terms = tuple(Term(factor, *of) for of, factor in factors.items())
        if len(terms) == 1 or self.vector:
            return terms
        return (Term(1.0, None, Atom("sum", terms=terms)),)


@dataclass(frozen=True)
class AtomProduct(Registered):
    """Pair (left atom, right atom) with an optional weight for each row: one matrix to sum.

    Parameters
    ----------
    left, right : Atom
        Operations on f and on g.
    weight : Field, optional
        Field (n,).

    See Also
    --------
    Bilinear : A sum of products.

    Examples
    --------
    >>> from daskspectral.forms import dirichlet
    >>> dirichlet.products[0].left.kind
    'gradient'
    """

    expects: ClassVar = {"left": Atom, "right": Atom, "weight": Field}

    left: Atom
    right: Atom
    weight: Field | None = None

    @property
    def fields(self) -> frozenset[str]:
        """Names of the required data fields."""
        weight = frozenset({self.weight.name}) if self.weight else frozenset()
        return self.left.fields | self.right.fields | weight

    @property
    def expanded(self) -> Iterator[tuple[float, AtomProduct, tuple[Field, ...]]]:
        """Products of the terms of its sums, each with its factor and its weights in a fixed order."""
        for a in self.left.summands:
            for b in self.right.summands:
                weights = [w for w in (self.weight, a.weight, b.weight) if w is not None]
                yield a.factor * b.factor, AtomProduct(a.atom, b.atom), tuple(sorted(weights, key=repr))


@dataclass(frozen=True)
class Bilinear(Expression):
    """Sum Σ_t factor_t product_t, in the order written.

    Parameters
    ----------
    terms : tuple of (float, AtomProduct)
        Factors and products.

    See Also
    --------
    Form : A named sum.

    Examples
    --------
    >>> from daskspectral.forms import dirichlet, gram
    >>> len((dirichlet.expression + 0.5 * gram.expression).terms)
    2
    """

    expects: ClassVar = {"terms": AtomProduct}
    what = "products of f and g"


@dataclass(frozen=True)
class Pairing:
    """Atom of f times a field of the data: one vector (p,) or matrix (p, m) to sum.

    Parameters
    ----------
    atom : Atom
        Operation on f.
    target : Field or None
        Field (n,) or (n, m).
    weight : Field, optional
        Field (n,).

    See Also
    --------
    LinearFunctional : A sum of pairings.

    Examples
    --------
    >>> from daskspectral.forms import functional, inner
    >>> functional(lambda f, x: inner(f, x.y, weight=x.mask)).pairings[0].target
    Field(name='y', index=None)
    """

    atom: Atom
    target: Field | None
    weight: Field | None = None

    @property
    def fields(self) -> frozenset[str]:
        """Names of the required data fields."""
        extra = {f.name for f in (self.target, self.weight) if f is not None}
        return self.atom.fields | extra


@dataclass(frozen=True)
class LinearFunctional(Expression):
    """Sum Σ_t factor_t pairing_t, in the order written.

    Parameters
    ----------
    terms : tuple of (float, Pairing)
        Factors and pairings.

    See Also
    --------
    Functional : A named sum.

    Examples
    --------
    >>> from daskspectral.forms import functional, inner
    >>> mean = functional(lambda f, x: inner(f, 1.0))
    >>> len((2 * mean.expression).terms)
    1
    """

    what = "products of f and data"


def collected(terms: Iterable[tuple[float, What]]) -> dict[What, float]:
    """Return the total factor of each distinct term of a sum."""
    factors: dict[What, float] = {}
    for factor, what in terms:
        factors[what] = factors.get(what, 0.0) + factor
    return factors


def number(factor: object) -> float:
    """Return a factor as a float; raise ValueError for expressions, fields and nonfinite numbers."""
    if isinstance(factor, (Expression, Field)):
        raise ValueError(
            "an expression can be multiplied by a number, an expression of f or g also by a field, got "
            f"{factor!r}. Use inner(f, g, weight=field) to pair two expressions."
        )
    try:
        value = float(factor)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"an expression can be multiplied by a finite number, got {factor!r}")
    return value
