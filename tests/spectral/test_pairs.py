"""Two fields of the same rows: canonical correlations and maximum covariance analysis, against numpy."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.spectral.shifts import _validation_values
from tests.common import assert_close, reloaded, unreliable

pytestmark = unreliable

Array = NDArray[Any]
RNG = np.random.default_rng(0)
SHARED = RNG.standard_normal((400, 3))
X = SHARED @ RNG.standard_normal((3, 6)) + RNG.standard_normal((400, 6)) + 7
Y = SHARED @ RNG.standard_normal((3, 5)) * 2 + RNG.standard_normal((400, 5)) - 1e3
WEIGHT = RNG.integers(1, 3, 400).astype(float)


def about_means(x: Array, weight: Array) -> Array:
    return np.asarray(x - np.average(x, axis=0, weights=weight))


def fields() -> tuple[xr.DataArray, xr.DataArray]:
    time = np.arange(400)
    x = xr.DataArray(X.reshape(400, 2, 3), {"time": time}, ("time", "lat", "lon"), name="t")
    return x, xr.DataArray(Y, {"time": time}, ("time", "station"), name="rain")


def whitened(x: Array, weight: Array) -> tuple[Array, Array]:
    """An orthonormal basis (n, d) of weighted columns about their means, and these columns."""
    centered = about_means(x, weight)
    return np.linalg.qr(np.sqrt(weight / weight.sum())[:, None] * centered)[0], centered


def test_canonical_correlations_of_fields_are_cosines_between_the_spans_of_their_columns() -> None:
    model = dsp.CCA(3, solver=dsp.solvers.Truncated()).fit(X, Y, sample_weight=WEIGHT)
    u, values, vt = np.linalg.svd(whitened(X, WEIGHT)[0].T @ whitened(Y, WEIGHT)[0])
    assert_close(model.singular_values_, values[:3], 1e-9)
    for side, data, turn in ((None, X, u), ("right", Y, vt.T)):
        scores = np.asarray(model.transform(data, side=side))
        wanted = whitened(data, WEIGHT)[0] @ turn[:, :3] / np.sqrt(WEIGHT / WEIGHT.sum())[:, None]
        signs = np.sign(np.sum(scores * wanted, axis=0))
        assert_close(scores, wanted * signs, 1e-7)
    assert (model.validation_values_ < model.singular_values_).all()


@pytest.mark.parametrize("rows", [400, 5])
@pytest.mark.parametrize("standardize", [False, True])
def test_maximum_covariance_is_the_decomposition_of_the_covariance_of_both(rows: int, standardize: bool) -> None:
    x, y, weight = X[:rows], Y[:rows], WEIGHT[:rows]
    data = dsp.Rows(x, standardize=standardize), dsp.Rows(y, standardize=standardize)
    model = dsp.MCA(3, folds=None if rows < 100 else 10).fit(*data, sample_weight=weight)
    centered = [about_means(z, weight) for z in (x, y)]
    if standardize:
        centered = [z / np.sqrt(np.average(z**2, axis=0, weights=weight)) for z in centered]
    u, values, vt = np.linalg.svd(centered[0].T * (weight / weight.sum()) @ centered[1])
    assert_close(model.singular_values_, values[:3], 1e-9)
    for side, raw, z, turn in ((None, x, centered[0], u), ("right", y, centered[1], vt.T)):
        scores, wanted = np.asarray(model.transform(raw, side=side)), z @ turn[:, :3]
        assert_close(scores, wanted * np.sign(np.sum(scores * wanted, axis=0)), 1e-7)
    assert model.score(x, y, sample_weight=weight) == pytest.approx(np.sum(values[:3] ** 2), rel=1e-6)


def test_columns_that_do_not_vary_have_no_covariance() -> None:
    with pytest.warns(dsp.RankWarning, match="ranks 0 and 0"):
        assert dsp.MCA(1).fit(X, np.ones((400, 2))).singular_values_.shape == (0,)
    with pytest.raises(ValueError, match="columns that vary"):
        dsp.CCA(1).fit(X, np.ones((400, 2)))


def test_covariances_are_held_out_by_folds() -> None:
    labels = np.arange(400) % 5
    model = dsp.MCA(1, folds=labels).fit(X, Y)
    form, fitted = 0.0, []
    for fold in range(5):
        others, own = labels != fold, labels == fold
        means = X[others].mean(axis=0), Y[others].mean(axis=0)
        u, s, vt = np.linalg.svd((X[others] - means[0]).T @ (Y[others] - means[1]) / others.sum())
        form += ((X[own] - means[0]) @ u[:, 0]) @ ((Y[own] - means[1]) @ vt[0]) / 400
        fitted.append(s[0])
    assert model.validation_values_[0] == pytest.approx(form, rel=1e-9)
    deviations = np.array(fitted) - np.mean(fitted)
    assert model.standard_errors_[0] == pytest.approx(np.sqrt(4 / 5 * np.sum(deviations**2)), rel=0.01)
    assert (model.function_errors_ > 0).all()


@pytest.mark.parametrize("kind", [dsp.CCA, dsp.MCA])
def test_pairs_of_fields_have_labels_and_are_saved(kind: Any) -> None:
    x, y = fields()
    model = kind(2).fit(x, y)
    again = reloaded(model)
    scores = again.transform(y, side="right")
    assert scores.dims == ("time", "mode")
    np.testing.assert_array_equal(scores, model.transform(Y, side="right"))
    found, name = model.to_xarray((x, y), details=True), kind._value_name
    assert found.components1.dims == ("mode", "lat", "lon")
    assert found.components2.dims == ("mode", "station")
    for data, number in ((X, "1"), (Y, "2")):
        score = found[f"scores{number}"].values
        np.testing.assert_allclose(score.std(axis=1), 1, rtol=1e-6)
        wanted = score @ (data - data.mean(axis=0)) / len(data)
        np.testing.assert_allclose(found[f"components{number}"].values.reshape(2, -1), wanted, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(found[f"{name}_held_out"], model.validation_values_)
    assert (found[f"{name}_lower"] <= found[name]).all()
    if kind is dsp.MCA:
        centered = [about_means(z, np.ones(400)) for z in (X, Y)]
        values = np.linalg.svd(centered[0].T @ centered[1], compute_uv=False)
        assert_close(found.squared_covariance_fraction.values, (values**2 / np.sum(values**2))[:2], 1e-9)
    repeated = kind(**model.search_results_.best_params).fit(x, y)
    np.testing.assert_array_equal(repeated.singular_values_, model.singular_values_)


def test_fields_on_different_grids_keep_their_coordinates() -> None:
    """The second field has dimensions of its own, lat2 and others, where its coordinates differ."""
    rng = np.random.default_rng(0)
    x = xr.DataArray(rng.standard_normal((60, 2, 3)), {"lat": [10, 20], "lon": [0, 1, 2]}, ("time", "lat", "lon"))
    y = xr.DataArray(rng.standard_normal((60, 2, 2)), {"lat": [10, 20], "lon": [5, 6]}, ("time", "lat", "lon"))
    y = y.assign_coords(area=(("lat", "lon"), np.ones((2, 2)))) + x[..., :2].values
    rows = [dsp.Rows(one, sample_dims="time") for one in (x, y)]
    found = dsp.MCA(1).fit(*rows).to_xarray((x, y))
    assert found.components1.dims == ("mode", "lat", "lon")
    assert found.components2.dims == ("mode", "lat", "lon2")
    assert found.area.dims == ("lat", "lon2")
    assert found.lon2.values.tolist() == [5, 6]
    assert not found.components1.isnull().any()
    assert not found.components2.isnull().any()
    unlabeled = dsp.MCA(1).fit(x.values.reshape(60, -1), y.values.reshape(60, -1)).to_xarray()
    assert (unlabeled.components1.dims, unlabeled.components2.dims) == (("mode", "feature"), ("mode", "feature2"))


@pytest.mark.parametrize("method", ["rotated", "hilbert", "timescales_", "first_passage", "metastable_sets"])
def test_methods_of_other_fields_are_not_there(method: str) -> None:
    assert not hasattr(dsp.CCA, method)
    assert not hasattr(dsp.EOF if method not in ("rotated", "hilbert") else dsp.Koopman, method)


@pytest.mark.parametrize(("kind", "name"), [(dsp.EOF, "operator"), (dsp.CCA, "basis"), (dsp.Koopman, "operator")])
def test_parts_that_a_class_fixes_are_not_set(kind: Any, name: str) -> None:
    model = kind()
    with pytest.raises(AttributeError, match=f"{name} of {kind.__name__} is fixed"):
        setattr(model, name, None)


def wide(shared: float) -> tuple[Array, Array]:
    """Two fields of 100 times at 120 places, of which one mode of each correlates so."""
    rng = np.random.default_rng(1)
    both = rng.standard_normal((100, 1))

    def field() -> Array:
        scores = rng.standard_normal((100, 5)) * [5, 4, 3, 2, 1]
        scores[:, :1] = 5 * (np.sqrt(shared) * both + np.sqrt(1 - shared) * scores[:, :1] / 5)
        maps = np.linalg.qr(rng.standard_normal((120, 5)))[0]
        return np.asarray(scores @ maps.T + 0.1 * rng.standard_normal((100, 120)))

    return field(), field()


@pytest.mark.parametrize("kind", [dsp.CCA, dsp.MCA])
def test_pairs_are_beyond_chance_if_something_is_shared(kind: Any) -> None:
    for shared in (0.0, 0.9):
        x, y = wide(shared)
        model = kind(2, folds="blocks").fit(x, y)
        assert model.beyond_chance_[0] == (shared > 0)
        assert f"{model.beyond_chance_.sum()} of 2 pairs beyond chance" in repr(reloaded(model))


def test_wide_fields_are_reduced_to_their_components_first() -> None:
    """Correlations are those of the scores that keep 80 % of the variances."""
    x, y = wide(0.9)
    model = dsp.CCA(2, folds="blocks", solver=dsp.solvers.Truncated()).fit(x, y)
    scores = []
    for data in (x, y):
        u, s, _ = np.linalg.svd(data - data.mean(axis=0), full_matrices=False)
        scores.append(u[:, : 1 + int(np.searchsorted(np.cumsum(s**2) / np.sum(s**2), 0.8))])
    assert_close(model.singular_values_, np.linalg.svd(scores[0].T @ scores[1])[1][:2], 1e-8)
    assert (model.moments_.basis.size, model.moments_.right_basis.size) == tuple(u.shape[1] for u in scores)
    two = dsp.CCA(2, n_pca=2, folds=None, solver=dsp.solvers.Truncated()).fit(x, y)
    assert_close(two.singular_values_, np.linalg.svd(scores[0][:, :2].T @ scores[1][:, :2])[1], 1e-8)
    for wrong in (0, -0.5, 1.5, "all", True):
        with pytest.raises(ValueError, match="n_pca"):
            dsp.CCA(2, n_pca=wrong).fit(x, y)


def test_each_field_has_a_separate_latitude() -> None:
    x, y = fields()
    x = x.assign_coords(lat=[0.0, 60.0])
    model = dsp.MCA(2).fit(dsp.Rows(x, latitude="lat"), dsp.Rows(y))
    plain = dsp.MCA(2).fit(X * np.repeat(np.sqrt([1, 0.5]), 3), Y)
    assert_close(model.singular_values_, plain.singular_values_, 1e-9)
    other = dsp.MCA(2).fit(dsp.Rows(y), dsp.Rows(x, latitude="lat"))
    assert_close(other.singular_values_, plain.singular_values_, 1e-9)
    assert_close(other.transform(x, side="right").std("time").values, model.transform(x).std("time").values, 1e-9)


@pytest.mark.parametrize("covariances", [False, True])
def test_validated_pairs_are_those_of_a_loop_over_blocks(covariances: bool) -> None:
    x, y = X[:103] - 7, np.column_stack([Y[:103], Y[:103, 0]]) + 1e3  # a column twice: a covariance without an inverse
    products, squares = np.zeros(2), np.zeros((2, 2))
    for block in np.array_split(np.arange(103), 10):
        rest = np.setdiff1d(np.arange(103), block)
        a, b = (z[rest] - z[rest].mean(axis=0) for z in (x, y))
        roots = [np.eye(z.shape[1]) if covariances else np.linalg.svd(z, full_matrices=False)[2].T for z in (a, b)]
        if not covariances:
            roots = [root / np.std(z @ root, axis=0) for root, z in zip(roots, (a, b), strict=True)]
            roots[1] = roots[1][:, :5]
        u, _, vt = np.linalg.svd(roots[0].T @ a.T @ b @ roots[1])
        own = [(z[block] - z[rest].mean(axis=0)) @ root for z, root in zip((x, y), roots, strict=True)]
        own = [own[0] @ u[:, :2], own[1] @ vt[:2].T]
        products += np.sum(own[0] * own[1], axis=0)
        squares += [np.sum(score**2, axis=0) for score in own]
    wanted = products / 103 if covariances else products / np.sqrt(squares.prod(axis=0))
    assert_close(_validation_values(x, y, 2, covariances), wanted, 1e-9)
