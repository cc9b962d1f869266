"""Functions on columns and of uneven rows: ranges, choices, warnings, levels, features of any estimator."""

import itertools
import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.errors import PointError, ReliabilityWarning
from daskspectral.groups import Generated, Permutations, SignFlips
from daskspectral.manifolds import Interval, Isometry, Product, Sphere
from tests.common import unreliable
from tests.manifolds.test_manifolds import radial

Array = NDArray[Any]
S2 = Sphere(3)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.slow
def test_validation_error_is_that_of_rows_that_are_not_uniform() -> None:
    """Generalized cross-validation sees the mean leverage alone, and took next to no penalty: R^2 of -10 to -1e5."""
    x, new = (radial(rng(seed).normal([0, 0, 2], size=(n, 3))) for n, seed in ((500, 0), (1000, 99)))
    model = dsp.InvariantRegressor(S2).fit(x, np.abs(x[:, 0]) + x[:, 1])
    assert model.cv_score_ > 1 - 2e-3
    assert model.score(new, np.abs(new[:, 0]) + new[:, 1]) > 1 - 2e-3


def test_no_skill_on_validation_rows_is_warned_of() -> None:
    x = S2.sample(400, rng())
    with pytest.warns(ReliabilityWarning, match="constant"):
        dsp.InvariantRegressor(S2, n_eigenfunctions=3).fit(x, x[:, 0])
    skew = rng().normal(size=(1000, 2))
    with pytest.warns(ReliabilityWarning, match=r"R\^2 = -"):
        dsp.InvariantRegressor(n_eigenfunctions=500, alpha=1e-16).fit(skew, np.abs(skew[:, 0]) + skew[:, 1])
    model = dsp.InvariantRegressor(S2, Permutations(3)).fit(x, np.ones(400))  # nothing to explain, and no warning
    np.testing.assert_allclose(model.predict(x), 1, rtol=1e-14)


@pytest.mark.parametrize(("scale", "offset"), [(1, -1e8), (1e-150, 1e-145)])
def test_invariance_to_offset_and_unit_of_y(scale: float, offset: float) -> None:
    """The penalty is 0 on the constant, and sums are about a first guess of the mean, in a unit of their own."""
    x, new = S2.sample(300, rng()), S2.sample(50, rng(1))
    y = np.exp(x.sum(axis=1)) + 0.1 * rng(2).normal(size=300)
    model = dsp.InvariantRegressor(S2, Permutations(3), n_eigenfunctions=81)
    plain, moved = (clone(model).fit(x[:250], values) for values in (y[:250], scale * y[:250] + offset))
    rounding = 1e-6 + 1e-15 * abs(offset) / scale
    np.testing.assert_allclose((moved.predict(new) - offset) / scale, plain.predict(new), rtol=rounding)
    assert moved.cv_score_ == pytest.approx(plain.cv_score_, abs=rounding)
    assert moved.cv_ / scale / scale == pytest.approx(plain.cv_, rel=1e-6)
    plain.update(x, y)
    moved.update(x, scale * y + offset)
    np.testing.assert_allclose((moved.predict(new) - offset) / scale, plain.predict(new), rtol=rounding)


# -- rows that are not uniform, and places without rows ----------------------------------------------------------------


NEW = S2.sample(1000, np.random.default_rng(99))


def cap(n: int, degrees: float, rng: np.random.Generator) -> Array:
    """Uniform points of a cap about the pole."""
    z, angle = rng.uniform(np.cos(np.radians(degrees)), 1, n), rng.uniform(0, 2 * np.pi, n)
    radius = np.sqrt(1 - z**2)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), z])


def target(x: Array) -> Array:
    return np.asarray(x.sum(axis=1) + x[:, 0] * x[:, 2])


# -- density -----------------------------------------------------------------------------------------------------------


@unreliable
def test_projection_reports_its_error() -> None:
    x = cap(8000, 90, np.random.default_rng(0))
    model = dsp.InvariantRegressor(S2, n_eigenfunctions=9, solver="projection")
    with pytest.warns(dsp.FitWarning, match="Sphere"):
        assert model.fit(x, target(x)).score(NEW, target(NEW)) < 0.75


