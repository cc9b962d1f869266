"""Equivariant functions of an eigenspace: averaged characters, matrices against products, orbits against matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

from daskspectral.groups import (
    Automorphisms,
    Cyclic,
    FullOrthogonal,
    Generated,
    Group,
    MatrixRepresentation,
    Orthogonal,
    Permutations,
    Product,
    Representation,
    Rotations,
    SignFlips,
    SpecialOrthogonal,
    Translations,
)
from daskspectral.manifolds import SO3, Circle, FlatTorus, Manifold, PeriodicBox, Sphere, invariant_coefficients
from daskspectral.manifolds import Product as ProductManifold
from daskspectral.manifolds import equivariants as module
from daskspectral.manifolds.eigenspace import dense
from daskspectral.manifolds.equivariants import Pairs, equivariant_coefficients, fixed_by_pairs
from daskspectral.manifolds.isometry import Isometry

Array = NDArray[Any]
CUBE = Generated([Permutations(3), SignFlips(3)])
FACES = Generated([CUBE, Translations([[0.5, 0.5, 0], [0, 0.5, 0.5]])])
THIRD = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
SIGNS = [np.array([[s]]) for s in (1.0, 1.0, -1.0, -1.0, -1.0)]  # of CUBE: permutations 1, a change of sign -1

CASES: dict[str, tuple[Manifold, Group, Any, int]] = {
    "vectors, cube": (Sphere(3), CUBE, "vector", 10),
    "pseudovectors, cube": (Sphere(3), CUBE, "pseudovector", 10),
    "pseudoscalars, cube": (Sphere(3), CUBE, "determinant", 10),
    "signs, cube": (Sphere(3), CUBE, SIGNS, 10),
    "vectors, permutations": (Sphere(4), Permutations(4), "vector", 6),
    "plane vectors, rotations": (Circle(), Rotations(5), "vector", 12),
    "square of vectors": (Sphere(3), Cyclic(3), [np.kron(THIRD, THIRD)], 5),
    "crystal": (PeriodicBox([0] * 3, [1] * 3), FACES, "vector", 14),
    "square lattice": (PeriodicBox([0, 0], [2, 2]), Automorphisms([[[0, -1], [1, 0]]]), "vector", 14),
    "characters of translations": (
        PeriodicBox([0], [1]),
        Translations([[0.25]]),
        [Rotations(4).generators[0].matrix],
        9,
    ),
    "torus": (FlatTorus(2), Product(Rotations(3), SignFlips(2)), "vector", 8),
    "rotations": (SO3(), Orthogonal([np.kron(THIRD, np.eye(3))]), [THIRD], 4),
    "product": (
        ProductManifold(Sphere(3), PeriodicBox([0], [1])),
        Product(SignFlips(3), Translations([[0.5]])),
        "vector",
        9,
    ),
}


def pairs_of(group: Group, output: Any) -> list[tuple[Isometry, Array]]:
    return list(Representation.of(output).pairs(group).isometries)


def solved(space: Any, pairs: list[tuple[Isometry, Array]]) -> Array:
    return dense(equivariant_coefficients(space, Pairs(pairs), len(pairs[0][1])))


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


@pytest.mark.parametrize("name", CASES)
def test_dimensions_are_averaged_characters_and_every_generator_acts_as_told(name: str) -> None:
    """r = mean over g of tr D(g) tr rho(g), and f(g x) = rho(g) f(x) at points."""
    manifold, group, output, levels = CASES[name]
    pairs, rng = pairs_of(group, output), np.random.default_rng(0)
    x, seen = manifold.sample(5, rng), 0
    for level in range(levels):
        space, k = manifold.eigenfunctions(level), len(pairs[0][1])
        u = solved(space, pairs)
        found = listed(space, pairs)
        count = np.mean([np.trace(d) * np.trace(rho) for d, rho in found])
        assert u.shape == (space.size * k, round(count))
        assert abs(count - round(count)) < 1e-9
        np.testing.assert_allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-12)
        a = u.reshape(space.size, k, -1)
        for g, rho in pairs:
            moved = np.einsum("cm,mkr->ckr", space.values(g(x)), a)
            np.testing.assert_allclose(moved, np.einsum("kl,cm,mlr->ckr", rho, space.values(x), a), atol=1e-11)
        seen += u.shape[1]
    assert seen


@pytest.mark.parametrize("name", CASES)
def test_trivial_outputs_are_invariant_functions(name: str) -> None:
    manifold, group, _, levels = CASES[name]
    ones = [(g, np.ones((1, 1))) for g in group.generators]
    for level in range(levels):
        space = manifold.eigenfunctions(level)
        u, v = solved(space, ones), dense(invariant_coefficients(space, group.generators))
        np.testing.assert_allclose(u @ u.T, v @ v.T, atol=1e-10)


@pytest.mark.parametrize("name", ["vectors, cube", "square of vectors", "rotations", "product"])
def test_products_find_what_matrices_find(name: str) -> None:
    manifold, group, output, levels = CASES[name]
    pairs = pairs_of(group, output)
    for level in (levels // 2, levels - 1):
        space = manifold.eigenfunctions(level)
        exact = solved(space, pairs)
        for width in (2, 8):
            found = fixed_by_pairs(space, Pairs(pairs), np.random.default_rng(1), width)
            np.testing.assert_allclose(found @ found.T, exact @ exact.T, atol=1e-9)


def test_large_eigenspaces_take_products(monkeypatch: pytest.MonkeyPatch) -> None:
    space, pairs = Sphere(3).eigenfunctions(9), pairs_of(CUBE, "vector")
    exact = solved(space, pairs)
    monkeypatch.setattr(module, "MOST_DENSE", 10)
    found = solved(space, pairs)
    assert found.shape == exact.shape
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, atol=1e-9)
    turned = scipy.linalg.expm(1e-7 * np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 0]]))
    with pytest.raises(ValueError, match=r"settle on equivariant functions, received vectors that a generator moves"):
        solved(space, [(Isometry(turned), turned)])


def test_sparse_on_tori_and_equal_to_the_matrices() -> None:
    manifold, group, output, _ = CASES["crystal"]
    pairs = pairs_of(group, output)
    for level in range(8, 14):
        space = manifold.eigenfunctions(level)
        u = equivariant_coefficients(space, Pairs(pairs), 3)
        assert isinstance(u, csr_array)
        whole = module.null_space([np.kron(dense(space.action(g)), rho) for g, rho in pairs])
        np.testing.assert_allclose((u @ u.T).toarray(), whole @ whole.T, atol=1e-10)


def test_generators_that_move_nothing() -> None:
    space = Sphere(3).eigenfunctions(2)
    np.testing.assert_array_equal(solved(space, [(Isometry(np.eye(3)), np.eye(2))]), np.eye(10))
    assert solved(space, [(Isometry(np.eye(3)), -np.eye(1))]).shape == (5, 0)  # f = -f


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), level=st.integers(0, 5), output=st.sampled_from(["vector", "pseudovector"]))
def test_conjugated_groups_have_conjugated_functions(seed: int, level: int, output: str) -> None:
    """Hidden subgroups of the cube, turned by a random rotation: dimensions are those of averaged characters."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    generators = [CUBE.word(rng, 6).matrix for _ in range(2)]
    space = Sphere(3).eigenfunctions(level)

    def dimension(matrices: list[Array]) -> int:
        return int(solved(space, pairs_of(Orthogonal(matrices), output)).shape[1])

    found = listed(space, pairs_of(Orthogonal(generators), output))
    count = np.mean([np.trace(d) * np.trace(rho) for d, rho in found])
    assert dimension(generators) == dimension([turn @ a @ turn.T for a in generators]) == round(count)


