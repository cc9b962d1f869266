"""Kernel ridge regression with the Sobolev kernel against dense oracles, its averages, and what it refuses."""

import itertools

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import eval_legendre
from sklearn.base import clone

import daskspectral as dsp
from daskspectral import SobolevRidge
from daskspectral.basis import HarmonicBasis
from daskspectral.groups import (
    Cyclic,
    Generated,
    Isometry,
    Orthogonal,
    Permutations,
    Rotations,
    SignFlips,
    Translations,
)
from daskspectral.groups import Product as Both
from daskspectral.groups.elements import elements
from daskspectral.manifolds import SO3, Circle, FlatTorus, PeriodicBox, Product, Sphere
from daskspectral.solve.sections import sections

ROOM = 10**9  # bytes
BOX = PeriodicBox([0.0, -1.0], [2.0, 1.0])
CASES = {
    "sphere": (Sphere(3), Permutations(3), 2.0),
    "sphere in R^4": (Sphere(4), Cyclic(4), 2.0),
    "circle": (Circle(), Rotations(5), 1.0),
    "box": (BOX, Generated([SignFlips(2), Translations([[1.0, 0.5]])]), 1.5),
    "torus": (FlatTorus(2), Rotations(3, 4, (2, 3)), 1.5),
    "rotations": (SO3(), Orthogonal([np.kron(np.diag([-1.0, -1.0, 1.0]), np.eye(3))]), 2.0),
    "product": (Product(Circle(), BOX), Both(Rotations(3), SignFlips(2)), 2.0),
}
IDENTITY = [Isometry(np.eye(3))]


