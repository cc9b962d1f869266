"""Forms in JAX: the same expressions as bases contract, for functions that can be differentiated by their parameters.

A function here takes points (c, d) to values (c, k), each row by itself. Its derivatives by the points follow from the
function; what is made of them can be differentiated again by whatever the function depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from daskspectral.forms.expressions import Atom, Bilinear, LinearFunctional

Values = Any
"""An array of JAX, or what it traces one by."""
Function = Callable[[Values], Values]
Fields = Mapping[str, Values]
Weights = Values | None


def jax() -> Any:
    """The package. Raises ImportError with the way to install it."""
    try:
        import jax as package
    except ImportError as error:
        raise ImportError(
            'networks are trained with jax and optax: pip install "daskspectral[neural]"; a trained NeuralBasis is '
            "evaluated, saved and loaded without them"
        ) from error
    return package


def feature(function: Function, atom: Atom, fields: Fields) -> Values:
    """One atom of k functions at c rows: (c, k), or (c, m, k) of a vector with m coordinates."""
    numpy, points = jax().numpy, fields[atom.view]
    if atom.kind == "sum":
        terms = [(t, t.factor * feature(function, t.atom, fields)) for t in atom.terms]
        return sum(v if t.weight is None else v * t.weight.of(fields)[:, None] for t, v in terms)
    if atom.kind == "value":
        return function(points)
    if atom.kind == "gradient":
        return _along_all(function, points, numpy.eye(points.shape[1], dtype=points.dtype)[:, None, :])
    if atom.order > 1:
        raise ValueError(f"networks are trained by first derivatives at most, and this form takes order {atom.order}")
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
    """The means of a form between k left and q right functions over parts of the rows, (parts, k, q).

    Row i is in part i modulo their number; every function is evaluated once, at all rows. `weights` (c,) have the mean
    1 over all of them.
    """
    return _form(expression, left, right, fields, weights, parts, "...chk,...chq->hkq")


def form_diagonal(expression: Bilinear, function: Function, fields: Fields, weights: Weights = None) -> Values:
    """The mean over the rows of a form of each of k functions with itself, (k,)."""
    return _form(expression, function, function, fields, weights, 1, "...chk,...chk->hk")[0]


def functional_vectors(
    expression: LinearFunctional, function: Function, fields: Fields, weights: Weights = None, parts: int = 1
) -> Values:
    """The means of a functional without targets of k functions over parts of the rows, (parts, k)."""
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
    """The means of a form over parts of the rows; `indices` contract (..., c, part, functions) of both sides."""
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
    """The derivative along a direction for each row (c, d), or one for all (1, d): (c, k)."""
    return jax().jvp(function, (points,), (jax().numpy.broadcast_to(direction, points.shape),))[1]


def _along_all(function: Function, points: Values, directions: Values) -> Values:
    """The derivatives along m directions (m, c, d), or (m, 1, d): (c, m, k)."""
    package = jax()
    slope = package.linearize(function, points)[1]
    shape = (len(directions), *points.shape)
    found = package.vmap(slope)(package.numpy.broadcast_to(directions, shape))
    return package.numpy.moveaxis(found, 0, 1)