# -- continuous groups -------------------------------------------------------------------------------------------------


def rotation(rng: np.random.Generator) -> Array:
    """Uniform among the rotations of space."""
    q, r = np.linalg.qr(rng.standard_normal((3, 3)))
    q = q * np.sign(np.diag(r))
    return np.asarray(q * np.sign(np.linalg.det(q)))


@pytest.mark.parametrize(
    ("group", "output", "expected"),
    [
        # f: S^2 -> R^3 with f(g x) = g f(x) is x times a number, of degree 1
        (SpecialOrthogonal(3), "vector", [0, 1, 0, 0]),
        (FullOrthogonal(3), "vector", [0, 1, 0, 0]),
        (FullOrthogonal(3), "pseudovector", [0, 0, 0, 0]),
        (SpecialOrthogonal(3), "trivial", [1, 0, 0, 0]),
        # of two vectors, harmonics on S^5 of degree l are sums of products of degrees l1 + l2 = l, l - 2, ...
        (SpecialOrthogonal(3, copies=2), "vector", None),
        (FullOrthogonal(3, copies=2), "vector", None),
        (FullOrthogonal(3, copies=2), "pseudovector", None),
    ],
)
def test_continuous_groups_by_averages_over_rotations(group: Group, output: Any, expected: list[int] | None) -> None:
    """The mean of tr D(g) tr rho(g) over many random rotations, and every one acts as told."""
    copies = group.dimension // 3
    rho = dipole_of(group, output)
    manifold, rng = Sphere(group.dimension), np.random.default_rng(0)
    full = len(group.generators) > 0
    x = manifold.sample(4, rng)
    for level in range(4):
        space = manifold.eigenfunctions(level)
        u = dense(equivariant_coefficients(space, rho.pairs(group), rho.components(group)))
        a, k = u.reshape(space.size, rho.components(group), -1), rho.components(group)
        traces = []
        for _ in range(1500):
            turn = rotation(rng)
            for sign in (1, -1) if full else (1,):
                g = Isometry(np.kron(np.eye(copies), sign * turn))
                own = {"vector": sign * turn, "pseudovector": turn, "trivial": np.eye(1)}[output]
                traces.append(np.trace(dense(space.action(g))) * np.trace(own))
                if len(traces) < 20:
                    moved = np.einsum("cm,mkr->ckr", space.values(g(x)), a)
                    np.testing.assert_allclose(moved, np.einsum("kl,cm,mlr->ckr", own, space.values(x), a), atol=1e-10)
        error = np.std(traces) / np.sqrt(len(traces))
        assert abs(np.mean(traces) - u.shape[1]) < 5 * error + 1e-9
        if expected is not None:
            assert u.shape[1] == expected[level]
        found = fixed_by_pairs(space, rho.pairs(group), rng)
        np.testing.assert_allclose(found @ found.T, u @ u.T, atol=1e-8)
        assert k == {"trivial": 1}.get(output, 3)


def dipole_of(group: Group, output: str) -> Representation:
    """Rotations of several vectors together, and how one vector changes with them."""
    if group.dimension == 3 or output == "trivial":
        return Representation.of(output)
    sign = [g.matrix[:3, :3] for g in group.generators]
    if output == "pseudovector":
        sign = [np.linalg.det(s) * s for s in sign]
    return MatrixRepresentation(np.reshape(sign, (-1, 3, 3)), [x.matrix[:3, :3] for x in group.algebra])
