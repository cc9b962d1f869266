"""InvariantRegressor against sums over an enumerated group, dense least squares, and its own promises."""

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral import groups as gr
from daskspectral.manifolds import FlatTorus, Implicit, Manifold, PeriodicBox, Sphere
from tests.common import assert_close, doubtful

Array = NDArray[Any]
SOLVERS = ("least_squares", "projection")
N = 400
S2, S3 = Sphere(3), Sphere(4)
X = S2.sample(N, np.random.default_rng(0))
Y = np.exp(X @ [1.0, 0.5, -0.3]) + 0.1 * np.random.default_rng(1).standard_normal(N)
PAIR = np.column_stack([Y, X[:, 0] ** 2 - X[:, 1]])


def make(**changes: Any) -> dsp.InvariantRegressor:
    options = {"manifold": S2, "group": gr.Permutations(3), "smoothness": 2.0, "n_eigenfunctions": 36} | changes
    return dsp.InvariantRegressor(**options)


@pytest.fixture(scope="module")
def fitted() -> dsp.InvariantRegressor:
    return make().fit(X, Y)


def elements(group: gr.Group) -> list[Array]:
    """All matrices of a small group."""
    d = group.dimension
    if isinstance(group, gr.Permutations):
        return [np.eye(d)[list(p)] for p in permutations(range(d))]
    return [np.roll(np.eye(d), k, axis=0) for k in range(d)]


# -- the two estimators ------------------------------------------------------------------------------------------------


def zonal(d: int, level: int, t: Array) -> Array:
    """sum_m Y_lm(x) Y_lm(y) at t = x.y, for the uniform probability on S^(d-1)."""
    return np.asarray((2 * level + d - 2) / (d - 2) * scipy.special.eval_gegenbauer(level, (d - 2) / 2, t))


@doubtful
@pytest.mark.parametrize(("group", "levels"), [(gr.Permutations(3), 5), (gr.Cyclic(4), 3)], ids=str)
def test_projection_equals_sums_over_points_and_group(group: gr.Group, levels: int) -> None:
    """f(x) = m + 1 / (n |G|) sum_k sum_g (y_k - m) sum_l Z_l(x_k . g x) for the mean m of y."""
    d, n = group.dimension, 25
    rng, manifold = np.random.default_rng(d), Sphere(d)
    x, new, w = manifold.sample(n, rng), manifold.sample(4, rng), rng.uniform(0, 2, n)
    y = np.exp(x[:, 0]) + x[:, -1] ** 3
    size = sum(manifold.multiplicity(level) for level in range(levels))
    options = {"group": group, "smoothness": 3.0, "n_eigenfunctions": size, "solver": "projection"}
    model = make(manifold=manifold, **options).fit(x, y, sample_weight=w)
    expected, mean = np.zeros(4), w @ y / w.sum()
    for k in range(n):
        for g in elements(group):
            for level in range(levels):
                expected += w[k] * (y[k] - mean) * zonal(d, level, new @ g.T @ x[k])
    expected = mean + expected / (w.sum() * len(elements(group)))
    moved = make(manifold=manifold, **options).fit(x, y + 3.0, sample_weight=w)  # an offset of y is one of f
    np.testing.assert_allclose(moved.predict(new), model.predict(new) + 3, rtol=1e-10)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-10, atol=1e-10 * np.abs(y).max())
    assert (model.n_eigenfunctions_, len(model.coef_)) == (size, levels)


def averaged(levels: int, group: gr.Group, x: Array) -> list[Array]:
    """Harmonics of each level averaged over a group (n, m): features of its invariant functions, of lower rank."""
    spaces = [S2.eigenfunctions(level) for level in range(levels)]
    return [np.mean([space.values(x @ g.T) for g in elements(group)], axis=0) for space in spaces]


