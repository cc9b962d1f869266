"""Groups: what they do, how many functions they leave, averages, representations, refusals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

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
from daskspectral.manifolds import Circle, FlatTorus, PeriodicBox, Product, Sphere, invariant_coefficients
from daskspectral.manifolds.averages import PermutationAverage
from daskspectral.manifolds.eigenspace import Combination
from daskspectral.manifolds.zonal import SphereKernel
from tests.common import copied

Array = NDArray[Any]
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


def closed(matrices: list[Array]) -> list[Array]:
    """The elements of the group that matrices generate, by products until no random sum of one is new."""
    weights = np.random.default_rng(0).standard_normal(matrices[0].shape)
    found, sums = [np.eye(len(weights))], [np.trace(weights)]
    for a in found:
        for product in (b @ a for b in matrices):
            if np.abs(np.subtract(sums, own := np.sum(weights * product))).min() > 1e-7:
                found.append(product)
                sums.append(own)
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
    assert Cyclic(1).word(rng).trivial
    assert Permutations(3).word(rng, 0).trivial


@pytest.mark.parametrize(
    "make",
    [
        lambda: Permutations(0),
        lambda: Exchange(3, 1),
        lambda: Rotations(3, 1),
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
        lambda: SpecialOrthogonal(4).check(FlatTorus(2)),
        lambda: Invariants.of(Sphere(10), PhaseRotations([1] * 5)).functions(8),  # more than 5000 are not solved for
        lambda: MatrixRepresentation(np.eye(3)),
        lambda: MatrixRepresentation([np.eye(2), np.eye(3)]),
        lambda: MatrixRepresentation([np.eye(2), 2 * np.eye(2)]),
        lambda: MatrixRepresentation([np.eye(2)], [np.zeros((3, 3))]),
        lambda: MatrixRepresentation([np.eye(2)], [[[0.0, -1 + 1e-9], [1, 0]]]),
        lambda: MatrixRepresentation([np.eye(2)]).matrices(Permutations(3)),
        lambda: Representation.of("tensor"),
        *(lambda name=name: parse_group(name, 3) for name in ("rotations", "permutations:2", "spin", "cyclic+")),
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


TORUS = DirectProduct(PhaseRotations([1]), PhaseRotations([1]))
DIMENSIONS: list[tuple[Group, list[int]]] = [  # by the integrals of Molien and Weyl over the group
    (SpecialOrthogonal(2, 3), [1, 0, 8, 0, 27]),
    (SpecialOrthogonal(3), [1, 0, 0, 0, 0, 0, 0]),
    (SpecialOrthogonal(3, 2), [1, 0, 2, 0, 3, 0, 4]),
    (SpecialOrthogonal(4, 2), [1, 0, 2, 0]),
    (SpecialOrthogonal(5), [1, 0, 0, 0, 0]),
    (SpecialOrthogonal(3, 3), [1, 0, 5, 1]),  # det(x_1, x_2, x_3), of degree 3, is not invariant under O(3)
    (FullOrthogonal(3, 3), [1, 0, 5, 0]),
    (FullOrthogonal(1, 2), [1, 0, 2, 0, 2]),  # x to -x
    (PhaseRotations((1, -1)), [1, 0, 3, 0, 5, 0, 7]),
    (PhaseRotations((3, 0)), [1, 2, 3, 4, 5, 6, 7]),
    (PhaseRotations((1, -2, 3)), [1, 0, 2, 4, 7]),
    (LieGroup([np.pad(TURN, (0, 1))], [np.diag([1, 1, -1])]), [1, 0, 1, 0, 1, 0]),  # even zonal functions
    (TORUS, [1, 0, 1, 0, 1, 0, 1]),  # |z_1|^2 and |z_2|^2
    (Generated([TORUS, Exchange(2)]), [1, 0, 0, 0, 1, 0, 0]),
]


@pytest.mark.parametrize(("group", "wanted"), DIMENSIONS, ids=str)
def test_dimensions_of_continuous_groups(group: Group, wanted: list[int]) -> None:
    sphere = Sphere(group.dimension)
    spaces = [sphere.eigenfunctions(level) for level in range(len(wanted))]
    assert [invariant_coefficients(s, group.generators, group.algebra).shape[1] for s in spaces] == wanted


def test_parts_of_continuous_groups() -> None:
    assert len(TORUS.algebra) == 2
    both = DirectProduct(SpecialOrthogonal(3), ContinuousTranslations([[1]]))
    product = Invariants.of(Product(Sphere(3), PeriodicBox([0], [1])), both)
    assert [product.dimension(level) for level in range(4)] == [1, 0, 0, 0]


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


@pytest.mark.parametrize("group", [Permutations(6), Generated([SignFlips(5), Permutations(5)])], ids=repr)
def test_characters_count_the_null_space(group: Group) -> None:
    """Every level up to one: the same number from the generators alone."""
    manifold = Sphere(group.dimension)
    invariants = Invariants.of(manifold, group)
    assert invariants.average is not None
    for level in range(5):
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
