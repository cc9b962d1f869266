"""Groups nobody chose: random subgroups of the cube's and the hexagonal prism's, in random orientations."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from daskspectral.groups import Orthogonal
from daskspectral.manifolds import Sphere, invariant_coefficients

Array = NDArray[Any]


def cubic() -> list[Array]:
    """The 48 signed permutation matrices."""
    axes = [np.eye(3)[list(p)] for p in itertools.permutations(range(3))]
    return [axis * signs for axis in axes for signs in itertools.product([1.0, -1.0], repeat=3)]


def hexagonal() -> list[Array]:
    """The 24 symmetries of a hexagonal prism: six turns, with a mirror that holds the axis, with one across it."""
    turns = [Rotation.from_rotvec([0, 0, k * np.pi / 3]).as_matrix() for k in range(6)]
    return [a @ np.diag([1.0, y, z]) for a in turns for y in (1, -1) for z in (1, -1)]


def generated(matrices: list[Array]) -> list[Array]:
    """The elements of the group, by products until nothing is new."""
    found = [np.eye(3)]
    for a in found:
        for b in matrices:
            if not any(np.abs(b @ a - c).max() < 1e-6 for c in found):
                found.append(b @ a)
    return found


def character(matrix: Array, degree: int) -> float:
    """The trace on harmonics: sin((l + 1/2) theta) / sin(theta / 2) of a rotation, (-1)^l of that of -g otherwise."""
    proper = np.linalg.det(matrix) > 0
    theta = np.arccos(np.clip((np.trace(matrix if proper else -matrix) - 1) / 2, -1, 1))
    value = 2 * degree + 1 if theta < 1e-6 else np.sin((degree + 0.5) * theta) / np.sin(theta / 2)
    return float(value if proper else (-1) ** degree * value)


def test_there_are_48_and_24_of_them() -> None:
    for elements, count in ((cubic(), 48), (hexagonal(), 24)):
        assert len(generated(elements)) == len(elements) == count


@settings(max_examples=40, deadline=None)
@given(data=st.data(), whole=st.sampled_from(["cubic", "hexagonal"]), seed=st.integers(0, 10**6))
def test_invariant_dimensions_are_averaged_characters(data: st.DataObject, whole: str, seed: int) -> None:
    elements = cubic() if whole == "cubic" else hexagonal()
    chosen = data.draw(st.lists(st.integers(0, len(elements) - 1), min_size=1, max_size=3))
    subgroup = generated([elements[i] for i in chosen])
    turn = Rotation.random(rng=np.random.default_rng(seed)).as_matrix()
    sphere, group = Sphere(3), Orthogonal([turn @ elements[i] @ turn.T for i in chosen])
    group.check(sphere)
    for degree in range(10):
        expected = np.mean([character(a, degree) for a in subgroup])
        assert abs(expected - round(expected)) < 1e-6
        found = invariant_coefficients(sphere.eigenfunctions(degree), group.generators)
        assert found.shape == (2 * degree + 1, round(expected))
        space, a = sphere.eigenfunctions(degree), found @ np.ones(found.shape[1])
        x = sphere.sample(5, np.random.default_rng(seed))
        for g in subgroup:
            np.testing.assert_allclose(space.values(x @ (turn @ g @ turn.T).T) @ a, space.values(x) @ a, atol=1e-11)
