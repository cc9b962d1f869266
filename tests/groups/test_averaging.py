"""Averages over a group from its generators: which one is taken, and the elements of finite groups."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.groups import (
    Cyclic,
    DirectProduct,
    FullOrthogonal,
    Generated,
    Group,
    Isometry,
    LieGroup,
    Orthogonal,
    Permutations,
    PhaseRotations,
    Rotations,
    SignFlips,
    SpecialOrthogonal,
)
from daskspectral.groups.averaging import _circles, average_over, by_vectors
from daskspectral.groups.elements import _order, orthogonal_elements
from daskspectral.groups.invariants import Invariants
from daskspectral.manifolds import Circle, Manifold, PeriodicBox, Product, Sphere
from daskspectral.manifolds.averages import FiniteAverage, PermutationAverage, RotationAverage
from daskspectral.manifolds.eigenspace import Combination

Array = NDArray[np.float64]
SWAP = Isometry(np.eye(9)[[1, 0, 2, 3, 4, 5, 6, 7, 8]])
TILT = Isometry(np.kron(np.eye(3), np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]))
IRRATIONAL = Isometry([[np.cos(1), -np.sin(1), 0], [np.sin(1), np.cos(1), 0], [0, 0, 1]])
TURN = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 0]])
SHIFT = Isometry(np.kron(np.eye(3)[[1, 2, 0]], np.eye(2)))
MINUS = Isometry(-np.eye(6))
MOST = Isometry(np.diag([1.0, -1, -1, -1, -1]))
ATOMS = Generated([FullOrthogonal(3, copies=3), Orthogonal(np.kron(np.eye(3)[[[1, 0, 2], [1, 2, 0]]], np.eye(3)))])

FOUND: dict[str, tuple[Group, type]] = {
    "more permutations": (Permutations(30), PermutationAverage),
    "signed permutations": (Generated([SignFlips(6), Permutations(6)]), PermutationAverage),
    "cyclic shifts and signs": (Generated([Cyclic(9), SignFlips(9)]), FiniteAverage),
    "cyclic shifts and signs of many": (Generated([Cyclic(20), SignFlips(20)]), type(None)),
    "an irrational turn": (Generated([IRRATIONAL]), type(None)),
    "rotations": (SpecialOrthogonal(3, copies=2), RotationAverage),
    "atoms": (ATOMS, RotationAverage),
    "atoms, tilted": (Generated([ATOMS, TILT]), RotationAverage),
    "atoms and a swap of coordinates": (Generated([ATOMS, SWAP]), type(None)),
    "a circle": (PhaseRotations([1, -2]), FiniteAverage),
    "a circle and its mirror": (LieGroup([TURN], [np.diag([1.0, -1, 1])]), FiniteAverage),
    "a circle and a permutation": (LieGroup([TURN], [np.eye(3)[[1, 2, 0]]]), type(None)),
    "three circles, and a shift of them": (Generated([PhaseRotations([1, 1, 1]), SHIFT]), FiniteAverage),
    "circles that do not commute": (LieGroup([TURN, TURN[[1, 2, 0]][:, [1, 2, 0]]]), RotationAverage),
    "five permuted, and a change of all signs but one": (Generated([Permutations(5), MOST]), FiniteAverage),
    "in the plane": (Rotations(5), type(None)),
}


def test_the_average_of_a_group() -> None:
    for name, (group, wanted) in FOUND.items():
        found = average_over([g.matrix for g in group.generators], [x.matrix for x in group.algebra])
        assert type(found) is wanted, name


@pytest.mark.parametrize("group", [Permutations(5), Generated([DirectProduct(Permutations(4), SignFlips(2)), MINUS])])
def test_permutations_in_blocks_are_found_in_any_order_of_the_generators(group: Group) -> None:
    """The same sums as over all elements, from generators that are swaps, flips and what is made of them."""
    matrices = [g.matrix for g in group.generators]
    every = orthogonal_elements(np.array(matrices), 2000)
    assert every is not None
    x = Sphere(len(matrices[0])).sample(4, np.random.default_rng(0))
    for generators in (matrices, matrices[::-1]):
        average = average_over(generators, [])
        assert type(average) is PermutationAverage
        for degree in (2, 3, 4):
            values = average.functions(degree).values(x)
            np.testing.assert_allclose(values @ values.T, FiniteAverage(every).kernel(degree, x, x), atol=1e-10)


CASES: dict[str, tuple[Manifold, Group, int]] = {
    "permutations": (Sphere(6), Permutations(6), 4),
    "signed permutations": (Sphere(5), Generated([SignFlips(5), Permutations(5)]), 6),
    "atoms": (Sphere(9), ATOMS, 3),
    "atoms without reflections": (Sphere(9), SpecialOrthogonal(3, copies=3), 3),
    "shifted circles": (Sphere(6), Generated([PhaseRotations([1, 1, 1]), SHIFT]), 3),
    "tilted": (Sphere(9), Generated([SpecialOrthogonal(3, copies=3), TILT]), 3),
    "circles": (Sphere(4), LieGroup([np.kron(np.diag(q), [[0, -1], [1, 0]]) for q in ([1, 0], [0, 2])]), 6),
    "the cube's rotations": (Sphere(3), Orthogonal([np.diag([1.0, -1, -1]), np.eye(3)[[1, 2, 0]]]), 9),
}


@pytest.mark.parametrize("name", CASES)
def test_characters_count_the_null_space(name: str) -> None:
    """Every level up to one: the same number from the generators and the algebra alone."""
    manifold, group, most = CASES[name]
    invariants = Invariants.of(manifold, group)
    assert invariants.average is not None
    for level in range(most + 1):
        built = Invariants(manifold, invariants.isometries, invariants.algebra).functions(level)
        assert isinstance(built, Combination)
        assert invariants.dimension(level) == built.size
        assert invariants.average.functions(level).size == built.size


@settings(max_examples=10)
@given(d=st.integers(3, 5), count=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_elements_are_closed_and_distinct(d: int, count: int, seed: int) -> None:
    """Signed permutations, conjugated by a random rotation."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    plain = [np.eye(d)[rng.permutation(d)] @ np.diag(rng.choice([-1.0, 1.0], d)) for _ in range(count)]
    generators = turn @ np.array(plain) @ turn.T
    found = orthogonal_elements(generators, 10_000)
    assert found is not None
    np.testing.assert_allclose(found[0], np.eye(d), atol=1e-12)
    assert (2**d * np.prod(np.arange(1, d + 1))) % len(found) == 0  # Lagrange

    def names(matrices: Array) -> set[bytes]:
        return {a.tobytes() for a in (turn.T @ matrices @ turn).round(6) + 0.0}

    assert len(names(found)) == len(found)
    for g in generators:
        assert names(found @ g) == names(found)
    assert orthogonal_elements(generators, len(found)) is not None
    assert len(found) == 1 or orthogonal_elements(generators, len(found) - 1) is None


