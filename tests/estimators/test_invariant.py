"""InvariantRegressor against sums over an enumerated group, dense least squares, quadrature and its own promises."""

from __future__ import annotations

import pickle
from itertools import permutations, product
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.linalg
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import daskspectral as dsp
from daskspectral.engine import Run
from daskspectral.engine import plan as plan_module
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
from daskspectral.manifolds import SO3, FlatTorus, Implicit, Manifold, PeriodicBox, Sphere
from daskspectral.manifolds import Product as ProductManifold
from daskspectral.passes import folds
from daskspectral.passes.invariant import InvariantSpace
from tests.common import written
from tests.estimators.common import CONTAINERS, as_chunked, as_path

Array = NDArray[Any]
SOLVERS = ("least_squares", "projection")
N = 400
S2, S3 = Sphere(3), Sphere(4)
X = S2.sample(N, np.random.default_rng(0))
Y = np.exp(X @ [1.0, 0.5, -0.3]) + 0.1 * np.random.default_rng(1).standard_normal(N)
PAIR = np.column_stack([Y, X[:, 0] ** 2 - X[:, 1]])
TURN = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # x_1 -> x_2 -> x_3, a rotation


def make(**changes: Any) -> dsp.InvariantRegressor:
    options = {"manifold": S2, "group": Permutations(3), "smoothness": 2.0, "n_eigenfunctions": 36} | changes
    return dsp.InvariantRegressor(**options)


@pytest.fixture(scope="module", params=SOLVERS)
def fitted(request: pytest.FixtureRequest) -> dsp.InvariantRegressor:
    return make(solver=request.param).fit(X, Y)


def other(model: dsp.InvariantRegressor) -> str:
    """The other solver."""
    return SOLVERS[model.solver == "least_squares"]


def elements(name: str, d: int) -> list[Array]:
    """All matrices of a small group."""
    if name == "permutations":
        return [np.eye(d)[list(p)] for p in permutations(range(d))]
    if name == "cyclic":
        return [np.roll(np.eye(d), k, axis=0) for k in range(d)]
    return [np.diag(signs) for signs in product([-1.0, 1.0], repeat=d)]


ENUMERATED = {
    "permutations": (Permutations, elements),
    "cyclic": (Cyclic, elements),
    "sign flips": (SignFlips, elements),
}


# -- the two estimators ------------------------------------------------------------------------------------------------


def zonal(d: int, level: int, t: Array) -> Array:
    """sum_m Y_lm(x) Y_lm(y) at t = x.y, for the uniform probability on S^(d-1)."""
    if d == 2:
        return np.ones_like(t) if level == 0 else 2 * np.cos(level * np.arccos(np.clip(t, -1, 1)))
    half = (d - 2) / 2
    return np.asarray((2 * level + d - 2) / (d - 2) * scipy.special.eval_gegenbauer(level, half, t))


@pytest.mark.parametrize("name", ENUMERATED)
@pytest.mark.parametrize(("d", "levels"), [(2, 6), (3, 5), (4, 3), (5, 3)])
def test_projection_equals_sums_over_points_and_group(d: int, levels: int, name: str) -> None:
    """f(x) = 1 / (n |G|) sum_k sum_g y_k sum_l Z_l(x_k . g x)."""
    rng, manifold, n = np.random.default_rng(d), Sphere(d), 25
    x, new, w = manifold.sample(n, rng), manifold.sample(4, rng), rng.uniform(0, 2, n)
    y = np.exp(x[:, 0]) + x[:, -1] ** 3
    size = sum(manifold.multiplicity(level) for level in range(levels))
    options = {"group": ENUMERATED[name][0](d), "smoothness": 3.0, "n_eigenfunctions": size, "solver": "projection"}
    model = make(manifold=manifold, **options)
    model.fit(x, y, sample_weight=w)
    group, expected = elements(name, d), np.zeros(4)
    for k in range(n):
        for g in group:
            for level in range(levels):
                expected += w[k] * y[k] * zonal(d, level, new @ g.T @ x[k])
    expected /= w.sum() * len(group)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-10, atol=1e-10 * np.abs(y).max())
    assert (model.n_eigenfunctions_, len(model.coef_)) == (size, levels)


def averaged(manifold: Manifold, levels: int, group: list[Array], x: Array) -> list[Array]:
    """Harmonics of each level averaged over a group (n, m): features of its invariant functions, of lower rank."""
    return [np.mean([manifold.eigenfunctions(level).values(x @ g.T) for g in group], axis=0) for level in range(levels)]


@pytest.mark.parametrize("name", ENUMERATED)
@pytest.mark.parametrize("alpha", [0.0, 1e-5, 1e-2])
def test_least_squares_equals_dense_ridge(name: str, alpha: float) -> None:
    """In averaged harmonics, whose invariant part alone lowers the error: the penalty removes the rest."""
    group, levels, w = elements(name, 3), 6, np.random.default_rng(3).uniform(0.5, 2, N)
    model = make(group=ENUMERATED[name][0](3), solver="least_squares", alpha=alpha, smoothness=1.5)
    model.fit(X, PAIR, sample_weight=w)
    features = np.concatenate(averaged(S2, levels, group, X), axis=1)
    sizes = [2 * level + 1 for level in range(levels)]
    penalty = np.repeat(np.cumsum(sizes).astype(float) ** 1.5, sizes)  # alpha = 2 s / dimension = 1.5
    penalty[0] = 0  # of the constant
    rows = np.concatenate([np.sqrt(w / w.sum())[:, None] * features, np.diag(np.sqrt(alpha * penalty))])
    target = np.concatenate([np.sqrt(w / w.sum())[:, None] * PAIR, np.zeros((36, 2))])
    a = np.linalg.lstsq(rows, target, rcond=1e-10)[0]
    new = S2.sample(50, np.random.default_rng(4))
    expected = np.concatenate(averaged(S2, levels, group, new), axis=1) @ a
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-9, atol=1e-9)
    assert model.alpha_ == alpha


