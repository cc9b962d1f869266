"""JacobiCoordinates and MolecularSymmetry: the metric, the group, gradients both ways, containers, refusals."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import ortho_group
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.groups import MolecularSymmetry
from daskspectral.groups.atoms import jacobi_matrix
from daskspectral.groups.invariants import Invariants
from daskspectral.manifolds import Sphere

Array = NDArray[np.floating[Any]]
WATER = [16.0, 1.0, 1.0]


def positions(n: int, atoms: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(n, 3 * atoms))


def energy(x: Array) -> Array:
    """A sum over pairs, smooth."""
    at = x.reshape(len(x), -1, 3)
    pairs = np.sum((at[:, :, None] - at[:, None]) ** 2, axis=3)
    return np.asarray(np.exp(-pairs / 4).sum(axis=(1, 2)))


def slope(x: Array) -> Array:
    """Its gradient, by complex steps."""
    found = np.empty(x.shape)
    for j in range(x.shape[1]):
        moved = x.astype(complex)
        moved[:, j] += 1e-30j
        at = moved.reshape(len(x), -1, 3)
        pairs = np.sum((at[:, :, None] - at[:, None]) ** 2, axis=3)
        found[:, j] = np.exp(-pairs / 4).sum(axis=(1, 2)).imag / 1e-30
    return found


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.1, 50), min_size=2, max_size=6), st.integers(0, 2**31))
def test_jacobi_vectors_are_the_moment_of_inertia_and_do_not_see_translations(masses: list[float], seed: int) -> None:
    a, m = jacobi_matrix(masses), np.array(masses)
    np.testing.assert_allclose(a @ np.diag(1 / m) @ a.T, np.eye(len(m) - 1), atol=1e-12)
    np.testing.assert_allclose(a @ np.ones(len(m)), 0, atol=1e-12 * np.abs(a).max())
    x = np.random.default_rng(seed).normal(size=(len(m), 3))
    centre = m @ x / m.sum()
    np.testing.assert_allclose(np.sum((a @ x) ** 2), m @ np.sum((x - centre) ** 2, axis=1), rtol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([(1.0, 1.0, 1.0, 1.0), (16.0, 1.0, 1.0), (1.0, 2.0, 1.0, 2.0)]))
def test_coordinates_move_as_the_group_says(seed: int, masses: tuple[float, ...]) -> None:
    """Rotations, reflections, translations and exchanges of atoms, against the word of the group that they make."""
    rng = np.random.default_rng(seed)
    n = len(masses)
    x = rng.normal(size=(5, n, 3))
    c = dsp.JacobiCoordinates(list(masses)).fit(positions(50, n))
    turn, shift = ortho_group.rvs(3, random_state=rng), rng.normal(size=3)
    same = [p for p in permutations(range(n)) if all(masses[i] == masses[j] for i, j in enumerate(p))]
    order = list(same[rng.integers(len(same))])
    moved = c.transform((x[:, order] @ turn.T + shift).reshape(5, -1))
    before = c.transform(x.reshape(5, -1))
    np.testing.assert_allclose(moved[:, 0], before[:, 0], rtol=1e-12)
    a = jacobi_matrix(masses)
    g = np.kron(a @ np.eye(n)[order] @ np.diag(1 / np.array(masses)) @ a.T, turn)
    np.testing.assert_allclose(moved[:, 1:], before[:, 1:] @ g.T, atol=1e-12)
    np.testing.assert_allclose(g @ g.T, np.eye(len(g)), atol=1e-12)


def test_the_group_acts_on_the_manifold_and_counts_as_molien_says() -> None:
    """O(3) x S_4 on S^8: dimensions by Molien's series, from an average over permutations and rotation angles."""
    group = MolecularSymmetry([1, 1, 1, 1])
    c = dsp.JacobiCoordinates([1, 1, 1, 1]).fit(positions(50, 4))
    group.check(c.manifold_)
    a = jacobi_matrix([1] * 4)
    theta = (np.arange(400) + 0.5) * np.pi / 400
    weight = (1 - np.cos(theta)) / np.sum(1 - np.cos(theta))  # Haar measure of SO(3) by its angles
    t = 0.3 * np.exp(2j * np.pi * np.arange(64) / 64)
    series = np.zeros(64, dtype=complex)
    for order in permutations(range(4)):
        p = np.linalg.eigvals(a @ np.eye(4)[list(order)] @ a.T)
        for sign in (1, -1):
            turns = sign * np.stack([np.ones(400), np.exp(1j * theta), np.exp(-1j * theta)])
            values = (p[:, None, None] * turns).reshape(9, 400)
            series += (weight / np.prod(1 - t[:, None, None] * values[None], axis=1)).sum(axis=1) / 48
    harmonic = np.fft.fft(series * (1 - t**2)).real / 64 / 0.3 ** np.arange(64)
    sphere = dsp.groups.Generated(
        [dsp.groups.FullOrthogonal(3, 3), *(dsp.groups.Isometry(g.matrix[1:, 1:]) for g in group.generators)]
    )
    found = Invariants.of(Sphere(9), sphere)
    assert [found.dimension(level) for level in range(13)] == np.rint(harmonic[:13]).astype(int).tolist()


