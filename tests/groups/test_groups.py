"""Groups: what they do, characters, Molien-Weyl integrals, averages, representations, refusals."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from daskspectral.groups import (
    ContinuousTranslations,
    Cyclic,
    DirectProduct,
    Exchange,
    FullOrthogonal,
    Generated,
    Group,
    Isometry,
    LieGroup,
    MatrixRepresentation,
    Orthogonal,
    Permutations,
    PhaseRotations,
    Representation,
    Rotations,
    SignFlips,
    SpecialOrthogonal,
    Translations,
)
from daskspectral.groups.averaging import average_over
from daskspectral.groups.invariants import Invariants
from daskspectral.groups.names import parse_group
from daskspectral.manifolds import Circle, FlatTorus, Manifold, PeriodicBox, Product, Sphere, invariant_coefficients
from daskspectral.manifolds.averages import PermutationAverage
from daskspectral.manifolds.eigenspace import Combination
from daskspectral.manifolds.zonal import SphereKernel
from tests.common import copied

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


def test_what_generators_do() -> None:
    x = np.array([[1.0, 2, 3, 4]])
    swap, cycle = Permutations(4).generators
    assert (SignFlips(300).order, len(Permutations(200).generators)) == (2**300, 2)  # nothing is enumerated
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


def character(matrix: Array, degree: int) -> float:
    """The trace on harmonics: sin((l + 1/2) theta) / sin(theta / 2) of a rotation, (-1)^l of that of -g otherwise."""
    proper = np.linalg.det(matrix) > 0
    theta = np.arccos(np.clip((np.trace(matrix if proper else -matrix) - 1) / 2, -1, 1))
    value = 2 * degree + 1 if theta < 1e-6 else np.sin((degree + 0.5) * theta) / np.sin(theta / 2)
    return float(value if proper else (-1) ** degree * value)


@settings(max_examples=15)
@given(chosen=st.lists(st.integers(0, 47), min_size=1, max_size=3), seed=st.integers(0, 10**6))
def test_invariant_dimensions_are_averaged_characters(chosen: list[int], seed: int) -> None:
    """Random subgroups of the cube's, in random orientations."""
    matrices, rng = [cubic()[i] for i in chosen], np.random.default_rng(seed)
    subgroup, turn = closed(matrices), Rotation.random(rng=rng).as_matrix()
    sphere, group = Sphere(3), Orthogonal([turn @ a @ turn.T for a in matrices])
    x = sphere.sample(5, rng)
    for degree in range(7):
        expected = np.mean([character(a, degree) for a in subgroup])
        space = sphere.eigenfunctions(degree)
        found = invariant_coefficients(space, group.generators)
        assert found.shape == (2 * degree + 1, round(expected))
        values = space.values(x) @ found
        for g in subgroup:
            np.testing.assert_allclose(space.values(x @ (turn @ g @ turn.T).T) @ found, values, atol=1e-11)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Permutations(0),
        lambda: Exchange(3, 1),
        lambda: Rotations(3, 1),
        lambda: Rotations(3, plane=(0, 2)),
        lambda: Rotations(3, plane=(2, 0)),
        lambda: Rotations(3, plane=(1, 1)),
        lambda: Orthogonal([np.eye(2), np.diag([1, 2])]),
        lambda: Orthogonal([np.diag([1, 1 + 7e-12])]),
        lambda: Orthogonal(np.eye(2)),
        lambda: Orthogonal([[[np.nan]]]),
        lambda: Generated([Permutations(3), Rotations(4)]),
        lambda: LieGroup([[[0, 1], [1, 0]]]),
        lambda: LieGroup([TURN, TURN / 3]),
        lambda: LieGroup([TURN, np.zeros((3, 3))]),
        lambda: LieGroup([]),
        lambda: PhaseRotations([0.5, 1]),
        lambda: SpecialOrthogonal(2, 0),
        lambda: ContinuousTranslations([[1, 0], [0, 0]]),
        lambda: Permutations(4).check(Sphere(3)),
        lambda: Permutations(4).check(FlatTorus(2)),
        lambda: SpecialOrthogonal(4).check(FlatTorus(2)),
        lambda: Invariants.of(Sphere(10), PhaseRotations([1] * 5)).functions(8),  # more than 5000 are not solved for
        lambda: MatrixRepresentation(np.eye(3)),
        lambda: MatrixRepresentation([np.eye(2), np.eye(3)]),
        lambda: MatrixRepresentation(np.full((1, 2, 2), np.nan)),
        lambda: MatrixRepresentation([np.eye(2), 2 * np.eye(2)]),
        lambda: MatrixRepresentation([[[1 + 7e-12]]]),
        lambda: MatrixRepresentation([np.eye(2)], [np.zeros((3, 3))]),
        lambda: MatrixRepresentation([np.eye(2)], [[[0.0, -1 + 1e-9], [1, 0]]]),
        lambda: MatrixRepresentation([np.eye(2)]).matrices(Permutations(3)),
        lambda: Representation.of("tensor"),
        *(
            lambda name=name: parse_group(name, 3)
            for name in ("rotations", "rotations:x", "permutations:2", "spin", "cyclic+")
        ),
    ],
)
def test_bad_arguments(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"must be|expected|takes|acts? on|algebra|there is no|at most"):
        make()