def test_cross_validation_equals_the_hat_matrix_at_every_number_of_levels() -> None:
    model = make(solver="least_squares", n_eigenfunctions=None, smoothness=1.5, folds=None).fit(X, Y)
    totals, alphas, scores = model.gcv_curve_.T
    parts = averaged(S2, 14, elements("permutations", 3), X)
    for total, alpha, score in zip(totals[totals <= 196], alphas, scores, strict=False):
        levels = round(np.sqrt(total))
        features = np.concatenate(parts[:levels], axis=1)
        sizes = 2 * np.arange(levels) + 1
        penalty = np.repeat(np.cumsum(sizes).astype(float) ** 1.5, sizes)
        penalty[0] = 0
        hat = features @ np.linalg.solve(features.T @ features + N * alpha * np.diag(penalty), features.T)
        free, variance = 1 - np.trace(hat) / N, np.sum(hat**2) / N
        expected = np.sum((Y - hat @ Y) ** 2) / N / free**2 * (1 + 2 * variance**2)
        np.testing.assert_allclose(score, expected, rtol=1e-6)
    best = int(np.argmin(scores))
    assert (model.gcv_, model.alpha_) == (scores[best], alphas[best])
    assert totals[0] == 1
    assert totals[-1] == 961  # the whole levels of 1000
    assert model.n_eigenfunctions_ == totals[best]


CASES: dict[str, tuple[Manifold, Group | None]] = {
    "circle, rotations": (Sphere(2), Rotations(5)),
    "sphere, no group": (S2, None),
    "sphere, permutations": (S2, Permutations(3)),
    "sphere, a matrix": (S2, Orthogonal([scipy.linalg.expm([[0.0, 1, 2], [-1, 0, 0.3], [-2, -0.3, 0]])])),
    "S^3, cyclic": (S3, Cyclic(4)),
    "S^3, cyclic and flips": (S3, Generated([Cyclic(4), SignFlips(4)])),
    "S^4, permutations": (Sphere(5), Permutations(5)),
    "torus": (
        FlatTorus(2),
        Generated([Product(Rotations(3), SignFlips(2)), Isometry(np.kron([[0, 1], [1, 0]], np.eye(2)))]),
    ),
    "angles": (
        PeriodicBox([0, 0], [2 * np.pi] * 2),
        Generated([Translations([[2 * np.pi / 5, 0]]), Automorphisms([[[0, 1], [-1, 0]]])]),
    ),
    "box": (PeriodicBox([-1] * 3, [1] * 3), Generated([SignFlips(3), Permutations(3)])),
    "uneven box": (PeriodicBox([0, 0], [1, np.sqrt(2)]), Generated([SignFlips(2), Translations([[0.5, 0]])])),
    "rotations, of one side": (SO3(), Orthogonal([np.kron(TURN, np.eye(3))])),
    "rotations, conjugated": (SO3(), Orthogonal([np.kron(TURN, TURN)])),
    "product": (ProductManifold(S2, Sphere(2)), Product(Permutations(3), Rotations(3))),
    "product with angles": (ProductManifold(S2, PeriodicBox([0], [1])), Product(SignFlips(3), Translations([[0.25]]))),
}


def rough(manifold: Manifold, x: Array) -> Array:
    """A function that no group leaves as it is, and not zero on average."""
    return np.asarray(1 + np.sin(3 * x @ np.arange(1, manifold.ambient + 1)) + np.cos(x[:, 0]))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", CASES)
def test_coefficients_are_those_of_each_levels_harmonics(name: str, solver: str) -> None:
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
        mean = sum(np.outer(space.values(x)[k], y[k]) for k in range(100)) / 100
        vectors = model.basis_.vectors[level]
        if solver == "projection":
            np.testing.assert_allclose(c, vectors @ (vectors.T @ mean), rtol=1e-10, atol=1e-12 * np.abs(y).max())
        for g in () if group is None else group.generators:
            np.testing.assert_allclose(space.action(g) @ c, c, atol=1e-10)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-11, atol=1e-12)
    alone = [clone(model).set_params(alpha=model.alpha_).fit(x, y[:, j]) for j in range(2)]
    np.testing.assert_allclose(np.column_stack([a.predict(new) for a in alone]), expected, rtol=1e-9, atol=1e-9)


# -- exactness ---------------------------------------------------------------------------------------------------------


def assert_invariant(model: dsp.InvariantRegressor, group: Group, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = model.manifold.sample(20, rng)
    f = model.predict(x)
    for length in (1, 7, 40):
        moved = model.predict(group.word(rng, length)(x))
        assert np.abs(moved - f).max() <= 1e-10 * np.abs(f).max()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", [name for name, (_, group) in CASES.items() if group is not None])
def test_exactly_invariant_under_the_groups_that_data_have(name: str, solver: str) -> None:
    manifold, group = CASES[name]
    assert group is not None
    x = manifold.sample(300, np.random.default_rng(1))
    model = make(manifold=manifold, group=group, smoothness=3.0, n_eigenfunctions=150, solver=solver)
    model.fit(x, rough(manifold, x))

    @settings(max_examples=10, deadline=None)
    @given(seed=st.integers(0, 2**32))
    def check(seed: int) -> None:
        assert_invariant(model, group, seed)

    check()
    assert not np.allclose(rough(manifold, group.generators[0](x)), rough(manifold, x))


def signed(rng: np.random.Generator, d: int) -> Array:
    """A random signed permutation matrix."""
    return np.asarray(np.eye(d)[rng.permutation(d)] * rng.choice([-1.0, 1.0], d))


@st.composite
def anything(draw: st.DrawFn) -> tuple[Manifold, Group]:
    """A manifold, and a group that a few random isometries of it generate."""
    kind = draw(st.sampled_from(["sphere", "torus", "box", "rotations", "product"]))
    rng, count = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.integers(1, 3))
    if kind == "sphere":
        d = draw(st.integers(2, 5))
        q = scipy.linalg.qr(rng.standard_normal((d, d)))[0]
        return Sphere(d), Orthogonal([q @ signed(rng, d) @ q.T for _ in range(count)])
    if kind == "torus":
        m = draw(st.integers(1, 3))
        turns = [Rotations(int(rng.integers(1, 8)), 2).generators for _ in range(m)]
        blocks = [t[0].matrix if t else np.eye(2) for t in turns]
        swap = np.kron(np.eye(m)[rng.permutation(m)], np.diag([1.0, rng.choice([-1.0, 1.0])]))
        return FlatTorus(m), Orthogonal([scipy.linalg.block_diag(*blocks), swap])
    if kind == "box":
        m = draw(st.integers(1, 3))
        steps = [Isometry(signed(rng, m), rng.integers(0, 12, m) / 12) for _ in range(count)]
        return PeriodicBox([0] * m, [1] * m), Generated(steps)
    if kind == "rotations":
        pairs = [[signed(rng, 3) for _ in range(2)] for _ in range(count)]
        return SO3(), Orthogonal([np.kron(*(a * np.linalg.det(a) for a in pair)) for pair in pairs])
    first, second = Orthogonal([signed(rng, 3)]), Translations(rng.integers(0, 6, (1, 1)) / 6)
    return ProductManifold(S2, PeriodicBox([0], [1])), Product(first, second)


