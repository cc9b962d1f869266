"""Space groups and plane groups: dimensions against averaged characters, extinctions, exact invariance, bad input."""

import itertools
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import spglib
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.groups import Group, SpaceGroup
from daskspectral.groups.elements import elements
from daskspectral.manifolds import Isometry, Manifold, PeriodicCell, invariant_coefficients
from daskspectral.manifolds.eigenspace import dense
from daskspectral.registry import decode, encode

Array = NDArray[Any]
Operations = Sequence[tuple[Array, Array]]
of = PeriodicCell.from_parameters
CUBE, HEXAGON = of(2, 2, 2), PeriodicCell.hexagonal(1.5)
SIXTH, MIRROR = [[1, -1], [1, 0]], [[0, -1], [-1, 0]]
PLANE_GROUPS: dict[str, tuple[PeriodicCell, list[tuple[Any, Any]], int]] = {
    "p6m": (HEXAGON, [(SIXTH, [0, 0]), (MIRROR, [0, 0])], 12),
    "p4g": (PeriodicCell(2 * np.eye(2)), [([[0, -1], [1, 0]], [0, 0]), ([[-1, 0], [0, 1]], [0.5, 0.5])], 8),
    "p2": (PeriodicCell([[1, 0], [0.3, 1.2]]), [(-np.eye(2), [0.2, 0.7])], 2),
}


def tabulated(hall: int) -> Operations:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = spglib.get_symmetry_from_database(hall)
    assert found is not None
    return list(zip(found["rotations"], found["translations"], strict=True))


def closed(operations: Operations) -> Operations:
    """All products, with translations modulo 1."""
    m = len(operations[0][1])
    found: list[tuple[Array, Array]] = [(np.eye(m), np.zeros(m))]
    for a, s in found:
        for b, t in operations:
            new = np.asarray(b) @ a, np.asarray(b) @ s + t
            same = (np.abs((w := s2 - new[1]) - np.rint(w)).max() < 1e-6 for c, s2 in found if (c == new[0]).all())
            if not any(same):
                found.append(new)
    return found


def dimensions(metric: Array, operations: Operations, levels: int) -> list[int]:
    """By characters: the mean over the elements f -> W f + w of the sum of exp(2 pi i k.w) over the k with k W = k."""
    reach = 7 if len(metric) == 3 else 14
    k = np.array(list(itertools.product(range(-reach, reach + 1), repeat=len(metric))))
    squares = np.einsum("ki,ij,kj->k", k, np.linalg.inv(metric), k)
    order = np.argsort(squares)
    k, squares = k[order], squares[order]
    complete = (reach / np.sqrt(metric.diagonal().max())) ** 2  # |k_i| <= |a_i| |sum k b|
    shells = np.split(k, np.flatnonzero(np.diff(squares) > 1e-9 * squares[1:]) + 1)[:levels]
    assert squares[sum(map(len, shells)) - 1] < complete
    traces = [
        sum(np.exp(2j * np.pi * (shell[(shell @ w == shell).all(axis=1)] @ t)).sum() for w, t in operations)
        for shell in shells
    ]
    found = np.array(traces) / len(operations)
    assert np.abs(found - np.rint(found.real)).max() < 1e-9
    return [int(n) for n in np.rint(found.real)]


def found_dimensions(manifold: Manifold, group: Group, levels: int, listed: Sequence[Isometry] = ()) -> list[int]:
    """Also by functions at points and at their images, which must be the same."""
    group.check(manifold)
    x, counts = manifold.sample(3, np.random.default_rng(0)), []
    for level in range(levels):
        space = manifold.eigenfunctions(level)
        u = dense(invariant_coefficients(space, group.generators, group.algebra))
        for g in (*group.generators, *listed):
            np.testing.assert_allclose(space.values(g(x)) @ u, space.values(x) @ u, atol=1e-9)
        counts.append(u.shape[1])
    return counts


@pytest.mark.parametrize("name", PLANE_GROUPS)
def test_dimensions_of_plane_groups_by_characters(name: str) -> None:
    cell, operations, order = PLANE_GROUPS[name]
    group = SpaceGroup(cell, operations, name)
    every = closed(operations)
    assert group.order == len(every) == order
    listed = elements(group, cell, order) or []
    assert len(listed) == order
    assert elements(group, cell, order - 1) is None
    assert found_dimensions(cell, group, 20, listed) == dimensions(cell.lattice @ cell.lattice.T, every, 20)


@settings(max_examples=12)
@given(hall=st.integers(1, 530), seed=st.integers(0, 10**6))
def test_every_setting_acts_on_a_cell_of_its_metric(hall: int, seed: int) -> None:
    """A metric averaged over the group is one that it keeps."""
    operations, a = tabulated(hall), np.eye(3) + np.random.default_rng(seed).uniform(-0.3, 0.3, (3, 3))
    metric = np.mean([w.T @ a @ a.T @ w for w, _ in operations], axis=0)
    cell = PeriodicCell(np.linalg.cholesky(metric))
    group = SpaceGroup.by_number(cell, hall=hall)
    assert group.order == len(operations)
    assert len(group.generators) <= 6
    assert found_dimensions(cell, group, 6) == dimensions(metric, operations, 6)
    x = cell.sample(4, np.random.default_rng(seed))
    for g, (w, t) in zip(group.generators, group.operations, strict=True):
        fractions = x @ np.linalg.inv(cell.lattice)
        np.testing.assert_allclose(g(x), (fractions @ w.T + t) @ cell.lattice, atol=1e-12)