def test_groups_by_name() -> None:
    assert parse_group("permutations", 4) == Permutations(4)
    assert parse_group("rotations:3", 5) == Rotations(3, 5)
    both = parse_group("cyclic+signflips", 3)
    assert len(both.generators) == len(Cyclic(3).generators) + len(SignFlips(3).generators)


def test_representations_and_their_copies() -> None:
    group, vector = Generated([Permutations(3), SignFlips(3), SpecialOrthogonal(3)]), Representation.of("vector")
    np.testing.assert_array_equal(vector.matrices(group), [g.matrix for g in group.generators])
    np.testing.assert_array_equal(vector.derived(group), [x.matrix for x in group.algebra])
    assert vector.matrices(Cyclic(1)).shape == (0, 1, 1)
    given = MatrixRepresentation(np.eye(2)[None], [TURN])
    assert Representation.of(given) is given
    np.testing.assert_array_equal(Representation.of([np.eye(2)]).matrices(Cyclic(4)), [np.eye(2)])
    np.testing.assert_array_equal(copied(given).given, given.given)
    np.testing.assert_array_equal(given.derived(SpecialOrthogonal(2)), [TURN])
    assert copied(vector) == vector
    assert (vector.components(group), given.components(Cyclic(4))) == (3, 2)


# -- groups by their algebra -------------------------------------------------------------------------------------------


def dimensions(manifold: Manifold, group: Group, levels: int) -> list[int]:
    group.check(manifold)
    spaces = [manifold.eigenfunctions(level) for level in range(levels)]
    return [invariant_coefficients(space, group.generators, group.algebra).shape[1] for space in spaces]


def molien_weyl(angles: Array, weights: Array, copies: int, levels: int, fixed: int = 0) -> list[int]:
    """Harmonics of each degree that are invariant: the coefficients of (1 - t^2) times the mean over the group of
    1 / det(1 - t g), for g with eigenvalues exp(+-i angle), (k, m), and 1 besides `fixed` times."""
    turns = [np.exp(sign * 1j * angles[:, j]) for j in range(angles.shape[1]) for sign in (1, -1)]
    turns = [*turns, *[np.ones(len(angles))] * fixed] * copies
    series = np.zeros((len(angles), levels), dtype=complex)
    series[:, 0] = 1
    for z in turns:
        for degree in range(1, levels):
            series[:, degree] += z * series[:, degree - 1]
    mean = (weights[:, None] * series).sum(axis=0).real / weights.sum()
    found = mean - np.concatenate([[0, 0], mean[:-2]])
    np.testing.assert_allclose(found, np.rint(found), atol=1e-9)
    return [int(n) for n in np.rint(found)]


def grid(m: int, n: int = 64) -> Array:
    """Angles (n^m, m) of an even grid: exact means of trigonometric polynomials of degree below n."""
    return np.array(list(itertools.product(2 * np.pi * np.arange(n) / n, repeat=m)))


