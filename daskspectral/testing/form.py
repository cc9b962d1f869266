"""Checks of a form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from daskspectral.basis import Basis, LandmarkBasis
from daskspectral.forms import Atom, Field, Form
from daskspectral.kernels import Gaussian
from daskspectral.kernels.base import MultiIndex, unit_index
from daskspectral.moments import Measure
from daskspectral.testing.basis import derivative, feature
from daskspectral.testing.compare import EXACT, Array, check_copies, compare, require, two_axes
from daskspectral.validation import check_type

ROWS = 9
CHUNKINGS = 5


def check_form(form: Form, left: Basis | None = None, right: Basis | None = None, *, random_state: int = 0) -> None:
    """Check a bilinear form on two bases, with random fields.

    The matrix equals the sum over rows of values and partial derivatives of f_i and g_j, for any chunks; a weight of 2
    equals a repeated row, and it is symmetric if and only if `form.symmetric`.

    Parameters
    ----------
    form : Form
        The form.
    left, right : Basis, optional
        Bases of f and g, by default Gaussian functions.
    random_state : int
        Seed of the random points.

    Raises
    ------
    AssertionError
        If a check fails.
    SmoothnessError
        If a basis lacks derivatives that the form requires.
    TypeError
        If the object is not a form.

    See Also
    --------
    check_operator : Check of all forms of an operator.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> from daskspectral.forms import form, grad, inner
    >>> @form
    ... def schroedinger(f, g, x):
    ...     return inner(grad(f), grad(g)) + inner(f, g, weight=x.potential)
    >>> dsp.testing.check_form(schroedinger)
    """
    check_type("form", form, Form, "a function H(f, g, x) decorated with @form")
    rng = np.random.default_rng(random_state)
    d = left.dimension if left is not None else _dimension(form)
    left = left or LandmarkBasis(Gaussian(1.0), rng.standard_normal((4, d)))
    right = right or LandmarkBasis(Gaussian(1.3), rng.standard_normal((3, d)))
    what = f"the form {form.name}"
    for basis, order in zip((left, right), form.orders, strict=True):
        basis.check_order(order, what)
    batch = draw_fields(form, left.dimension, right.dimension, rng)
    found = measure(form, left, right, batch)
    compare(f"{what} [f, g], against a sum over rows", found, _sum_over_rows(form, left, right, batch), EXACT)
    _check_additive(form, left, right, batch, rng)
    if left.dimension == right.dimension:
        square = measure(form, left, left, batch)
        expected = _sum_over_rows(form, left, left, batch)
        compare(f"{what} [f, g] of one basis, against a sum over rows", square, expected, EXACT)
        _check_symmetry(form, square)
    check_copies(form, Form)


def _check_additive(
    form: Form, left: Basis, right: Basis, batch: Mapping[str, Array], rng: np.random.Generator
) -> None:
    n, whole = len(batch["x"]), measure(form, left, right, batch)
    for _ in range(CHUNKINGS):
        cuts = [0, *sorted(rng.integers(0, n, 2).tolist()), n]
        chunks = [_rows(batch, np.arange(a, b)) for a, b in pairwise(cuts)]
        rows = int(rng.integers(1, n))
        found = np.sum([measure(form, left, right, c, rows) for c in chunks], axis=0)
        name = f"the form {form.name} is not additive: its sum over rows cut at {cuts[1:-1]}, in blocks of {rows} rows"
        compare(name, found, whole, EXACT)
    counts = 1 + np.arange(n) % 2
    unweighted = {name: values for name, values in batch.items() if name != "weight"}
    twice = measure(form, left, right, _rows(unweighted, np.repeat(np.arange(n), counts)))
    found = measure(form, left, right, {**batch, "weight": counts.astype(float)})
    compare(f"the form {form.name}: a weight of 2, against the row twice", found, twice, EXACT)


def _check_symmetry(form: Form, matrix: Array) -> None:
    off = np.abs(matrix - matrix.T).max()
    symmetric = bool(off <= EXACT * np.abs(matrix).max())
    claim = f"the form {form.name} is declared {'' if form.symmetric else 'not '}symmetric"
    known = form.symmetric or len(matrix) > 1
    require(symmetric == form.symmetric or not known, f"{claim}, but |H(f, g) - H(g, f)| is up to {off:.3g}")


# the matrix of a form, measured and as a plain sum


def measure(form: Form, left: Basis, right: Basis, batch: Mapping[str, Array], rows: int | None = None) -> Array:
    """Return the matrix of a form over a batch, in blocks of `rows`."""
    forms = {"form": form}
    return left.matrices(forms, {}, Measure(left, right, forms, rows=rows)([batch]))["form"]


def _rows(batch: Mapping[str, Array], rows: Any) -> dict[str, Array]:
    return {name: values[rows] for name, values in batch.items()}


def _sum_over_rows(form: Form, left: Basis, right: Basis, batch: Mapping[str, Array]) -> Array:
    """Return sum_k w_k sum_a F_iak G_jak for every term, by einsum."""
    total = np.zeros((left.size, right.size))
    for factor, product in form.expression.terms:
        weight = factor * batch["weight"]
        if product.weight is not None:
            weight = weight * product.weight.of(batch)
        fs, gs = _coordinates(left, product.left, batch), _coordinates(right, product.right, batch)
        for f, g in zip(fs, gs, strict=True):
            total += np.einsum("ik,jk,k->ij", f, g, weight)
    return total


def _coordinates(basis: Basis, atom: Atom, batch: Mapping[str, Array]) -> list[Array]:
    """Return an atom as arrays (p, n), one for each coordinate."""

    def partial(alpha: MultiIndex) -> Array:
        return feature(basis, batch, derivative(alpha, atom.view))

    d = basis.dimension
    if atom.kind == "sum":
        parts = []
        for t in atom.terms:
            weight = 1.0 if t.weight is None else t.weight.of(batch)
            parts.append(t.factor * weight * _coordinates(basis, t.atom, batch)[0])
        return [np.sum(parts, axis=0)]
    if atom.kind in ("value", "partial"):
        return [feature(basis, batch, atom)]
    if atom.kind == "gradient":
        return [partial(unit_index(a, d)) for a in range(d)]
    field = np.ones((len(batch["x"]), 1, 1)) * np.eye(d) if atom.direction is None else atom.direction.of(batch)
    if atom.kind == "second":
        return [np.sum([field[:, a, b] * partial(two_axes(a, b, d)) for a in range(d) for b in range(d)], axis=0)]
    directions = field[:, None] if atom.kind == "along" else field
    partials = np.array([partial(unit_index(a, d)) for a in range(d)])
    return list(np.einsum("kma,aik->mik", directions, partials))


# fields


def _dimension(form: Form) -> int:
    atoms = [leaf for p in form.products for atom in (p.left, p.right) for leaf in atom.leaves]
    return next((len(atom.alpha) for atom in atoms if atom.kind == "partial"), 3)


def draw_fields(form: Form, d: int, right: int, rng: np.random.Generator) -> dict[str, Array]:
    """Return random fields of a form of functions of d and d' variables, with weights of rows."""
    shapes: dict[str, tuple[int, ...]] = {"x": (d,)}
    for name, shape in _reads(form, d, right):
        before = shapes.setdefault(name, shape)
        if len(before) != len(shape):
            raise ValueError(
                f"the form {form.name} needs rows of shapes {before} and {shape} of the field {name}; use two fields"
            )
        shapes[name] = tuple(max(sizes) for sizes in zip(before, shape, strict=True))
    batch: dict[str, Array] = {"weight": rng.random(ROWS) + 0.5}
    batch |= {name: rng.standard_normal((ROWS, *shape)) for name, shape in shapes.items()}
    for values in batch.values():
        values.flags.writeable = False
    return batch


def _reads(form: Form, d: int, right: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Return the fields of a form with the smallest shape of a row."""
    for p in form.products:
        if p.weight is not None:
            yield _row(p.weight, ())
        for atom, dimension in ((p.left, d), (p.right, right)):
            for t in atom.terms:
                yield from () if t.weight is None else [_row(t.weight, ())]
            for leaf in [t.atom for t in atom.terms] or [atom]:
                yield leaf.view, (dimension,)
                if leaf.direction is not None:
                    lead = {"second": (dimension,), "each": (2,)}.get(leaf.kind, ())
                    yield _row(leaf.direction, (*lead, dimension))


def _row(field: Field, tail: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    return field.name, (*(max(i + 1, -i) for i in field.path), *tail)
