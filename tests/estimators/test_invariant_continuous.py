"""InvariantRegressor under Lie groups: exact invariance, exact fits in the span, saving, moments, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.groups import (
    ContinuousTranslations,
    Exchange,
    FullOrthogonal,
    Generated,
    Group,
    LieGroup,
    Permutations,
    PhaseRotations,
    Product,
    SpecialOrthogonal,
)
from daskspectral.manifolds import SO3, FlatTorus, Manifold, PeriodicBox, Sphere
from daskspectral.manifolds import Product as ProductManifold
from tests.common import assert_close

Array = NDArray[Any]
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])

CASES: dict[str, tuple[Manifold, Group]] = {
    "identical vectors": (Sphere(6), Generated([FullOrthogonal(3, 2), Exchange(3)])),
    "charges": (Sphere(6), PhaseRotations([1, 1, -2])),
    "rotations": (SO3(), LieGroup([np.kron(np.pad(TURN, (0, 1)), np.eye(3))])),
    "translations": (PeriodicBox([0, 0], [1, 2]), ContinuousTranslations([[1, -2]])),
    "pair and box": (
        ProductManifold(ProductManifold(Sphere(3), Sphere(3)), PeriodicBox([0], [1])),
        Product(Generated([SpecialOrthogonal(3, 2), Exchange(3)]), Permutations(1)),
    ),
}


def rough(x: Array) -> Array:
    return np.asarray(np.exp(np.sin(3 * x).sum(axis=1)) + x[:, 0])


@pytest.mark.parametrize("name", CASES)
def test_exactly_invariant(name: str, tmp_path: Path) -> None:
    manifold, group = CASES[name]
    x = manifold.sample(200, np.random.default_rng(0))
    model = dsp.InvariantRegressor(manifold, group, 4.0, 100, "least_squares").fit(x, rough(x))
    assert model.invariant_dimensions_.sum() > 1
    dsp.save(model, tmp_path / "model.zarr")
    again = dsp.load(tmp_path / "model.zarr")
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    for seed in range(5):
        moved = group.word(np.random.default_rng(seed))(x)
        assert_close(model.predict(moved), model.predict(x), 1e-10)


def test_inner_products_are_learned_exactly() -> None:
    """x_1 . x_2 and its square are the invariant functions of degree 2 and 4 that mix both vectors."""
    manifold, rng = Sphere(6), np.random.default_rng(0)
    x, new = manifold.sample(300, rng), manifold.sample(50, rng)

    def target(x: Array) -> Array:
        t = np.sum(x[:, :3] * x[:, 3:], axis=1)
        return np.asarray(t - 3 * t**2)

    model = dsp.InvariantRegressor(manifold, SpecialOrthogonal(3, 2), 4.0, 182, "least_squares").fit(x, target(x))
    assert model.invariant_dimensions_.tolist() == [1, 0, 2, 0, 3]
    np.testing.assert_allclose(model.predict(new), target(new), atol=1e-5)


def test_moments_belong_to_one_algebra() -> None:
    manifold, x = Sphere(4), Sphere(4).sample(100, np.random.default_rng(0))
    model = dsp.InvariantRegressor(manifold, PhaseRotations([1, 1]), 4.0, 55, "least_squares").fit(x, rough(x))
    same = LieGroup([np.kron(np.eye(2), TURN)])
    found = clone(model).set_params(group=same).fit_moments(model.moments_)
    np.testing.assert_array_equal(found.predict(x), model.predict(x))
    for group in (PhaseRotations([1, -1]), PhaseRotations([1, 0]), Permutations(4), None):
        with pytest.raises(
            ValueError, match=r"these are moments of PhaseRotations\(charges=\(1, 1\)\) on Sphere\(d=4\)"
        ):
            clone(model).set_params(group=group).fit_moments(model.moments_)


def test_groups_that_do_not_act_are_refused_before_any_task() -> None:
    x = Sphere(4).sample(50, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"Sphere\(d=4\) has 4 coordinates, and SpecialOrthogonal\(.*\) acts on 3"):
        dsp.InvariantRegressor(Sphere(4), SpecialOrthogonal(3)).fit(x, rough(x))
    with pytest.raises(ValueError, match=r"element 1 of the algebra of .* does not act: .* moves points off"):
        dsp.InvariantRegressor(FlatTorus(2), SpecialOrthogonal(4)).fit(x, rough(x))
    with pytest.raises(ValueError, match=r"SpecialOrthogonal\(.*\) is continuous, .* use InvariantRegressor"):
        dsp.SobolevRidge(Sphere(4), SpecialOrthogonal(4)).fit(x, rough(x))