def data(manifold, n, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    x = manifold.sample(n, rng)
    return x, np.sin(2 * x[:, 0]) + x[:, 1] + noise * rng.standard_normal(n)


def dense_kernel(manifold, count, s, x, y):
    """sum D_lambda^-alpha phi(x) phi(y), from the functions' values."""
    harmonic = HarmonicBasis(manifold, count)
    weights = harmonic.cumulative.astype(float) ** (-2 * s / manifold.dimension)
    left, right = (np.concatenate([space.values(z) for space in harmonic.levels], axis=1) for z in (x, y))
    return (left * weights) @ right.T


@pytest.mark.parametrize("name", CASES)
def test_kernel_is_the_sum_over_eigenfunctions_and_its_mean_over_the_group(name):
    manifold, group, s = CASES[name]
    x, z = manifold.sample(9, np.random.default_rng(1)), manifold.sample(7, np.random.default_rng(2))
    every = elements(group, manifold, 100)
    for visited in (every[:1], every):
        found = sections(manifold, 120, 2 * s / manifold.dimension, x, visited, room=ROOM)
        expected = np.mean([dense_kernel(manifold, 120, s, g(z), x) for g in visited], axis=0)
        np.testing.assert_allclose(found.combined(z, np.eye(9)), expected, atol=1e-11)
        expected = np.mean([dense_kernel(manifold, 120, s, g(x), x) for g in visited], axis=0)
        np.testing.assert_allclose(found.gram(), expected, atol=1e-11)


def test_zonal_kernel_of_high_degree():
    x = Sphere(3).sample(5, np.random.default_rng(0))
    found = sections(Sphere(3), 10_000, 2.0, x, IDENTITY, room=ROOM).gram()  # degrees up to 99, D_l = (l + 1)^2
    expected = sum((2 * k + 1) * eval_legendre(k, x @ x.T) / (k + 1) ** 4.0 for k in range(100))
    np.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_fit_is_the_dense_solution(name):
    manifold, _, s = CASES[name]
    x, y = data(manifold, 30)
    z = manifold.sample(11, np.random.default_rng(5))
    model = SobolevRidge(manifold, smoothness=s, n_eigenfunctions=150, alpha=0.01).fit(x, y)
    k = dense_kernel(manifold, 150, s, x, x)
    c = np.linalg.solve(k + 30 * 0.01 * np.eye(30), y)
    np.testing.assert_allclose(model.predict(z), dense_kernel(manifold, 150, s, z, x) @ c, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_averages_and_augmented_data_are_the_same_function(name):
    manifold, group, s = CASES[name]
    x, y = data(manifold, 25)
    z = manifold.sample(11, np.random.default_rng(5))
    rng = np.random.default_rng(0)
    for alpha in (1e-3, None):
        averaged = SobolevRidge(manifold, group, s, n_eigenfunctions=100, alpha=alpha).fit(x, y)
        augmented = SobolevRidge(manifold, group, s, "augment", n_eigenfunctions=100, alpha=alpha).fit(x, y)
        assert averaged.n_elements_ == augmented.n_elements_ == len(elements(group, manifold, 100))
        assert len(augmented.dual_coef_) == averaged.n_elements_ * 25
        assert augmented.alpha_ == pytest.approx(averaged.alpha_, rel=1e-3)  # of the refinement's steps
        assert augmented.gcv_ == pytest.approx(averaged.gcv_, rel=1e-6)
        found, largest = averaged.predict(z), np.abs(y).max()
        np.testing.assert_allclose(augmented.predict(z), found, atol=1e-8 if alpha else 1e-4)
        for model in (averaged, augmented):
            moved = group.word(rng)(z)
            np.testing.assert_allclose(model.predict(moved), model.predict(z), atol=1e-10 * largest)
    plain = SobolevRidge(manifold, group, s, "none", n_eigenfunctions=100).fit(x, y)
    assert plain.n_elements_ == 1
    np.testing.assert_array_equal(
        plain.predict(z), SobolevRidge(manifold, smoothness=s, n_eigenfunctions=100).fit(x, y).predict(z)
    )


def test_the_penalty_has_the_least_score_and_this_is_cross_validation():
    x, y = data(Sphere(3), 40, noise=0.3)
    model = SobolevRidge(Sphere(3), n_eigenfunctions=400).fit(x, y)
    k = dense_kernel(Sphere(3), 400, 2.0, x, x)
    scores = {}
    for alpha in model.alpha_ * np.array([0.3, 0.97, 1.0, 1.03, 3.0]):
        hat = k @ np.linalg.inv(k + 40 * alpha * np.eye(40))
        left = 1 - np.trace(hat) / 40
        scores[alpha] = np.mean((y - hat @ y) ** 2) / left**2 * (1 + 2 * (np.trace(hat @ hat) / 40) ** 2)
    assert min(scores, key=scores.get) == model.alpha_
    assert model.gcv_ == pytest.approx(scores[model.alpha_], rel=1e-8)


def test_without_noise_it_interpolates_and_is_better_with_the_group():
    manifold, group = Sphere(3), Permutations(3)
    rng = np.random.default_rng(0)
    x, z = manifold.sample(150, rng), manifold.sample(300, rng)
    errors = {
        how: np.abs(
            SobolevRidge(manifold, group, 2.0, how).fit(x, np.exp(x.sum(1))).predict(z) - np.exp(z.sum(1))
        ).max()
        for how in ("none", "average")
    }
    assert errors["average"] < 0.1 * errors["none"] < 0.1 * 0.2


def test_several_targets_share_a_penalty():
    x, y = data(Sphere(3), 30)
    both = clone(SobolevRidge(Sphere(3))).fit(x, np.column_stack([y, y**2]))
    z = Sphere(3).sample(4, np.random.default_rng(1))
    assert both.predict(z).shape == (4, 2)
    assert both.dual_coef_.shape == (30, 2)
    one = SobolevRidge(Sphere(3), alpha=both.alpha_).fit(x, y**2)
    np.testing.assert_allclose(both.predict(z)[:, 1], one.predict(z), atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([Permutations(4), Cyclic(7), SignFlips(5), Rotations(12), Rotations(7, 3, (2, 0)), Permutations(1)])
)
def test_elements_are_as_many_as_the_order_and_closed(group):
    manifold = Sphere(group.dimension) if group.dimension > 1 else PeriodicBox([0], [1])
    found = elements(group, manifold, 500)
    assert len(found) == group.order
    assert found[0].trivial
    assert elements(group, manifold, group.order - 1) is None
    matrices = np.array([g.matrix for g in found])
    apart = np.abs(matrices[:, None] - matrices[None]).max(axis=(2, 3))
    assert (apart + np.eye(len(found)) > 0.1).all()
    product = found[-1].matrix @ found[len(found) // 2].matrix
    assert np.abs(matrices - product).max(axis=(1, 2)).min() < 1e-12


def test_elements_of_groups_without_an_order():
    assert len(elements(Translations([[0.5, 0.25]]), BOX, 100)) == 8  # of sides 2 and 2
    assert len(elements(Generated([Translations([[1.0, 0.0]]), SignFlips(2)]), BOX, 100)) == 8
    cube = Generated([Permutations(3), SignFlips(3)])
    found = {tuple(np.rint(g.matrix).astype(int).ravel()) for g in elements(cube, Sphere(3), 48)}
    signed = {
        tuple((np.diag(signs) @ np.eye(3, dtype=int)[list(order)]).ravel())
        for order in itertools.permutations(range(3))
        for signs in itertools.product((-1, 1), repeat=3)
    }
    assert found == signed
    turn = np.sqrt(2)
    irrational = Orthogonal([[[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]])
    assert elements(irrational, Circle(), 1000) is None


def test_values_of_eigenfunctions_that_do_not_fit(monkeypatch):
    monkeypatch.setattr("daskspectral.estimators.sobolev.available", lambda: 8 * 20 * 100)
    x, y = data(Circle(), 20)
    SobolevRidge(Circle(), n_eigenfunctions=99).fit(x, y)
    with pytest.raises(MemoryError, match=r"101 eigenfunctions at 20 points take .* GB are free; lower n_eigen"):
        SobolevRidge(Circle(), n_eigenfunctions=101).fit(x, y)


def test_refused():
    x, y = data(Sphere(3), 20)
    ten = Sphere(10).sample(20, np.random.default_rng(0))
    with pytest.raises(
        ValueError, match=r"more than max_elements=10000 elements \(3.63e\+06\).*use InvariantRegressor"
    ):
        SobolevRidge(Sphere(10), Permutations(10), 5.0).fit(ten, y)
    with pytest.raises(ValueError, match=r"max_elements=5 .*InvariantRegressor"):
        SobolevRidge(Sphere(3), Generated([Permutations(3)]), 2.0, max_elements=5).fit(x, y)
    with pytest.raises(ValueError, match=r"would have 20 rows, and max_rows is 10; use InvariantRegressor"):
        SobolevRidge(Sphere(3), max_rows=10).fit(x, y)
    with pytest.raises(ValueError, match=r"120 rows, 20 for each of 6 elements of Permutations.*max_rows is 100"):
        SobolevRidge(Sphere(3), Permutations(3), 2.0, "augment", max_rows=100).fit(x, y)
    with pytest.raises(ValueError, match=r"smoothness must be above half the dimension of Sphere\(d=3\), 1"):
        SobolevRidge(Sphere(3), smoothness=1.0).fit(x, y)
    with pytest.raises(ValueError, match="expected points on Sphere"):
        SobolevRidge(Sphere(3)).fit(2 * x, y)
    with pytest.raises(ValueError, match=r"X has 3 columns, and points of .* have 10 coordinates"):
        SobolevRidge(Sphere(10), smoothness=5.0).fit(x, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SobolevRidge(Sphere(3)).fit(x, y[:-1])
    with pytest.raises(ValueError, match="does not act"):
        SobolevRidge(BOX, Rotations(3)).fit(BOX.sample(20, np.random.default_rng(0)), y)
    with pytest.raises(ValueError, match="symmetrize must be 'average' or 'augment' or 'none'"):
        SobolevRidge(Sphere(3), symmetrize="mean").fit(x, y)
    with pytest.raises(TypeError, match="manifold must be one of"):
        SobolevRidge("sphere").fit(x, y)
    with pytest.raises(TypeError, match="group must be one of"):
        SobolevRidge(Sphere(3), group=3).fit(x, y)
    with pytest.raises(ValueError, match="expected points on Sphere"):
        dsp.SobolevRidge(Sphere(3)).fit(x, y).predict(0.5 * x)


def test_fields_with_labels(tmp_path):
    rng = np.random.default_rng(3)
    coords = {"time": np.arange(60) * 0.5, "lat": [-60.0, 0.0], "lon": [0.0]}
    x = xr.DataArray(rng.uniform(-1, 1, (60, 2, 1)), coords, ("time", "lat", "lon"), name="x")
    y = xr.DataArray(np.sin(x.values[:, 0, 0]), {"time": x.time}, ("time",), name="flux", attrs={"units": "W"})
    flat = x.values.reshape(60, 2) * np.sqrt([0.5, 1.0])
    ridge = SobolevRidge(n_eigenfunctions=60, sample_dims="time", latitude="lat")
    wanted = SobolevRidge(n_eigenfunctions=60).fit(flat, y.values)
    x.to_dataset().to_zarr(tmp_path / "x.zarr", zarr_format=2)
    for rows in (x, x.chunk({"time": 20}), x.transpose("lon", "lat", "time"), tmp_path / "x.zarr"):
        found = clone(ridge).fit(rows, y)
        predicted = found.predict(rows)
        np.testing.assert_allclose(predicted, wanted.predict(flat), rtol=1e-9)
        assert (predicted.name, predicted.dims, predicted.attrs) == ("flux", ("time",), {"units": "W"})
        assert found.score(x, y) == pytest.approx(wanted.score(flat, y.values))
    two = xr.concat([y, -y], "station").assign_coords(station=["a", "b"])
    both = clone(ridge).fit(x, two).predict(x)
    assert both.dims == ("time", "station")
    assert both.station.values.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="y and X do not align"):
        clone(ridge).fit(x, y[::-1])
    with pytest.raises(ValueError, match="SobolevRidge takes no sample weights"):
        SobolevRidge(sample_dims=("time", "lat"), latitude="lat").fit(x, x[:, :, 0])
    with pytest.raises(ValueError, match="other columns than the fit"):
        found.predict(x.isel(lat=[1, 0]))
    with pytest.raises(ValueError, match="would have 60 rows"):
        clone(ridge).set_params(max_rows=50).fit(x.chunk({"time": 20}), y)
