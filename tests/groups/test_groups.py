"""Groups: what they do, how many functions they leave, averages, representations, refusals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from daskspectral import groups as gr
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
    swap, cycle = gr.Permutations(4).generators
    assert (gr.SignFlips(300).order, len(gr.Permutations(200).generators)) == (2**300, 2)  # nothing is enumerated
    assert swap(x).tolist() == [[2, 1, 3, 4]]
    assert cycle(x).tolist() == [[4, 1, 2, 3]]
    assert gr.SignFlips(4).generators[2](x).tolist() == [[1, 2, -3, 4]]
    assert [g(x).tolist() for g in gr.Exchange(2).generators] == [[[3, 4, 1, 2]]]
    np.testing.assert_allclose(gr.Rotations(4, 4, plane=(1, 3)).generators[0](x), [[1, -4, 3, 2]], atol=1e-15)
    shift = gr.Translations([[0.5, 0, 0, -1]]).generators[0]
    assert shift(x).tolist() == [[1.5, 2, 3, 3]]
    assert (shift @ cycle)(x).tolist() == [[4.5, 1, 2, 2]] == shift(cycle(x)).tolist()
    assert (shift @ cycle).inverse((shift @ cycle)(x)).tolist() == x.tolist()
    both = gr.DirectProduct(gr.Translations([[0.5]]), gr.DirectProduct(gr.Cyclic(2), gr.Permutations(1))).generators
    assert [g(x).tolist() for g in both] == [[[1.5, 2, 3, 4]], [[1, 3, 2, 4]]]


def test_words_are_products_of_generators_their_inverses_and_flows() -> None:
    group, rng = gr.Generated([gr.Permutations(4), gr.SignFlips(4)]), np.random.default_rng(0)
    words = [group.word(rng, 30) for _ in range(100)]
    for g in words:
        np.testing.assert_array_equal(np.abs(g.matrix) @ np.abs(g.matrix.T), np.eye(4))
    assert len({g.matrix.tobytes() for g in words}) > 60
    assert gr.Cyclic(1).word(rng).trivial
    assert gr.Permutations(3).word(rng, 0).trivial


@pytest.mark.parametrize(
    "make",
    [
        lambda: gr.Permutations(0),
        lambda: gr.Exchange(3, 1),
        lambda: gr.Rotations(3, 1),
        lambda: gr.Rotations(3, plane=(1, 1)),
        lambda: gr.Orthogonal([np.eye(2), np.diag([1, 2])]),
        lambda: gr.Orthogonal([np.diag([1, 1 + 7e-12])]),
        lambda: gr.Orthogonal(np.eye(2)),
        lambda: gr.Orthogonal([[[np.nan]]]),
        lambda: gr.Generated([gr.Permutations(3), gr.Rotations(4)]),
        lambda: gr.LieGroup([[[0, 1], [1, 0]]]),
        lambda: gr.LieGroup([TURN, TURN / 3]),
        lambda: gr.LieGroup([TURN, np.zeros((3, 3))]),
        lambda: gr.LieGroup([]),
        lambda: gr.PhaseRotations([0.5, 1]),
        lambda: gr.SpecialOrthogonal(2, 0),
        lambda: gr.ContinuousTranslations([[1, 0], [0, 0]]),
        lambda: gr.Permutations(4).check(Sphere(3)),
        lambda: gr.SpecialOrthogonal(4).check(FlatTorus(2)),
        lambda: Invariants.of(Sphere(10), gr.PhaseRotations([1] * 5)).functions(8),  # more than 5000 are not solved for
        lambda: gr.MatrixRepresentation(np.eye(3)),
        lambda: gr.MatrixRepresentation([np.eye(2), np.eye(3)]),
        lambda: gr.MatrixRepresentation([np.eye(2), 2 * np.eye(2)]),
        lambda: gr.MatrixRepresentation([np.eye(2)], [np.zeros((3, 3))]),
        lambda: gr.MatrixRepresentation([np.eye(2)], [[[0.0, -1 + 1e-9], [1, 0]]]),
        lambda: gr.MatrixRepresentation([np.eye(2)]).matrices(gr.Permutations(3)),
        lambda: gr.Representation.of("tensor"),
        *(lambda name=name: parse_group(name, 3) for name in ("rotations", "permutations:2", "spin", "cyclic+")),
    ],
)
def test_bad_arguments(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"must|acts? on|algebra|group|at most|needed"):
        make()


def test_groups_by_name() -> None:
    assert parse_group("permutations", 4) == gr.Permutations(4)
    assert parse_group("rotations:3", 5) == gr.Rotations(3, 5)
    both = parse_group("cyclic+signflips", 3)
    assert len(both.generators) == len(gr.Cyclic(3).generators) + len(gr.SignFlips(3).generators)


def test_representations_and_their_copies() -> None:
    group = gr.Generated([gr.Permutations(3), gr.SignFlips(3), gr.SpecialOrthogonal(3)])
    vector = gr.Representation.of("vector")
    np.testing.assert_array_equal(vector.matrices(group), [g.matrix for g in group.generators])
    np.testing.assert_array_equal(vector.derived(group), [x.matrix for x in group.algebra])
    assert vector.matrices(gr.Cyclic(1)).shape == (0, 1, 1)
    given = gr.MatrixRepresentation(np.eye(2)[None], [TURN])
    assert gr.Representation.of(given) is given
    np.testing.assert_array_equal(gr.Representation.of([np.eye(2)]).matrices(gr.Cyclic(4)), [np.eye(2)])
    np.testing.assert_array_equal(copied(given).given, given.given)
    np.testing.assert_array_equal(given.derived(gr.SpecialOrthogonal(2)), [TURN])
    assert copied(vector) == vector
    assert (vector.components(group), given.components(gr.Cyclic(4))) == (3, 2)


# -- groups by their algebra -------------------------------------------------------------------------------------------


TORUS = gr.DirectProduct(gr.PhaseRotations([1]), gr.PhaseRotations([1]))
DIMENSIONS: list[tuple[gr.Group, list[int]]] = [  # by the integrals of Molien and Weyl over the group
    (gr.SpecialOrthogonal(2, 3), [1, 0, 8, 0, 27]),
    (gr.SpecialOrthogonal(3), [1, 0, 0, 0, 0, 0, 0]),
    (gr.SpecialOrthogonal(3, 2), [1, 0, 2, 0, 3, 0, 4]),
    (gr.SpecialOrthogonal(4, 2), [1, 0, 2, 0]),
    (gr.SpecialOrthogonal(5), [1, 0, 0, 0, 0]),
    (gr.SpecialOrthogonal(3, 3), [1, 0, 5, 1]),  # det(x_1, x_2, x_3), of degree 3, is not invariant under O(3)
    (gr.FullOrthogonal(3, 3), [1, 0, 5, 0]),
    (gr.FullOrthogonal(1, 2), [1, 0, 2, 0, 2]),  # x to -x
    (gr.PhaseRotations((1, -1)), [1, 0, 3, 0, 5, 0, 7]),
    (gr.PhaseRotations((3, 0)), [1, 2, 3, 4, 5, 6, 7]),
    (gr.PhaseRotations((1, -2, 3)), [1, 0, 2, 4, 7]),
    (gr.LieGroup([np.pad(TURN, (0, 1))], [np.diag([1, 1, -1])]), [1, 0, 1, 0, 1, 0]),  # even zonal functions
    (TORUS, [1, 0, 1, 0, 1, 0, 1]),  # |z_1|^2 and |z_2|^2
    (gr.Generated([TORUS, gr.Exchange(2)]), [1, 0, 0, 0, 1, 0, 0]),
]


@pytest.mark.parametrize(("group", "wanted"), DIMENSIONS, ids=str)
def test_dimensions_of_continuous_groups(group: gr.Group, wanted: list[int]) -> None:
    sphere = Sphere(group.dimension)
    spaces = [sphere.eigenfunctions(level) for level in range(len(wanted))]
    assert [invariant_coefficients(s, group.generators, group.algebra).shape[1] for s in spaces] == wanted


def test_parts_of_continuous_groups() -> None:
    assert len(TORUS.algebra) == 2
    both = gr.DirectProduct(gr.SpecialOrthogonal(3), gr.ContinuousTranslations([[1]]))
    product = Invariants.of(Product(Sphere(3), PeriodicBox([0], [1])), both)
    assert [product.dimension(level) for level in range(4)] == [1, 0, 0, 0]


def test_rounded_matrices_are_made_whole() -> None:
    q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))
    exact = np.kron(np.diag([2, 1]), TURN)
    for turn, digits in ((np.eye(4), 20), (q, 7), (q, 20)):
        x = turn @ exact @ turn.T
        rounded = x.round(digits)
        (field,) = gr.LieGroup([(rounded - rounded.T) / 2]).algebra
        np.testing.assert_allclose(field.matrix, x, atol=1e-6)
        np.testing.assert_array_equal(field.matrix, -field.matrix.T)
        np.testing.assert_allclose(np.linalg.eigvalsh(1j * field.matrix), [-2, -1, 1, 2], atol=1e-13)
    np.testing.assert_array_equal(gr.LieGroup([exact]).algebra[0].matrix, exact)
    plane = np.pad(TURN, (0, 1)) * (1 + 1e-8)
    np.testing.assert_array_equal(gr.LieGroup([plane]).algebra[0].matrix != 0, np.pad(TURN, (0, 1)) != 0)


# -- averages, counts, and products of invariant functions -------------------------------------------------------------


MOST = gr.Isometry(np.diag([1.0, -1, -1, -1, -1]))

FOUND: dict[str, tuple[gr.Group, type]] = {
    "more permutations": (gr.Permutations(30), PermutationAverage),
    "signed permutations": (gr.Generated([gr.SignFlips(6), gr.Permutations(6)]), PermutationAverage),
    "cyclic shifts and signs": (gr.Generated([gr.Cyclic(9), gr.SignFlips(9)]), type(None)),
    "a turn": (gr.Rotations(5, 6), type(None)),
    "five permuted, and a change of all signs but one": (gr.Generated([gr.Permutations(5), MOST]), type(None)),
    "few coordinates": (gr.Permutations(4), type(None)),
}


def test_the_average_of_a_group() -> None:
    for name, (group, wanted) in FOUND.items():
        assert type(average_over([g.matrix for g in group.generators])) is wanted, name
    assert Invariants.of(Sphere(4), gr.PhaseRotations([1, -2])).average is None


@pytest.mark.parametrize(
    "group",
    [
        gr.Permutations(5),
        gr.DirectProduct(gr.Permutations(3), gr.Generated([gr.Permutations(2), gr.SignFlips(2)])),
        gr.Generated([gr.DirectProduct(gr.Permutations(4), gr.SignFlips(2)), gr.Isometry(-np.eye(6))]),
    ],
    ids=repr,
)
def test_averages_are_sums_over_elements(group: gr.Group) -> None:
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


@pytest.mark.parametrize("group", [gr.Permutations(6), gr.Generated([gr.SignFlips(5), gr.Permutations(5)])], ids=repr)
def test_characters_count_the_null_space(group: gr.Group) -> None:
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
    group = gr.DirectProduct(gr.DirectProduct(gr.Cyclic(3), gr.Rotations(4)), gr.SignFlips(1))
    apart = Invariants.of(product, group)
    assert [factor.manifold for factor in apart.factors] == [Sphere(3), Circle(), PeriodicBox([0], [1])]
    tied = gr.Generated([gr.Isometry(np.diag([-1.0, 1, 1, 1, 1, 1]), [0, 0, 0, 0, 0, 0.5])])
    assert Invariants.of(product, tied).factors == ()
    for level in range(6):
        assert apart.dimension(level) == apart.functions(level).size
    exchanged = gr.Generated([gr.Isometry(np.roll(np.eye(6), 3, axis=0))])
    assert Invariants.of(Product(Sphere(3), Sphere(3)), exchanged).factors == ()
    assert Invariants.of(Product(Circle(), Circle()), gr.PhaseRotations([1, 1])).factors == ()
    x = product.sample(4, np.random.default_rng(0))
    again = Invariants.of(product, group).restore(apart.state(6))
    np.testing.assert_array_equal(again.functions(5).values(x), apart.functions(5).values(x))
