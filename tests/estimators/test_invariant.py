"""InvariantRegressor against sums over an enumerated group, dense least squares, quadrature and its own promises."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import daskspectral as dsp
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
from daskspectral.manifolds import SO3, Box, FlatTorus, Manifold, Sphere
from daskspectral.manifolds import Product as ProductManifold

Array = NDArray[Any]
SOLVERS = ("projection", "least_squares")
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
@pytest.mark.parametrize(("d", "levels"), [(2, 6), (3, 5), (4, 4), (5, 3)])
def test_projection_equals_sums_over_points_and_group(d: int, levels: int, name: str) -> None:
    """f(x) = 1 / (n |G|) sum_k sum_g y_k sum_l Z_l(x_k . g x)."""
    rng = np.random.default_rng(d)
    manifold = Sphere(d)
    x, new, w = manifold.sample(60, rng), manifold.sample(5, rng), rng.uniform(0, 2, 60)
    y = np.exp(x[:, 0]) + x[:, -1] ** 3
    size = sum(manifold.multiplicity(level) for level in range(levels))
    model = make(manifold=manifold, group=ENUMERATED[name][0](d), smoothness=3.0, n_eigenfunctions=size)
    model.fit(x, y, sample_weight=w)
    group, expected = elements(name, d), np.zeros(5)
    for i in range(5):
        for k in range(60):
            for g in group:
                for level in range(levels):
                    expected[i] += w[k] * y[k] * zonal(d, level, np.array(x[k] @ g @ new[i]))
    expected /= w.sum() * len(group)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-10, atol=1e-10 * np.abs(y).max())
    assert (model.n_eigenfunctions_, len(model.coef_)) == (size, levels)


def averaged(manifold: Manifold, levels: int, group: list[Array], x: Array) -> list[Array]:
    """Harmonics of each level averaged over a group (n, m): features of its invariant functions, of lower rank."""
    return [
        np.mean([manifold.eigenfunctions(level).values(x @ g.T) for g in group], axis=0) for level in range(levels)
    ]


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
    rows = np.concatenate([np.sqrt(w / w.sum())[:, None] * features, np.diag(np.sqrt(alpha * penalty))])
    target = np.concatenate([np.sqrt(w / w.sum())[:, None] * PAIR, np.zeros((36, 2))])
    a = np.linalg.lstsq(rows, target, rcond=1e-10)[0]
    new = S2.sample(50, np.random.default_rng(4))
    expected = np.concatenate(averaged(S2, levels, group, new), axis=1) @ a
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-9, atol=1e-9)
    assert model.alpha_ == alpha


def test_cross_validation_equals_the_hat_matrix_at_every_number_of_levels() -> None:
    model = make(solver="least_squares", n_eigenfunctions=None, smoothness=1.5).fit(X, Y)
    totals, alphas, scores = model.gcv_curve_.T
    parts = averaged(S2, 14, elements("permutations", 3), X)
    for total, alpha, score in zip(totals, alphas, scores, strict=True):
        levels = round(np.sqrt(total))
        features = np.concatenate(parts[:levels], axis=1)
        sizes = 2 * np.arange(levels) + 1
        penalty = np.repeat(np.cumsum(sizes).astype(float) ** 1.5, sizes)
        hat = features @ np.linalg.solve(features.T @ features + N * alpha * np.diag(penalty), features.T)
        free, variance = 1 - np.trace(hat) / N, np.sum(hat**2) / N
        expected = np.sum((Y - hat @ Y) ** 2) / N / free**2 * (1 + 2 * variance**2)
        np.testing.assert_allclose(score, expected, rtol=1e-6)
    best = int(np.argmin(scores))
    assert (model.gcv_, model.alpha_) == (scores[best], alphas[best])
    assert totals[0] == 1
    assert totals[-1] == 196  # the whole levels of n / 2 = 200
    assert model.n_eigenfunctions_ >= totals[best]


CASES: dict[str, tuple[Manifold, Group | None]] = {
    "circle, rotations": (Sphere(2), Rotations(5)),
    "sphere, no group": (S2, None),
    "sphere, permutations": (S2, Permutations(3)),
    "sphere, a matrix": (S2, Orthogonal([scipy.linalg.expm([[0.0, 1, 2], [-1, 0, 0.3], [-2, -0.3, 0]])])),
    "S^3, cyclic": (S3, Cyclic(4)),
    "S^3, cyclic and flips": (S3, Generated([Cyclic(4), SignFlips(4)])),
    "S^4, permutations": (Sphere(5), Permutations(5)),
    "torus": (FlatTorus(2), Generated([Product(Rotations(3), SignFlips(2)), Isometry(np.kron([[0, 1], [1, 0]], np.eye(2)))])),
    "angles": (Box([0, 0], [2 * np.pi] * 2), Generated([Translations([[2 * np.pi / 5, 0]]), Automorphisms([[[0, 1], [-1, 0]]])])),
    "box": (Box([-1] * 3, [1] * 3), Generated([SignFlips(3), Permutations(3)])),
    "uneven box": (Box([0, 0], [1, np.sqrt(2)]), Generated([SignFlips(2), Translations([[0.5, 0]])])),
    "rotations, of one side": (SO3(), Orthogonal([np.kron(TURN, np.eye(3))])),
    "rotations, conjugated": (SO3(), Orthogonal([np.kron(TURN, TURN)])),
    "product": (ProductManifold(S2, Sphere(2)), Product(Permutations(3), Rotations(3))),
    "product with angles": (ProductManifold(S2, Box([0], [1])), Product(SignFlips(3), Translations([[0.25]]))),
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
    assert len(model.coef_) == manifold.levels_within(60) == len(model.invariant_dimensions_)
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
        return Box([0] * m, [1] * m), Generated(steps)
    if kind == "rotations":
        pairs = [[signed(rng, 3) for _ in range(2)] for _ in range(count)]
        return SO3(), Orthogonal([np.kron(*(a * np.linalg.det(a) for a in pair)) for pair in pairs])
    first, second = Orthogonal([signed(rng, 3)]), Translations(rng.integers(0, 6, (1, 1)) / 6)
    return ProductManifold(S2, Box([0], [1])), Product(first, second)


@settings(max_examples=40, deadline=None)
@given(case=anything(), solver=st.sampled_from(SOLVERS), seed=st.integers(0, 2**32))
def test_exactly_invariant_under_any_group(case: tuple[Manifold, Group], solver: str, seed: int) -> None:
    manifold, group = case
    x = manifold.sample(120, np.random.default_rng(seed))
    model = make(manifold=manifold, group=group, smoothness=3.0, n_eigenfunctions=60, solver=solver)
    assert_invariant(model.fit(x, rough(manifold, x)), group, seed)