@given(k=st.integers(1, 4), size=st.integers(2, 4), seed=st.integers(0, 2**32 - 1))
def test_what_turns_vectors_alike_is_found_with_its_signs(k: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mixing, turn = (np.linalg.qr(rng.standard_normal((n, n)))[0] for n in (k, size))
    sign = 1.0 if mixing.sum() > 0 else -1.0
    found = by_vectors(np.kron(mixing, turn), size)
    assert found is not None
    np.testing.assert_allclose(found[0], sign * mixing, atol=1e-12)
    np.testing.assert_allclose(found[1], sign * turn, atol=1e-12)
    for part in by_vectors(np.kron(np.eye(k), -np.eye(size)), size) or ():
        assert not np.signbit(part[part == 0]).any()  # no -0 is shown
    assert k == 1 or by_vectors(np.linalg.qr(rng.standard_normal((k * size, k * size)))[0], size) is None


def test_orders_of_matrices() -> None:
    turn = Rotations(5).generators[0].matrix
    assert [_order(turn, most) for most in (4, 5, 12)] == [None, 5, 5]
    assert _order(IRRATIONAL.matrix, 1000) is None


def test_what_is_off_by_rounding_alone_counts_as_exact() -> None:
    turns = np.array([np.cross(np.eye(3), axis) for axis in np.eye(3)])
    assert [_circles([np.eye(3)], [turns[0], off * turns[1]]) is None for off in (1e-9, 1.5e-9)] == [False, True]
    mixing, torus = np.zeros((4, 4)), Product(Circle(), Circle())
    mixing[0, 2] = 1e-11
    assert len(Invariants(torus, (Isometry(np.eye(4) + mixing),), ()).factors) == 2
    with pytest.raises(ValueError, match="it mixes coordinates of factors"):
        _ = Invariants(torus, (Isometry(np.eye(4) + 1.5 * mixing),), ()).factors


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
    x = product.sample(4, np.random.default_rng(0))
    again = Invariants.of(product, group).restore(apart.state(6))
    levels = np.max([term for level in range(6) for term in product.terms(level)], axis=0)
    assert [len(saved["levels"]) for saved in apart.state(6)["factors"]] == (levels + 1).tolist()
    np.testing.assert_array_equal(again.functions(5).values(x), apart.functions(5).values(x))


def test_what_functions_cost_and_how_many_harmonics_take_as_long() -> None:
    """Cubes of what is solved for, less for waves, nothing for averages."""
    few = Invariants.of(Sphere(3), Permutations(3))
    assert [(few.cost(level), few.terms(level)) for level in (1, 4)] == [(27, 3), (9**3, 9)]
    assert Invariants.of(Sphere(2), Rotations(3)).cost(5) == 2000
    assert Invariants.of(PeriodicBox([0, 0], [1, 1]), Permutations(2)).cost(1) == 4000
    averaged = Invariants.of(Sphere(8), Permutations(8))
    assert (averaged.cost(3), averaged.cost(4), averaged.terms(3)) == (112**3, 0, 112)  # of 112 and of 294 functions
    both = Invariants.of(Product(Sphere(3), Circle()), DirectProduct(Cyclic(3), Rotations(4)))
    assert [both.cost(level) for level in (1, 2)] == [2000, 1000]  # of the levels (0, 1) and (1, 0)
    assert both.terms(2) == both.dimension(2)
