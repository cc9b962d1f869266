"""Groups by generators: orders against the elements counted one by one, characters, words, molecules, refusals."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from daskspectral.groups import (
    Automorphisms,
    ContinuousTranslations,
    Cyclic,
    DirectProduct,
    Exchange,
    Generated,
    Group,
    LieGroup,
    MolecularSymmetry,
    Orthogonal,
    Permutations,
    PhaseRotations,
    Rotations,
    SignFlips,
    SpecialOrthogonal,
    Translations,
    jacobi_matrix,
)
from daskspectral.groups.elements import elements
from daskspectral.manifolds import FlatTorus, Manifold, PeriodicBox, Sphere, invariant_coefficients

Array = NDArray[Any]
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


def closed(matrices: list[Array]) -> list[Array]:
    """The elements of the group that matrices generate, by products until nothing is new."""
    found = [np.eye(len(matrices[0]))] if matrices else [np.eye(1)]
    for a in found:
        for b in matrices:
            if not any(np.abs(b @ a - c).max() < 1e-6 for c in found):
                found.append(b @ a)
    return found


@pytest.mark.parametrize(
    "group",
    [
        Permutations(1),
        Permutations(4),
        Cyclic(1),
        Cyclic(6),
        SignFlips(3),
        Rotations(1),
        Rotations(4, 5, plane=(3, 1)),
        DirectProduct(SignFlips(2), DirectProduct(Cyclic(3), Rotations(5))),
    ],
    ids=repr,
)
def test_orders_by_enumeration(group: Group) -> None:
    found = closed([g.matrix for g in group.generators])
    assert len(found) == group.order
    assert (SignFlips(300).order, len(Permutations(200).generators)) == (2**300, 2)  # nothing is enumerated
    if group.dimension > 1:
        assert len(elements(group, Sphere(group.dimension), len(found)) or []) == len(found)
        assert len(found) == 1 or elements(group, Sphere(group.dimension), len(found) - 1) is None


def test_what_generators_do() -> None:
    x = np.array([[1.0, 2, 3, 4]])
    swap, cycle = Permutations(4).generators
    assert swap(x).tolist() == [[2, 1, 3, 4]]
    assert cycle(x).tolist() == [[4, 1, 2, 3]]
    assert SignFlips(4).generators[2](x).tolist() == [[1, 2, -3, 4]]
    assert [g(x).tolist() for g in Exchange(2).generators] == [[[3, 4, 1, 2]]]
    np.testing.assert_allclose(Rotations(4, 4, plane=(1, 3)).generators[0](x), [[1, -4, 3, 2]], atol=1e-15)
    shift = Translations([[0.5, 0, 0, -1]]).generators[0]
    assert shift(x).tolist() == [[1.5, 2, 3, 3]]
    assert (shift @ cycle)(x).tolist() == [[4.5, 1, 2, 2]] == shift(cycle(x)).tolist()
    assert (shift @ cycle).inverse((shift @ cycle)(x)).tolist() == x.tolist()
    both = DirectProduct(Translations([[0.5]]), DirectProduct(Cyclic(2), Permutations(1))).generators
    assert [g(x).tolist() for g in both] == [[[1.5, 2, 3, 4]], [[1, 3, 2, 4]]]


def test_elements_that_differ_by_less_than_a_millionth_are_one() -> None:
    rng = np.random.default_rng(0)
    axes = Rotation.random(rng=rng).as_matrix()
    turn = axes @ Rotations(30, 3).generators[0].matrix @ axes.T
    for _ in range(5):
        skew = np.triu(rng.choice([-1.0, 1.0], (3, 3)), 1)
        near, far = (scipy.linalg.expm(angle * (skew - skew.T)) for angle in (6e-7, 1.2e-6))
        assert len(elements(Orthogonal([turn, near]), Sphere(3), 100) or []) == 30
        assert elements(Orthogonal([far]), Sphere(3), 5) is None


def test_words_are_products_of_generators_their_inverses_and_flows() -> None:
    group, rng = Generated([Permutations(4), SignFlips(4)]), np.random.default_rng(0)
    words = [group.word(rng, 30) for _ in range(100)]
    for g in words:
        np.testing.assert_array_equal(np.abs(g.matrix) @ np.abs(g.matrix.T), np.eye(4))
    assert len({g.matrix.tobytes() for g in words}) > 60
    shifts = [Translations([[1.0]]).word(rng).shift[0] for _ in range(200)]  # sums of 20 signs
    assert set(np.unique(np.abs(shifts)) % 2) == {0}
    assert 3 < np.std(shifts) < 6
    turns = np.array([SpecialOrthogonal(2).word(rng, 1).matrix for _ in range(1000)])
    assert np.abs(turns.mean(axis=0)).max() < 0.1  # angles are uniform
    assert Cyclic(1).word(rng).trivial
    assert Permutations(3).word(rng, 0).trivial


def cubic() -> list[Array]:
    """The 48 signed permutation matrices."""
    axes = [np.eye(3)[list(p)] for p in itertools.permutations(range(3))]
    return [axis * signs for axis in axes for signs in itertools.product([1.0, -1.0], repeat=3)]


def hexagonal() -> list[Array]:
    """The 24 symmetries of a hexagonal prism: six turns, with a mirror that holds the axis, with one across it."""
    turns = [Rotation.from_rotvec([0, 0, k * np.pi / 3]).as_matrix() for k in range(6)]
    return [a @ np.diag([1.0, y, z]) for a in turns for y in (1, -1) for z in (1, -1)]


def character(matrix: Array, degree: int) -> float:
    """The trace on harmonics: sin((l + 1/2) theta) / sin(theta / 2) of a rotation, (-1)^l of that of -g otherwise."""
    proper = np.linalg.det(matrix) > 0
    theta = np.arccos(np.clip((np.trace(matrix if proper else -matrix) - 1) / 2, -1, 1))
    value = 2 * degree + 1 if theta < 1e-6 else np.sin((degree + 0.5) * theta) / np.sin(theta / 2)
    return float(value if proper else (-1) ** degree * value)


@settings(max_examples=15)
@given(data=st.data(), whole=st.sampled_from([cubic, hexagonal]), seed=st.integers(0, 10**6))
def test_invariant_dimensions_are_averaged_characters(data: Any, whole: Callable[[], list[Array]], seed: int) -> None:
    """Random subgroups of the cube's and the hexagonal prism's, in random orientations."""
    chosen = [whole()[i] for i in data.draw(st.lists(st.integers(0, len(whole()) - 1), min_size=1, max_size=3))]
    subgroup, rng = closed(chosen), np.random.default_rng(seed)
    turn = Rotation.random(rng=rng).as_matrix()
    sphere, group = Sphere(3), Orthogonal([turn @ a @ turn.T for a in chosen])
    assert len(elements(group, sphere, 48) or []) == len(subgroup)
    x = sphere.sample(5, rng)
    for degree in range(7):
        expected = np.mean([character(a, degree) for a in subgroup])
        space = sphere.eigenfunctions(degree)
        found = invariant_coefficients(space, group.generators)
        assert found.shape == (2 * degree + 1, round(expected))
        values = space.values(x) @ found
        for g in subgroup:
            np.testing.assert_allclose(space.values(x @ (turn @ g @ turn.T).T) @ found, values, atol=1e-11)


def test_molecules_turn_and_exchange_their_atoms() -> None:
    """On mass-weighted Jacobi vectors: of positions, then moved, and the other way round."""
    rng = np.random.default_rng(0)
    masses = [2.0, 1.0, 3.0, 1.0, 1.0]
    group, a, m = MolecularSymmetry(masses), jacobi_matrix(masses), np.array(masses)
    x = rng.standard_normal((5, 3))
    centred = x - m @ x / m.sum()
    np.testing.assert_allclose(a @ np.ones(5), 0, atol=1e-15)
    np.testing.assert_allclose(a / m @ a.T, np.eye(4), atol=1e-15)
    np.testing.assert_allclose(np.sum((a @ x) ** 2), m @ np.sum(centred**2, axis=1), rtol=1e-14)
    np.testing.assert_allclose(a[0] @ x, np.sqrt(2 / 3) * (x[1] - x[0]), rtol=1e-14)
    assert (group.dimension, group.order, len(group.generators), len(group.algebra)) == (13, None, 3, 2)
    row = np.concatenate([[7.0], (a @ x).ravel()])
    for g, y in zip(group.generators, (x * [-1, 1, 1], x[[0, 3, 2, 1, 4]], x[[0, 1, 2, 4, 3]]), strict=True):
        np.testing.assert_allclose(g(row[None])[0], [7.0, *(a @ y).ravel()], atol=1e-14)
    for axis, field in enumerate(group.algebra, start=1):
        turned = field.flow(0.3)(row[None])[0, 1:].reshape(4, 3)
        back = np.eye(3)
        back[np.ix_((0, axis), (0, axis))] = Rotation.from_rotvec([0, 0, 0.3]).as_matrix()[:2, :2]
        np.testing.assert_allclose(turned, a @ x @ back.T, atol=1e-14)
    assert len(MolecularSymmetry([1, 1], "AB").generators) == 1
    assert len(MolecularSymmetry([1, 1], "AA").generators) == 2


@pytest.mark.parametrize(
    ("manifold", "group", "reason"),
    [
        (Sphere(3), Permutations(4), r"Sphere\(d=3\) has 3 coordinates, and Permutations\(d=4\) acts on 4; give"),
        (FlatTorus(2), Permutations(4), r"generator 1 of Permutations\(d=4\) does not act: .* moves points off"),
        (FlatTorus(2), SpecialOrthogonal(4), r"element 1 of the algebra of .* does not act: .* moves points off"),
        (
            PeriodicBox([0, 0], [1, 2]),
            Permutations(2),
            r"generator 0 .* takes .1.0, 0.0., a vector .*, to .0.0, 1.0., which is none",
        ),
    ],
    ids=repr,
)
def test_other_groups_are_refused(manifold: Manifold, group: Group, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        group.check(manifold)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Permutations(0), "^d must"),
        (lambda: Exchange(3, 1), "^count must"),
        (lambda: Rotations(3, 1), "^d must"),
        (lambda: Rotations(3, plane=(0, 2)), r"two of the coordinates 0 to 1, received \(0, 2\)"),
        (lambda: Rotations(3, plane=(2, 0)), r"two of the coordinates"),
        (lambda: Rotations(3, plane=(1, 1)), r"two of the coordinates"),
        (lambda: Orthogonal([np.eye(2), np.diag([1, 2])]), r"number 1\) with A A\^T off the identity by 3;.*polar"),
        (lambda: Orthogonal([np.diag([1, 1 + 7e-12])]), "off the identity by 1.4e-11"),
        (lambda: Orthogonal(np.eye(2)), r"square matrices \(k, d, d\), at least one; received shape \(2, 2\)"),
        (lambda: Automorphisms([np.diag([1, 2])]), r"determinants 1 or -1, received 2"),
        (lambda: Automorphisms([[[1, 1], [0, 1]]]), r"unimodular but shears"),
        (lambda: Generated([Permutations(3), Rotations(4)]), r"the same coordinates; they act on \[2, 3\]"),
        (lambda: MolecularSymmetry([1, 0]), "positive masses of two atoms or more"),
        (lambda: MolecularSymmetry([1, 1], "A"), "a species for each of 2 atoms, received 1"),
        (lambda: MolecularSymmetry([1, 2], "AA"), r"of one species have one mass; those of 'A' have \[1.0, 2.0\]"),
        (lambda: LieGroup([[[0, 1], [1, 0]]]), r"element 0 of the algebra: its matrix X is not antisymmetric"),
        (lambda: LieGroup([TURN, TURN / 3]), r"element 1 of the algebra: .*integers as eigenvalues.* multiply X by 3$"),
        (lambda: LieGroup([TURN, np.zeros((3, 3))]), r"act on the same coordinates; they act on \[2, 3\]"),
        (lambda: LieGroup([]), r"one antisymmetric matrix or more, \(k, d, d\); received none"),
        (lambda: LieGroup(3), r"LieGroup takes matrices \(k, d, d\), or lists of them; received 3; give \[X\]"),
        (lambda: PhaseRotations([0.5, 1]), r"charges \(m,\), whole numbers and not all 0.*common denominator"),
        (lambda: SpecialOrthogonal(2, 0), "^copies must"),
        (lambda: ContinuousTranslations([[1, 0], [0, 0]]), r"finite vectors \(k, m\), none of them 0"),
    ],
)
def test_bad_arguments(make: Callable[[], Group], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        make()
