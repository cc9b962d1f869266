"""Invariant and equivariant functions of an eigenspace: Molien, averaged characters, closed forms, gaps."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.groups import (
    Cyclic,
    DirectProduct,
    Exchange,
    Generated,
    Group,
    LieGroup,
    Orthogonal,
    Permutations,
    PhaseRotations,
    Representation,
    Rotations,
    SignFlips,
    SpecialOrthogonal,
    Translations,
)
from daskspectral.manifolds import (
    Circle,
    FlatTorus,
    Interval,
    Isometry,
    Manifold,
    PeriodicBox,
    Product,
    Sphere,
    invariant_coefficients,
    invariants,
)
from daskspectral.manifolds.eigenspace import dense
from daskspectral.manifolds.invariants import equivariant_coefficients

Array = NDArray[Any]
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])
CUBE = Generated([Permutations(3), SignFlips(3)])
THIRD = np.eye(3)[[2, 0, 1]]
S, C, BOX = Sphere(3), Circle(), PeriodicBox([0], [1])
FACES = Generated([CUBE, Translations([[0.5, 0.5, 0], [0, 0.5, 0.5]])])


def coefficients(space: Any, group: Group) -> Array:
    return dense(invariant_coefficients(space, group.generators, group.algebra))


def solved(space: Any, pairs: Any, components: int) -> Array:
    return dense(equivariant_coefficients(space, pairs, components))


def listed(space: Any, pairs: list[tuple[Isometry, Array]]) -> list[tuple[Array, Array]]:
    """All products of D(g) and rho(g), by multiplying matrices until nothing is new."""
    first = [(dense(space.action(g)), rho) for g, rho in pairs]
    m, k, rng = space.size, len(first[0][1]), np.random.default_rng(0)
    left, right = rng.standard_normal((m, m)), rng.standard_normal((k, k))  # random sums tell products apart
    found, sums = [(np.eye(m), np.eye(k))], np.array([[np.trace(left), np.trace(right)]])
    for a, b in found:
        for d, rho in first:
            new = d @ a, rho @ b
            own = np.sum(left * new[0]), np.sum(right * new[1])
            if np.abs(sums - own).max(axis=1).min() > 1e-7:
                found.append(new)
                sums = np.concatenate([sums, [own]])
    return found


CASES: dict[str, tuple[Manifold, Group, Any, int]] = {
    "vectors, cube": (S, CUBE, "vector", 8),
    "square of vectors": (S, Cyclic(3), [np.kron(THIRD, THIRD)], 4),
    "crystal": (PeriodicBox([0] * 3, [1] * 3), FACES, "vector", 9),
    "interval": (Interval([-1] * 3, [1] * 3), CUBE, None, 9),
    "torus": (FlatTorus(2), DirectProduct(Rotations(3), SignFlips(2)), "vector", 7),
    "product": (Product(S, BOX), DirectProduct(SignFlips(3), Translations([[0.5]])), "vector", 7),
    "exchange": (Product(S, S), Exchange(3), None, 5),
    "exchanged and turned": (Product(C, C), Orthogonal([np.kron([[0, 1], [1, 0]], TURN)]), None, 6),
}


@pytest.mark.parametrize("name", CASES)
def test_dimensions_are_averaged_characters_and_every_generator_acts_as_told(name: str) -> None:
    """r = mean over g of tr D(g) tr rho(g), and f(g x) = rho(g) f(x) at points."""
    manifold, group, output, levels = CASES[name]
    representation = Representation.of([np.eye(1)] * len(group.generators) if output is None else output)
    pairs, rng = representation.pairs(group), np.random.default_rng(0)
    isometries = list(zip(group.generators, representation.matrices(group), strict=True))
    x, k, seen = manifold.sample(5, rng), representation.components(group), 0
    for level in range(levels):
        space = manifold.eigenfunctions(level)
        u = solved(space, pairs, k)
        count = np.mean([np.trace(d) * np.trace(rho) for d, rho in listed(space, isometries)])
        assert u.shape == (space.size * k, round(count))
        np.testing.assert_allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-12)
        a = u.reshape(space.size, k, -1)
        for g, rho in isometries:
            moved = np.einsum("cm,mkr->ckr", space.values(g(x)), a)
            np.testing.assert_allclose(moved, np.einsum("kl,cm,mlr->ckr", rho, space.values(x), a), atol=1e-11)
        seen += u.shape[1]
        if output is None:
            own = coefficients(space, group)
            np.testing.assert_allclose(own @ own.T, u @ u.T, atol=1e-10)
    assert seen


# fields


@pytest.mark.parametrize(
    ("manifold", "group", "level"),
    [
        (Sphere(6), SpecialOrthogonal(3, 2), 4),
        (Product(S, S), SpecialOrthogonal(3, 2), 5),
        (FlatTorus(3), LieGroup(PhaseRotations([1, 1, 0]).algebra, [np.eye(6)[[2, 3, 0, 1, 4, 5]]]), 3),
    ],
    ids=repr,
)
def test_fields_and_isometries_together(manifold: Manifold, group: Group, level: int) -> None:
    """The null space of all actions stacked, as scipy has it."""
    space = manifold.eigenfunctions(level)
    stack = [dense(space.action(g)) - np.eye(space.size) for g in group.generators]
    null = scipy.linalg.null_space(np.vstack([*stack, *(dense(space.derived_action(x)) for x in group.algebra)]))
    assert 0 < null.shape[1] < space.size
    found = coefficients(space, group)
    np.testing.assert_allclose(found @ found.T, null @ null.T, atol=1e-10)


# gaps


def test_a_gap_is_demanded() -> None:
    def turns(*angles: float) -> Array:
        return scipy.linalg.expm(np.kron(np.diag(angles), TURN))

    assert invariants.null_space([turns(1e-4)]).shape == (2, 0)
    assert invariants.null_space([np.eye(2)]).shape == (2, 2)
    with pytest.raises(ValueError, match="gap"):
        invariants.null_space([turns(1e-8, 1e-7, 1e-6, 1e-5)])
    with pytest.raises(ValueError, match=r"0\.2"):
        invariants.null_space([], [0.2 * TURN])
