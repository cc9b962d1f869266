"""Groups by generators: orders against the elements counted one by one, refusals, words, states."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.groups import (
    Automorphisms,
    Cyclic,
    Generated,
    Group,
    Isometry,
    Orthogonal,
    Permutations,
    Product,
    Rotations,
    SignFlips,
    Translations,
)
from daskspectral.manifolds import SO3, Circle, FlatTorus, Manifold, PeriodicBox, Sphere
from daskspectral.manifolds import Product as ProductManifold
from daskspectral.registry import decode, encode


def elements(group: Group, most: int = 1000) -> list[Isometry]:
    """All elements, by multiplying until nothing is new."""
    found = [Isometry(np.eye(group.dimension))]
    seen = {found[0].matrix.round(6).tobytes()}
    for g in found:
        for generator in group.generators:
            new = generator @ g
            key = (new.matrix.round(6) + 0.0).tobytes()
            if key not in seen:
                seen.add(key)
                found.append(new)
        assert len(found) <= most
    return found


@pytest.mark.parametrize(
    "group",
    [
        Permutations(1),
        Permutations(2),
        Permutations(3),
        Permutations(5),
        Cyclic(1),
        Cyclic(2),
        Cyclic(6),
        SignFlips(1),
        SignFlips(5),
        Rotations(1),
        Rotations(7),
        Rotations(4, 5, plane=(3, 1)),
        Product(Permutations(3), Rotations(5)),
        Product(SignFlips(2), Product(Cyclic(3), Permutations(1))),
    ],
    ids=repr,
)
def test_orders_by_enumeration(group: Group) -> None:
    assert len(elements(group)) == group.order
    for g in group.generators:
        np.testing.assert_allclose(g.matrix @ g.matrix.T, np.eye(group.dimension), atol=1e-15)


def test_orders_are_never_enumerated() -> None:
    assert Permutations(20).order == factorial(20)
    assert SignFlips(300).order == 2**300
    assert len(Permutations(200).generators) == 2
    assert Generated([Permutations(3), SignFlips(3)]).order is None
    assert len(elements(Generated([Permutations(3), SignFlips(3)]))) == 48
    assert Product(Permutations(3), Orthogonal([np.eye(2)])).order is None


def test_what_generators_do() -> None:
    x = np.array([[1.0, 2, 3, 4]])
    swap, cycle = Permutations(4).generators
    assert swap(x).tolist() == [[2, 1, 3, 4]]
    assert cycle(x).tolist() == [[4, 1, 2, 3]]
    assert SignFlips(4).generators[2](x).tolist() == [[1, 2, -3, 4]]
    np.testing.assert_allclose(Rotations(4, 4, plane=(1, 3)).generators[0](x), [[1, -4, 3, 2]], atol=1e-15)
    shift = Translations([[0.5, 0, 0, -1]]).generators[0]
    assert shift(x).tolist() == [[1.5, 2, 3, 3]]
    assert (shift @ cycle)(x).tolist() == [[4.5, 1, 2, 2]] == shift(cycle(x)).tolist()
    assert (shift @ cycle).inverse((shift @ cycle)(x)).tolist() == x.tolist()


def test_words_are_elements() -> None:
    group = Generated([Permutations(4), SignFlips(4)])
    rng = np.random.default_rng(0)
    words = [group.word(rng, 30) for _ in range(100)]
    for g in words:
        np.testing.assert_array_equal(np.abs(g.matrix) @ np.abs(g.matrix.T), np.eye(4))
    assert len({g.matrix.tobytes() for g in words}) > 60
    assert Cyclic(1).word(rng).trivial
    assert Permutations(3).word(rng, 0).trivial


def test_isometries_are_accepted() -> None:
    for manifold, group in [
        (Sphere(20), Permutations(20)),
        (Circle(), Rotations(7)),
        (PeriodicBox([-1] * 10, [1] * 10), Generated([SignFlips(10), Permutations(10), Translations([[0.5] * 10])])),
        (PeriodicBox([0] * 2, [2 * np.pi] * 2), Automorphisms([[[0, 1], [-1, 0]]])),
        (SO3(), Orthogonal([np.kron(np.eye(3), np.eye(3)[[1, 2, 0]])])),
        (FlatTorus(2), Rotations(5, 4)),
        (ProductManifold(Sphere(3), Circle()), Product(Cyclic(3), Rotations(3))),
    ]:
        group.check(manifold)


@pytest.mark.parametrize(
    ("manifold", "group", "reason"),
    [
        (Sphere(3), Permutations(4), r"Sphere\(d=3\) has 3 coordinates, and Permutations\(d=4\) acts on 4; give"),
        (FlatTorus(2), Permutations(4), r"generator 1 of Permutations\(d=4\) does not act: .* moves points off"),
        (PeriodicBox([0, 0], [1, 2]), Permutations(2), r"generator 0 .* takes side 1, of length 2, to side 0"),
        (Sphere(2), Translations([[1.0, 0]]), r"generator 0 of Translations.* shifts the coordinates"),
        (PeriodicBox([0, 0], [1, 1]), Rotations(6), r"generator 0 of Rotations.* not a signed permutation"),
    ],
    ids=repr,
)
def test_other_groups_are_refused(manifold: Manifold, group: Group, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        group.check(manifold)


def test_states_give_the_same_generators() -> None:
    for group in (
        Permutations(1),
        Generated([Permutations(3), SignFlips(3)]),
        Generated([Translations([[0.1, 0.2]]), SignFlips(2)]),
    ):
        again = decode(encode(group), Group)
        assert repr(again) == repr(group)
        assert again.dimension == group.dimension
        for a, b in zip(group.generators, again.generators, strict=True):
            np.testing.assert_array_equal(a.matrix, b.matrix)
            np.testing.assert_array_equal(a.shift, b.shift)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"expected d to be a whole number of 1 or more, received 0"):
        Permutations(0)
    with pytest.raises(ValueError, match=r"expected k to be a whole number"):
        Rotations(2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"two of the coordinates 0 to 1, received \(0, 2\)"):
        Rotations(3, plane=(0, 2))
    with pytest.raises(ValueError, match=r"number 1\) with A A\^T off the identity by 3;.*polar"):
        Orthogonal([np.eye(2), np.diag([1, 2])])
    with pytest.raises(ValueError, match=r"square matrices \(k, d, d\), at least one; received shape \(2, 2\)"):
        Orthogonal(np.eye(2))
    with pytest.raises(ValueError, match=r"matrices of integers"):
        Automorphisms([np.eye(2) / 2])
    with pytest.raises(ValueError, match=r"determinants 1 or -1, received 2"):
        Automorphisms([np.diag([1, 2])])
    with pytest.raises(ValueError, match=r"unimodular but shears"):
        Automorphisms([[[1, 1], [0, 1]]])
    with pytest.raises(ValueError, match=r"act on the same coordinates; they act on \[2, 3\]"):
        Generated([Permutations(3), Rotations(4)])
    with pytest.raises(ValueError, match=r"at least one"):
        Generated([])
    with pytest.raises(TypeError, match=r"Product takes two groups"):
        Product(Permutations(3), np.eye(3))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"finite vectors \(k, m\)"):
        Translations([1.0, 2.0])
    assert dsp.groups.Permutations is Permutations