@settings(max_examples=30, deadline=None)
@given(case=anything(), solver=st.sampled_from(SOLVERS), seed=st.integers(0, 2**32))
def test_exactly_invariant_under_any_group(case: tuple[Manifold, Group], solver: str, seed: int) -> None:
    manifold, group = case
    x = manifold.sample(120, np.random.default_rng(seed))
    model = make(manifold=manifold, group=group, smoothness=3.0, n_eigenfunctions=60, solver=solver)
    assert_invariant(model.fit(x, rough(manifold, x)), group, seed)


# -- what the method does ----------------------------------------------------------------------------------------------


def partitions(total: int, parts: int) -> int:
    """Partitions of a number into at most so many parts."""
    if total == 0:
        return 1
    return 0 if total < 0 or parts == 0 else partitions(total, parts - 1) + partitions(total - parts, parts)


@pytest.mark.parametrize(("d", "levels"), [(3, 8), (5, 4), (10, 3)])
def test_dimensions_under_permutations(d: int, levels: int) -> None:
    """Molien's series: p(l, at most d parts) - p(l - 2, at most d parts)."""
    manifold = Sphere(d)
    size = sum(manifold.multiplicity(level) for level in range(levels))
    x = manifold.sample(size, np.random.default_rng(0))
    model = make(manifold=manifold, group=Permutations(d), smoothness=d, n_eigenfunctions=size).fit(x, x[:, 0])
    expected = [partitions(level, d) - partitions(level - 2, d) for level in range(levels)]
    np.testing.assert_array_equal(model.invariant_dimensions_, expected)


DEFAULTS = [  # n^(1 / (1 + 2 s / dimension)): 15.8, 16, 10, 5 (4.999... to rounding) and 10.7 functions
    (S2, 1.5, 1000, 9),
    (S2, 1.5, 1024, 16),
    (Sphere(2), 1.0, 1000, 9),
    (Sphere(2), 1.0, 125, 5),
    (S3, 2.0, 253, 5),
]


@pytest.mark.parametrize(("manifold", "smoothness", "n", "size"), DEFAULTS)
def test_default_number_of_functions(manifold: Manifold, smoothness: float, n: int, size: int) -> None:
    x = manifold.sample(n, np.random.default_rng(0))
    model = dsp.InvariantRegressor(manifold, None, smoothness, solver="projection").fit(x, x[:, 0])
    assert (model.n_eigenfunctions_, model.basis_.size) == (size, size)