@pytest.mark.parametrize("masses", [WATER, [1.0, 1.0, 1.0, 1.0]])
def test_gradients_go_both_ways(masses: list[float]) -> None:
    x = positions(20, len(masses))
    c = dsp.JacobiCoordinates(masses).fit(x)
    there = c.gradient_of_coordinates(x, slope(x))
    z = c.transform(x)
    np.testing.assert_allclose(np.sum(there[:, 1:] * z[:, 1:], axis=1), 0, atol=1e-12)  # tangent to the sphere
    np.testing.assert_allclose(c.gradient_of_positions(x, there), slope(x), atol=1e-12)
    step = 1e-6 * np.random.default_rng(1).normal(size=x.shape)  # the chain rule
    change = np.sum(there * (c.transform(x + step) - c.transform(x - step)), axis=1)
    np.testing.assert_allclose(change, 2 * np.sum(slope(x) * step, axis=1), rtol=1e-4, atol=1e-12)


def test_a_potential_with_its_forces() -> None:
    """Of a molecule of water's kind: exactly invariant, and its gradients are the forces."""
    rng = np.random.default_rng(2)
    x, new = rng.uniform(-1, 1, (1500, 9)), rng.uniform(-0.8, 0.8, (200, 9))
    c = dsp.JacobiCoordinates(WATER).fit(np.concatenate([x, new]))
    model = dsp.InvariantRegressor(c.manifold_, c.group_)
    model.fit(c.transform(x), energy(x), gradients=c.gradient_of_coordinates(x, slope(x)))
    error = model.predict(c.transform(new)) - energy(new)
    assert np.sqrt(np.mean(error**2)) < 0.05 * energy(new).std()
    forces = c.gradient_of_positions(new, model.predict_gradient(c.transform(new)))
    assert np.sqrt(np.mean((forces - slope(new)) ** 2)) < 0.15 * slope(new).std()
    turn = ortho_group.rvs(3, random_state=rng)
    moved = (new.reshape(-1, 3, 3)[:, [0, 2, 1]] @ turn.T + 5).reshape(len(new), -1)
    np.testing.assert_allclose(model.predict(c.transform(moved)), model.predict(c.transform(new)), atol=1e-9)
    turned = c.gradient_of_positions(moved, model.predict_gradient(c.transform(moved)))
    np.testing.assert_allclose(turned.reshape(-1, 3, 3)[:, [0, 2, 1]] @ turn, forces.reshape(-1, 3, 3), atol=1e-8)


def test_species_with_one_mass() -> None:
    """Isotopes of different names stay apart; carbon and nitrogen of one mass do not exchange."""
    assert len(MolecularSymmetry([1, 1, 1]).generators) == 3
    assert len(MolecularSymmetry([1, 1, 1], ["a", "b", "a"]).generators) == 2
    assert len(MolecularSymmetry([1, 2, 3]).generators) == 1


def test_containers_and_files(tmp_path: Path) -> None:
    x = positions(60, 3)
    c = dsp.JacobiCoordinates(WATER, species=["O", "H", "H"]).fit(da.from_array(x, chunks=(20, 9)))
    z = c.transform(x)
    lazy = c.transform(da.from_array(x, chunks=(20, 9)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), z)
    np.testing.assert_allclose(z[:, 0].mean(), 1, rtol=1e-12)
    c.save(tmp_path / "c.zarr")
    again = dsp.load(tmp_path / "c.zarr")
    np.testing.assert_array_equal(again.transform(x), z)
    assert again.manifold_ == c.manifold_
    assert again.group_ == c.group_
    assert clone(c).get_params() == c.get_params()


@pytest.mark.parametrize(
    ("masses", "species", "columns", "message"),
    [
        ([1], None, 3, "two atoms or more"),
        ([1, -1], None, 6, "positive masses"),
        ([1, np.nan], None, 6, "positive masses"),
        ([1, 1], ["H"], 6, "a species for each of 2 atoms"),
        ([1, 2], ["H", "H"], 6, r"atoms of one species have one mass; those of 'H' have \[1.0, 2.0\]"),
        ([1, 1], None, 9, "X has 9 columns, and 2 atoms have 6 coordinates"),
        (None, None, 2, "X has 2 columns; x, y, z of one atom after another are three an atom"),
    ],
)
def test_what_is_refused(masses: Any, species: Any, columns: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dsp.JacobiCoordinates(masses, species=species).fit(np.random.default_rng(0).standard_normal((10, columns)))


def test_rows_that_are_refused() -> None:
    x = positions(10, 2)
    with pytest.raises(ValueError, match="all rows have the hyperradius"):
        dsp.JacobiCoordinates([1, 1]).fit(np.tile(x[:1], (10, 1)))
    c = dsp.JacobiCoordinates([1, 1]).fit(x)
    x[3] = np.tile([1.0, 2, 3], 2)
    with pytest.raises(ValueError, match=r"all atoms coincide in 1 of 10 rows"):
        c.transform(x)
    with pytest.raises(ValueError, match="all atoms coincide in row 3"):
        c.gradient_of_positions(x, np.zeros((10, 4)))
    with pytest.raises(ValueError, match=r"expected positions \(n, 6\) and a gradient \(n, 4\)"):
        c.gradient_of_positions(x, np.zeros((10, 6)))