# -- places without rows -----------------------------------------------------------------------------------------------


def test_rows_far_from_those_of_the_fit_are_counted() -> None:
    x = cap(200, 30, np.random.default_rng(60))
    model = dsp.InvariantRegressor(S2).fit(x, np.exp(x[:, 0]))
    leverage, angle = model.leverage(NEW), np.degrees(np.arccos(NEW[:, 2]))
    assert (leverage[angle < 25] < 1).all()
    assert (leverage[angle > 75] > 1).all()
    with pytest.warns(
        dsp.ReliabilityWarning, match=rf"{np.count_nonzero(leverage > 1)} of 1000 rows .* gradients there are"
    ):
        model.predict_gradient(NEW)
    with pytest.warns(dsp.ReliabilityWarning, match=rf"{np.count_nonzero(leverage > 1)} of 1000 rows"):
        model.predict(NEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(x)
        lazy = model.leverage(da.from_array(NEW, chunks=(300, 3)))
    np.testing.assert_allclose(lazy.compute(), leverage, rtol=1e-10)


# -- weights and scores ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["least_squares", "projection"])
def test_held_out_score_equals_fits_without_each_fold(solver: str) -> None:
    """And its standard error that of a ratio of means over the folds."""
    rng = np.random.default_rng(7)
    x, label = S2.sample(300, rng), np.arange(300) % 5
    y = np.column_stack([target(x), x[:, 1] ** 2]) + 0.2 * rng.standard_normal((300, 2))
    options: dict[str, Any] = {"solver": solver, "n_eigenfunctions": 25}
    model = dsp.InvariantRegressor(S2, folds=label, **options).fit(x, y)
    missed, spread = np.zeros(5), np.zeros(5)
    for k in range(5):
        rest, own = label != k, label == k
        part = dsp.InvariantRegressor(S2, folds=None, alpha=model.alpha_, **options).fit(x[rest], y[rest])
        missed[k] = np.sum((y[own] - part.predict(x[own])) ** 2)
        spread[k] = np.sum((y[own] - y[rest].mean(axis=0)) ** 2)
    ratio = missed.sum() / spread.sum()
    assert model.cv_ == pytest.approx(missed.sum() / 300, rel=1e-8)
    assert model.cv_score_ == pytest.approx(1 - ratio, rel=1e-8)
    deviation = np.sqrt(np.sum((missed - ratio * spread) ** 2) * 5 / 4)
    assert model.cv_score_error_ == pytest.approx(deviation / spread.sum())
    none = dsp.InvariantRegressor(S2, folds=None, **options).fit(x, y)
    assert (none.cv_, none.cv_score_, none.cv_score_error_) == (None, None, None)


# -- columns without a manifold ----------------------------------------------------------------------------------------


TABLE = rng().uniform([0, -2, 10], [1, 3, 11], (400, 3))


def smooth(x: Array) -> Array:
    return np.asarray(np.exp(x[:, 0]) + np.sin(x[:, 1]) * (x[:, 2] - 10) ** 2)


SMOOTH = smooth(TABLE)


@pytest.fixture(scope="module")
def on_ranges() -> dsp.InvariantRegressor:
    return dsp.InvariantRegressor(n_eigenfunctions=100).fit(TABLE, SMOOTH)


def test_it_is_the_fit_on_these_intervals(on_ranges: dsp.InvariantRegressor) -> None:
    assert_array_equal(on_ranges.manifold_.ends, [TABLE.min(axis=0), TABLE.max(axis=0)])
    inside = TABLE * 0.98 + 0.02 * TABLE.mean(axis=0)
    assert np.abs(on_ranges.predict(inside) - smooth(inside)).max() < 5e-3 * SMOOTH.std()
    named = dsp.InvariantRegressor(on_ranges.manifold_, n_eigenfunctions=100).fit(TABLE, SMOOTH)
    assert_allclose(named.predict(TABLE), on_ranges.predict(TABLE), rtol=0, atol=1e-12)


@unreliable
def test_points_beyond_have_the_values_at_the_ends_and_are_counted(on_ranges: dsp.InvariantRegressor) -> None:
    x = TABLE[:60].copy()
    x[2] = TABLE[TABLE[:, 0].argmax()] + [0.005, 0, 0]  # the largest of other rows is a little beyond as a rule
    x[3, 0], x[7, 1], x[9] = 1.5, -4, [-1, 9, 12]
    far = (np.maximum(TABLE.min(axis=0) - x, x - TABLE.max(axis=0)) / np.ptp(TABLE, axis=0)).max()
    wanted = rf"3 of 60 rows .* by {far:.3g} times"
    at_ends = on_ranges.predict(np.clip(x, *on_ranges.manifold_.ends))
    with pytest.warns(ReliabilityWarning, match=wanted):
        assert_array_equal(on_ranges.predict(da.from_array(x, chunks=(60, 3))).compute(), at_ends)


def test_a_named_interval_includes_its_ends_and_refuses_rows_of_the_fit() -> None:
    manifold = Product(Interval(0, 5), Sphere(3))
    x = manifold.sample(300, np.random.default_rng(0))
    model = dsp.InvariantRegressor(manifold, n_eigenfunctions=30).fit(x, np.cos(x[:, 0]) + x[:, 1])
    ends, beyond = x[:10].copy(), x[:10].copy()
    ends[4, 0], beyond[4, 0] = 5, 5.2
    with pytest.warns(ReliabilityWarning, match="1 of 10 rows"):
        assert_array_equal(model.predict(beyond), model.predict(ends))
    with pytest.raises(PointError, match="row 4 at distance"):
        model.fit(beyond, beyond[:, 0])


def test_rows_of_weight_0_set_no_range() -> None:
    x, y, weight = np.append(TABLE, [[50.0] * 3], axis=0), np.append(SMOOTH, 1e6), np.append(np.ones(len(TABLE)), 0)
    model = dsp.InvariantRegressor(n_eigenfunctions=60).fit(x, y, sample_weight=weight)
    assert_array_equal(model.manifold_.ends, [TABLE.min(axis=0), TABLE.max(axis=0)])
    appended = dsp.InvariantRegressor(n_eigenfunctions=60).fit(TABLE, SMOOTH, sample_weight=np.ones(len(TABLE)))
    appended.update(x, y, sample_weight=weight)
    assert_allclose(appended.predict(TABLE), model.predict(TABLE), atol=1e-10)


def test_no_function_depends_on_a_constant_column() -> None:
    x = np.column_stack([TABLE[:, 0], np.full(len(TABLE), 7.0), TABLE[:, 1]])
    found = dsp.InvariantRegressor(smoothness=2.0, n_eigenfunctions=60).fit(x, np.exp(TABLE[:, 0]) * TABLE[:, 1])
    degrees = np.concatenate([space.degrees for space in found.basis_.harmonic.levels])
    assert not degrees[:, 1].any()
    assert degrees[:, [0, 2]].all(axis=1).any()
    with pytest.raises(ValueError, match="constant"):
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
    x = np.concatenate([TABLE[:200], [[0, -2, 10], [1, 3, 11]]])
    found = dsp.InvariantRegressor(group=group, n_eigenfunctions=40).fit(x, np.sin(x).sum(axis=1))
    assert_allclose(found.manifold_.ends, expected, atol=1e-12)
    for g in group.generators:
        assert_allclose(found.predict(g(x[:50])), found.predict(x[:50]), atol=1e-10)


# -- features ----------------------------------------------------------------------------------------------------------


CUBE = Generated([Permutations(3), SignFlips(3)])
POINTS = S2.sample(300, np.random.default_rng(0))


def test_they_span_the_harmonics_averaged_over_the_group() -> None:
    """Polynomials up to degree 6, averaged one element after another: the harmonics to degree 6 on the sphere."""
    found = dsp.InvariantFeatures(S2, CUBE, n_eigenfunctions=49).fit(POINTS)
    axes, signs = itertools.permutations(np.eye(3)), itertools.product([1.0, -1.0], repeat=3)
    every = [np.array(a) * s for a, s in itertools.product(axes, signs)]
    powers = [(i, j, k) for i in range(7) for j in range(7) for k in range(7) if i + j + k <= 6]
    averaged = np.mean(
        [np.stack([np.prod((POINTS @ g.T) ** p, axis=1) for p in powers], axis=1) for g in every], axis=0
    )
    values = found.transform(POINTS)
    assert np.linalg.matrix_rank(averaged, tol=1e-8) == values.shape[1] == 3  # of degrees 0, 4, 6
    for one, other in ((averaged, values), (values, averaged)):
        np.testing.assert_allclose(other @ np.linalg.lstsq(other, one, rcond=1e-10)[0], one, atol=1e-8)
    for g in every[:: len(every) // 8]:
        np.testing.assert_allclose(found.transform(POINTS @ g.T), values, atol=1e-10)
    assert np.ptp(found.transform(POINTS @ np.roll(np.eye(3), 1, axis=0)[:, ::-1]) - values) < 1e-10
    many = found.transform(S2.sample(200_000, np.random.default_rng(1)))
    np.testing.assert_allclose(many.T @ many / len(many), np.eye(3), atol=0.02)


def test_smoothness_makes_a_ridge_penalty_the_sobolev_norm() -> None:
    plain = dsp.InvariantFeatures(S2, Permutations(3), 49).fit(POINTS)
    smooth = dsp.InvariantFeatures(S2, Permutations(3), 49, smoothness=3.0).fit(POINTS)
    degrees = np.repeat(np.arange(7), plain.invariant_dimensions_)
    np.testing.assert_allclose(smooth.transform(POINTS) * (degrees + 1.0) ** 3, plain.transform(POINTS), rtol=1e-12)
    with pytest.raises(ValueError, match="smoothness"):
        dsp.InvariantFeatures(S2, smoothness=-1.0).fit(POINTS)


# -- levels and penalties ----------------------------------------------------------------------------------------------


@unreliable
@pytest.mark.parametrize("weight", [None, 0.3], ids=["values", "gradients too"])
def test_levels_and_penalties_are_judged_by_fits_to_the_other_folds(weight: float | None) -> None:
    generator, label = rng(4), np.arange(120) % 4
    x = S2.sample(120, generator)
    y, slopes = target(x) + generator.standard_normal(120), generator.standard_normal((120, 3))
    slopes -= np.sum(slopes * x, axis=1, keepdims=True) * x  # what the fit sees of them

    def fit(rows: Array, **options: Any) -> dsp.InvariantRegressor:
        given = {} if weight is None else {"gradients": slopes[rows]}
        options |= {} if weight is None else {"gradient_weight": weight}
        return dsp.InvariantRegressor(S2, smoothness=1.5, **options).fit(x[rows], y[rows], **given)

    found = fit(label >= 0, folds=label)
    for most, alpha, wanted in found.gcv_curve_[::3]:
        missed = 0.0
        for k in range(4):
            part, own = fit(label != k, folds=None, n_eigenfunctions=int(most), alpha=alpha), label == k
            missed += np.sum((y[own] - part.predict(x[own])) ** 2)
            missed += (weight or 0) * np.sum((slopes[own] - part.predict_gradient(x[own])) ** 2)
        assert wanted == pytest.approx(missed / 120, rel=1e-8)
    best = found.gcv_curve_[found.gcv_curve_[:, 2].argmin()]
    assert (found.n_eigenfunctions_, found.alpha_) == (best[0], best[1])


@unreliable
def test_levels_that_are_tried() -> None:
    """No more functions than rows count as; and gradients alone see no constant."""
    x = S2.sample(120, rng())
    few = dsp.InvariantRegressor(S2).fit(x, target(x), sample_weight=np.where(np.arange(120) < 5, 1, 1e-9))
    assert few.gcv_curve_[:, 0].tolist() == [1, 4]
    assert dsp.InvariantRegressor(S2).fit(x, None, gradients=x[:, ::-1]).gcv_curve_[0, 0] == 4