BOUNDED: list[tuple[Manifold, int, Group | None, int, int]] = [
    (S2, 100, None, 49, 49),  # 7^2 and not 8^2 are at most 50
    (S2, 1, None, 1, 1),
    (S2, 3000, None, 961, 961),
    (S2, 100, SignFlips(3), 17**2, 45),  # 1 + l / 2 of each even degree: 1 + 2 + ... + 9
    (S2, 4000, SignFlips(3), 961, 16 * 17 // 2),
    (Sphere(4), 6, Permutations(4), 14, 3),  # 1, 4 and 9 functions, of which 1, 1 and 1 are invariant
    (PeriodicBox([0, 0], [1, 1]), 30, Generated([SignFlips(2), Permutations(2)]), 81, 15),  # a >= b >= 0 up to 5^2
    (Sphere(10), 4000, Permutations(10), 35750, 37),  # up to degree 8, of eigenspaces that are never built
]


@pytest.mark.parametrize(("manifold", "n", "group", "most", "invariant"), BOUNDED)
def test_least_squares_chooses_among_invariant_functions(
    manifold: Manifold, n: int, group: Group | None, most: int, invariant: int
) -> None:
    """At most half as many as rows, in whole levels of 1000 functions or 50 invariant ones, whichever are more."""
    x = manifold.sample(n, np.random.default_rng(0))
    model = dsp.InvariantRegressor(manifold, group, alpha=1e-3).fit(x, x[:, 0] ** 2)
    assert (model.basis_.multiplicities.sum(), model.basis_.size) == (most, invariant)


CUBE = Generated([Permutations(3), SignFlips(3)])


def test_levels_are_added_while_they_help() -> None:
    """Peaks at the corners of an octahedron; they take degrees far above those of the first 1000 functions."""

    def peaks(x: Array) -> Array:
        return np.asarray(np.exp(60 * ((x**4).sum(axis=1) - 1)))

    x, new = (S2.sample(n, np.random.default_rng(n)) for n in (1500, 500))
    chosen, few = (dsp.InvariantRegressor(S2, CUBE, n_eigenfunctions=d).fit(x, peaks(x)) for d in (None, 1000))
    errors = [float(np.mean((model.predict(new) - peaks(new)) ** 2)) for model in (chosen, few)]
    assert chosen.basis_.multiplicities.sum() > 3000
    assert errors[0] < 1e-4 * errors[1]
    assert chosen.basis_.size < 400
    noisy = dsp.InvariantRegressor(S2, CUBE).fit(x, peaks(x) + np.random.default_rng(0).standard_normal(1500))
    assert noisy.basis_.multiplicities.sum() < 2000  # no more help beside so much noise


@settings(max_examples=20, deadline=None)
@given(most=st.integers(1, 120), solver=st.sampled_from(SOLVERS), case=st.sampled_from(["sphere", "box", "SO3"]))
def test_levels_are_whole(most: int, solver: str, case: str) -> None:
    manifold: Manifold = {"sphere": S2, "box": PeriodicBox([0, 0], [1, 1]), "SO3": SO3()}[case]
    x = manifold.sample(120, np.random.default_rng(0))
    model = make(manifold=manifold, group=None, smoothness=3.0, n_eigenfunctions=most, solver=solver).fit(x, x[:, 0])
    sizes = [len(c) for c in model.coef_]
    assert sizes == [manifold.multiplicity(level) for level in range(len(sizes))]
    assert sum(sizes) == model.n_eigenfunctions_ <= most < sum(sizes) + manifold.multiplicity(len(sizes))


def test_polynomials_are_found_exactly_where_the_data_determine_them() -> None:
    y = X.prod(axis=1) + (X**4).sum(axis=1)
    new = S2.sample(50, np.random.default_rng(5))
    model = make(solver="least_squares", n_eigenfunctions=25, alpha=0).fit(X, y)
    np.testing.assert_allclose(model.predict(new), new.prod(axis=1) + (new**4).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(make(solver="least_squares", n_eigenfunctions=25).fit(X, y).predict(X), y, atol=1e-5)


def test_a_group_that_moves_every_point_anywhere_leaves_the_mean() -> None:
    matrices = [scipy.linalg.expm(t * np.cross(np.eye(3), axis)) for t, axis in ((1.0, [1, 0, 0]), (0.7, [0, 1, 0]))]
    model = make(group=Orthogonal(matrices), solver="projection").fit(X, Y)
    assert model.invariant_dimensions_.tolist() == [1, 0, 0, 0, 0, 0]
    np.testing.assert_allclose(model.predict(X[:5]), Y.mean(), rtol=1e-12)


def test_least_squares_has_a_hundredth_of_the_risk_of_the_projection() -> None:
    """Of a smooth function without noise, at n = 10^4, each at its own D."""
    rng = np.random.default_rng(0)
    x, new = S2.sample(10**4, rng), S2.sample(2000, rng)

    def function(x: Array) -> Array:
        return np.asarray(np.exp(x.sum(axis=1)) + np.cos(2 * x).prod(axis=1))

    models = [make(solver=s, n_eigenfunctions=None).fit(x, function(x)) for s in SOLVERS]
    least, projection = (np.mean((model.predict(new) - function(new)) ** 2) for model in models)
    assert projection > 100 * least
    assert projection < 0.05 * np.var(function(new))


def test_least_squares_finds_what_noise_leaves() -> None:
    """Near the least error that any level has."""
    rng = np.random.default_rng(1)
    x, new = S2.sample(1000, rng), S2.sample(1000, rng)
    y = np.exp(x.sum(axis=1)) + 0.5 * rng.standard_normal(1000)

    def error(model: dsp.InvariantRegressor) -> float:
        return float(np.mean((model.predict(new) - np.exp(new.sum(axis=1))) ** 2))

    chosen = error(make(solver="least_squares", n_eigenfunctions=None).fit(x, y))
    best = min(error(make(solver="least_squares", n_eigenfunctions=k * k, alpha=0).fit(x, y)) for k in range(1, 9))
    assert chosen < 2 * best


def test_invariance_helps() -> None:
    """Of the 36 functions, 10 are invariant: their noise alone remains."""
    rng = np.random.default_rng(2)
    x, new = S2.sample(300, rng), S2.sample(1000, rng)
    y = x.sum(axis=1) + rng.standard_normal(300)
    errors = [
        np.mean((make(group=g, solver="least_squares", alpha=0).fit(x, y).predict(new) - new.sum(axis=1)) ** 2)
        for g in (Permutations(3), None)
    ]
    assert errors[1] > 2 * errors[0]


# -- weights -----------------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), solver=st.sampled_from(SOLVERS), several=st.booleans())
def test_weight_two_is_the_row_twice(seed: int, solver: str, several: bool) -> None:
    rng = np.random.default_rng(seed)
    count = rng.integers(0, 4, 60)
    count[:25] += 1
    x, y, options = X[:60], (PAIR if several else Y)[:60], {"n_eigenfunctions": 25, "solver": solver, "alpha": 1e-4}
    weighted = make(**options).fit(x, y, sample_weight=count)
    repeated = make(**options).fit(np.repeat(x, count, axis=0), np.repeat(y, count, axis=0))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9, atol=1e-9)
    assert weighted.moments_.arrays["observed"] == [np.count_nonzero(count)]


def test_the_unit_of_weights_does_not_matter(fitted: dsp.InvariantRegressor) -> None:
    with pytest.warns(dsp.WeightWarning, match="the data count as 400 rows"):
        scaled = clone(fitted).fit(X, Y, sample_weight=np.full(N, 1e-5))
    np.testing.assert_allclose(scaled.predict(X), fitted.predict(X), rtol=1e-8)


def test_importance_weights_remove_the_bias_of_points_that_are_not_uniform() -> None:
    """Density 1 + 0.8 x_1 against the uniform one, f = x_1 + x_2 + x_3, whose mean is then 0.8 / 3."""
    rng = np.random.default_rng(3)
    x = S2.sample(60_000, rng)
    density = 1 + 0.8 * x[:, 0]
    kept = rng.random(len(x)) < density / 1.8
    x, density, new = x[kept], density[kept], S2.sample(200, rng)

    def error(**weight: Any) -> float:
        model = make(n_eigenfunctions=9, solver="projection").fit(x, x.sum(axis=1), **weight)
        return float(np.sqrt(np.mean((model.predict(new) - new.sum(axis=1)) ** 2)))

    with pytest.warns(dsp.FitWarning, match=r"not uniform on Sphere\(d=3\).* 2 functions of mean 0 are 0.27 together"):
        assert error() > 0.25
    assert error(sample_weight=1 / density) < 0.05  # 9 means over 33 000 points: 0.02
    assert (
        make(n_eigenfunctions=9, solver="least_squares", alpha=0).fit(x, x.sum(axis=1)).score(new, new.sum(axis=1))
        > 1 - 1e-12
    )


def test_few_rows_of_positive_weight() -> None:
    """Fewer than functions: the penalty decides."""
    weight = (np.arange(N) < 4).astype(float)
    model = make(solver="least_squares").fit(X, Y, sample_weight=weight)
    alone = make(solver="least_squares", n_eigenfunctions=36, alpha=model.alpha_)
    alone.manifold, x, y = S2, np.repeat(X[:4], 9, axis=0), np.repeat(Y[:4], 9)
    np.testing.assert_allclose(model.predict(X), alone.fit(x, y).predict(X), rtol=1e-8)
    with pytest.raises(ValueError, match=r"the total sample weight is 0; some row needs a weight above zero"):
        make().fit(X, Y, sample_weight=np.zeros(N))


# -- containers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CONTAINERS)
def test_same_bits_from_every_container(kind: str, tmp_path: Path, fitted: dsp.InvariantRegressor) -> None:
    convert, out = CONTAINERS[kind]
    x, y = convert(tmp_path, "x", X), convert(tmp_path, "y", Y)
    model = clone(fitted).fit(x, y)
    assert model.moments_.fingerprint == fitted.moments_.fingerprint
    for name, array in fitted.moments_.arrays.items():
        np.testing.assert_array_equal(model.moments_.arrays[name], array)
    for one, whole in zip(model.coef_, fitted.coef_, strict=True):
        np.testing.assert_array_equal(one, whole)
    values = model.predict(x)
    assert isinstance(values, out)
    assert (values.shape, values.dtype) == ((N,), np.float64)
    np.testing.assert_allclose(np.asarray(values), fitted.predict(X), rtol=1e-12)


@pytest.mark.parametrize("kind", CONTAINERS)
def test_several_targets_from_every_container(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "LEAST_FLOPS", 1e5)  # several tasks
    convert, out = CONTAINERS[kind]
    x, y, w = (convert(tmp_path, name, a) for name, a in (("x", X), ("y", PAIR), ("w", 1 + X[:, 0] ** 2)))
    for solver in SOLVERS:
        options: dict[str, Any] = {"solver": solver, "alpha": 1e-4}
        values = make(**options).fit(x, y, sample_weight=w).predict(x)
        assert isinstance(values, out)
        assert values.shape == (N, 2)
        separate = [make(**options).fit(X, t, sample_weight=1 + X[:, 0] ** 2).predict(X) for t in PAIR.T]
        np.testing.assert_allclose(np.asarray(values), np.column_stack(separate), rtol=1e-10, atol=1e-10)
    column = make().fit(X, Y[:, None])
    assert (column.coef_[1].shape, column.predict(X).shape) == ((3, 1), (N, 1))
    np.testing.assert_array_equal(column.predict(X)[:, 0], make().fit(X, Y).predict(X))


def test_names_of_xarray_and_results_in_a_store(tmp_path: Path, fitted: dsp.InvariantRegressor) -> None:
    x = as_chunked(tmp_path, "x", X)
    values = fitted.predict(x)
    assert (values.dims, values.name, set(values.coords)) == (("row",), "prediction", {"row"})
    assert clone(fitted).fit(X, PAIR).predict(x).dims == ("row", "target")
    assert fitted.predict(as_path(tmp_path, "x", X), out=tmp_path / "f.zarr") is None
    np.testing.assert_allclose(written(tmp_path / "f.zarr"), fitted.predict(X), rtol=1e-12)
    with pytest.raises(FileExistsError, match=r"f.zarr exists"):
        fitted.predict(X, out=tmp_path / "f.zarr")


def test_single_precision_points(fitted: dsp.InvariantRegressor) -> None:
    single = clone(fitted).fit(X.astype(np.float32), Y.astype(np.float32))
    values = single.predict(X.astype(np.float32))
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, fitted.predict(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        single.predict(single.group.word(np.random.default_rng(0))(X)), single.predict(X), rtol=1e-12
    )


# -- a long run, kept and continued ------------------------------------------------------------------------------------


def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "LEAST_FLOPS", 1e2)
    monkeypatch.setattr(plan_module, "EPOCH", 4)


