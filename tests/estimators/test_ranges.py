"""Regression on columns without a manifold: ranges, points beyond them, groups that permute them, many columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score

import daskspectral as dsp
from daskspectral.errors import FitWarning, PointError, TrustWarning
from daskspectral.groups import Cyclic, Generated, Orthogonal, Permutations, Rotations, SignFlips, Translations
from daskspectral.manifolds import Interval, Isometry, Product, Sphere
from tests.common import written

Array = NDArray[Any]
RNG = np.random.default_rng(0)
X = RNG.uniform([0, -2, 10], [1, 3, 11], (400, 3))


def smooth(x: Array) -> Array:
    return np.asarray(np.exp(x[:, 0]) + np.sin(x[:, 1]) * (x[:, 2] - 10) ** 2)


Y = smooth(X)
Y.flags.writeable = False


@pytest.fixture(scope="module")
def fitted() -> dsp.InvariantRegressor:
    return dsp.InvariantRegressor().fit(X, Y)


def test_any_columns_are_fitted(fitted: dsp.InvariantRegressor) -> None:
    assert fitted.manifold is None
    np.testing.assert_array_equal(fitted.manifold_.ends, [X.min(axis=0), X.max(axis=0)])
    assert fitted.manifold_.lengths == (1, 1, 1)
    inside = X * 0.98 + 0.02 * X.mean(axis=0)
    assert np.abs(fitted.predict(inside) - smooth(inside)).max() < 1e-3 * Y.std()


def test_it_is_the_fit_on_these_intervals(fitted: dsp.InvariantRegressor) -> None:
    named = dsp.InvariantRegressor(fitted.manifold_).fit(X, Y)
    np.testing.assert_allclose(named.predict(X), fitted.predict(X), rtol=0, atol=1e-12)
    again = dsp.InvariantRegressor().fit_moments(named.moments_)
    np.testing.assert_array_equal(again.predict(X), named.predict(X))
    with pytest.raises(ValueError, match="this model has None on Sphere"):
        dsp.InvariantRegressor(Sphere(3)).fit_moments(named.moments_)


@pytest.mark.parametrize("kind", ["numpy", "dask", "out"])
def test_points_beyond_have_the_values_at_the_ends_and_are_counted(
    fitted: dsp.InvariantRegressor, kind: str, tmp_path: Path
) -> None:
    def predicted(x: Array) -> Array:
        if kind == "numpy":
            return np.asarray(fitted.predict(x))
        if kind == "dask":
            return np.asarray(fitted.predict(da.from_array(x, chunks=(60, 3))).compute())
        fitted.predict(x, out=tmp_path / "p.zarr")
        return written(tmp_path / "p.zarr")

    x = X[:60].copy()
    x[3, 0], x[7, 1], x[9] = 1.5, -4, [-1, 9, 12]
    far = (np.maximum(X.min(axis=0) - x, x - X.max(axis=0)) / np.ptp(X, axis=0)).max()
    wanted = rf"3 of 60 rows lie .* by more than 1% of its width \(the farthest by {far:.3g} times its width\)"
    with pytest.warns(TrustWarning, match=wanted):
        found = predicted(x)
    np.testing.assert_array_equal(found, fitted.predict(np.clip(x, *fitted.manifold_.ends)))
    assert np.isfinite(fitted.leverage(x)).all()


def test_the_largest_of_other_rows_is_a_little_beyond_as_a_rule(fitted: dsp.InvariantRegressor) -> None:
    x = X[:5].copy()
    x[2, 0] = 1.005
    np.testing.assert_array_equal(fitted.predict(x), fitted.predict(np.clip(x, *fitted.manifold_.ends)))


def test_rows_may_be_weighed_by_their_density() -> None:
    x = X ** np.array([3, 1, 1]) * [1, 1, 1]
    found = dsp.InvariantRegressor(density="estimated", n_eigenfunctions=80).fit(x, smooth(x))
    assert np.abs(found.predict(x) - smooth(x)).max() < 0.02 * Y.std()
    assert (
        found.uniformity_.deviation
        < dsp.InvariantRegressor(n_eigenfunctions=80).fit(x, smooth(x)).uniformity_.deviation
    )


def test_gradients_are_those_of_differences_and_0_beyond(fitted: dsp.InvariantRegressor) -> None:
    x = X[:20] * 0.9 + 0.1 * X.mean(axis=0)
    steps = 1e-5 * np.eye(3)
    expected = np.stack([(fitted.predict(x + h) - fitted.predict(x - h)) / 2e-5 for h in steps], axis=1)
    found = fitted.predict_gradient(x)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    x[:, 0] = 4.0
    with pytest.warns(TrustWarning, match=r"20 of 20 rows .* with the gradients at the end, 0 along its column, or"):
        found = fitted.predict_gradient(x)
    assert (found[:, 0] == 0).all()
    assert (found[:, 1:] != 0).all()


def test_gradients_are_fitted() -> None:
    slopes = np.stack(
        [np.exp(X[:, 0]), np.cos(X[:, 1]) * (X[:, 2] - 10) ** 2, 2 * np.sin(X[:, 1]) * (X[:, 2] - 10)], axis=1
    )
    found = dsp.InvariantRegressor().fit(X[:200], Y[:200], slopes[:200])
    x = X[200:] * 0.98 + 0.02 * X.mean(axis=0)
    assert np.abs(found.predict(x) - smooth(x)).max() < 1e-2 * Y.std()


def test_a_named_interval_takes_points_to_its_ends_too() -> None:
    manifold = Product(Interval(0, 5), Sphere(3))
    x = manifold.sample(600, np.random.default_rng(0))
    model = dsp.InvariantRegressor(manifold).fit(x, np.cos(x[:, 0]) + x[:, 1])
    beyond = x[:10].copy()
    beyond[4, 0] = 5.2
    with pytest.warns(TrustWarning, match="1 of 10 rows"):
        found = model.predict(beyond)
    beyond[4, 0] = 5
    np.testing.assert_array_equal(found, model.predict(beyond))
    beyond[4, 1:] *= 2
    with pytest.raises(PointError, match="row 4 at distance 1"):
        model.predict(beyond)


def test_a_fit_on_a_named_interval_refuses_rows_beyond_it() -> None:
    x = np.linspace(0, 1000, 500)[:, None]
    dsp.InvariantRegressor(Interval(0, 1000 - 5e-3)).fit(x, x[:, 0])
    with pytest.raises(PointError, match=r"row 499 at distance 0\.05"):
        dsp.InvariantRegressor(Interval(0, 1000 - 5e-2)).fit(x, x[:, 0])


def test_rows_of_weight_0_set_no_range() -> None:
    x, y = np.concatenate([X, [[50, 50, 50]]]), np.append(Y, 1e6)
    weight = np.append(np.ones(len(X)), 0)
    found = dsp.InvariantRegressor().fit(x, y, sample_weight=weight)
    np.testing.assert_array_equal(found.manifold_.ends, [X.min(axis=0), X.max(axis=0)])


def test_no_function_depends_on_a_constant_column() -> None:
    x = np.column_stack([X[:, 0], np.full(len(X), 7.0), X[:, 1]])
    y = np.exp(X[:, 0]) * X[:, 1]
    found = dsp.InvariantRegressor(smoothness=2.0).fit(x, y)
    degrees = np.concatenate([space.degrees for space in found.basis_.harmonic.levels])  # type: ignore[attr-defined]
    assert not degrees[:, 1].any()
    assert degrees[:, [0, 2]].all(axis=1).any()
    moved = x[:50].copy()
    moved[:, 1] += 1
    np.testing.assert_array_equal(found.predict(moved), found.predict(x[:50]))
    with pytest.raises(ValueError, match="all 2 columns of X are constant"):
        dsp.InvariantRegressor().fit(np.ones((20, 2)), np.arange(20.0))


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (Permutations(3), ([-2] * 3, [11] * 3)),
        (Cyclic(3), ([-2] * 3, [11] * 3)),
        (SignFlips(3), ([-1, -3, -11], [1, 3, 11])),
        (Generated([Permutations(3), SignFlips(3)]), ([-11] * 3, [11] * 3)),
        (Orthogonal([[[0, 1, 0], [1, 0, 0], [0, 0, 1]]]), ([-2, -2, 10], [3, 3, 11])),
        (Generated([Isometry(-np.eye(3), [1.0, 1.0, 22.0])]), ([0, -2, 10.5 - 0.5], [1, 3, 12])),
    ],
    ids=repr,
)
def test_ranges_are_widened_for_a_group(group: Any, expected: tuple[Any, Any]) -> None:
    x = np.concatenate([X, [[0, -2, 10], [1, 3, 11]]])
    y = np.sin(x).sum(axis=1)
    found = dsp.InvariantRegressor(group=group).fit(x, y)
    np.testing.assert_allclose(found.manifold_.ends, expected, atol=1e-12)
    for g in group.generators:
        np.testing.assert_allclose(found.predict(g(x[:50])), found.predict(x[:50]), atol=1e-10)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (Rotations(3, 3), "generator 0 of .* is no permutation of columns, with or without signs: name a manifold"),
        (Translations([[1.0, 0, 0]]), "shifts add up. Name a manifold on which it acts, such as PeriodicBox"),
        (Permutations(4), "X has 3 columns, and .* acts on 4 coordinates"),
    ],
    ids=repr,
)
def test_groups_that_keep_no_box_are_refused_before_any_pass(
    group: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daskspectral.passes.ranges.extent_of", lambda *a, **k: pytest.fail("a pass was made"))
    with pytest.raises(ValueError, match=message):
        dsp.InvariantRegressor(group=group).fit(X, Y)
    with pytest.raises(ValueError, match="above half the dimension"):
        dsp.InvariantRegressor(smoothness=1.5).fit(X, Y)


def test_outliers_are_cut_off() -> None:
    x = np.concatenate([X] * 4)
    x[17, 0] = 1e4
    with pytest.warns(TrustWarning, match="column 0 goes from .* to 1e.04, .* its interval ends at .* 1.2"):
        found = dsp.InvariantRegressor(n_eigenfunctions=100).fit(x, np.tile(Y, 4))
    assert found.manifold_.upper[0] == pytest.approx(1.25, abs=0.02)
    inside = X[:200] * 0.95 + 0.05 * X.mean(axis=0)
    assert np.abs(found.predict(inside) - smooth(inside)).max() < 0.1 * Y.std()


def test_many_columns_say_what_is_left_out() -> None:
    x = RNG.standard_normal((80, 12))
    with pytest.warns(FitWarning, match="of the 12 columns of X a sum of functions of one column each is fitted"):
        dsp.InvariantRegressor().fit(x, x[:, 0] + x[:, 1] ** 2)
    with pytest.warns(FitWarning, match="X has 20 rows, few for the 13 functions of the first levels"):
        few = dsp.InvariantRegressor().fit(x[:20], x[:20, 0])
    assert few.score(x[20:], x[20:, 0]) > 0.5  # linear functions
    with pytest.raises(ValueError, match="too few for the 12 columns of X: only the constant"):
        dsp.InvariantRegressor(n_eigenfunctions=5).fit(x[:20], x[:20, 0])


def test_a_table_of_ten_columns() -> None:
    x, y = load_diabetes(return_X_y=True)
    model = dsp.InvariantRegressor()
    own = cross_val_score(model, x, y, cv=3).mean()
    assert own > cross_val_score(LinearRegression(), x, y, cv=3).mean() - 0.02


def test_appended_rows_of_weight_0_are_as_if_absent() -> None:
    x, y = np.concatenate([X, [[50.0, 50, 50]]]), np.append(Y, 1e6)
    model = dsp.InvariantRegressor(n_eigenfunctions=60).fit(X, Y, sample_weight=np.ones(len(X)))
    before = model.predict(X)
    model.update(x, y, sample_weight=np.append(np.ones(len(X)), 0.0))
    np.testing.assert_allclose(model.predict(X), before, atol=1e-10)


def test_gradients_along_a_column_say_nothing_beyond_its_range() -> None:
    """Of a range that is trimmed: there functions are constant along it, whatever the data's gradient is."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (6000, 2))
    x[::2000, 0] = [40.0, 60.0, -50.0]
    t = np.column_stack([2 * np.clip(x[:, 0], -2, 2), np.cos(x[:, 1])])
    y = np.clip(x[:, 0], -2, 2) ** 2 + np.sin(x[:, 1])

    def fitted(slopes: Array) -> dsp.InvariantRegressor:
        with pytest.warns(TrustWarning, match="column 0 goes from -50 to 60"):
            return dsp.InvariantRegressor(n_eigenfunctions=100).fit(x, y, slopes)

    wild = t.copy()
    wild[::2000, 0] = 1e4
    model = fitted(wild)
    calm = fitted(t)
    np.testing.assert_allclose(model.predict(x[1:50]), calm.predict(x[1:50]), atol=1e-12)
    assert model.cv_score_ == pytest.approx(calm.cv_score_, abs=1e-12)
    inside = np.clip(x, *model.manifold_.ends) == x
    squares = model.moments_.arrays["slope_squares"]
    np.testing.assert_allclose(squares, np.sum((wild * inside) ** 2), rtol=1e-12)


def test_it_is_saved_cloned_and_updated(fitted: dsp.InvariantRegressor, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.zarr")
    again = dsp.load(tmp_path / "model.zarr")
    assert again.manifold is None
    assert again.manifold_ == fitted.manifold_
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(clone(again).fit(X, Y).predict(X), fitted.predict(X))
    x, y = np.concatenate([X[:300], X[:300], [[1.5, 0, 10]]]), np.concatenate([Y[:300], Y[:300], [0.0]])
    few = dsp.InvariantRegressor(n_eigenfunctions=60)
    with pytest.warns(TrustWarning, match="rows from 300 on go beyond the end of an interval, by 0.5"):
        updated = few.fit(x[:300], y[:300]).update(x, y)
    at_end = np.clip(x, *updated.manifold_.ends)
    np.testing.assert_allclose(updated.predict(X), few.fit(at_end, y).predict(X), atol=1e-9)