@pytest.mark.parametrize(("group", "alpha"), [(gr.Permutations(3), 0.0), (gr.Cyclic(3), 1e-2)], ids=str)
def test_least_squares_equals_dense_ridge(group: gr.Group, alpha: float) -> None:
    """In averaged harmonics, whose invariant part alone lowers the error: the penalty removes the rest."""
    levels, w = 6, np.random.default_rng(3).uniform(0.5, 2, N)
    model = make(group=group, solver="least_squares", alpha=alpha, smoothness=1.5)
    model.fit(X, PAIR, sample_weight=w)
    sizes = [2 * level + 1 for level in range(levels)]
    penalty = np.repeat(np.cumsum(sizes).astype(float) ** 1.5, sizes)  # alpha = 2 s / dimension = 1.5
    penalty[0] = 0  # of the constant
    root, features = np.sqrt(w / w.sum())[:, None], np.concatenate(averaged(levels, group, X), axis=1)
    rows = np.concatenate([root * features, np.diag(np.sqrt(alpha * penalty))])
    a = np.linalg.lstsq(rows, np.concatenate([root * PAIR, np.zeros((36, 2))]), rcond=1e-10)[0]
    new = S2.sample(50, np.random.default_rng(4))
    expected = np.concatenate(averaged(levels, group, new), axis=1) @ a
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-9, atol=1e-9)
    assert model.alpha_ == alpha


CASES: dict[str, tuple[Manifold, gr.Group | None]] = {
    "sphere, no group": (S2, None),
    "S^3, cyclic and flips": (S3, gr.Generated([gr.Cyclic(4), gr.SignFlips(4)])),
    "torus": (
        FlatTorus(2),
        gr.Generated([gr.DirectProduct(gr.Rotations(3), gr.SignFlips(2)), gr.Exchange(2)]),
    ),
}


def rough(manifold: Manifold, x: Array) -> Array:
    """A function that no group leaves as it is, and not zero on average."""
    return np.asarray(1 + np.sin(3 * x @ np.arange(1, manifold.ambient + 1)) + np.cos(x[:, 0]))


@doubtful
@pytest.mark.parametrize(("name", "solver"), [(name, SOLVERS[i % 2]) for i, name in enumerate(CASES)])
def test_coefficients_are_those_of_each_levels_harmonics(name: str, solver: str, tmp_path: Path) -> None:
    """coef_ by loops over levels and points gives the predictions; each part is a mean, projected, or fixed by D(g)."""
    manifold, group = CASES[name]
    rng = np.random.default_rng(0)
    x, new = manifold.sample(100, rng), manifold.sample(7, rng)
    y = np.column_stack([rough(manifold, x), x[:, 0]])
    model = make(manifold=manifold, group=group, smoothness=3.0, n_eigenfunctions=60, solver=solver).fit(x, y)
    assert len(model.coef_) == len(model.invariant_dimensions_) <= manifold.levels_within(60)
    assert model.n_eigenfunctions_ == sum(map(len, model.coef_))
    if solver == "projection":
        assert len(model.coef_) == manifold.levels_within(60)
    expected = np.zeros((7, 2))
    for level, c in enumerate(model.coef_):
        space = manifold.eigenfunctions(level)
        assert c.shape == (space.size, 2)
        expected += space.values(new) @ c
        about = y - y.mean(axis=0) if level else y
        mean = sum(np.outer(space.values(x)[k], about[k]) for k in range(100)) / 100
        vectors = model.basis_.vectors[level]
        if solver == "projection":
            np.testing.assert_allclose(c, vectors @ (vectors.T @ mean), rtol=1e-10, atol=1e-12 * np.abs(y).max())
        for g in () if group is None else group.generators:
            np.testing.assert_allclose(space.action(g) @ c, c, atol=1e-10)
    assert_close(model.predict(new), expected, 1e-11)
    assert_close(model.predict(new if group is None else group.word(rng, 30)(new)), expected, 1e-10)
    model.save(tmp_path / "m.zarr")
    again = dsp.InvariantRegressor.load(tmp_path / "m.zarr")
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    for attribute in ("alpha_", "gcv_", "gcv_curve_", "invariant_dimensions_"):
        np.testing.assert_array_equal(getattr(again, attribute), getattr(model, attribute))


