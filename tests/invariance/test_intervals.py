"""Regression on columns without a manifold: ranges, points beyond them, groups that permute them, many columns."""

from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.errors import PointError, TrustWarning
from daskspectral.groups import Generated, Permutations, SignFlips
from daskspectral.manifolds import Interval, Isometry, Product, Sphere
from tests.common import doubtful

Array = NDArray[Any]
RNG = np.random.default_rng(0)
X = RNG.uniform([0, -2, 10], [1, 3, 11], (400, 3))


def smooth(x: Array) -> Array:
    return np.asarray(np.exp(x[:, 0]) + np.sin(x[:, 1]) * (x[:, 2] - 10) ** 2)


Y = smooth(X)


@pytest.fixture(scope="module")
def fitted() -> dsp.InvariantRegressor:
    return dsp.InvariantRegressor(n_eigenfunctions=100).fit(X, Y)


def test_it_is_the_fit_on_these_intervals(fitted: dsp.InvariantRegressor) -> None:
    assert_array_equal(fitted.manifold_.ends, [X.min(axis=0), X.max(axis=0)])
    inside = X * 0.98 + 0.02 * X.mean(axis=0)
    assert np.abs(fitted.predict(inside) - smooth(inside)).max() < 5e-3 * Y.std()
    named = dsp.InvariantRegressor(fitted.manifold_, n_eigenfunctions=100).fit(X, Y)
    assert_allclose(named.predict(X), fitted.predict(X), rtol=0, atol=1e-12)


@doubtful
def test_points_beyond_have_the_values_at_the_ends_and_are_counted(fitted: dsp.InvariantRegressor) -> None:
    x = X[:60].copy()
    x[2] = X[X[:, 0].argmax()] + [0.005, 0, 0]  # the largest of other rows is a little beyond as a rule
    x[3, 0], x[7, 1], x[9] = 1.5, -4, [-1, 9, 12]
    far = (np.maximum(X.min(axis=0) - x, x - X.max(axis=0)) / np.ptp(X, axis=0)).max()
    wanted = rf"3 of 60 rows lie .* by more than 1% of its width \(the farthest by {far:.3g} times its width\)"
    at_ends = fitted.predict(np.clip(x, *fitted.manifold_.ends))
    with pytest.warns(TrustWarning, match=wanted):
        assert_array_equal(fitted.predict(da.from_array(x, chunks=(60, 3))).compute(), at_ends)


def test_a_named_interval_takes_points_to_its_ends_and_refuses_rows_of_the_fit() -> None:
    manifold = Product(Interval(0, 5), Sphere(3))
    x = manifold.sample(300, np.random.default_rng(0))
    model = dsp.InvariantRegressor(manifold, n_eigenfunctions=30).fit(x, np.cos(x[:, 0]) + x[:, 1])
    ends, beyond = x[:10].copy(), x[:10].copy()
    ends[4, 0], beyond[4, 0] = 5, 5.2
    with pytest.warns(TrustWarning, match="1 of 10 rows"):
        assert_array_equal(model.predict(beyond), model.predict(ends))
    with pytest.raises(PointError, match="row 4 at distance"):
        model.fit(beyond, beyond[:, 0])


def test_rows_of_weight_0_set_no_range() -> None:
    x, y, weight = np.append(X, [[50.0] * 3], axis=0), np.append(Y, 1e6), np.append(np.ones(len(X)), 0)
    model = dsp.InvariantRegressor(n_eigenfunctions=60).fit(x, y, sample_weight=weight)
    assert_array_equal(model.manifold_.ends, [X.min(axis=0), X.max(axis=0)])
    appended = dsp.InvariantRegressor(n_eigenfunctions=60).fit(X, Y, sample_weight=np.ones(len(X)))
    appended.update(x, y, sample_weight=weight)
    assert_allclose(appended.predict(X), model.predict(X), atol=1e-10)


def test_no_function_depends_on_a_constant_column() -> None:
    x = np.column_stack([X[:, 0], np.full(len(X), 7.0), X[:, 1]])
    found = dsp.InvariantRegressor(smoothness=2.0, n_eigenfunctions=60).fit(x, np.exp(X[:, 0]) * X[:, 1])
    degrees = np.concatenate([space.degrees for space in found.basis_.harmonic.levels])
    assert not degrees[:, 1].any()
    assert degrees[:, [0, 2]].all(axis=1).any()
    with pytest.raises(ValueError, match="all 2 columns of X are constant"):
        dsp.InvariantRegressor().fit(np.ones((20, 2)), np.arange(20.0))


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (Permutations(3), ([-2] * 3, [11] * 3)),
        (Generated([Permutations(3), SignFlips(3)]), ([-11] * 3, [11] * 3)),
        (Generated([Isometry(-np.eye(3), [1.0, 1.0, 22.0])]), ([0, -2, 10], [1, 3, 12])),
    ],
    ids=repr,
)
def test_ranges_are_widened_for_a_group(group: Any, expected: tuple[Any, Any]) -> None:
    x = np.concatenate([X[:200], [[0, -2, 10], [1, 3, 11]]])
    found = dsp.InvariantRegressor(group=group, n_eigenfunctions=40).fit(x, np.sin(x).sum(axis=1))
    assert_allclose(found.manifold_.ends, expected, atol=1e-12)
    for g in group.generators:
        assert_allclose(found.predict(g(x[:50])), found.predict(x[:50]), atol=1e-10)
