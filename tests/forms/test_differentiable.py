"""Forms in JAX: every atom, weight and part of the rows against loops over monomials, whose derivatives are known."""

from collections.abc import Callable
from math import perm
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from daskspectral.forms import Atom, Form, along, along_each, at, form, functional, grad, inner, partial
from daskspectral.forms.differentiable import form_diagonal, form_matrices, functional_vectors, jax

Array = NDArray[np.float64]
RNG = np.random.default_rng(0)
LEFT, RIGHT = np.array([[3, 1], [1, 2], [2, 0]]), np.array([[1, 3], [2, 2]])  # the powers of both coordinates
ROWS, PARTS = 6, 3
SHAPES: dict[str, tuple[int, ...]] = {"x": (2,), "y": (2,), "w": (), "v": (2, 2), "t": (4, 2)}
FIELDS = {name: RNG.uniform(0.5, 2, (ROWS, *shape)) for name, shape in SHAPES.items()}
WEIGHTS = RNG.uniform(0.5, 2, ROWS)


def monomials(powers: Array) -> Callable[[Any], Any]:
    return lambda x: (x[:, None, :] ** powers).prod(axis=2)


def derivative(powers: Array, x: Array, alpha: tuple[int, ...]) -> Array:
    """The partial derivative of each monomial at one point."""
    factors = [
        [perm(p, a) * z ** (p - a) if p >= a else 0.0 for p, a, z in zip(own, alpha, x, strict=True)] for own in powers
    ]
    return np.prod(factors, axis=1)


def applied(atom: Atom, powers: Array, row: int) -> Array:
    """The coordinates (m, k) of an atom of k monomials at one row; a scalar has one."""
    data = {name: values[row] for name, values in FIELDS.items()}
    x, d = data[atom.view], np.eye(2, dtype=int)
    of = data[atom.direction.name][atom.direction.path] if atom.direction else np.eye(2)
    slopes = np.array([derivative(powers, x, tuple(e)) for e in d])
    match atom.kind:
        case "value" | "partial":
            return derivative(powers, x, atom.alpha or (0, 0))[None]
        case "sum":
            scales = [t.factor * (data[t.weight.name] if t.weight else 1.0) for t in atom.terms]
            return sum(scale * applied(t.atom, powers, row) for scale, t in zip(scales, atom.terms, strict=True))
    return np.atleast_2d(of) @ slopes  # along one direction, along each, along the axes


def expected(traced: Form, left: Array, right: Array) -> Array:
    """The mean over each part of the rows, (parts, k, q)."""
    found = np.zeros((PARTS, len(left), len(right)))
    for row in range(ROWS):
        for factor, p in traced.expression.terms:
            scale = factor * WEIGHTS[row] * (FIELDS[p.weight.name][row] if p.weight else 1.0) * PARTS / ROWS
            found[row % PARTS] += scale * applied(p.left, left, row).T @ applied(p.right, right, row)
    return found


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "function",
    [
        lambda f, g, x: inner(f, 2 * g) - inner(at(f, x.y), g, weight=x.w),
        lambda f, g, x: inner(grad(f), at(grad(g), x.y), weight=x.w),
        lambda f, g, x: inner(partial(f, 0, 1) + partial(f, 0, 0), along(g, x.v[1])),
        lambda f, g, x: inner(along_each(f, x.t), along_each(g, x.t)),
        lambda f, g, x: inner(f - 3 * along(f, x.v[0]) * x.w, 0.5 * g + partial(g, 1, 0)),
    ],
)
def test_forms_are_means_over_the_rows(function: Callable[..., Any]) -> None:
    traced = form(function)
    left, right = monomials(LEFT), monomials(RIGHT)
    with jax().enable_x64(True):
        found = form_matrices(traced.expression, left, right, FIELDS, WEIGHTS, PARTS)
        whole = form_matrices(traced.expression, left, right, FIELDS, WEIGHTS)[0]
        own = form_diagonal(traced.expression, left, FIELDS, WEIGHTS)
        plain = form_matrices(traced.expression, left, right, FIELDS)[0]
        even = form_matrices(traced.expression, left, right, FIELDS, np.ones(ROWS))[0]
    wanted = expected(traced, LEFT, RIGHT)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)
    np.testing.assert_allclose(whole, wanted.mean(axis=0), rtol=1e-11)
    np.testing.assert_allclose(own, np.diag(expected(traced, LEFT, LEFT).mean(axis=0)), rtol=1e-11)
    np.testing.assert_allclose(plain, even, rtol=1e-12)


def test_functionals_are_means_over_the_rows() -> None:
    traced = functional(lambda f, x: inner(f, x.w) - 2 * inner(partial(f, 1, 0), 1.0, weight=x.w))
    with jax().enable_x64(True):
        found = functional_vectors(traced.expression, monomials(LEFT), FIELDS, WEIGHTS, PARTS)
        plain = functional_vectors(traced.expression, monomials(LEFT), FIELDS)
    w, x = FIELDS["w"], FIELDS["x"]
    rows = [w[i] * (derivative(LEFT, x[i], (0, 0)) - 2 * derivative(LEFT, x[i], (1, 0))) for i in range(ROWS)]
    parts = [np.mean([WEIGHTS[i] * rows[i] for i in range(part, ROWS, PARTS)], axis=0) for part in range(PARTS)]
    np.testing.assert_allclose(found, parts, rtol=1e-11)
    np.testing.assert_allclose(plain, [np.mean(rows, axis=0)], rtol=1e-11)
