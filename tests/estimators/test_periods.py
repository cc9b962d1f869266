"""Periodic columns: angles, cylinders, and what is refused before any task is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import BoxEdge, MonomialBasis, Vanishing
from daskspectral.kernels import Gaussian, Matern, Periodic, Polynomial
from daskspectral.manifolds import PeriodicBox
from daskspectral.operators import Cross, Laplacian, Transfer

TURN = 2 * np.pi
ANGLES = np.random.default_rng(0).uniform(0, TURN, (10_000, 1))


def make(**changes: Any) -> dsp.SpectralDecomposition:
    defaults: dict[str, Any] = {"kernel": Gaussian(1.0), "n_landmarks": 20, "n_components": 5, "random_state": 0}
    return dsp.SpectralDecomposition(**(defaults | changes))


def test_angles_and_a_cylinder() -> None:
    found = make(periods={0: TURN}).fit(ANGLES)
    np.testing.assert_allclose(found.eigenvalues_, [0, 1, 1, 4, 4], rtol=0.05, atol=1e-9)
    assert isinstance(found.kernel_, Periodic)
    assert make().fit(ANGLES).eigenvalues_[1] < 0.5  # an interval of length 2 pi: 1/4, 1, ...
    x = np.column_stack([np.random.default_rng(1).uniform(0, np.pi, 10_000), ANGLES[:, 0] / TURN])
    cylinder = make(periods={-1: 1.0}, kernel=Gaussian(0.5), n_landmarks=150, n_components=6).fit(x)
    np.testing.assert_allclose(cylinder.eigenvalues_[1:], [1, 4, 9, 16, 25], rtol=0.08)  # (2 pi)^2 = 39.5 comes after
    wide = x * [1, TURN]
    wider = make(periods={1: TURN}, kernel=Gaussian(1.0), n_landmarks=150, n_components=7).fit(wide)
    np.testing.assert_allclose(wider.eigenvalues_[1:], [1, 1, 1, 2, 2, 4], rtol=0.08)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000))
def test_whole_turns_change_nothing(seed: int) -> None:
    x = ANGLES[:2000]
    turned = x + TURN * np.random.default_rng(seed).integers(-5, 6, x.shape)
    before, after = (make(periods={0: TURN}, solver="cut").fit(y) for y in (x, turned))
    np.testing.assert_allclose(after.eigenvalues_, before.eigenvalues_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(before.transform(turned), before.transform(x), atol=1e-8)


def test_it_is_the_kernel_that_is_periodic_and_the_box() -> None:
    x = ANGLES[:2000]
    named = make(periods={0: TURN}).fit(x)
    kernel = make(kernel=Periodic(Gaussian(1.0), (TURN,))).fit(x)
    box = make(operator=Laplacian(PeriodicBox([0], [TURN]))).fit(x)
    both = make(
        periods={0: TURN}, kernel=Periodic(Gaussian(1.0), (TURN,)), operator=Laplacian(PeriodicBox([0], [TURN]))
    ).fit(x)
    for other in (kernel, box, both):
        np.testing.assert_allclose(other.eigenvalues_, named.eigenvalues_, rtol=1e-9, atol=1e-12)


def test_columns_are_counted_before_they_are_chosen() -> None:
    x = np.column_stack([np.random.default_rng(2).standard_normal(2000), 9 * ANGLES[:2000, 0], ANGLES[:2000, 0]])
    wanted = make(periods={0: TURN}).fit(x[:, 2:])
    np.testing.assert_array_equal(make(columns=[2], periods={2: TURN}).fit(x).eigenvalues_, wanted.eigenvalues_)
    found = make(columns=[2, 0], periods={-1: TURN}).fit(x)
    assert found.kernel_.periods == (TURN, None)


def test_right_functions_and_transfer() -> None:
    rng = np.random.default_rng(3)
    steps = np.cumsum(0.3 * rng.standard_normal((5000, 1)), axis=0)  # turns that are never taken back
    koopman = make(operator=Transfer(1), periods={0: TURN}, n_components=3).fit(steps)
    np.testing.assert_allclose(koopman.singular_values_, [1, np.exp(-0.045), np.exp(-0.045)], rtol=0.02)
    apart = make(operator=Transfer(1), periods={0: TURN}, right_kernel=Matern(1.5, 1.0), n_components=3).fit(steps)
    assert apart.right_basis_.parts[-1].kernel == Periodic(Matern(1.5, 1.0), (TURN,))
    y = np.cos(ANGLES[:2000]) + 0.1 * rng.standard_normal((2000, 1))
    cross = make(operator=Cross(), periods={0: TURN}, n_components=2).fit((ANGLES[:2000], y))
    assert isinstance(cross.basis_.parts[-1].kernel, Periodic)
    assert cross.right_basis_.parts[-1].kernel == Gaussian(1.0)  # y has columns of its own


def test_a_regression_on_angles() -> None:
    x = ANGLES[:500]
    y, slopes = np.sin(x[:, 0]), np.cos(x)
    model = dsp.HermiteRegressor(Gaussian(1.0), 30, periods={0: TURN}, random_state=0).fit(x, y, gradients=slopes)
    grid = np.linspace(-9, 9, 50)[:, None]
    np.testing.assert_allclose(model.predict(grid), np.sin(grid[:, 0]), atol=1e-4)
    np.testing.assert_allclose(model.predict_gradient(grid), np.cos(grid), atol=1e-3)


def test_models_with_periods_are_saved_and_cloned(tmp_path: Path) -> None:
    x = ANGLES[:1000]
    for model in (make(periods={np.int64(0): TURN}), dsp.HermiteRegressor(Gaussian(1.0), 20, periods={0: TURN})):
        model.fit(*((x,) if isinstance(model, dsp.SpectralDecomposition) else (x, np.sin(x[:, 0]))))
        model.save(tmp_path / "m.zarr", overwrite=True)
        again = dsp.load(tmp_path / "m.zarr")
        assert again.get_params()["periods"] == {0: TURN} == clone(model).periods
        assert again.kernel_ == model.kernel_


def test_kernels_at_landmarks_of_a_vanishing_basis() -> None:
    x = np.column_stack([np.random.default_rng(4).uniform(0, np.pi, 10_000), ANGLES[:, 0]])
    edge = BoxEdge([0, -np.inf], [np.pi, np.inf])
    model = make(basis=Vanishing("landmarks", edge), periods={1: TURN}, n_landmarks=150).fit(x)
    np.testing.assert_allclose(model.eigenvalues_, [1, 2, 2, 4, 5], rtol=0.05)


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"periods": {0: 0.0}}, ValueError, r"a period is a positive number .* of column 0 it is 0.0"),
        ({"periods": {0: -1.0}}, ValueError, "a period is a positive number"),
        ({"periods": {0: np.inf}}, ValueError, "a period is a positive number"),
        ({"periods": {0: np.nan}}, ValueError, "a period is a positive number"),
        ({"periods": {0: "1"}}, ValueError, "a period is a positive number"),
        ({"periods": {"0": 1.0}}, ValueError, "'0' is no number of a column"),
        ({"periods": {True: 1.0}}, ValueError, "True is no number of a column"),
        ({"periods": {}}, ValueError, "periods names no column"),
        ({"periods": [1.0]}, TypeError, "periods maps the numbers of columns of X"),
        ({"periods": {3: 1.0}}, ValueError, "names the column 3, and X has 1 columns, 0 to 0"),
        ({"periods": {0: 1.0, -1: 1.0}}, ValueError, "names the column 0 twice"),
        ({"periods": {0: TURN}, "standardize": True}, ValueError, "standardize=True would change the units of X, and"),
        (
            {"periods": {0: TURN}, "basis": MonomialBasis(1, 2), "kernel": None},
            ValueError,
            "periods are for kernels at landmarks, and basis has functions of its own",
        ),
        (
            {"periods": {0: TURN}, "kernel": Periodic(Gaussian(1.0), (1.0,))},
            ValueError,
            r"the kernel has the periods \(1.0,\), and periods= asks for \(6.28",
        ),
        (
            {"periods": {0: TURN}, "operator": Laplacian(PeriodicBox([0], [1]))},
            ValueError,
            r"has the periods \(1.0,\), and periods= asks for \(6.28.*; give them once",
        ),
    ],
)
def test_periods_that_cannot_work(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(**arguments).fit(ANGLES)


@pytest.mark.usefixtures("no_tasks")
def test_periods_that_columns_leave_out_and_of_a_regression() -> None:
    with pytest.raises(ValueError, match=r"names the column 1, which columns=\[0\] leaves out"):
        make(columns=[0], periods={1: 1.0}).fit(np.zeros((100, 2)))
    for periods, standardize, message in (
        ({0: -1.0}, False, "a period is a positive number"),
        ({2: 1.0}, False, "names the column 2"),
        ({0: 1.0}, True, "standardize=True would change the units of X, and periods are in them"),
    ):
        model = dsp.HermiteRegressor(Polynomial(2), 5, periods=periods, standardize=standardize)
        with pytest.raises(ValueError, match=message):
            model.fit(ANGLES, ANGLES[:, 0])
