"""Forms as sums of terms that are weights of the rows times products of derivatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.forms import Atom, Bilinear, Field, LinearFunctional

Array = NDArray[np.floating[Any]]
Index = tuple[int, ...]


@dataclass(frozen=True)
class ModeWeight:
    """A weight of the rows: the product of entries of `fields`, 1 where there are none.

    With `each` = (u, a, v, b) times sum_m u_ma v_mb, for the directions m of two fields (c, m, d).

    Examples
    --------
    >>> ModeWeight((Field("potential"),)).name
    'potential'
    """

    fields: tuple[Field, ...] = ()
    each: tuple[Field, int, Field, int] | None = None

    @property
    def name(self) -> str:
        """The name under which its modes are kept."""
        parts = [_name(field) for field in self.fields]
        if self.each is not None:
            u, a, v, b = self.each
            parts.append(f"sum({_name(u)}[:, {a}] * {_name(v)}[:, {b}])")
        return " * ".join(parts) or "1"

    @property
    def sources(self) -> frozenset[str]:
        """Names of the fields that it reads."""
        extra = () if self.each is None else (self.each[0].name, self.each[2].name)
        return frozenset({*(field.name for field in self.fields), *extra})

    def of(self, fields: Mapping[str, Array]) -> Array | None:
        """The weights (c,), or (c, m) of a field of several targets; None for 1."""
        parts = [_entries(fields, field) for field in self.fields]
        if self.each is not None:
            u, a, v, b = self.each
            parts.append(np.einsum("cm,cm->c", _entries(fields, u)[:, :, a], _entries(fields, v)[:, :, b]))
        if not parts:
            return None
        most = max(part.ndim for part in parts)
        product: Any = 1.0
        for part in parts:
            product = product * (part[:, None] if part.ndim < most else part)
        return np.asarray(product, dtype=float)


@dataclass(frozen=True)
class ModeTerm:
    """factor * mean(weight d_left f d_right g), for multi-indices left and right.

    Of a functional, the mean of weight d_left f alone: the weight may have several columns, one for each target.
    """

    factor: float
    weight: ModeWeight
    left: Index
    right: Index = ()


def terms_of(form: Bilinear, dimension: int) -> tuple[ModeTerm, ...]:
    """The terms of a form on functions of `dimension` variables, each pair of derivatives and weight once.

    Raises ValueError for functions taken at another view than x, whose products are no modes.
    """
    found: dict[tuple[ModeWeight, Index, Index], float] = {}
    for factor, product in form.terms:
        for part, pair, weights in product.expanded:
            for weight, left, right in _pairs(pair.left, pair.right, dimension):
                key = replace(weight, fields=_sorted((*weights, *weight.fields))), left, right
                found[key] = found.get(key, 0.0) + factor * part
    return tuple(ModeTerm(factor, *key) for key, factor in found.items() if factor)


def pairing_terms_of(functional: LinearFunctional, dimension: int) -> tuple[ModeTerm, ...]:
    """The terms of a functional."""
    found: dict[tuple[ModeWeight, Index], float] = {}
    for factor, pairing in functional.terms:
        extra = tuple(field for field in (pairing.target, pairing.weight) if field is not None)
        terms = pairing.atom.terms if pairing.atom.kind == "sum" else None
        atoms = [(1.0, pairing.atom, ())] if terms is None else [(t.factor, t.atom, _given(t.weight)) for t in terms]
        for part, atom, weights in atoms:
            if atom.kind == "gradient":
                assert pairing.target is not None
                rest = _given(pairing.weight)
                parts: Iterable[tuple[tuple[Field, ...], Index]] = (
                    ((*rest, pairing.target[axis]), alpha) for axis, alpha in enumerate(_units(dimension))
                )
            else:
                parts = (((*extra, *own), alpha) for own, alpha in _scalars(atom, dimension))
            for own, alpha in parts:
                key = ModeWeight(_sorted((*weights, *own))), alpha
                found[key] = found.get(key, 0.0) + factor * part
    return tuple(ModeTerm(factor, *key) for key, factor in found.items() if factor)


def _pairs(left: Atom, right: Atom, d: int) -> Iterator[tuple[ModeWeight, Index, Index]]:
    """The products of derivatives that a product of two atoms is a sum of, with their weights."""
    if left.kind == "gradient":
        for alpha in _units(d):
            yield ModeWeight(), alpha, alpha
    elif left.kind == "each":
        assert left.direction is not None
        assert right.direction is not None
        same = left.direction == right.direction
        for a, alpha in enumerate(_units(d)):
            for b, beta in enumerate(_units(d)):
                first, second = (min(a, b), max(a, b)) if same else (a, b)  # symmetric: one set of modes for both
                yield ModeWeight(each=(left.direction, first, right.direction, second)), alpha, beta
    else:
        rights = list(_scalars(right, d))
        for own, alpha in _scalars(left, d):
            for other, beta in rights:
                yield ModeWeight((*own, *other)), alpha, beta


def _scalars(atom: Atom, d: int) -> Iterator[tuple[tuple[Field, ...], Index]]:
    """The derivatives that a scalar atom is a sum of, each with the entries of fields that multiply it."""
    if atom.view != "x":
        raise ValueError(
            f"functions are taken at {atom.view}, another point of the same row, and products of functions at two "
            "points are no modes of the data"
        )
    units = _units(d)
    if atom.kind == "value":
        yield (), (0,) * d
    elif atom.kind == "partial":
        yield (), atom.alpha
    elif atom.kind == "along":
        assert atom.direction is not None
        for axis in range(d):
            yield (_entry(atom.direction, axis),), units[axis]
    elif atom.kind == "second":
        for a in range(d):
            for b in range(d):
                alpha = tuple(x + y for x, y in zip(units[a], units[b], strict=True))
                if atom.direction is not None:
                    yield (_entry(atom.direction, a, b),), alpha
                elif a == b:
                    yield (), alpha
    else:
        raise ValueError(f"{atom.kind} of a function is no derivative that stands alone")


def _units(d: int) -> list[Index]:
    return [tuple(int(a == b) for b in range(d)) for a in range(d)]


def _entry(field: Field, *index: int) -> Field:
    return Field(field.name, (*field.path, *index))


def _given(field: Field | None) -> tuple[Field, ...]:
    return () if field is None else (field,)


def _sorted(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(sorted((Field(f.name, f.path or None) for f in fields), key=_name))


def _name(field: Field) -> str:
    return f"{field.name}[{', '.join(map(str, field.path))}]" if field.path else field.name


def _entries(fields: Mapping[str, Array], field: Field) -> Array:
    entries: Any = (slice(None), *field.path)
    return np.asarray(fields[field.name][entries])
