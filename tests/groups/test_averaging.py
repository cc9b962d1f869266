"""Averages over a group from its generators: which one is taken, and the elements of finite groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.groups import (
    Cyclic,
    FullOrthogonal,
    Generated,
    Group,
    Isometry,
    LieGroup,
    Orthogonal,
    Permutations,
    PhaseRotations,
    Product,
    Rotations,
    SignFlips,
    SpecialOrthogonal,
)
from daskspectral.groups.averaging import average_over
from daskspectral.groups.elements import orthogonal_elements
from daskspectral.groups.invariants import Invariants
from daskspectral.manifolds import Circle, Manifold, PeriodicBox, Sphere
from daskspectral.manifolds import Product as ProductManifold
from daskspectral.manifolds.averages import CircleAverage, FiniteAverage, PermutationAverage, RotationAverage

Array = NDArray[np.float64]
SWAP = Isometry(np.eye(9)[[1, 0, 2, 3, 4, 5, 6, 7, 8]])
TILT = Isometry(np.kron(np.eye(3), np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]))
IRRATIONAL = Isometry([[np.cos(1), -np.sin(1), 0], [np.sin(1), np.cos(1), 0], [0, 0, 1]])
ATOMS = Generated([FullOrthogonal(3, copies=3), Orthogonal(np.kron(np.eye(3)[[[1, 0, 2], [1, 2, 0]]], np.eye(3)))])

FOUND: dict[str, tuple[Group, type]] = {
    "few elements": (Permutations(4), FiniteAverage),
    "permutations": (Permutations(8), PermutationAverage),
    "more permutations": (Permutations(30), PermutationAverage),
    "signed permutations": (Generated([SignFlips(6), Permutations(6)]), PermutationAverage),
    "and the inversion": (Generated([Permutations(9), Isometry(-np.eye(9))]), PermutationAverage),
    "signs alone": (SignFlips(8), PermutationAverage),
    "two blocks": (Product(Permutations(5), Permutations(4)), PermutationAverage),
    "cyclic shifts and signs": (Generated([Cyclic(9), SignFlips(9)]), FiniteAverage),
    "cyclic shifts and signs of many": (Generated([Cyclic(20), SignFlips(20)]), type(None)),
    "an irrational turn": (Generated([IRRATIONAL]), type(None)),
    "rotations": (SpecialOrthogonal(3, copies=2), RotationAverage),
    "atoms": (ATOMS, RotationAverage),
    "atoms, tilted": (Generated([ATOMS, TILT]), RotationAverage),
    "atoms and a swap of coordinates": (Generated([ATOMS, SWAP]), type(None)),
    "rotations in four dimensions": (SpecialOrthogonal(4, copies=2), type(None)),
    "a circle": (PhaseRotations([1, -2]), CircleAverage),
    "a circle and its mirror": (
        LieGroup([[[0, -1, 0], [1, 0, 0], [0, 0, 0]]], [np.diag([1.0, -1, 1])]),
        CircleAverage,
    ),
    "a circle and a permutation": (
        LieGroup([[[0, -1, 0], [1, 0, 0], [0, 0, 0]]], [np.eye(3)[[1, 2, 0]]]),
        type(None),
    ),
    "in the plane": (Rotations(5), type(None)),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_average_of_a_group(name: str) -> None:
    group, wanted = FOUND[name]
    found = average_over([g.matrix for g in group.generators], [x.matrix for x in group.algebra])
    assert type(found) is wanted


CASES: dict[str, tuple[Manifold, Group, int]] = {
    "permutations": (Sphere(6), Permutations(6), 4),
    "signed permutations": (Sphere(5), Generated([SignFlips(5), Permutations(5)]), 6),
    "blocks, and the inversion": (
        Sphere(5),
        Generated([Product(Permutations(3), SignFlips(2)), Isometry(-np.eye(5))]),
        4,
    ),
    "atoms": (Sphere(9), ATOMS, 2),
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
        assert type(built).__name__ == "Combination"
        assert invariants.dimension(level) == built.size
        assert invariants.average.functions(level).size == built.size


@settings(max_examples=10, deadline=None)
@given(d=st.integers(3, 5), count=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_elements_are_closed_and_distinct(d: int, count: int, seed: int) -> None:
    """Signed permutations, conjugated by a random rotation."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    plain = [np.eye(d)[rng.permutation(d)] @ np.diag(rng.choice([-1.0, 1.0], d)) for _ in range(count)]
    generators = turn @ np.array(plain) @ turn.T
    found = orthogonal_elements(generators, 10_000)
    assert found is not None
    assert len(np.unique((turn.T @ found @ turn).round(6) + 0.0, axis=0)) == len(found)
    assert (2**d * np.prod(np.arange(1, d + 1))) % len(found) == 0  # Lagrange
    for g in generators:
        distance = np.abs((found @ g)[:, None] - found[None]).max(axis=(2, 3)) if len(found) <= 200 else None
        assert distance is None or (distance.min(axis=1) < 1e-9).all()
    assert orthogonal_elements(generators, len(found)) is not None
    assert len(found) == 1 or orthogonal_elements(generators, len(found) - 1) is None


def test_products_of_invariant_functions_need_factors_moved_one_at_a_time() -> None:
    product = ProductManifold(ProductManifold(Sphere(3), Circle()), PeriodicBox([0], [1]))
    apart = Invariants.of(product, Product(Product(Cyclic(3), Rotations(4)), SignFlips(1)))
    assert [factor.manifold for factor in apart.factors] == [Sphere(3), Circle(), PeriodicBox([0], [1])]
    tied = Generated([Isometry(np.diag([-1.0, 1, 1, 1, 1, 1]), [0, 0, 0, 0, 0, 0.5])])
    assert Invariants.of(product, tied).factors == ()
    for level in range(6):
        assert apart.dimension(level) == apart.functions(level).size
    exchanged = Generated([Isometry(np.roll(np.eye(6), 3, axis=0))])
    assert Invariants.of(ProductManifold(Sphere(3), Sphere(3)), exchanged).factors == ()


def test_an_eigenspace_that_does_not_fit_into_memory_is_refused_by_its_size() -> None:
    group = Generated([Cyclic(20), SignFlips(20)])
    with pytest.raises(ValueError, match=r"at most 20000 functions .* received 168245 at level 6 of Sphere"):
        Invariants.of(Sphere(20), group).functions(6)
