"""Representations: their matrices, and what is refused."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from daskspectral.groups import Cyclic, Generated, MatrixRepresentation, Permutations, SignFlips, SpecialOrthogonal
from daskspectral.groups.representations import Representation
from tests.common import copied

Array = NDArray[Any]
GROUP = Generated([Permutations(3), SignFlips(3), SpecialOrthogonal(3)])


def test_matrices_of_vectors_and_copies() -> None:
    vector = Representation.of("vector")
    np.testing.assert_array_equal(vector.matrices(GROUP), [g.matrix for g in GROUP.generators])
    np.testing.assert_array_equal(vector.derived(GROUP), [x.matrix for x in GROUP.algebra])
    assert vector.matrices(Cyclic(1)).shape == (0, 1, 1)
    given = MatrixRepresentation(np.eye(2)[None])
    assert Representation.of(given) is given
    np.testing.assert_array_equal(Representation.of([np.eye(2)]).matrices(Cyclic(4)), [np.eye(2)])
    np.testing.assert_array_equal(copied(given).given, given.given)
    assert copied(vector) == vector
    assert (vector.components(GROUP), given.components(Cyclic(4))) == (3, 2)
    with pytest.raises(ValueError, match="5 generators"):
        given.matrices(GROUP)
    turn = [[[0.0, -1], [1, 0]]]
    fields = MatrixRepresentation(np.eye(2)[None], turn).derived(SpecialOrthogonal(2))
    np.testing.assert_array_equal(fields, turn)


@pytest.mark.parametrize(
    ("matrices", "algebra"),
    [
        (np.eye(3), None),
        ([np.eye(2), np.eye(3)], None),
        (np.full((1, 2, 2), np.nan), None),
        ([np.eye(2), 2 * np.eye(2)], None),
        ([[[1 + 7e-12]]], None),
        ([np.eye(2)], [np.zeros((3, 3))]),
        ([np.eye(2)], [[[0.0, -1 + 1e-9], [1, 0]]]),
    ],
)
def test_matrices_that_represent_nothing(matrices: Any, algebra: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        MatrixRepresentation(matrices, algebra)
    with pytest.raises(ValueError, match="'tensor'"):
        Representation.of("tensor")