def rotations_by_weyl(d: int, copies: int, levels: int) -> list[int]:
    """SO(2) to SO(5) by Weyl's integral over the maximal torus."""
    t = grid(d // 2)
    c = np.cos(t)
    weights = {
        2: lambda: np.ones(len(t)),
        3: lambda: 1 - c[:, 0],
        4: lambda: (c[:, 0] - c[:, 1]) ** 2,
        5: lambda: (c[:, 0] - c[:, 1]) ** 2 * (1 - c[:, 0]) * (1 - c[:, 1]),
    }[d]()
    return molien_weyl(t, weights, copies, levels, fixed=d % 2)


@pytest.mark.parametrize(("d", "copies", "levels"), [(2, 3, 5), (3, 1, 7), (3, 2, 7), (4, 2, 4), (5, 1, 5)])
def test_joint_rotations_by_molien_weyl(d: int, copies: int, levels: int) -> None:
    found = dimensions(Sphere(d * copies), SpecialOrthogonal(d, copies), levels)
    assert found == rotations_by_weyl(d, copies, levels)
    if copies == 1:
        assert found == [1] + [0] * (levels - 1)


def test_reflections_forbid_determinants() -> None:
    """Functions of three vectors: det(x_1, x_2, x_3), of degree 3, is invariant under SO(3) and not under O(3)."""
    proper, full = (dimensions(Sphere(9), group(3, 3), 4) for group in (SpecialOrthogonal, FullOrthogonal))
    assert (proper, full) == ([1, 0, 5, 1], [1, 0, 5, 0])
    assert dimensions(Sphere(2), FullOrthogonal(1, 2), 5) == [1, 0, 2, 0, 2]  # x to -x


@pytest.mark.parametrize("charges", [(1, -1), (3, 0), (1, -2, 3)])
def test_phases_by_the_integral_over_the_circle(charges: Sequence[int]) -> None:
    levels = 7 if len(charges) < 3 else 5
    angles = grid(1) * np.array(charges)
    expected = molien_weyl(angles, np.ones(len(angles)), 1, levels)
    assert dimensions(Sphere(2 * len(charges)), PhaseRotations(charges), levels) == expected


def test_continuous_and_discrete_parts_together() -> None:
    """Turns about the axis and the mirror across it leave even zonal functions; U(1)^2 by a product, with exchanges."""
    axis = LieGroup([np.pad(TURN, (0, 1))], [np.diag([1, 1, -1])])
    assert dimensions(Sphere(3), axis, 6) == [1, 0, 1, 0, 1, 0]
    torus = DirectProduct(PhaseRotations([1]), PhaseRotations([1]))
    assert len(torus.algebra) == 2
    angles = grid(2)
    expected = molien_weyl(angles, np.ones(len(angles)), 1, 7)
    assert dimensions(Sphere(4), torus, 7) == expected == [1, 0, 1, 0, 1, 0, 1]  # |z_1|^2 and |z_2|^2
    assert dimensions(Sphere(4), Generated([torus, Exchange(2)]), 7) == [1, 0, 0, 0, 1, 0, 0]
    sphere_and_box = Product(Sphere(3), PeriodicBox([0], [1]))
    both = DirectProduct(SpecialOrthogonal(3), ContinuousTranslations([[1]]))
    assert dimensions(sphere_and_box, both, 4) == [1, 0, 0, 0]


def test_rounded_matrices_are_made_whole() -> None:
    q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))
    exact = np.kron(np.diag([2, 1]), TURN)
    for turn, digits in ((np.eye(4), 20), (q, 7), (q, 20)):
        x = turn @ exact @ turn.T
        rounded = x.round(digits)
        (field,) = LieGroup([(rounded - rounded.T) / 2]).algebra
        np.testing.assert_allclose(field.matrix, x, atol=1e-6)
        np.testing.assert_array_equal(field.matrix, -field.matrix.T)
        np.testing.assert_allclose(np.linalg.eigvalsh(1j * field.matrix), [-2, -1, 1, 2], atol=1e-13)
    np.testing.assert_array_equal(LieGroup([exact]).algebra[0].matrix, exact)
    plane = np.pad(TURN, (0, 1)) * (1 + 1e-8)
    np.testing.assert_array_equal(LieGroup([plane]).algebra[0].matrix != 0, np.pad(TURN, (0, 1)) != 0)


# -- averages, counts, and products of invariant functions -------------------------------------------------------------


MINUS = Isometry(-np.eye(6))
MOST = Isometry(np.diag([1.0, -1, -1, -1, -1]))

FOUND: dict[str, tuple[Group, type]] = {
    "more permutations": (Permutations(30), PermutationAverage),
    "signed permutations": (Generated([SignFlips(6), Permutations(6)]), PermutationAverage),
    "cyclic shifts and signs": (Generated([Cyclic(9), SignFlips(9)]), type(None)),
    "a turn": (Rotations(5, 6), type(None)),
    "five permuted, and a change of all signs but one": (Generated([Permutations(5), MOST]), type(None)),
    "few coordinates": (Permutations(4), type(None)),
}


