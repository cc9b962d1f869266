"""Averages over a group from its generators: which one is taken, counts, and products of invariant functions."""

import numpy as np
import pytest
from numpy.typing import NDArray

from daskspectral.groups import (
    Cyclic,
    DirectProduct,
    Generated,
    Group,
    Isometry,
    Orthogonal,
    Permutations,
    PhaseRotations,
    Rotations,
    SignFlips,
)
from daskspectral.groups.averaging import average_over
from daskspectral.groups.elements import orthogonal_elements
from daskspectral.groups.invariants import Invariants
from daskspectral.manifolds import Circle, Manifold, PeriodicBox, Product, Sphere
from daskspectral.manifolds.averages import FiniteAverage, PermutationAverage
from daskspectral.manifolds.eigenspace import Combination
from daskspectral.manifolds.zonal import SphereKernel

Array = NDArray[np.float64]
IRRATIONAL = Isometry([[np.cos(1), -np.sin(1), 0], [np.sin(1), np.cos(1), 0], [0, 0, 1]])
MINUS = Isometry(-np.eye(6))
MOST = Isometry(np.diag([1.0, -1, -1, -1, -1]))

FOUND: dict[str, tuple[Group, type]] = {
    "more permutations": (Permutations(30), PermutationAverage),
    "signed permutations": (Generated([SignFlips(6), Permutations(6)]), PermutationAverage),
    "cyclic shifts and signs": (Generated([Cyclic(9), SignFlips(9)]), FiniteAverage),
    "cyclic shifts and signs of many": (Generated([Cyclic(20), SignFlips(20)]), type(None)),
    "an irrational turn": (Generated([IRRATIONAL]), type(None)),
    "five permuted, and a change of all signs but one": (Generated([Permutations(5), MOST]), FiniteAverage),
    "in the plane": (Rotations(5), type(None)),
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
    every, sphere = orthogonal_elements(np.array(matrices), 2000), Sphere(group.dimension)
    assert every is not None
    v, w = sphere.sample(4, rng), sphere.sample(5, rng)
    averages = average_over(matrices), average_over(matrices[::-1]), FiniteAverage(every)
    assert [type(average) for average in averages] == [PermutationAverage, PermutationAverage, FiniteAverage]
    for degree in range(8):
        zonal = SphereKernel(group.dimension, degree)
        wanted = np.mean([zonal.between(v, w @ g.T) for g in every], axis=0)
        for average in averages:
            assert average is not None
            functions = average.functions(degree)
            assert functions.size == average.dimension(degree)
            np.testing.assert_allclose(functions.values(v) @ functions.values(w).T, wanted, atol=1e-9)


@pytest.mark.parametrize(
    ("manifold", "group", "most"),
    [
        (Sphere(6), Permutations(6), 4),
        (Sphere(5), Generated([SignFlips(5), Permutations(5)]), 6),
        (Sphere(3), Orthogonal([np.diag([1.0, -1, -1]), np.eye(3)[[1, 2, 0]]]), 9),
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
