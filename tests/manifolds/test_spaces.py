"""Eigenfunctions of manifolds: the addition theorem, actions of isometries and Killing fields, saved points."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.manifolds import Interval, Manifold
from daskspectral.manifolds.eigenspace import dense
from daskspectral.registry import decode, encode
from tests.manifolds.common import CASES

Array = NDArray[Any]
cases = pytest.mark.parametrize("name", CASES)


def projectors(manifold: Manifold, x: Array) -> Array:
    """Onto the tangent spaces at points, (c, d, d), from the normals."""
    normals = manifold.normals(x)
    return np.asarray(np.eye(manifold.ambient) - np.einsum("acd,ace->cde", normals, normals))


@cases
def test_squares_of_values_and_slopes_sum_to_the_multiplicity_and_the_eigenvalue(name: str) -> None:
    """The addition theorem of homogeneous spaces, and its Laplacian: exact at every point."""
    manifold, _, _, levels = CASES[name]
    x = manifold.sample(4, np.random.default_rng(0))
    onto = projectors(manifold, x)
    for level in range(min(levels, 6) if not isinstance(manifold, Interval) else 0):
        space = manifold.eigenfunctions(level)
        slopes = sum(space.derivatives(x, onto[:, axis]) ** 2 for axis in range(manifold.ambient))
        np.testing.assert_allclose(np.sum(space.values(x) ** 2, axis=1), space.size, rtol=1e-9)
        np.testing.assert_allclose(slopes.sum(axis=1), space.size * space.eigenvalue, rtol=1e-9)


@cases
@settings(max_examples=5)
@given(seed=st.integers(0, 10_000))
def test_isometries_act_by_orthogonal_matrices(name: str, seed: int) -> None:
    manifold, draw, _, levels = CASES[name]
    rng = np.random.default_rng(seed)
    g, h, x = draw(rng), draw(rng), manifold.sample(9, rng)
    manifold.check_isometry(g)
    space = manifold.eigenfunctions(int(rng.integers(levels)))
    dg, dh = dense(space.action(g)), dense(space.action(h))
    np.testing.assert_allclose(dg @ dg.T, np.eye(space.size), atol=1e-11)
    np.testing.assert_allclose(dense(space.action(g @ h)), dg @ dh, atol=1e-11)
    np.testing.assert_allclose(dense(space.action(g.inverse)), dg.T, atol=1e-11)
    np.testing.assert_allclose(space.values(g(x)), space.values(x) @ dg.T, atol=1e-11 * np.sqrt(space.size))


@cases
@settings(max_examples=4)
@given(seed=st.integers(0, 10_000))
def test_fields_act_by_antisymmetric_matrices_that_keep_brackets(name: str, seed: int) -> None:
    manifold, _, draw, levels = CASES[name]
    if draw is None:
        return
    rng = np.random.default_rng(seed)
    field, other, x = draw(rng), draw(rng), manifold.sample(5, rng)
    manifold.check_killing(field)
    space = manifold.eigenfunctions(int(rng.integers(levels)))
    dx, dy = (dense(space.derived_action(each)) for each in (field, other))
    np.testing.assert_allclose(dx, -dx.T, atol=1e-11)
    along = x @ field.matrix.T + field.shift
    np.testing.assert_allclose(space.derivatives(x, along), space.values(x) @ dx.T, atol=1e-9)
    turns = np.linalg.eigvalsh(1j * dx)
    np.testing.assert_allclose(turns, np.rint(turns), atol=1e-10)
    a, b = field.matrix, other.matrix
    if (a @ b - b @ a).any():
        bracket = dense(space.derived_action(type(field)(a @ b - b @ a)))
        np.testing.assert_allclose(dx @ dy - dy @ dx, bracket, atol=1e-9)


@cases
def test_saved_points_make_the_same_functions(name: str) -> None:
    manifold, _, _, levels = CASES[name]
    again = decode(encode(manifold), Manifold)
    x = manifold.sample(4, np.random.default_rng(0))
    for level in range(min(levels, 5)):
        space = manifold.eigenfunctions(level)
        found = again.eigenfunctions(level, space.points())
        np.testing.assert_array_equal(found.values(x), space.values(x))
        if space.points():  # other points: other functions of the same space
            moved = tuple(p[::-1].copy() for p in space.points())
            other = manifold.eigenfunctions(level, moved).values(x)
            np.testing.assert_allclose(other @ other.T, found.values(x) @ found.values(x).T, atol=1e-10)