# -- how many functions ------------------------------------------------------------------------------------------------


BOUNDED: list[tuple[Manifold, int, gr.Group | None, int, int]] = [
    (S2, 100, gr.SignFlips(3), 17**2, 45),  # 1 + l / 2 of each even degree: 1 + 2 + ... + 9
    (PeriodicBox([0, 0], [1, 1]), 30, gr.Generated([gr.SignFlips(2), gr.Permutations(2)]), 81, 15),  # a >= b, to 5^2
    (Sphere(10), 500, gr.Permutations(10), sum(map(Sphere(10).multiplicity, range(12))), 97),  # never built
]


@doubtful
@pytest.mark.parametrize(("manifold", "n", "group", "most", "invariant"), BOUNDED)
def test_least_squares_chooses_among_invariant_functions(
    manifold: Manifold, n: int, group: gr.Group | None, most: int, invariant: int
) -> None:
    """At most half as many as rows, in whole levels of 1000 functions or 100 invariant ones, whichever are more."""
    x = manifold.sample(n, np.random.default_rng(0))
    model = dsp.InvariantRegressor(manifold, group, alpha=1e-3).fit(x, x[:, 0] ** 2)
    assert (model.basis_.multiplicities.sum(), model.basis_.size) == (most, invariant)


# -- containers, runs -----------------------------------------------------------------------------------------


def test_other_solutions_of_the_same_moments(fitted: dsp.InvariantRegressor, tmp_path: Path) -> None:
    dsp.save(fitted.moments_, tmp_path / "moments.zarr")
    moments = dsp.load(tmp_path / "moments.zarr")
    for changes in ({}, {"solver": "projection"}, {"smoothness": 1.5, "alpha": 1e-2}):
        again, afresh = clone(fitted).set_params(**changes), clone(fitted).set_params(**changes)
        np.testing.assert_array_equal(again.fit_moments(moments).predict(X), afresh.fit(X, Y).predict(X))
    fewer = make(n_eigenfunctions=20).fit_moments(moments)
    assert fewer.n_eigenfunctions_ == 16
    assert_close(fewer.predict(X), make(n_eigenfunctions=16).fit(X, Y).predict(X), 1e-6)


# -- bad input ---------------------------------------------------------------------------------------------------------


SHEAR = gr.Isometry([[1, 0.1, 0], [0, 1, 0], [0, 0, 1]])
BAD_PARAMETERS: list[tuple[dict[str, Any], str]] = [
    ({"manifold": Implicit(lambda x: x, 3), "group": None}, "Implicit"),
    ({"group": gr.Generated([gr.Permutations(3), SHEAR])}, "generator 2"),
    ({"smoothness": 1.0}, "smoothness"),
    ({"n_eigenfunctions": 450, "group": None}, "n_eigenfunctions"),
]


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(("changes", "what"), BAD_PARAMETERS, ids=[b[1] for b in BAD_PARAMETERS])
def test_bad_parameters_before_any_task(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        make(**changes).fit(X, Y)


def test_moments_of_something_else(fitted: dsp.InvariantRegressor) -> None:
    other = dsp.HermiteRegressor(dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 20), folds=None).fit(X, Y).moments_
    with pytest.raises(ValueError, match="measure them"):
        make().fit_moments(other)
    for changes in ({"group": gr.Cyclic(3)}, {"manifold": PeriodicBox([0] * 3, [1] * 3)}):
        with pytest.raises(ValueError, match=r"Permutations\(d=3\)"):
            make(**changes).fit_moments(fitted.moments_)
    with pytest.raises(ValueError, match=r"different bases"):
        fitted.moments_ + make(group=gr.Cyclic(3)).fit(X, Y).moments_
    same = gr.Generated([gr.Isometry(g.matrix) for g in gr.Permutations(3).generators])
    found = make(group=same).fit_moments(fitted.moments_)
    np.testing.assert_array_equal(found.predict(X), fitted.predict(X))