CONTINUED = [
    ("sphere, permutations", "projection"),
    ("torus", "least_squares"),
    ("product", "projection"),
    ("sphere, no group", "least_squares"),
]


@pytest.mark.parametrize(("name", "solver"), CONTINUED)
def test_checkpoint(name: str, solver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many_tasks(monkeypatch)
    manifold, group = CASES[name]
    points = manifold.sample(N, np.random.default_rng(0))
    x, y = as_path(tmp_path, "x", points), as_path(tmp_path, "y", rough(manifold, points))
    model = make(manifold=manifold, group=group, smoothness=3.0, n_eigenfunctions=25, solver=solver)
    tree = Run._tree

    def interrupted(self: Run, graph: Any, epoch: range, *names: Any) -> Any:
        return tree(self, graph, epoch, *names) if epoch.start < 8 else 1 / 0

    monkeypatch.setattr(folds, "LEAST_JOINED", 1 << 20)
    whole = clone(model).fit(x, y)
    monkeypatch.setattr(Run, "_tree", interrupted)
    with pytest.raises(ZeroDivisionError):
        clone(model).fit(x, y, checkpoint=tmp_path / "run", checkpoint_every=0)
    assert int(next((tmp_path / "run").iterdir()).name[-2:]) > 0
    monkeypatch.setattr(Run, "_tree", tree)
    again = "the functions were made anew"
    monkeypatch.setattr(InvariantSpace, "decided", lambda *a, **k: pytest.fail(again))
    resumed = clone(model).fit(x, y, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(resumed.predict(points), whole.predict(points))
    for one, other_one in zip(resumed.coef_, whole.coef_, strict=True):
        np.testing.assert_array_equal(one, other_one)
    np.testing.assert_array_equal(resumed.moments_.digests.table, whole.moments_.digests.table)


def test_a_checkpoint_is_of_one_manifold_and_group(tmp_path: Path) -> None:
    """Also where two groups have the same name."""
    groups = [Orthogonal([m]) for m in (np.diag([-1.0, 1, 1]), np.diag([1.0, -1, 1]))]
    make(group=groups[0]).fit(X, Y, checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match=r"is of another run: parameter group"):
        make(group=groups[1]).fit(X, Y, checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match=r"is of another run: parameter group "):
        make(group=None).fit(X, Y, checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match=r"is of another run: parameter manifold "):
        make(manifold=PeriodicBox([0] * 3, [1] * 3), group=groups[0]).fit(X, Y, checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match=r"is of another run: y "):
        make(group=groups[0]).fit(X, -Y, checkpoint=tmp_path / "run")


@pytest.mark.parametrize(("name", "solver"), [(name, SOLVERS[i % 2]) for i, name in enumerate(CASES)])
def test_saved_and_loaded_bit_for_bit(name: str, solver: str, tmp_path: Path) -> None:
    manifold, group = CASES[name]
    x = manifold.sample(60, np.random.default_rng(0))
    y = np.column_stack([rough(manifold, x), x[:, 0]])[:, : 1 + (solver == "projection")]
    model = make(manifold=manifold, group=group, smoothness=3.0, n_eigenfunctions=20, solver=solver).fit(x, y)
    model.save(tmp_path / "m.zarr")
    again = dsp.InvariantRegressor.load(tmp_path / "m.zarr")
    for copy in (again, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.predict(x), model.predict(x))
        for one, whole in zip(copy.coef_, model.coef_, strict=True):
            np.testing.assert_array_equal(one, whole)
    for attribute in ("n_eigenfunctions_", "alpha_", "gcv_", "gcv_curve_", "invariant_dimensions_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(again, attribute), getattr(model, attribute))
    own, loaded = (m.get_params(deep=False) for m in (model, again))
    assert (own.pop("group") is None) == (loaded.pop("group") is None)
    assert own == loaded
    np.testing.assert_allclose(again.fit(x, y).predict(x), model.predict(x), rtol=1e-9, atol=1e-9)


def test_moments_saved_and_loaded(tmp_path: Path, fitted: dsp.InvariantRegressor) -> None:
    dsp.save(fitted.moments_, tmp_path / "moments.zarr")
    solved = clone(fitted).fit_moments(dsp.load(tmp_path / "moments.zarr"))
    np.testing.assert_array_equal(solved.predict(X), fitted.predict(X))


def test_saving_needs_a_fit_and_loading_the_right_kind(tmp_path: Path, fitted: dsp.InvariantRegressor) -> None:
    with pytest.raises(NotFittedError):
        make().save(tmp_path / "new.zarr")
    fitted.save(tmp_path / "m.zarr")
    with pytest.raises(ValueError, match=r"m.zarr holds InvariantRegressor, not HermiteRegressor"):
        dsp.HermiteRegressor.load(tmp_path / "m.zarr")


def test_the_other_solver_from_the_same_moments(fitted: dsp.InvariantRegressor) -> None:
    for changes in ({"solver": other(fitted)}, {"smoothness": 1.5}, {"alpha": 1e-2}):
        again = clone(fitted).set_params(**changes).fit_moments(fitted.moments_)
        afresh = clone(fitted).set_params(**changes).fit(X, Y)
        np.testing.assert_array_equal(again.predict(X), afresh.predict(X))
    for solver in ("projection", "least_squares"):
        fewer = clone(fitted).set_params(solver=solver, n_eigenfunctions=20).fit_moments(fitted.moments_)
        assert fewer.n_eigenfunctions_ == 16
        afresh = make(n_eigenfunctions=16, solver=solver).fit(X, Y)
        np.testing.assert_allclose(fewer.predict(X), afresh.predict(X), rtol=1e-6, atol=1e-9)


def test_moments_add_and_appended_rows_are_folded_in(fitted: dsp.InvariantRegressor) -> None:
    fitted = clone(fitted).set_params(folds=None).fit(X, Y)  # rows of other numbers are in other folds
    half, rest = (clone(fitted).fit(X[part], Y[part]) for part in (slice(250), slice(250, None)))
    both = clone(fitted).fit_moments(half.moments_ + rest.moments_)
    assert half.update(X, Y) is half
    for model in (both, half):
        assert (model.moments_.rows, model.moments_.count) == (N, N)
        for name, array in fitted.moments_.arrays.items():
            np.testing.assert_allclose(model.moments_.arrays[name], array, rtol=1e-12, atol=1e-12 * np.abs(array).max())
        np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=1e-6)


def test_updates_that_do_not_fit(fitted: dsp.InvariantRegressor) -> None:
    more = np.tile(X, (2, 1))
    with pytest.raises(ValueError, match=r"X has 400 rows, and the model has seen 400: there is nothing to add"):
        fitted.update(X, Y)
    with pytest.raises(ValueError, match=r"X differs from what was measured in rows 0 to 400"):
        fitted.update(more[::-1], np.tile(Y, 2))
    with pytest.raises(ValueError, match=r"the data are for Regression.*and the model was fitted on Regression"):
        fitted.update(more, np.tile(PAIR, (2, 1)))
    with pytest.raises(ValueError, match=r"X has 2 features, but \w+ is expecting 3 features"):
        fitted.update(more[:, :2], np.tile(Y, 2))
    with pytest.raises(ValueError, match=r"on_invalid must be 'raise' or 'skip'; it is 'drop'"):
        fitted.update(more, np.tile(Y, 2), on_invalid="drop")
    with pytest.raises(ValueError, match=r"different bases"):
        fitted.moments_ + make(group=Cyclic(3)).fit(X, Y).moments_
    far = more.copy()
    far[-1] *= 2
    with pytest.raises(ValueError, match=r"expected points on Sphere\(d=3\) .* at distance 1;"):
        clone(fitted).fit(X, Y).update(far, np.tile(Y, 2))


# -- scikit-learn ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_clone_and_parameters(name: str) -> None:
    manifold, group = CASES[name]
    model = make(manifold=manifold, group=group, alpha=0.1, solver="least_squares", smoothness=9.0)
    copy = clone(model)
    assert (copy.manifold, copy.alpha, copy.solver, copy.smoothness) == (manifold, 0.1, "least_squares", 9.0)
    assert repr(copy.group) == repr(group)
    assert copy.get_params(deep=False).keys() == {
        "manifold",
        "group",
        "smoothness",
        "n_eigenfunctions",
        "solver",
        "output",
        "alpha",
        "density",
        "sample_dims",
        "latitude",
        "gradient_weight",
        "folds",
    }
    with pytest.raises(NotFittedError):
        copy.predict(manifold.sample(2, np.random.default_rng(0)))


def test_cross_validation_scores_and_grid_search() -> None:
    y = np.exp(X.sum(axis=1))
    for solver, size, least in (("projection", 9, 0.8), ("least_squares", 36, 0.9999)):
        scores = cross_val_score(make(solver=solver, n_eigenfunctions=size), X, y, cv=4, error_score="raise")
        assert scores.min() > least
    grid = {"n_eigenfunctions": [1, 25], "group": [None, SignFlips(3), Permutations(3)]}
    search = GridSearchCV(make(solver="least_squares"), grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_ == {"n_eigenfunctions": 25, "group": Permutations(3)}
    box = PeriodicBox([0, 0], [1, 1])
    t = box.sample(200, np.random.default_rng(0))
    model = make(manifold=box, group=Permutations(2), solver="least_squares")
    scores = cross_val_score(model, t, np.cos(2 * np.pi * t).sum(axis=1), error_score="raise")
    assert scores.min() > 0.999


# -- bad input ---------------------------------------------------------------------------------------------------------


OFF = X.copy()
OFF[317] *= 1.01

BAD_DATA: list[tuple[tuple[Any, ...], type[Exception], str]] = [
    ((OFF, Y), ValueError, r"expected points on Sphere\(d=3\) to within 1e-05, received row 317 at distance 0.01; "),
    ((X, None), ValueError, r"the target y is None: give the values to fit"),
    ((X, Y[:-1]), ValueError, r"y has 399 rows and X has 400; they go together row by row"),
    ((X, Y[:, None, None]), ValueError, r"y must have shape \(n,\), or .*; it has shape \(400, 1, 1\)"),
    ((X, PAIR[:, :0]), ValueError, r"y must have shape .*; it has shape \(400, 0\)"),
    ((X, Y.astype(str)), TypeError, r"y has dtype .*, and real numbers are wanted"),
    ((X[:, :2], Y), ValueError, r"X has 2 columns, and points of Sphere\(d=3\) have 3 coordinates"),
    ((X[:, 0], Y), ValueError, r"X must have 2 dimensions"),
    ((X[:8], Y[:8]), ValueError, r"n_eigenfunctions=36 (is|has 9 invariant functions,) more than the 8 rows of X"),
    ((X, "no.zarr"), FileNotFoundError, r"there is no zarr array at no.zarr"),
]


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("data", "error", "message"), BAD_DATA, ids=[b[2][:40] for b in BAD_DATA])
def test_bad_data_before_any_task(data: tuple[Any, ...], error: type[Exception], message: str, solver: str) -> None:
    with pytest.raises(error, match=message):
        make(solver=solver).fit(*data)


SHEAR = Isometry([[1, 0.1, 0], [0, 1, 0], [0, 0, 1]])
MIRROR = np.kron(np.diag([-1.0, 1, 1]), np.eye(3))  # of rotations to reflections

BAD_PARAMETERS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"manifold": "sphere"}, TypeError, r"manifold must be one of daskspectral.manifolds, .*; got 'sphere'"),
    ({"manifold": Implicit(lambda x: x, 3)}, ValueError, r"(isometry of|eigenvalues) .*Implicit"),
    ({"manifold": Implicit(lambda x: x, 3), "group": None}, ValueError, r"eigenvalues of Implicit.*are not known"),
    ({"group": "permutations"}, TypeError, r"group must be one of daskspectral.groups, .*; got 'permutations'"),
    ({"group": Permutations}, TypeError, r"group must be one of daskspectral.groups"),
    ({"group": Permutations(4)}, ValueError, r"Sphere\(d=3\) has 3 coordinates, and Permutations\(d=4\) acts on 4"),
    (
        {"group": Generated([Permutations(3), SHEAR])},
        ValueError,
        r"generator 2 of .* does not act: expected an isometry of Sphere\(d=3\): its matrix is not orthogonal.* by 0.1",
    ),
    ({"group": Translations([[0.1, 0, 0]])}, ValueError, r"generator 0 of Translations.*it shifts the coordinates"),
    (
        {"manifold": SO3(), "group": Orthogonal([MIRROR])},
        ValueError,
        r"expected an isometry of SO3\(\): it moves points off the manifold, by 2",
    ),
    (
        {"manifold": PeriodicBox([0] * 3, [1, 2, 3]), "group": Permutations(3)},
        ValueError,
        r"generator 0 .*it takes side 1, of length 2, to side 0, of length 1",
    ),
    ({"smoothness": 1.0}, ValueError, r"smoothness must be above half the dimension of Sphere\(d=3\), 1: .*it is 1.0"),
    ({"smoothness": -2}, ValueError, r"smoothness must be above half"),
    ({"smoothness": "2"}, ValueError, r"smoothness must be a number; it is '2'"),
    ({"smoothness": np.nan}, ValueError, r"smoothness must be a number; it is nan"),
    (
        {"n_eigenfunctions": 401, "solver": "projection"},
        ValueError,
        r"n_eigenfunctions=401 is more than the 400 rows of X; lower it",
    ),
    (
        {"n_eigenfunctions": 450, "group": None},
        ValueError,
        r"n_eigenfunctions=450 has 441 invariant functions, more than the 400 rows of X; lower it",
    ),
    ({"density": "kernel"}, ValueError, r"density must be 'uniform' or 'estimated'; it is 'kernel'"),
    ({"gradient_weight": -1}, ValueError, r"gradient_weight must be a number of 0 or more; it is -1"),
    ({"n_eigenfunctions": 0}, ValueError, r"n_eigenfunctions must be a whole number of 1 or more; it is 0"),
    ({"n_eigenfunctions": 2.5}, ValueError, r"n_eigenfunctions must be a whole number of 1 or more; it is 2.5"),
    ({"n_eigenfunctions": True}, ValueError, r"n_eigenfunctions must be a whole number of 1 or more; it is True"),
    ({"solver": "ridge"}, ValueError, r"solver must be 'least_squares' or 'projection'; it is 'ridge'"),
    ({"alpha": -1e-3}, ValueError, r"alpha must be a number of 0 or more; it is -0.001"),
    ({"alpha": "gcv"}, ValueError, r"alpha must be a number of 0 or more; it is 'gcv'"),
]


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(("changes", "error", "message"), BAD_PARAMETERS, ids=[b[2][:50] for b in BAD_PARAMETERS])
def test_bad_parameters_before_any_task(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    x = SO3().sample(N, np.random.default_rng(0)) if isinstance(changes.get("manifold"), SO3) else X
    with pytest.raises(error, match=message):
        make(**changes).fit(x, Y)
    with pytest.raises(ValueError, match=r"on_invalid must be 'raise' or 'skip'; it is 'drop'"):
        make().fit(x, Y, on_invalid="drop")


def test_points_off_the_manifold_anywhere(fitted: dsp.InvariantRegressor) -> None:
    """In the first rows before any task, in later ones where they are met, in `predict` too."""
    x = np.tile(X, (6, 1))
    x[2345] *= 0.9
    for points in (x, da.from_array(x, chunks=(500, 3))):
        with pytest.raises(ValueError, match=r"expected points on Sphere\(d=3\) to within 1e-05, .*at distance 0.1;"):
            clone(fitted).fit(points, np.tile(Y, 6))
        with pytest.raises(ValueError, match=r"expected points on Sphere\(d=3\) to within 1e-05, .*at distance 0.1;"):
            np.asarray(fitted.predict(points))


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("broken", ["x", "y"])
def test_invalid_rows(kind: str, broken: str, tmp_path: Path, fitted: dsp.InvariantRegressor) -> None:
    fitted = clone(fitted).set_params(folds=None).fit(X, Y)  # rows of other numbers are in other folds
    arrays = {"x": X.copy(), "y": Y.copy()}
    arrays[broken][[317, 390]] = np.nan
    data = [CONTAINERS[kind][0](tmp_path, name, a) for name, a in arrays.items()]
    what = "X holds NaN in column 0" if broken == "x" else "y is NaN"
    with pytest.raises(dsp.InvalidRowError, match=rf"row 317 is the first .*{what}"):
        clone(fitted).fit(*data)
    skipped = clone(fitted).fit(*data, on_invalid="skip")
    without = clone(fitted).fit(*(np.delete(a, [317, 390], axis=0) for a in arrays.values()))
    assert (skipped.moments_.skipped, skipped.moments_.count) == (2, N - 2)
    np.testing.assert_allclose(skipped.predict(X), without.predict(X), rtol=1e-7)
    if broken == "x":
        with pytest.raises(dsp.InvalidRowError, match=r"row (317|390) .*X holds NaN"):
            np.asarray(fitted.predict(data[0]))
        values = np.asarray(fitted.predict(data[0], on_invalid="skip"))
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(values)), [317, 390])
        np.testing.assert_allclose(np.delete(values, [317, 390]), np.delete(fitted.predict(X), [317, 390]), rtol=1e-12)
        assert np.isnan(fitted.predict(np.full((2, 3), np.nan), on_invalid="skip")).all()


