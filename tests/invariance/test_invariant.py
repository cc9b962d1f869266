"""InvariantRegressor against sums over an enumerated group, dense least squares and finite differences."""

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral import groups as gr
from daskspectral.manifolds import FlatTorus, Implicit, Manifold, PeriodicBox, Product, Sphere
from tests.common import assert_close, unreliable

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


@unreliable
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


CASES: dict[str, tuple[Manifold, gr.Group | None]] = {
    "sphere, no group": (S2, None),
    "S^3, cyclic and flips": (S3, gr.Generated([gr.Cyclic(4), gr.SignFlips(4)])),
    "torus": (FlatTorus(2), gr.Generated([gr.DirectProduct(gr.Rotations(3), gr.SignFlips(2)), gr.Exchange(2)])),
}


def rough(manifold: Manifold, x: Array) -> Array:
    """A function that no group leaves as it is, and not zero on average."""
    return np.asarray(1 + np.sin(3 * x @ np.arange(1, manifold.ambient + 1)) + np.cos(x[:, 0]))


@unreliable
@pytest.mark.parametrize(("name", "solver"), [(name, SOLVERS[i % 2]) for i, name in enumerate(CASES)])
def test_coefficients_are_those_of_each_levels_harmonics(name: str, solver: str) -> None:
    """Both estimators' predictions are sums of coef_ over levels, whose parts D(g) leaves as they are."""
    manifold, group = CASES[name]
    rng = np.random.default_rng(0)
    x, new = manifold.sample(100, rng), manifold.sample(7, rng)
    y = np.column_stack([rough(manifold, x), x[:, 0]])
    model = make(manifold=manifold, group=group, smoothness=3.0, n_eigenfunctions=60, solver=solver).fit(x, y)
    assert len(model.coef_) == len(model.invariant_dimensions_) <= manifold.levels_within(60)
    assert model.n_eigenfunctions_ == sum(map(len, model.coef_))
    expected = np.zeros((7, 2))
    for level, c in enumerate(model.coef_):
        space = manifold.eigenfunctions(level)
        assert c.shape == (space.size, 2)
        expected += space.values(new) @ c
        for g in () if group is None else group.generators:
            np.testing.assert_allclose(space.action(g) @ c, c, atol=1e-10)
    assert_close(model.predict(new), expected, 1e-11)


# -- how many functions ------------------------------------------------------------------------------------------------


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


