"""Forms as sums of terms, and their matrices and vectors from modes of the data instead of rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.forms import Atom, Bilinear, Field, Forms, Functionals, LinearFunctional
from daskspectral.forms.expressions import collected
from daskspectral.modes.frequencies import Frequencies

Index = tuple[int, ...]
MODES = "modes "
"""Prefix of the names of modes in moments, before the name of their weight."""


@dataclass(frozen=True)
class ModeWeight:
    """Weight of the rows: the product of entries of `fields`, 1 without fields.

    With `each` = (u, a, v, b) it is multiplied by sum_m u_ma v_mb, for the directions m of two fields (c, m, d).

    Examples
    --------
    >>> ModeWeight((Field("potential"),)).name
    'potential'
    """

    fields: tuple[Field, ...] = ()
    each: tuple[Field, int, Field, int] | None = None

    @property
    def name(self) -> str:
        parts = [_name(field) for field in self.fields]
        if self.each is not None:
            u, a, v, b = self.each
            parts.append(f"sum({_name(u)}[:, {a}] * {_name(v)}[:, {b}])")
        return " * ".join(parts) or "1"

    def of(self, fields: Mapping[str, Array]) -> Array | None:
        """Return the weights (c,) or (c, m); None for 1."""
        parts = [np.asarray(field.of(fields)) for field in self.fields]
        if self.each is not None:
            u, a, v, b = self.each
            parts.append(np.einsum("cm,cm->c", u.of(fields)[:, :, a], v.of(fields)[:, :, b]))
        if not parts:
            return None
        most = max(part.ndim for part in parts)
        product: Any = 1.0
        for part in parts:
            product = product * (part[:, None] if part.ndim < most else part)
        return np.asarray(product, dtype=float)


@dataclass(frozen=True)
class ModeTerm:
    """Term factor * mean(weight d_left f d_right g), for multi-indices left and right.

    For a functional, the mean of weight d_left f; a weight has one column for each target.
    """

    factor: float
    weight: ModeWeight
    left: Index
    right: Index = ()


def terms_of(form: Bilinear, dimension: int) -> tuple[ModeTerm, ...]:
    """Return the terms of a form on functions of `dimension` variables, collected by derivatives and weight.

    Raises ValueError for functions at another view than x, whose products are not modes.
    """
    return merged_terms(
        ModeTerm(factor * part, replace(weight, fields=_sorted((*weights, *weight.fields))), left, right)
        for factor, product in form.terms
        for part, pair, weights in product.expanded
        for weight, left, right in _pairs(pair.left, pair.right, dimension)
    )


def pairing_terms_of(functional: LinearFunctional, dimension: int) -> tuple[ModeTerm, ...]:
    """Return the terms of a functional."""
    return merged_terms(
        ModeTerm(
            factor * t.factor, ModeWeight(_sorted((*_given(t.weight, pairing.weight, pairing.target), *fields))), alpha
        )
        for factor, pairing in functional.terms
        for t in pairing.atom.summands
        for fields, alpha in _scalars(t.atom, dimension)
    )


def weights_of(forms: Forms, functionals: Functionals, dimension: int) -> tuple[ModeWeight, ...]:
    """Return the weights whose modes the forms and functionals require, 1 first.

    Raises ValueError for forms of functions at two points of a row.
    """
    found: dict[ModeWeight, None] = {ModeWeight(): None}
    for form in forms.values():
        found |= {term.weight: None for term in terms_of(form.expression, dimension)}
    for functional in functionals.values():
        found |= {term.weight: None for term in pairing_terms_of(functional.expression, dimension)}
    return tuple(found)


def merged_terms(terms: Iterable[ModeTerm]) -> tuple[ModeTerm, ...]:
    """Return the terms of a sum, merged if they differ only in their factor."""
    factors = collected((term.factor, replace(term, factor=1.0)) for term in terms)
    return tuple(replace(term, factor=factor) for term, factor in factors.items() if factor)


def _pairs(left: Atom, right: Atom, d: int) -> Iterator[tuple[ModeWeight, Index, Index]]:
    """Yield the products of derivatives in a product of atoms, with weights."""
    if left.kind == "gradient":
        for alpha in _units(d):
            yield ModeWeight(), alpha, alpha
    elif left.kind == "each":
        assert left.direction is not None
        assert right.direction is not None
        same = left.direction == right.direction
        for a, alpha in enumerate(_units(d)):
            for b, beta in enumerate(_units(d)):
                first, second = (min(a, b), max(a, b)) if same else (a, b)  # symmetric: the same modes
                yield ModeWeight(each=(left.direction, first, right.direction, second)), alpha, beta
    else:
        rights = list(_scalars(right, d))
        for fields, alpha in _scalars(left, d):
            for other, beta in rights:
                yield ModeWeight((*fields, *other)), alpha, beta


def _scalars(atom: Atom, d: int) -> Iterator[tuple[tuple[Field, ...], Index]]:
    """Yield the derivatives in a scalar atom, with fields that multiply them."""
    if atom.view != "x":
        raise ValueError(f"modes require functions at one point of a row, got x and {atom.view}.")
    units = _units(d)
    if atom.kind == "value":
        yield (), (0,) * d
    elif atom.kind == "partial":
        yield (), atom.alpha
    elif atom.kind == "along":
        assert atom.direction is not None
        for axis in range(d):
            yield (_entry(atom.direction, axis),), units[axis]
    else:  # "second"
        for a in range(d):
            for b in range(d):
                alpha = tuple(x + y for x, y in zip(units[a], units[b], strict=True))
                if atom.direction is not None:
                    yield (_entry(atom.direction, a, b),), alpha
                elif a == b:
                    yield (), alpha


def _units(d: int) -> list[Index]:
    return [tuple(int(a == b) for b in range(d)) for a in range(d)]


def _entry(field: Field, *index: int) -> Field:
    return Field(field.name, (*field.path, *index))


def _given(*fields: Field | None) -> tuple[Field, ...]:
    return tuple(field for field in fields if field is not None)


def _sorted(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(sorted((Field(f.name, f.path or None) for f in fields), key=_name))


def _name(field: Field) -> str:
    return f"{field.name}[{', '.join(map(str, field.path))}]" if field.path else field.name


Array = NDArray[np.floating[Any]]
Modes = Mapping[ModeWeight, NDArray[np.complexfloating[Any, Any]]]


def truncated(modes: Any, orders: Sequence[int]) -> Any:
    """Return the modes |j_a| <= 2 m_a of an array (..., 2 M_1 + 1, ...), for the orders m (d,)."""
    middle = [size // 2 for size in modes.shape[modes.ndim - len(orders) :]]
    cut = tuple(slice(c - 2 * m, c + 2 * m + 1) for c, m in zip(middle, orders, strict=True))
    return modes[(..., *cut)]


def matrices_of_modes(
    frequencies: Frequencies, forms: Forms, functionals: Functionals, sums: Mapping[str, Any]
) -> dict[str, Array]:
    """Return the sums of forms (p, p) and functionals (p,) or (p, m) from modes by name."""
    d = len(frequencies.orders)
    modes = {w: sums[MODES + w.name] for w in weights_of(forms, functionals, d)}
    found = {name: form_matrix(frequencies, terms_of(form.expression, d), modes) for name, form in forms.items()}
    for name, functional in functionals.items():
        found[name] = functional_vector(frequencies, pairing_terms_of(functional.expression, d), modes)
    return found | {name: values for name, values in sums.items() if not name.startswith(MODES)}


def form_matrix(frequencies: Frequencies, terms: Collection[ModeTerm], modes: Modes) -> Array:
    """Return the sum over rows of factor * weight * d_left φ_i d_right φ_j, (p, p), from modes.

    2 cos k cos l = Re c(k - l) + Re c(k + l), c = C / weight, and similarly for the other products.
    """
    half = frequencies.half
    h, p = len(half), frequencies.size
    cos, sin = slice(1, h + 1), slice(h + 1, p)
    result = np.zeros((p, p))
    groups: dict[ModeWeight, dict[tuple[int, int], list[ModeTerm]]] = {}
    for term in terms:
        parity = sum(term.left) % 2, sum(term.right) % 2
        groups.setdefault(term.weight, {}).setdefault(parity, []).append(term)
    w = frequencies.waves
    for weight, by_parity in groups.items():
        c = truncated(modes[weight], frequencies.orders)
        flat, place = c.ravel(), _flat(half, c.shape)
        minus, plus = (flat[place[:, None] + sign * place + flat.size // 2] for sign in (-1, 1))
        products = {  # by (left, right): 0 for a cosine, 1 for a sine
            (0, 0): minus.real + plus.real,
            (1, 1): minus.real - plus.real,
            (0, 1): minus.imag - plus.imag,
            (1, 0): -minus.imag - plus.imag,
        }
        for (odd, other), members in by_parity.items():
            symbol = sum(t.factor * np.outer(_symbol(w, t.left), _symbol(w, t.right)) for t in members)
            for i, rows in enumerate((cos, sin)):
                for j, columns in enumerate((cos, sin)):
                    sign = (-1) ** (odd * (i == 0) + other * (j == 0))  # cos' = -sin
                    result[rows, columns] += sign * symbol * products[i ^ odd, j ^ other]
    result[:, 0] = functional_vector(frequencies, [t for t in terms if not any(t.right)], modes)
    result[0] = functional_vector(frequencies, [replace(t, left=t.right) for t in terms if not any(t.left)], modes)
    return result


def functional_vector(frequencies: Frequencies, terms: Iterable[ModeTerm], modes: Modes) -> Array:
    """Return the sum over rows of factor * weight * d_left φ_i, (p,), or (p, m) for m columns."""
    half, w = frequencies.half, frequencies.waves
    total: Any = 0.0
    for term in terms:
        c = truncated(modes[term.weight], frequencies.orders)
        first_axis = c.ndim - len(frequencies.orders)
        shape, flat = c.shape[first_axis:], c.reshape(*c.shape[:first_axis], -1)
        middle = flat.shape[-1] // 2
        found = np.sqrt(2) * flat[..., _flat(half, shape) + middle]
        parts, odd, symbol = (found.real, -found.imag), sum(term.left) % 2, _symbol(w, term.left)
        first = flat[..., middle : middle + 1].real * (not any(term.left))
        both = [(-1) ** (odd * (i == 0)) * symbol * parts[i ^ odd] for i in range(2)]
        total = total + term.factor * np.moveaxis(np.concatenate([first, *both], axis=-1), -1, 0)
    return np.asarray(total)


def _flat(half: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the positions of frequencies in the flattened array of modes."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return np.asarray(half @ np.array(strides))


def _symbol(w: Array, alpha: tuple[int, ...]) -> Array:
    """Return the factor of a wave under the derivative alpha, without an odd quarter turn."""
    return np.asarray((-1) ** (sum(alpha) // 2) * np.prod(w ** np.array(alpha), axis=1))
