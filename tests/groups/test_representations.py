"""Representations: their matrices, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from daskspectral.groups import (
    Cyclic,
    FullOrthogonal,
    Generated,
    MatrixRepresentation,
    Orthogonal,
    Permutations,
    PseudovectorRepresentation,
    Representation,
    Rotations,
    SignFlips,
    SpecialOrthogonal,
    Translations,
    TrivialRepresentation,
    VectorRepresentation,
)
from daskspectral.manifolds import PeriodicBox, Sphere
from tests.common import copied

Array = NDArray[Any]
CUBE = Generated([Permutations(3), SignFlips(3)])


def test_names() -> None:
    assert list(Representation.family()) == ["trivial", "vector", "determinant", "pseudovector"]
    assert Representation.of("vector") == VectorRepresentation()
    given = MatrixRepresentation(np.eye(2)[None])
    assert Representation.of(given) is given
    assert isinstance(Representation.of([np.eye(2)]), MatrixRepresentation)
    assert repr(given) == "MatrixRepresentation(1 matrices of 2 components)"
    np.testing.assert_array_equal(copied(given).given, given.given)
    assert copied(TrivialRepresentation()) == TrivialRepresentation()


def test_matrices_of_names() -> None:
    for i, g in enumerate(CUBE.generators):
        sign = np.linalg.det(g.matrix)
        for name, expected in {
            "trivial": np.eye(1),
            "vector": g.matrix,
            "determinant": [[sign]],
            "pseudovector": sign * g.matrix,
        }.items():
            np.testing.assert_allclose(Representation.of(name).matrices(CUBE)[i], expected, atol=1e-15)


SWAP = np.kron(np.eye(2)[::-1], np.eye(3))


@pytest.mark.parametrize("name", ["determinant", "pseudovector"])
@pytest.mark.parametrize(
    ("group", "message"),
    [
        (
            FullOrthogonal(3, copies=2),
            r"2 vectors of 3 coordinates alike, .* is 1 on all of them, -1 on one",
        ),
        (Generated([FullOrthogonal(3, copies=3)]), None),  # three vectors: three times -1
        (SpecialOrthogonal(3, copies=2), None),
        (Orthogonal([SWAP]), r"2 vectors .* generator 0 is -1 on all of them, 1 on one"),
        (
            Orthogonal([np.kron(np.eye(2), m) for m in (np.diag([-1, 1, 1]), np.eye(3)[[1, 2, 0]])]),
            "2 vectors of 3 coordinates alike",
        ),
        (Permutations(4), None),
        (SignFlips(4), None),
        (Cyclic(6), None),
    ],
    ids=repr,
)
def test_determinants_of_several_vectors_are_refused_where_they_are_not_those_of_one(
    name: str, group: Any, message: str | None
) -> None:
    if message is None:
        signs = [np.linalg.det(g.matrix) for g in group.generators]
        found = Representation.of("determinant").matrices(group)
        np.testing.assert_allclose(found.ravel(), signs, atol=1e-12)
        return
    with pytest.raises(ValueError, match=message):
        Representation.of(name).matrices(group)


@pytest.mark.parametrize("group", [Cyclic(1), Permutations(1)], ids=repr)
def test_groups_without_generators(group: Any) -> None:
    assert VectorRepresentation().matrices(group).shape == (0, 1, 1)
    assert PseudovectorRepresentation().matrices(group).shape == (0, 1, 1)
    MatrixRepresentation(np.zeros((0, 3, 3))).check(group, Sphere(2))


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        (np.eye(3), r"expected square matrices \(q, k, k\), .*, received shape \(3, 3\)"),
        (np.ones((1, 2, 3)), r"received shape \(1, 2, 3\)"),
        (np.zeros((1, 0, 0)), r"received shape \(1, 0, 0\)"),
        ([np.eye(2), np.eye(3)], r"expected matrices \(q, k, k\) of one size"),
        ([[["a"]]], r"expected matrices \(q, k, k\) of one size"),
        (np.full((1, 2, 2), np.nan), "expected finite matrices of a representation"),
        ([np.eye(2), 2 * np.eye(2)], r"\(number 1\) with rho rho\^T off the identity by 3; .*scipy.linalg.polar"),
    ],
)
def test_matrices_that_represent_nothing(matrices: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MatrixRepresentation(matrices)


@pytest.mark.parametrize("output", ["tensor", 3, None, {"a": 1}])
def test_outputs_that_do_not_exist(output: Any) -> None:
    with pytest.raises(ValueError, match=r"output must be 'trivial' or 'vector' or .* matrices \(q, k, k\)"):
        Representation.of(output)


HOLD = {
    "cube": (CUBE, Sphere(3), [g.matrix for g in CUBE.generators]),
    "sign of permutations": (Permutations(8), Sphere(8), [[[-1.0]], [[-1.0]]]),
    "permutations of few": (Permutations(4), Sphere(4), [[[-1.0]], [[-1.0]]]),
    "irrational turn": (
        Generated([Rotations(7, 3), Rotations(5, 3, (1, 2))]),
        Sphere(3),
        [Rotations(7, 3).generators[0].matrix, Rotations(5, 3, (1, 2)).generators[0].matrix],
    ),
    "translation by a quarter": (Translations([[0.25]]), PeriodicBox([0], [1]), [Rotations(4).generators[0].matrix]),
    "translation by an irrational": (Translations([[0.1234567]]), PeriodicBox([0], [1]), [[[-1.0]]]),
}
FAIL = {
    "order of matrices": (CUBE, Sphere(3), [g.matrix for g in CUBE.generators[::-1]], "one of its 48 elements"),
    "order of a cycle": (Cyclic(3), Sphere(3), [[[-1.0]]], "one of its 3 elements"),
    "large": (
        Permutations(8),
        Sphere(8),
        [[[-1.0]], [[1.0]]],
        r"power 7 of the product of generator 1 and generator 0",
    ),
    "large, a generator": (
        Permutations(8),
        Sphere(8),
        [Rotations(3).generators[0].matrix] * 2,
        "power 2 of generator 0",
    ),
    "translation by a third": (
        Translations([[1 / 3]]),
        PeriodicBox([0], [1]),
        [Rotations(4).generators[0].matrix],
        "one of its 3 elements",
    ),
    "commutator": (
        Translations([[0.1234567, 0], [0, 0.1234567]]),
        PeriodicBox([0, 0], [1, 1]),
        [np.diag([1.0, -1.0]), Rotations(3).generators[0].matrix],
        "power 1 of the commutator of generator 1 and generator 0 moves nothing",
    ),
    "too few": (CUBE, Sphere(3), [np.eye(3)] * 4, "a matrix for each of the 5 generators .* received 4"),
}


@pytest.mark.parametrize("name", HOLD)
def test_homomorphisms(name: str) -> None:
    group, manifold, matrices = HOLD[name]
    MatrixRepresentation(matrices).check(group, manifold)


@pytest.mark.parametrize("name", FAIL)
def test_matrices_that_are_no_homomorphism(name: str) -> None:
    group, manifold, matrices, message = FAIL[name]
    with pytest.raises(ValueError, match=message):
        MatrixRepresentation(matrices).check(group, manifold)