BAD_PARAMETERS: list[tuple[dict[str, Any], str]] = [
    ({"output": "vector", "group": None}, "output"),
    ({"output": "vector"}, "output"),
    ({"output": [np.roll(np.eye(3), 1, axis=0)]}, "matrix"),
    ({"manifold": Implicit(lambda x: x, 3), "group": None}, "Implicit"),
    ({"group": gr.Generated([gr.Permutations(3), gr.Isometry([[1, 0.1, 0], [0, 1, 0], [0, 0, 1]])])}, "generator 2"),
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
    with pytest.raises(ValueError, match="InvariantRegressor"):
        make().fit_moments(other)
    for changes in ({"group": gr.Cyclic(3)}, {"manifold": PeriodicBox([0] * 3, [1] * 3)}):
        with pytest.raises(ValueError, match=r"Permutations\(d=3\)"):
            make(**changes).fit_moments(fitted.moments_)
    with pytest.raises(ValueError, match=r"different bases"):
        fitted.moments_ + make(group=gr.Cyclic(3)).fit(X, Y).moments_
    same = gr.Generated([gr.Isometry(g.matrix) for g in gr.Permutations(3).generators])
    found = make(group=same).fit_moments(fitted.moments_)
    np.testing.assert_array_equal(found.predict(X), fitted.predict(X))


# -- an output that changes with the group -----------------------------------------------------------------------------


CUBE = gr.Generated([gr.Permutations(3), gr.SignFlips(3)])
PSEUDO = [np.linalg.det(g.matrix) * g.matrix for g in gr.Permutations(3).generators]


def field(x: Array) -> Array:
    """Vectors that change with permutations and signs of the coordinates as these do."""
    return np.asarray(np.exp(x**2) * x + x**3)


FIELD = field(X) + 0.05 * np.random.default_rng(1).standard_normal((N, 3))


def equivariant(**changes: Any) -> dsp.InvariantRegressor:
    return make(**{"group": CUBE, "n_eigenfunctions": 64, "output": "vector"} | changes)


@unreliable
@pytest.mark.parametrize(
    ("group", "output", "y", "size", "alpha"),
    [
        (gr.Permutations(3), None, PAIR[:, None], 36, 0.0),
        (gr.Cyclic(3), None, PAIR[:, None], 36, 1e-2),
        (gr.Permutations(3), "vector", FIELD[..., None], 25, 0.0),
        (gr.Permutations(3), PSEUDO, FIELD[..., None], 25, 1e-4),
    ],
    ids=["scalars", "penalized scalars", "vectors", "pseudovectors"],
)
def test_equals_ridge_on_averaged_products(group: gr.Group, output: Any, y: Array, size: int, alpha: float) -> None:
    """Features mean_g rho(g)^T e_a phi_i(g x), whose equivariant part alone lowers the error."""
    model = make(group=group, output=output, alpha=alpha, n_eigenfunctions=size, smoothness=1.5)
    w = np.random.default_rng(3).uniform(0.5, 2, N)
    model.fit(X, y.squeeze(), sample_weight=w)
    k, sizes = y.shape[1], 2 * np.arange(np.sqrt(size)).astype(int) + 1

    def represented(g: Array) -> Array:
        return np.eye(1) if output is None else g * (np.linalg.det(g) if output is PSEUDO else 1)

    def features(x: Array) -> Array:
        parts = []
        for level in range(len(sizes)):
            space = S2.eigenfunctions(level)
            every = [np.einsum("ci,ab->caib", space.values(x @ g.T), represented(g).T) for g in elements(group)]
            parts.append(np.mean(every, axis=0).reshape(len(x), k, -1))
        return np.concatenate(parts, axis=2)

    penalty = np.repeat(np.cumsum(sizes).astype(float) ** 1.5, k * sizes)  # alpha = 2 s / dimension = 1.5
    penalty[:k] = 0  # of constants
    root = np.sqrt(w / w.sum())[:, None, None]
    rows = np.concatenate([(root * features(X)).reshape(k * N, -1), np.diag(np.sqrt(alpha * penalty))])
    aims = np.concatenate([(root * y).reshape(k * N, -1), np.zeros((len(penalty), y.shape[2]))])
    new = S2.sample(50, np.random.default_rng(4))
    expected = features(new) @ np.linalg.lstsq(rows, aims, rcond=1e-10)[0]
    np.testing.assert_allclose(model.predict(new).reshape(expected.shape), expected, rtol=1e-9, atol=1e-9)
    assert model.alpha_ == alpha


REPRESENTED: dict[str, tuple[Manifold, gr.Group, Any]] = {
    "cube, vectors": (S2, CUBE, "vector"),
    "mirror, pseudoscalars": (S2, gr.Permutations(3), [[[-1.0]], [[1.0]]]),
    "square lattice": (
        PeriodicBox([0, 0], [1, 1]),
        gr.Generated([gr.Orthogonal([[[0, -1], [1, 0]]]), gr.Translations([[0.5, 0.5]])]),
        "vector",
    ),
}


@unreliable
@pytest.mark.parametrize("name", REPRESENTED)
def test_exactly_equivariant(name: str) -> None:
    """|f(g x) - rho(g) f(x)| is rounding for words of generators, whose matrices are multiplied along."""
    manifold, group, output = REPRESENTED[name]
    rho = gr.Representation.of(output).matrices(group)
    rng, k = np.random.default_rng(0), rho.shape[1]
    x = manifold.sample(300, rng)
    y = np.sin(2 * x @ rng.standard_normal((manifold.ambient, k)) + np.arange(k)) + 0.3
    y = y[:, 0] if name == "mirror, pseudoscalars" else y
    options = {"manifold": manifold, "group": group, "output": output}
    model = equivariant(**options, smoothness=3.0, n_eigenfunctions=150, alpha=1e-12).fit(x, y)
    assert np.abs(model.predict(x)).max() > 1e-3

    for letters in rng.integers(len(rho), size=(8, 12)):
        points = manifold.sample(10, rng)
        moved, matrix = points, np.eye(k)
        for i in letters:
            moved, matrix = group.generators[i](moved), rho[i] @ matrix
        before, after = (model.predict(p).reshape(10, -1) for p in (points, moved))
        assert np.abs(after - before @ matrix.T).max() <= 1e-10 * np.abs(before).max()


def test_saved_updated_cloned(tmp_path: Path) -> None:
    whole = equivariant().fit(X, FIELD)
    for output in ("vector", gr.MatrixRepresentation([g.matrix for g in CUBE.generators])):
        model = equivariant(output=output).fit(X[:300], FIELD[:300])
        dsp.save(model, tmp_path / "model.zarr", overwrite=True)
        loaded = dsp.load(tmp_path / "model.zarr")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        np.testing.assert_allclose(loaded.update(X, FIELD).predict(X), whole.predict(X), atol=1e-6)
    assert [c.shape for c in whole.coef_] == [(2 * level + 1, 3) for level in range(len(whole.coef_))]
    with pytest.raises(ValueError, match="Permutations"):
        equivariant(output=[np.linalg.det(g.matrix) * g.matrix for g in CUBE.generators]).fit_moments(whole.moments_)


@unreliable
def test_matrices_that_do_not_multiply_as_the_group_leave_almost_no_functions() -> None:
    wrong = equivariant(output=[g.matrix for g in CUBE.generators[::-1]], n_eigenfunctions=49)
    with pytest.raises(ValueError, match="n_eigenfunctions"):
        wrong.fit(X, FIELD)


# -- gradients ---------------------------------------------------------------------------------------------------------


SLOPED: dict[str, tuple[Manifold, gr.Group | None]] = {
    "permutations of many": (Sphere(8), gr.Permutations(8)),  # large eigenspaces that are not built
    "product": (Product(S2, PeriodicBox([0], [2])), gr.DirectProduct(gr.Permutations(3), gr.Translations([[0.5]]))),
}


def invariant(x: Array) -> Array:
    """A polynomial that permutations leave as it is."""
    return np.asarray(x.prod(axis=1) + (x**4).sum(axis=1))


def slopes(x: Array) -> Array:
    """Its gradient, along the normals too."""
    others = np.stack([x[:, 1] * x[:, 2], x[:, 0] * x[:, 2], x[:, 0] * x[:, 1]], axis=1)
    return np.asarray(others + 4 * x**3)


def tangential(x: Array, t: Array) -> Array:
    return np.asarray(t - np.sum(x * t, axis=1, keepdims=True) * x)


@unreliable
@pytest.mark.parametrize("name", SLOPED)
def test_gradients_are_derivatives(name: str) -> None:
    """Central differences along tangents, projected back to the manifold, give predict_gradient."""
    manifold, group = SLOPED[name]
    rng = np.random.default_rng(0)
    x, new = manifold.sample(120, rng), manifold.sample(9, rng)
    y = np.column_stack([np.sin(2 * x).sum(axis=1), x[:, 0] ** 2])
    size = 3000 if manifold.ambient == 8 else 60
    fitted = dsp.InvariantRegressor(manifold, group, n_eigenfunctions=size, alpha=1e-6).fit(x, y)
    found = fitted.predict_gradient(new)
    assert found.shape == (9, 2, manifold.ambient)
    direction = rng.standard_normal(new.shape)
    for normal in manifold.normals(new):
        np.testing.assert_allclose(np.einsum("kmd,kd->km", found, normal), 0, atol=1e-9 * np.abs(found).max())
        direction -= np.sum(direction * normal, axis=1, keepdims=True) * normal
    step = 1e-5
    up, down = (new + s * step * direction for s in (1, -1))
    sphere = slice(0, manifold.ambient - 1 if isinstance(manifold, Product) else manifold.ambient)
    for z in (up, down):  # back on the sphere: both ends as far from it
        z[:, sphere] /= np.linalg.norm(z[:, sphere], axis=1, keepdims=True)
    expected = (fitted.predict(up) - fitted.predict(down)) / (2 * step)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(np.einsum("kmd,kd->km", found, direction), expected, rtol=1e-5, atol=1e-6 * scale)
    alone = clone(fitted).fit(x, y[:, 0]).predict_gradient(new)
    np.testing.assert_allclose(alone, found[:, 0], rtol=1e-8, atol=1e-8 * np.abs(alone).max())


def test_gradients_and_values_determine_a_polynomial_exactly() -> None:
    """Along the normals gradients may say anything; without values there is a potential up to a constant, of mean 0."""
    t = slopes(X) + 7 * np.random.default_rng(1).standard_normal((N, 1)) * X
    fitted = make(n_eigenfunctions=49, alpha=0).fit(X, invariant(X), gradients=t)
    new = S2.sample(50, np.random.default_rng(2))
    np.testing.assert_allclose(fitted.predict(new), invariant(new), atol=1e-11)
    np.testing.assert_allclose(fitted.predict_gradient(new), tangential(new, slopes(new)), atol=1e-10)
    forces = make(n_eigenfunctions=49, alpha=0).fit(X, None, gradients=t)
    off = forces.predict(new) - invariant(new)
    np.testing.assert_allclose(off, off[0], atol=1e-10)
    np.testing.assert_allclose(forces.coef_[0], 0, atol=1e-12)


@unreliable
def test_least_squares_with_gradients_equals_dense_ridge() -> None:
    """(Phi + w L + alpha K) a = sum phi y + w sum <grad phi, t>, written out over rows and tangents."""
    rng = np.random.default_rng(3)
    y, t, w = rng.standard_normal(N), rng.standard_normal((N, 3)), rng.uniform(0.5, 2, N)
    model = make(n_eigenfunctions=49, alpha=1e-3, gradient_weight=0.3, smoothness=1.5)
    fitted = model.fit(X, y, gradients=t, sample_weight=w)
    spaces = [S2.eigenfunctions(level) for level in range(7)]
    values = np.concatenate([space.values(X) for space in spaces], axis=1)
    axes = [np.concatenate([s.derivatives(X, np.tile(e, (N, 1))) for s in spaces], axis=1) for e in np.eye(3)]
    u = scipy.linalg.block_diag(*fitted.basis_.vectors)
    root = np.sqrt(w / w.sum())[:, None]
    rows = [root * values @ u, *(np.sqrt(0.3) * root * axis @ u for axis in axes)]
    aims = [root[:, 0] * y, *(np.sqrt(0.3) * root[:, 0] * tangential(X, t)[:, i] for i in range(3))]
    penalty = np.diag(np.sqrt(1e-3 * fitted.basis_.cumulative**1.5) * (fitted.basis_.cumulative > 1))
    a = np.linalg.lstsq(np.concatenate([*rows, penalty]), np.concatenate([*aims, np.zeros(len(penalty))]))[0]
    np.testing.assert_allclose(np.concatenate(fitted.coef_), u @ a, atol=1e-10)
