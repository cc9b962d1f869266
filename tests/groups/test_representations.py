"""Representations: their matrices, and what is refused."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from daskspectral.groups import (
    Cyclic,
    FullOrthogonal,
    Generated,
    Group,
    LieGroup,
    MatrixRepresentation,
    Orthogonal,
    Permutations,
    Representation,
    Rotations,
    SignFlips,
    SpecialOrthogonal,
    Translations,
    TrivialRepresentation,
)
from daskspectral.manifolds import Manifold, PeriodicBox, Sphere
from tests.common import copied

Array = NDArray[Any]
CUBE = Generated([Permutations(3), SignFlips(3)])
NAMES = ["trivial", "vector", "determinant", "pseudovector"]
TURN = np.array([[0.0, -1], [1, 0]])
ACROSS = np.zeros((4, 4))
ACROSS[3, 0], ACROSS[0, 3] = 1, -1


def turn(k: int) -> Array:
    return Rotations(k).generators[0].matrix


def test_names() -> None:
    assert list(Representation.family()) == NAMES
    given = MatrixRepresentation(np.eye(2)[None])
    assert Representation.of(given) is given
    assert isinstance(Representation.of([np.eye(2)]), MatrixRepresentation)
    assert repr(given) == "MatrixRepresentation(1 matrices of 2 components)"
    np.testing.assert_array_equal(copied(given).given, given.given)
    assert copied(TrivialRepresentation()) == TrivialRepresentation()
    assert [Representation.of(name).components(CUBE) for name in NAMES] == [1, 3, 1, 3]


def test_matrices_of_names() -> None:
    """As they are, and differentiated along the algebra."""
    group = Generated([CUBE, SpecialOrthogonal(3)])
    turns = np.array([g.matrix for g in group.generators])
    signs = np.linalg.det(turns)[:, None, None]
    fields, still = np.array([x.matrix for x in group.algebra]), np.zeros((2, 1, 1))
    wanted = [(signs**2, still), (turns, fields), (signs, still), (signs * turns, fields)]
    for name, (matrices, derived) in zip(NAMES, wanted, strict=True):
        found = Representation.of(name)
        np.testing.assert_allclose(found.matrices(group), matrices, atol=1e-15)
        np.testing.assert_array_equal(found.derived(group), derived)
        assert found.matrices(Cyclic(1)).shape == (0, 1, 1)
        assert found.derived(CUBE).shape == (0, *derived.shape[1:])
    assert not np.signbit(Representation.of("pseudovector").matrices(Permutations(2))[0, 0, 0])  # 0, not -0


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (FullOrthogonal(3, copies=2), r"2 vectors of 3 coordinates alike, .* is 1 on all of them, -1 on one"),
        (Orthogonal([np.kron(np.eye(2)[::-1], np.eye(3))]), r"2 vectors .* generator 0 is -1 on all of them, 1 on one"),
        (FullOrthogonal(3, copies=3), None),  # three times -1
        (SpecialOrthogonal(3, copies=2), None),
        (LieGroup([ACROSS], [np.diag([-1.0, 1, -1, 1])]), None),  # the field mixes the vectors
        (Permutations(4), None),
    ],
    ids=repr,
)
def test_determinants_of_several_vectors_are_those_of_one(group: Group, message: str | None) -> None:
    for name in ("determinant", "pseudovector"):
        if message is None:
            signs = [np.linalg.det(g.matrix) for g in group.generators]
            found = Representation.of("determinant").matrices(group)
            np.testing.assert_allclose(found.ravel(), signs, atol=1e-12)
        else:
            with pytest.raises(ValueError, match=message):
                Representation.of(name).matrices(group)


@pytest.mark.parametrize(
    ("matrices", "algebra", "message"),
    [
        (np.eye(3), None, r"expected square matrices \(q, k, k\), .*, received shape \(3, 3\)"),
        ([np.eye(2), np.eye(3)], None, r"expected matrices \(q, k, k\) of one size"),
        (np.full((1, 2, 2), np.nan), None, "expected finite matrices of a representation"),
        ([np.eye(2), 2 * np.eye(2)], None, r"\(number 1\) with rho rho\^T off the identity by 3; .*scipy.linalg.polar"),
        ([[[1 + 7e-12]]], None, r"off the identity by 1.4e-11"),
        ([np.eye(2)], [np.zeros((3, 3))], "of 2 components for the algebra too, received 3"),
        ([np.eye(2)], [TURN + 1e-9], "antisymmetric"),
    ],
)
def test_matrices_that_represent_nothing(matrices: Any, algebra: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MatrixRepresentation(matrices, algebra)


def test_outputs_that_do_not_exist() -> None:
    with pytest.raises(ValueError, match=r"output must be 'trivial' or 'vector' or .* matrices \(q, k, k\)"):
        Representation.of("tensor")


BOX = PeriodicBox([0, 0], [1, 1])
SHIFTS = Translations([[0.1234567, 0], [0, 0.1234567]])
MIRRORED = LieGroup([TURN], [np.diag([1.0, -1])])
HOMOMORPHISMS: dict[str, tuple[Group, Manifold, Any, Any, str | None]] = {
    "cube": (CUBE, Sphere(3), [g.matrix for g in CUBE.generators], None, None),
    "cube, in another order": (CUBE, Sphere(3), [g.matrix for g in CUBE.generators[::-1]], None, "of its 48 elements"),
    "signs of permutations": (Permutations(8), Sphere(8), [[[-1.0]], [[-1.0]]], None, None),
    "signs that are none": (Permutations(8), Sphere(8), [[[-1.0]], [[1.0]]], None, "power 7 of the product of .* 1"),
    "power of a generator": (Permutations(8), Sphere(8), [turn(3)] * 2, None, "power 2 of generator 0"),
    "quarters": (Translations([[0.25]]), PeriodicBox([0], [1]), [turn(4)], None, None),
    "thirds": (Translations([[1 / 3]]), PeriodicBox([0], [1]), [turn(4)], None, "one of its 3 elements"),
    "commutator": (SHIFTS, BOX, [np.diag([1.0, -1]), turn(3)], None, "power 1 of the commutator of generator 1"),
    "turns": (MIRRORED, Sphere(2), [np.diag([1.0, -1])], [3 * TURN], None),
    "turns, unmirrored": (MIRRORED, Sphere(2), [np.eye(2)], [TURN], "product of the flow of element 0 .* at 1 and"),
    "half a turn": (MIRRORED, Sphere(2), [np.diag([1.0, -1])], [TURN / 2], "power 2 of the flow of .* at pi"),
    "too many": (MIRRORED, Sphere(2), [np.eye(2)], [TURN, TURN], "each of the 1 elements of the algebra .* received 2"),
}


@pytest.mark.parametrize("name", HOMOMORPHISMS)
def test_homomorphisms(name: str) -> None:
    group, manifold, matrices, algebra, message = HOMOMORPHISMS[name]
    found = MatrixRepresentation(matrices, algebra)
    if message is None:
        found.check(group, manifold)
    else:
        with pytest.raises(ValueError, match=message):
            found.check(group, manifold)