@pytest.mark.parametrize(
    ("number", "hall", "name", "order"),
    [
        (1, None, "P1 (1, hall=1)", 1),
        (225, None, "Fm-3m (225, hall=523)", 192),
        (227, 526, "Fd-3m (227, hall=526)", 192),
        (None, 529, "Im-3m (229, hall=529)", 96),
    ],
)
def test_names_and_orders_of_the_tables(number: int | None, hall: int | None, name: str, order: int) -> None:
    """The first setting of a number; the order is the multiplicity of the general position."""
    group = SpaceGroup.by_number(CUBE, number, hall=hall)
    assert (group.name, group.order) == (name, order)


def test_states_are_read_without_spglib(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = PeriodicCell.hexagonal(1, 2.5)
    group = SpaceGroup.by_number(cell, 166)
    monkeypatch.setitem(sys.modules, "spglib", None)
    other = decode(encode(group), Group)
    assert (repr(other), other.order) == (repr(group), 36)
    for g, h in zip(group.generators, other.generators, strict=True):
        np.testing.assert_array_equal(g.matrix, h.matrix)
        np.testing.assert_array_equal(g.shift, h.shift)
    with pytest.raises(ImportError, match=r'by number need spglib: pip install "daskspectral\[crystals\]"'):
        SpaceGroup.by_number(cell, 166)


@pytest.mark.parametrize(
    ("cell", "number", "hall", "reason"),
    [
        (CUBE, 0, None, "number to be a whole number from 1 to 230, received 0"),
        (CUBE, None, 531, "hall to be a whole number from 1 to 530, received 531"),
        (CUBE, None, None, "received neither"),
        (CUBE, 225, 525, "hall=525 is a setting of Fd-3m, number 227, not of number 225"),
        (of(1, 1, 1.1), 225, None, r"Fm-3m \(225, .*does not fit .* takes vector \d, of length 1(\.1)?, to one of"),
        (of(1, 1, 1, 80, 80, 80), 225, None, r"takes vectors \d and \d, at 80 degrees, to ones at 100; give"),
        (HEXAGON, 3, None, "of three dimensions, and the cell has 2; give the operations of a plane"),
    ],
)
def test_numbers_that_do_not_fit(cell: PeriodicCell, number: Any, hall: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SpaceGroup.by_number(cell, number, hall=hall)


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (([[0, -1], [1, 0]], [0, 0]), r"operation 0, .* does not take the lattice of .*at 120 degrees, to ones at 60"),
        ((SIXTH, [0, 0, 0]), r"\(2, 2\) and a translation \(2,\) .* shapes \(2, 2\) and \(3,\) in operation 0"),
        (([[0.5, -0.8], [0.8, 0.5]], [0, 0]), r"integers with determinant 1 or -1, .*Isometry\(A, b\), for Generated"),
        ((SIXTH, [0, np.inf]), "finite translations"),
        (("x", "y"), r"pairs \(W, w\) of numbers, received operation 0"),
    ],
)
def test_operations_of_no_symmetry(operation: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SpaceGroup(HEXAGON, [operation])


def test_translations_with_few_digits() -> None:
    cell = PeriodicCell.hexagonal(1.0, 2.5)

    def order(*translation: float, sign: float = 1.0) -> int | None:
        return SpaceGroup(cell, [(sign * np.eye(3), translation)]).order

    near: list[Callable[[], Any]] = [lambda: order(0.6667, 0.3333, 0.3333), lambda: order(1 / 3 + 3e-9, 0, 0)]
    for make in near:
        with pytest.raises(ValueError, match=r"generate a translation of \S+ of the cell's vectors.*such as 1 / 3 in"):
            make()
    assert order(2 / 3, 1 / 3, 1 / 3) == 3
    assert order(1 / 3 + 1e-10, 0, 0) == 3
    assert order(np.sqrt(2), 0.1, 0.3, sign=-1.0) == 2
    assert order(np.sqrt(2), np.sqrt(3), np.sqrt(5)) is None
    assert [order(1 / k, 1 / 7, 0) for k in (285, 286)] == [1995, None]  # above 2000 elements are not counted
    assert SpaceGroup(cell, []).order == 1
    quarter = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    up, down = (quarter, [0, 0, 0.25]), (quarter, [0, 0, -0.25])
    screws = [SpaceGroup(of(1, 1, 2), operations) for operations in ([up, up], [down, up])]
    assert [(len(screw.operations), screw.order) for screw in screws] == [(1, 4), (2, 8)]
    assert len(SpaceGroup(cell, [(np.eye(3), [1 / 4, 0, 0]), (np.eye(3), [1 / 2, 0, 0])]).operations) == 1
