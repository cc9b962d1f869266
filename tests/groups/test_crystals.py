"""Space groups and plane groups: dimensions against averaged characters, extinctions, exact invariance, bad input."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import HarmonicBasis, InvariantBasis
from daskspectral.groups import (
    ContinuousTranslations,
    Exchange,
    Generated,
    Group,
    Isometry,
    Product,
    SpaceGroup,
    SpecialOrthogonal,
)
from daskspectral.groups.elements import elements
from daskspectral.manifolds import Manifold, PeriodicBox, PeriodicCell, invariant_coefficients
from daskspectral.manifolds import Product as ProductManifold
from daskspectral.manifolds.eigenspace import dense
from daskspectral.registry import decode, encode

Array = NDArray[Any]
Operations = Sequence[tuple[Array, Array]]
of = PeriodicCell.from_parameters

# number: cell, order in the conventional cell (International Tables: the multiplicity of the general position)
SPACE_GROUPS: dict[str, tuple[int, PeriodicCell, int]] = {
    "P1": (1, of(1, 1.3, 1.7, 80, 95, 107), 1),
    "P-1": (2, of(1, 1.3, 1.7, 80, 95, 107), 2),
    "P2_1/c": (14, of(1, 1.3, 1.7, beta=103), 4),
    "Pnma": (62, of(1, 1.2, 1.7), 8),
    "I4_1/amd": (141, of(1, 1, 2.3), 32),
    "R-3m": (166, PeriodicCell.hexagonal(1, 2.5), 36),
    "P6_3/mmc": (194, PeriodicCell.hexagonal(1, 1.63), 24),
    "Fm-3m": (225, of(2, 2, 2), 192),
    "Fd-3m": (227, of(2, 2, 2), 192),
    "Im-3m": (229, of(2, 2, 2), 96),
    "Ia-3d": (230, of(2, 2, 2), 96),
    "P2_13": (198, of(2, 2, 2), 12),
    "R32, rhombohedral axes": (155, of(1, 1, 1, 70, 70, 70), 6),
}
HALLS = {"R32, rhombohedral axes": 445}
NAMES = pytest.mark.parametrize("name", SPACE_GROUPS)

SIXTH, THIRD, MIRROR = [[1, -1], [1, 0]], [[0, -1], [1, -1]], [[0, -1], [-1, 0]]
PLANE_GROUPS: dict[str, tuple[PeriodicCell, list[tuple[Any, Any]], int]] = {
    "p6m": (PeriodicCell.hexagonal(1.5), [(SIXTH, [0, 0]), (MIRROR, [0, 0])], 12),
    "p3m1": (PeriodicCell.hexagonal(1.5), [(THIRD, [0, 0]), (MIRROR, [0, 0])], 6),
    "p31m": (PeriodicCell.hexagonal(1.5), [(THIRD, [0, 0]), ([[0, 1], [1, 0]], [0, 0])], 6),
    "p4g": (PeriodicCell(2 * np.eye(2)), [([[0, -1], [1, 0]], [0, 0]), ([[-1, 0], [0, 1]], [0.5, 0.5])], 8),
    "pgg": (PeriodicCell(np.diag([1.0, 1.4])), [(-np.eye(2), [0, 0]), ([[-1, 0], [0, 1]], [0.5, 0.5])], 4),
    "p2": (PeriodicCell([[1, 0], [0.3, 1.2]]), [(-np.eye(2), [0.2, 0.7])], 2),
    "cm": (PeriodicCell([[1, 0.4], [1, -0.4]]), [([[0, 1], [1, 0]], [0, 0])], 2),
}


def space_group(name: str) -> SpaceGroup:
    number, cell, _ = SPACE_GROUPS[name]
    return SpaceGroup.by_number(cell, number, hall=HALLS.get(name))


def tabulated(hall: int) -> Operations:
    import spglib

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
    reach = 10 if len(metric) == 3 else 14
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


def found_dimensions(manifold: Manifold, group: Group, levels: int) -> list[int]:
    group.check(manifold)
    spaces = (manifold.eigenfunctions(level) for level in range(levels))
    return [invariant_coefficients(space, group.generators).shape[1] for space in spaces]


@NAMES
def test_dimensions_of_space_groups_by_characters(name: str) -> None:
    number, cell, order = SPACE_GROUPS[name]
    group = space_group(name)
    hall = int(str(group.name).rpartition("=")[2].rstrip(")"))
    operations = tabulated(hall)
    assert group.order == len(operations) == order
    assert len(group.generators) <= 5
    assert group.name == f"{name.partition(',')[0]} ({number}, hall={hall})"
    v = cell.lattice
    assert found_dimensions(cell, group, 25) == dimensions(v @ v.T, operations, 25)


@pytest.mark.parametrize("name", PLANE_GROUPS)
def test_dimensions_of_plane_groups_by_characters(name: str) -> None:
    cell, operations, order = PLANE_GROUPS[name]
    group = SpaceGroup(cell, operations, name)
    every = closed(operations)
    assert group.order == len(every) == order
    v = cell.lattice
    assert found_dimensions(cell, group, 20) == dimensions(v @ v.T, every, 20)


@settings(max_examples=25, deadline=None)
@given(hall=st.integers(1, 530), seed=st.integers(0, 10**6))
def test_every_setting_acts_on_a_cell_of_its_metric(hall: int, seed: int) -> None:
    """A metric averaged over the group is one that it keeps."""
    operations, a = tabulated(hall), np.eye(3) + np.random.default_rng(seed).uniform(-0.3, 0.3, (3, 3))
    metric = np.mean([w.T @ a @ a.T @ w for w, _ in operations], axis=0)
    cell = PeriodicCell(np.linalg.cholesky(metric))
    group = SpaceGroup.by_number(cell, hall=hall)
    assert group.order == len(operations)
    assert found_dimensions(cell, group, 8) == dimensions(metric, operations, 8)
    x = cell.sample(4, np.random.default_rng(seed))
    for g, (w, t) in zip(group.generators, group.operations, strict=True):
        fractions = x @ np.linalg.inv(cell.lattice)
        np.testing.assert_allclose(g(x), (fractions @ w.T + t) @ cell.lattice, atol=1e-12)


def test_a_number_is_its_first_setting() -> None:
    import spglib

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers: list[Any] = [spglib.get_spacegroup_type(hall) for hall in range(1, 531)]
    first = {kind.number: kind.hall_number for kind in reversed(numbers)}
    assert len(first) == 230
    for number in (1, 2, 3, 48, 195, 229, 230):
        cell = of(2, 2, 2)
        assert f"({number}, hall={first[number]})" in repr(SpaceGroup.by_number(cell, number))
    assert SpaceGroup.by_number(of(2, 2, 2), 227, hall=526).name == "Fd-3m (227, hall=526)"


@pytest.mark.parametrize(
    ("name", "indices", "dimension"),
    [
        ("P2_1/c", (0, 1, 0), 0),  # 0k0: k = 2n
        ("P2_1/c", (0, 2, 0), 1),
        ("P2_1/c", (1, 0, 1), 0),  # h0l: l = 2n
        ("P2_1/c", (1, 0, 2), 1),
        ("Pnma", (0, 1, 2), 0),  # 0kl: k + l = 2n
        ("Pnma", (0, 1, 1), 1),
        ("Pnma", (1, 2, 0), 0),  # hk0: h = 2n
        ("Fm-3m", (1, 1, 0), 0),
        ("Fm-3m", (1, 1, 1), 1),
        ("Fd-3m", (2, 0, 0), 0),  # h00: h = 4n
        ("Fd-3m", (4, 0, 0), 1),
        ("Fd-3m", (4, 2, 0), 0),  # 0kl: k + l = 4n
        ("Ia-3d", (1, 1, 0), 0),
        ("Ia-3d", (2, 1, 1), 1),
        ("P2_13", (1, 0, 0), 0),
        ("P6_3/mmc", (0, 0, 1), 0),
        ("P6_3/mmc", (0, 0, 2), 1),
    ],
)
def test_systematic_absences(name: str, indices: tuple[int, int, int], dimension: int) -> None:
    """Reflection conditions of the International Tables: a level that holds this family of hkl and no other."""
    cell = SPACE_GROUPS[name][1]
    wanted = float((4 * np.pi**2) * np.sum((np.linalg.inv(cell.lattice) @ indices) ** 2))
    level = next(n for n in range(200) if cell.eigenvalue(n) > wanted * (1 - 1e-9))
    assert cell.eigenvalue(level) == pytest.approx(wanted)
    assert found_dimensions(cell, space_group(name), level + 1)[level] == dimension


@pytest.mark.parametrize(
    ("number", "primitive"),
    [(225, PeriodicCell.fcc(2)), (227, PeriodicCell.fcc(2)), (229, PeriodicCell.bcc(2)), (230, PeriodicCell.bcc(2))],
    ids=repr,
)
def test_primitive_cells_have_the_same_functions(number: int, primitive: PeriodicCell) -> None:
    group = SpaceGroup.by_number(of(2, 2, 2), number)
    whole, part = of(2, 2, 2), primitive
    found = [
        {
            round(cell.eigenvalue(level), 6): n
            for level, n in enumerate(found_dimensions(cell, group, levels))
            if n and cell.eigenvalue(level) < 300
        }
        for cell, levels in ((whole, 40), (part, 25))
    ]
    assert found[0] == found[1]
    assert len(found[0]) > 5
    assert len(elements(group, part, 200) or []) == 48
    assert found_dimensions(PeriodicBox([0] * 3, [2] * 3), group, 20) == found_dimensions(whole, group, 20)
    assert SpaceGroup.by_number(PeriodicBox([0] * 3, [2] * 3), number).order == group.order


CASES: dict[str, tuple[PeriodicCell, Any]] = {
    "P6_3/mmc": (SPACE_GROUPS["P6_3/mmc"][1], lambda: space_group("P6_3/mmc")),
    "P2_1/c": (SPACE_GROUPS["P2_1/c"][1], lambda: space_group("P2_1/c")),
    "Fd-3m on the primitive cell": (PeriodicCell.fcc(2), lambda: space_group("Fd-3m")),
    "p6m": (PLANE_GROUPS["p6m"][0], lambda: SpaceGroup(*PLANE_GROUPS["p6m"][:2])),
    "p4g": (PLANE_GROUPS["p4g"][0], lambda: SpaceGroup(*PLANE_GROUPS["p4g"][:2])),
}


def invariant_wells(x: Array, cell: PeriodicCell, group: Group) -> Array:
    """Smooth wells on the images of one point under every element, periodic by exp(cos)."""
    fractions = x @ np.linalg.inv(cell.lattice)
    visited = elements(group, cell, 1000)
    assert visited is not None
    value = np.zeros(len(x))
    for g in visited:
        image = g(x) @ np.linalg.inv(cell.lattice)
        value += np.exp(np.cos(2 * np.pi * (image - 0.13)).sum(axis=1) / 2)
    assert fractions.shape == x.shape
    return value / len(visited)


@pytest.mark.parametrize("name", CASES)
def test_regression_is_exactly_invariant_and_so_are_its_gradients(name: str) -> None:
    cell, make = CASES[name]
    group = make()
    rng = np.random.default_rng(0)
    x = cell.sample(1500, rng) + rng.integers(-2, 3, (1500, cell.ambient)) @ cell.lattice
    y = invariant_wells(x, cell, group)
    model = dsp.InvariantRegressor(cell, group, 3.0, n_eigenfunctions=400, solver="least_squares").fit(x, y)
    probe = cell.sample(50, rng)
    predicted = model.predict(probe)
    spread = y.std()
    assert np.sqrt(np.mean((predicted - invariant_wells(probe, cell, group)) ** 2)) < 0.1 * spread

    def gradient(points: Array) -> Array:
        return np.stack(
            [
                sum(
                    space.derivatives(points, np.broadcast_to(e, points.shape)) @ c
                    for space, c in zip(model.basis_.harmonic.levels, model.coef_, strict=False)
                )
                for e in np.eye(cell.ambient)
            ],
            axis=1,
        )

    slopes = gradient(probe)
    assert np.abs(slopes).max() > 0.1 * spread
    for _ in range(20):
        g = group.word(rng)
        assert np.abs(model.predict(g(probe)) - predicted).max() < 1e-12 * np.abs(predicted).max()
        np.testing.assert_allclose(gradient(g(probe)) @ g.matrix, slopes, atol=1e-11 * np.abs(slopes).max())
    for steps in rng.integers(-5, 6, (5, cell.ambient)):
        assert np.abs(model.predict(probe + steps @ cell.lattice) - predicted).max() < 1e-12 * np.abs(predicted).max()


def test_averages_over_the_elements() -> None:
    """The baseline, which visits every element, agrees on what is invariant."""
    cell, operations, order = PLANE_GROUPS["p4g"]
    group = SpaceGroup(cell, operations)
    visited = elements(group, cell, order)
    assert visited is not None
    assert len(visited) == order
    assert elements(group, cell, order - 1) is None
    rng = np.random.default_rng(0)
    x = cell.sample(150, rng)
    y = invariant_wells(x, cell, group)
    ridge = dsp.SobolevRidge(cell, group, 3.0, n_eigenfunctions=200).fit(x, y)
    probe = cell.sample(30, rng)
    np.testing.assert_allclose(ridge.predict(group.word(rng)(probe)), ridge.predict(probe), atol=1e-9)
    np.testing.assert_allclose(ridge.predict(probe), invariant_wells(probe, cell, group), atol=0.05 * y.std())


def test_the_same_group_in_cartesian_coordinates() -> None:
    cell, operations, _ = PLANE_GROUPS["p6m"]
    c, s = 0.5, np.sqrt(0.75)
    cartesian = Generated([Isometry([[c, -s], [s, c]]), Isometry([[c, -s], [-s, -c]])])
    assert found_dimensions(cell, cartesian, 20) == found_dimensions(cell, SpaceGroup(cell, operations), 20)


def test_flows_and_exchanges_on_oblique_cells() -> None:
    """Functions constant along lattice vectors, by their frequencies; two particles on one lattice, by characters."""
    cell = PeriodicCell([[1, 0], [-0.3, 1.2]])
    vectors, dual = cell.lattice, np.linalg.inv(cell.lattice).T
    k = np.array(list(itertools.product(range(-12, 13), repeat=2)))
    squares = 4 * np.pi**2 * ((k @ dual) ** 2).sum(axis=1)
    for n in ([1, 0], [0, 1], [1, 2], [2, -1]):
        group = ContinuousTranslations([n @ vectors])
        group.check(cell)
        for level in range(20):
            space = cell.eigenfunctions(level)
            here = k[np.abs(squares - space.eigenvalue) < 1e-6]
            u = invariant_coefficients(space, group.generators, group.algebra)
            assert u.shape[1] == np.count_nonzero(here @ n == 0)
    with pytest.raises(ValueError, match=r"2 pi b must be a sum of whole periods.* it is \[0\.5 0\. \] of them"):
        ContinuousTranslations([0.5 * vectors[0]]).check(cell)
    with pytest.raises(ValueError, match="its flow at s = 1 is no isometry: it takes"):
        SpecialOrthogonal(2).check(cell)

    pair = ProductManifold(cell, cell)
    inversion = SpaceGroup(cell, [(-np.eye(2), [0, 0])])
    single = Product(inversion, Generated([Isometry(np.eye(2))]))  # of the first particle; exchanged, of the second
    group = Generated([Exchange(2), single])
    group.check(pair)
    values = [cell.eigenvalue(level) for level in range(12) for _ in range(max(1, cell.multiplicity(level) // 2))]
    sums = np.sort([a + b for i, a in enumerate(values) for b in values[i:]])  # symmetric products of cosines
    for level in range(12):
        space = pair.eigenfunctions(level)
        u = invariant_coefficients(space, group.generators)
        assert u.shape[1] == np.count_nonzero(np.abs(sums - space.eigenvalue) < 1e-6)


def test_functions_of_subgroups_hold_those_of_the_group() -> None:
    """Fm-3m is a subgroup of Pm-3m on half the cube, and P1 has every function."""
    cell = of(2, 2, 2)
    harmonic = HarmonicBasis(cell, 400)
    small, large = (InvariantBasis(harmonic, SpaceGroup.by_number(cell, n)) for n in (216, 225))
    assert InvariantBasis(harmonic, SpaceGroup.by_number(cell, 1)).size == harmonic.size
    assert large.size < small.size
    for a, b in zip(small.vectors, large.vectors, strict=True):
        inside, u = dense(a), dense(b)
        np.testing.assert_allclose(inside @ (inside.T @ u), u, atol=1e-12)


def test_states_load_without_spglib(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    cell, group = SPACE_GROUPS["R-3m"][1], space_group("R-3m")
    x = cell.sample(300, np.random.default_rng(0))
    model = dsp.InvariantRegressor(cell, group, 2.0, 60, "least_squares").fit(x, np.cos(2 * np.pi * x[:, 2]))
    dsp.save(model, tmp_path / "model.zarr")
    monkeypatch.setitem(sys.modules, "spglib", None)
    again = dsp.load(tmp_path / "model.zarr")
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    other = decode(encode(group), Group)
    assert repr(other) == repr(group)
    assert other.order == group.order
    for g, h in zip(group.generators, other.generators, strict=True):
        np.testing.assert_array_equal(g.matrix, h.matrix)
        np.testing.assert_array_equal(g.shift, h.shift)
    with pytest.raises(ImportError, match=r'by number need spglib: pip install "daskspectral\[crystals\]"'):
        SpaceGroup.by_number(cell, 166)


def test_other_warnings_of_spglib_are_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    import spglib

    table = spglib.get_symmetry_from_database

    def warning(hall: int) -> Any:
        warnings.warn("the table moves", DeprecationWarning, stacklevel=2)
        return table(hall)

    monkeypatch.setattr(spglib, "get_symmetry_from_database", warning)
    with pytest.warns(DeprecationWarning, match="the table moves"):
        SpaceGroup.by_number(of(1, 1, 1), 225)


@pytest.mark.parametrize(
    ("number", "hall", "reason"),
    [
        (0, None, "number to be a whole number from 1 to 230, received 0"),
        (231, None, "number to be a whole number from 1 to 230, received 231"),
        (2.5, None, r"from 1 to 230, received 2\.5"),
        (True, None, "from 1 to 230, received True"),
        ("Fm-3m", None, "from 1 to 230, received 'Fm-3m'"),
        (None, 531, "hall to be a whole number from 1 to 530, received 531"),
        (None, None, "received neither"),
        (225, 525, "hall=525 is a setting of Fd-3m, number 227, not of number 225"),
    ],
)
def test_numbers_that_do_not_exist(number: Any, hall: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SpaceGroup.by_number(of(1, 1, 1), number, hall=hall)


def test_cells_that_do_not_fit() -> None:
    reason = (
        r"Fm-3m \(225, hall=523\) does not fit the cell: operation \d+, .*does not take the lattice of PeriodicCell\(.*"
    )
    with pytest.raises(
        ValueError,
        match=reason + r"takes vector \d, of length 1(\.1)?, to one of.*from_parameters, or choose another by hall=",
    ):
        SpaceGroup.by_number(of(1, 1, 1.1), 225)
    with pytest.raises(ValueError, match=r"takes vectors \d and \d, at 80 degrees, to ones at 100; give"):
        SpaceGroup.by_number(of(1, 1, 1, 80, 80, 80), 225)
    with pytest.raises(ValueError, match=r"R32 \(155, hall=444\) does not fit the cell"):
        SpaceGroup.by_number(of(1, 1, 1, 70, 70, 70), 155)
    with pytest.raises(ValueError, match="of three dimensions, and the cell has 2; give the operations of a plane"):
        SpaceGroup.by_number(PeriodicCell.hexagonal(1.0), 3)
    with pytest.raises(ValueError, match=r"generator \d of SpaceGroup\(Fm-3m.* does not act: .*PeriodicCell.*takes"):
        SpaceGroup.by_number(of(1, 1, 1), 225).check(PeriodicCell.hexagonal(1, 1))
    for cell in (dsp.manifolds.Sphere(3), np.eye(3)):
        with pytest.raises(TypeError, match=r"SpaceGroup takes a cell, such as PeriodicCell\.hexagonal\(1\.0\), first"):
            SpaceGroup.by_number(cell, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (
            ([[0, -1], [1, 0]], [0, 0]),
            r"operation 0, \[\[0, -1\], \[1, 0\]\], does not take the lattice of .*at 120 degrees, to",
        ),
        ((SIXTH, [0, 0, 0]), r"\(2, 2\) and a translation \(2,\) .* shapes \(2, 2\) and \(3,\) in operation 0"),
        ((np.eye(3), [0, 0]), r"received the shapes \(3, 3\)"),
        (([[0.5, -0.8], [0.8, 0.5]], [0, 0]), r"integers with determinant 1 or -1, .*Isometry\(A, b\), for Generated"),
        (([[2, 0], [0, 1]], [0, 0]), "determinant 1 or -1"),
        (([[np.nan, 0], [0, 1]], [0, 0]), "matrices of integers"),
        ((SIXTH, [0, np.inf]), "finite translations"),
        (("x", "y"), r"pairs \(W, w\) of numbers, received operation 0"),
        (7, r"pairs \(W, w\) of numbers, received operation 0: 7"),
    ],
)
def test_operations_of_no_symmetry(operation: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SpaceGroup(PeriodicCell.hexagonal(1.0), [operation])


def test_translations_with_few_digits() -> None:
    cell = PeriodicCell.hexagonal(1.0, 2.5)
    with pytest.raises(ValueError, match=r"generate a translation of 0.0001 of the cell's vectors.*such as 1 / 3 in"):
        SpaceGroup(cell, [(np.eye(3), [0.6667, 0.3333, 0.3333])])
    assert SpaceGroup(cell, [(np.eye(3), [2 / 3, 1 / 3, 1 / 3])]).order == 3
    assert SpaceGroup(cell, [(-np.eye(3), [np.sqrt(2), 0.1, 0.3])]).order == 2
    with pytest.raises(ValueError, match=r"generate a translation of 0.00087 of"):
        SpaceGroup(cell, [(np.eye(3), [np.sqrt(2), 0, 0])])
    assert SpaceGroup(cell, [(np.eye(3), [np.sqrt(2), np.sqrt(3), np.sqrt(5)])]).order is None
    assert SpaceGroup(cell, []).order == 1