def test_bad_use_of_a_fitted_model(fitted: dsp.InvariantRegressor) -> None:
    with pytest.raises(ValueError, match=r"X has 2 features, but \w+ is expecting 3 features"):
        fitted.predict(X[:, :2])
    with pytest.raises(ValueError, match=r"on_invalid must be 'raise' or 'skip'; it is 'drop'"):
        fitted.predict(X, on_invalid="drop")
    with pytest.raises(NotFittedError):
        make().predict(X)
    with pytest.raises(NotFittedError):
        make().update(X, Y)


def test_moments_of_something_else(fitted: dsp.InvariantRegressor) -> None:
    kernel = dsp.kernels.Gaussian(1.0)
    others = [
        dsp.HermiteRegressor(kernel=kernel, n_landmarks=20).fit(X, Y).moments_,
        dsp.SpectralDecomposition(basis=fitted.basis_, n_components=3, operator=dsp.operators.Laplacian(S2))
        .fit(X)
        .moments_,
    ]
    for moments in others:
        with pytest.raises(ValueError, match=r"these are moments of .*; measure them with InvariantRegressor.fit"):
            make().fit_moments(moments)
    for changes in ({"group": None}, {"group": Cyclic(3)}, {"manifold": PeriodicBox([0] * 3, [1] * 3)}):
        with pytest.raises(ValueError, match=r"these are moments of Permutations\(d=3\) on Sphere\(d=3\), and this"):
            make(**changes).fit_moments(fitted.moments_)
    with pytest.raises(ValueError, match=r"solver must be 'least_squares' or 'projection'; it is 'ridge'"):
        make(solver="ridge").fit_moments(fitted.moments_)
    same = Generated([Isometry(g.matrix) for g in Permutations(3).generators])
    np.testing.assert_array_equal(
        clone(fitted).set_params(group=same).fit_moments(fitted.moments_).predict(X), fitted.predict(X)
    )


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_targets_that_overflow(fitted: dsp.InvariantRegressor) -> None:
    with pytest.raises(ValueError, match=r"y reaches 1e\+200, and mean squared errors of such targets overflow"):
        clone(fitted).fit(X, 1e200 * Y / np.abs(Y).max())


def test_a_default_that_explains_nothing_says_so() -> None:
    """Few rows have few functions, and x y is none of the first four; its coefficients are found where it is one."""
    sphere = dsp.manifolds.Sphere(3)
    x = sphere.sample(150, np.random.default_rng(0))
    y = x[:, 0] * x[:, 1]
    with pytest.warns(dsp.FitWarning, match=r"4 invariant functions .* nothing of rows that were left out \(R\^2 = -"):
        dsp.InvariantRegressor(sphere, solver="projection").fit(x, y)
    dsp.InvariantRegressor(sphere, solver="projection").fit(x, x[:, 2])
    dsp.InvariantRegressor(sphere, solver="projection", n_eigenfunctions=4).fit(x, y)  # as was asked for
    dsp.InvariantRegressor(sphere, solver="projection", folds=None).fit(x, y)
    dsp.InvariantRegressor(sphere, solver="projection").fit(x, np.ones(150))
