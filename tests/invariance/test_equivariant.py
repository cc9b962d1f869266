"""InvariantRegressor with an output that changes with the group: dense least squares, exactness, saving."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral import groups as gr
from daskspectral.groups.elements import orthogonal_elements
from daskspectral.manifolds import Manifold, PeriodicBox, Sphere
from tests.common import doubtful

Array = NDArray[Any]
N = 400
S2, CUBE = Sphere(3), gr.Generated([gr.Permutations(3), gr.SignFlips(3)])
THIRD = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
X = S2.sample(N, np.random.default_rng(0))
PSEUDO = [np.linalg.det(g.matrix) * g.matrix for g in gr.Permutations(3).generators]


def field(x: Array) -> Array:
    """Vectors that change with permutations and signs of the coordinates as these do."""
    return np.asarray(np.exp(x**2) * x + x**3)


Y = field(X) + 0.05 * np.random.default_rng(1).standard_normal((N, 3))


def make(**changes: Any) -> dsp.InvariantRegressor:
    options = {"manifold": S2, "group": CUBE, "n_eigenfunctions": 64, "smoothness": 2.0, "output": "vector"}
    return dsp.InvariantRegressor(**(options | changes))


@doubtful
@pytest.mark.parametrize(("output", "alpha"), [("vector", 0.0), (PSEUDO, 1e-4)], ids=["vector", "pseudovector"])
def test_equals_ridge_on_averaged_products(output: Any, alpha: float) -> None:
    """Features mean_g rho(g)^T e_a phi_i(g x), whose equivariant part alone lowers the error."""
    model = make(group=gr.Permutations(3), output=output, alpha=alpha, n_eigenfunctions=25, smoothness=1.5)
    w = np.random.default_rng(3).uniform(0.5, 2, N)
    model.fit(X, Y, sample_weight=w)
    group = orthogonal_elements(np.array([g.matrix for g in gr.Permutations(3).generators]), 6)
    assert group is not None

    def features(x: Array) -> Array:
        parts = []
        for level in range(5):
            space, total = S2.eigenfunctions(level), np.zeros(())
            for g in group:
                rho = g * (np.linalg.det(g) if output is PSEUDO else 1)
                total = total + np.einsum("ci,ab->caib", space.values(x @ g.T), rho.T)
            parts.append((total / 6).reshape(len(x), 3, -1))
        return np.concatenate(parts, axis=2)

    sizes = 2 * np.arange(5) + 1
    penalty = np.repeat(np.cumsum(sizes).astype(float) ** 1.5, 3 * sizes)
    penalty[:3] = 0  # of constants
    scaled = np.sqrt(w / w.sum())[:, None]
    rows = np.concatenate([(scaled[:, :, None] * features(X)).reshape(3 * N, -1), np.diag(np.sqrt(alpha * penalty))])
    target = np.concatenate([(scaled * Y).ravel(), np.zeros(75)])
    a = np.linalg.lstsq(rows, target, rcond=1e-10)[0]
    new = S2.sample(50, np.random.default_rng(4))
    np.testing.assert_allclose(model.predict(new), features(new) @ a, rtol=0, atol=1e-9)
    assert model.alpha_ == alpha


CASES: dict[str, tuple[Manifold, gr.Group, Any]] = {
    "cube, vectors": (S2, CUBE, "vector"),
    "mirror, pseudoscalars": (S2, gr.Permutations(3), [[[-1.0]], [[1.0]]]),
    "square lattice": (
        PeriodicBox([0, 0], [1, 1]),
        gr.Generated([gr.Orthogonal([[[0, -1], [1, 0]]]), gr.Translations([[0.5, 0.5]])]),
        "vector",
    ),
}


@doubtful
@pytest.mark.parametrize("name", CASES)
def test_exactly_equivariant(name: str) -> None:
    """|f(g x) - rho(g) f(x)| is rounding for words of generators, whose matrices are multiplied along."""
    manifold, group, output = CASES[name]
    rho = gr.Representation.of(output).matrices(group)
    rng, k = np.random.default_rng(0), rho.shape[1]
    x = manifold.sample(300, rng)
    y = np.sin(2 * x @ rng.standard_normal((manifold.ambient, k)) + np.arange(k)) + 0.3
    y = y[:, 0] if name == "mirror, pseudoscalars" else y
    options = {"manifold": manifold, "group": group, "output": output}
    model = make(**options, smoothness=3.0, n_eigenfunctions=150, alpha=1e-12).fit(x, y)
    assert np.abs(model.predict(x)).max() > 1e-3

    @settings(max_examples=8)
    @given(letters=st.lists(st.integers(0, len(rho) - 1), max_size=12), seed=st.integers(0, 2**32))
    def check(letters: list[int], seed: int) -> None:
        points = manifold.sample(10, np.random.default_rng(seed))
        moved, matrix = points, np.eye(k)
        for i in letters:
            moved, matrix = group.generators[i](moved), rho[i] @ matrix
        before, after = (model.predict(p).reshape(10, -1) for p in (points, moved))
        assert np.abs(after - before @ matrix.T).max() <= 1e-10 * np.abs(before).max()

    check()


def test_saved_updated_cloned(tmp_path: Path) -> None:
    whole = make().fit(X, Y)
    for output in ("vector", gr.MatrixRepresentation([g.matrix for g in CUBE.generators])):
        model = make(output=output).fit(X[:300], Y[:300])
        dsp.save(model, tmp_path / "model.zarr", overwrite=True)
        loaded = dsp.load(tmp_path / "model.zarr")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        np.testing.assert_allclose(loaded.update(X, Y).predict(X), whole.predict(X), atol=1e-6)
    assert [c.shape for c in whole.coef_] == [(2 * level + 1, 3) for level in range(len(whole.coef_))]
    with pytest.raises(ValueError, match="measure them again"):
        make(output=[np.linalg.det(g.matrix) * g.matrix for g in CUBE.generators]).fit_moments(whole.moments_)


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(("changes", "y"), [({"group": None}, Y), ({}, Y[:, :2]), ({"output": [THIRD]}, Y)])
def test_refused_before_any_task(changes: dict[str, Any], y: Array) -> None:
    with pytest.raises(ValueError, match=r"group|columns|matrix"):
        make(**changes).fit(X, y)


@doubtful
def test_matrices_that_do_not_multiply_as_the_group_leave_next_to_nothing() -> None:
    wrong = make(output=[g.matrix for g in CUBE.generators[::-1]], n_eigenfunctions=49)
    with pytest.raises(ValueError, match="but 0"):
        wrong.fit(X, Y)