def test_the_average_of_a_group() -> None:
    for name, (group, wanted) in FOUND.items():
        assert type(average_over([g.matrix for g in group.generators])) is wanted, name
    assert Invariants.of(Sphere(4), PhaseRotations([1, -2])).average is None


@pytest.mark.parametrize(
    "group",
    [
        Permutations(5),
        DirectProduct(Permutations(3), Generated([Permutations(2), SignFlips(2)])),
        Generated([DirectProduct(Permutations(4), SignFlips(2)), MINUS]),
    ],
    ids=repr,
)
def test_averages_are_sums_over_elements(group: Group) -> None:
    """The mean of Z_l(v . g w), one element after another, from the generators in any order."""
    matrices, rng = [g.matrix for g in group.generators], np.random.default_rng(0)
    every, sphere = closed(matrices), Sphere(group.dimension)
    v, w = sphere.sample(4, rng), sphere.sample(5, rng)
    for degree in range(8):
        zonal = SphereKernel(group.dimension, degree)
        wanted = np.mean([zonal.between(v, w @ g.T) for g in every], axis=0)
        for average in (average_over(matrices), average_over(matrices[::-1])):
            assert average is not None
            functions = average.functions(degree)
            assert functions.size == average.dimension(degree)
            np.testing.assert_allclose(functions.values(v) @ functions.values(w).T, wanted, atol=1e-9)


@pytest.mark.parametrize(
    ("manifold", "group", "most"),
    [
        (Sphere(6), Permutations(6), 4),
        (Sphere(5), Generated([SignFlips(5), Permutations(5)]), 6),
    ],
)
def test_characters_count_the_null_space(manifold: Manifold, group: Group, most: int) -> None:
    """Every level up to one: the same number from the generators alone."""
    invariants = Invariants.of(manifold, group)
    assert invariants.average is not None
    for level in range(most + 1):
        built = Invariants(manifold, invariants.isometries, invariants.algebra).functions(level)
        assert isinstance(built, Combination)
        assert invariants.dimension(level) == built.size == invariants.average.functions(level).size


def test_products_of_invariant_functions_need_factors_moved_one_at_a_time() -> None:
    product = Product(Product(Sphere(3), Circle()), PeriodicBox([0], [1]))
    group = DirectProduct(DirectProduct(Cyclic(3), Rotations(4)), SignFlips(1))
    apart = Invariants.of(product, group)
    assert [factor.manifold for factor in apart.factors] == [Sphere(3), Circle(), PeriodicBox([0], [1])]
    tied = Generated([Isometry(np.diag([-1.0, 1, 1, 1, 1, 1]), [0, 0, 0, 0, 0, 0.5])])
    assert Invariants.of(product, tied).factors == ()
    for level in range(6):
        assert apart.dimension(level) == apart.functions(level).size
    exchanged = Generated([Isometry(np.roll(np.eye(6), 3, axis=0))])
    assert Invariants.of(Product(Sphere(3), Sphere(3)), exchanged).factors == ()
    assert Invariants.of(Product(Circle(), Circle()), PhaseRotations([1, 1])).factors == ()
    x = product.sample(4, np.random.default_rng(0))
    again = Invariants.of(product, group).restore(apart.state(6))
    np.testing.assert_array_equal(again.functions(5).values(x), apart.functions(5).values(x))


def test_what_functions_cost_and_how_many_harmonics_take_as_long() -> None:
    """Cubes of what is solved for, less for waves, nothing for averages."""
    few = Invariants.of(Sphere(3), Permutations(3))
    assert [(few.cost(level), few.terms(level)) for level in (1, 4)] == [(27, 3), (9**3, 9)]
    assert Invariants.of(PeriodicBox([0, 0], [1, 1]), Permutations(2)).cost(1) == 4000
    averaged = Invariants.of(Sphere(8), Permutations(8))
    assert (averaged.cost(3), averaged.cost(4), averaged.terms(3)) == (112**3, 0, 112)  # of 112 and of 294 functions
    both = Invariants.of(Product(Sphere(3), Circle()), DirectProduct(Cyclic(3), Rotations(4)))
    assert [both.cost(level) for level in (1, 2)] == [2000, 1000]  # of the levels (0, 1) and (1, 0)
