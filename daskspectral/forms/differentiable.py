"""Forms in JAX, for functions that are differentiated with respect to their parameters.

A function maps points (c, d) to values (c, k), each row separately.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from daskspectral.forms.expressions import Atom, Bilinear, LinearFunctional

Values = Any
"""Array or tracer of JAX."""
Function = Callable[[Values], Values]
Fields = Mapping[str, Values]
Weights = Values | None


def jax() -> Any:
    """Return the package jax; raise ImportError with the command to install it."""
    try:
        import jax as package
    except ImportError as error:
        raise ImportError(
            "training of networks needs jax and optax: pip install jax optax. Trained networks are evaluated, "
            "saved and loaded without them."
        ) from error
    return package


def feature(function: Function, atom: Atom, fields: Fields) -> Values:
    """Return an atom of k functions at c rows, (c, k), or (c, m, k) for a vector with m coordinates."""
    numpy, points = jax().numpy, fields[atom.view]
    if atom.kind == "sum":
        terms = [(t, t.factor * feature(function, t.atom, fields)) for t in atom.terms]
        return sum(v if t.weight is None else v * t.weight.of(fields)[:, None] for t, v in terms)
    if atom.kind == "value":
        return function(points)
    if atom.kind == "gradient":
        return _along_all(function, points, numpy.eye(points.shape[1], dtype=points.dtype)[:, None, :])
    if atom.order > 1:
        raise ValueError(f"networks can be trained with first derivatives at most, got a form of order {atom.order}")
    if atom.kind == "partial":
        unit = numpy.array([atom.alpha], dtype=points.dtype)
        return _along(function, points, unit) if atom.order else function(points)
    assert atom.direction is not None
    direction = atom.direction.of(fields)
    if atom.kind == "each":
        return _along_all(function, points, numpy.moveaxis(direction, 1, 0))
    return _along(function, points, direction)


def form_matrices(
    expression: Bilinear, left: Function, right: Function, fields: Fields, weights: Weights = None, parts: int = 1
) -> Values:
    """Return the means of a form between k left and q right functions over parts of the rows, (parts, k, q).

    Row i belongs to part i modulo `parts`. `weights` (c,) have mean 1.
    """
    return _form(expression, left, right, fields, weights, parts, "...chk,...chq->hkq")


def form_diagonal(expression: Bilinear, function: Function, fields: Fields, weights: Weights = None) -> Values:
    """Return the mean over the rows of H(f_j, f_j, x) for each of k functions, (k,)."""
    return _form(expression, function, function, fields, weights, 1, "...chk,...chk->hk")[0]


def functional_vectors(
    expression: LinearFunctional, function: Function, fields: Fields, weights: Weights = None, parts: int = 1
) -> Values:
    """Return the means of a functional of k functions over parts of the rows, (parts, k)."""
    total: Values = 0.0
    for factor, pairing in expression.terms:
        values = feature(function, pairing.atom, fields)
        for weight in (pairing.target, pairing.weight):
            values = values if weight is None else values * weight.of(fields)[:, None]
        values = values if weights is None else values * weights[:, None]
        total = total + factor * values.reshape(-1, parts, values.shape[1]).mean(axis=0)
    return total


def _form(
    expression: Bilinear,
    left: Function,
    right: Function,
    fields: Fields,
    weights: Weights,
    parts: int,
    indices: str,
) -> Values:
    """Return the means over parts of the rows, contracted by `indices`."""
    total: Values = 0.0
    for factor, product in expression.terms:
        a = feature(left, product.left, fields)
        b = a if left is right and product.left == product.right else feature(right, product.right, fields)
        if product.left.vector:
            a, b = (jax().numpy.moveaxis(values, 1, 0) for values in (a, b))
        for scale in (None if product.weight is None else product.weight.of(fields), weights):
            a = a if scale is None else a * scale[:, None]
        a, b = (v.reshape(*v.shape[:-2], v.shape[-2] // parts, parts, v.shape[-1]) for v in (a, b))
        total = total + (factor / a.shape[-3]) * jax().numpy.einsum(indices, a, b)
    return total


def _along(function: Function, points: Values, direction: Values) -> Values:
    """Return the derivative (c, k) along directions (c, d) or (1, d)."""
    return jax().jvp(function, (points,), (jax().numpy.broadcast_to(direction, points.shape),))[1]


def _along_all(function: Function, points: Values, directions: Values) -> Values:
    """Return the derivatives (c, m, k) along directions (m, c, d) or (m, 1, d)."""
    package = jax()
    slope = package.linearize(function, points)[1]
    shape = (len(directions), *points.shape)
    found = package.vmap(slope)(package.numpy.broadcast_to(directions, shape))
    return package.numpy.moveaxis(found, 0, 1)
