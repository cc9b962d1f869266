"""Answers do not depend on the origin and the units of columns, wherever the method does not.

Data are multiples of a power of two, so that shifting them is exact: what differs is the arithmetic alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral import basis as bases
from daskspectral.kernels import Gaussian, Linear, Polynomial
from daskspectral.moments.attributes import Attributes
from daskspectral.operators import Covariance, Cross, Laplacian, Schroedinger, Transfer
from tests.common import unreliable
from tests.test_contracts import BASES

pytestmark = unreliable

Array = np.ndarray[Any, np.dtype[np.floating[Any]]]
LINEAR = bases.Landmarks("linear")


def exact(x: Array, step: float = 2.0**-20) -> Array:
    """Data rounded to multiples of a power of two."""
    return np.rint(x / step) * step


def normal(n: int = 600, seed: int = 0) -> Array:
    """Two correlated columns of deviations near 1 and .5."""
    x = np.random.default_rng(seed).standard_normal((n, 2))
    return exact(x @ [[1.0, 0.3], [0.0, 0.3]])


def second(x: Array, seed: int = 1) -> Array:
    """Two columns that share something with those of x."""
    return exact(x[:, ::-1] + 0.5 * np.random.default_rng(seed).standard_normal(x.shape))


def walk(n: int = 1500) -> Array:
    """A damped rotation with noise, (n, 2)."""
    rng, x = np.random.default_rng(2), np.zeros((n, 2))
    for t in range(1, n):
        x[t] = x[t - 1] @ [[0.9, -0.3], [0.2, 0.85]] + rng.normal(size=2)
    return exact(x, 2.0**-18)


def values(model: Any) -> Array:
    found: Array = getattr(model, Attributes(model.moments_.operator.solver).values)
    return found


def fitted(operator: Any, data: Any, basis: Any = None, **options: Any) -> Any:
    options = {"n_components": 2, "random_state": 0, **options}
    if isinstance(operator, Cross):
        options = {"right_basis": basis, **options}
    return dsp.SpectralDecomposition(operator, basis, **options).fit(data)


@pytest.mark.parametrize("offset", [300.0, 5e6, 2.0**30])
def test_variances_far_from_zero_are_those_of_the_deviations(offset: float) -> None:
    x = normal()
    model = fitted(Covariance(), x + offset)
    np.testing.assert_allclose(model.eigenvalues_, np.linalg.eigvalsh(np.cov(x.T, bias=True))[::-1], rtol=1e-12)
    near = fitted(Covariance(), x)
    assert (model.rank_, model.reliable_.tolist()) == (2, near.reliable_.tolist())
    np.testing.assert_allclose(model.transform(x + offset), near.transform(x), atol=1e-12)
    np.testing.assert_allclose(model.inverse_transform(model.transform(x + offset)) - offset, x, atol=1e-15 * offset)
    np.testing.assert_allclose(model.patterns_.mean, x.mean(axis=0) + offset, rtol=1e-14)


def test_variances_of_float32_far_from_zero() -> None:
    """Pascals: ten of a hundred thousand."""
    x = exact(10 * normal(), 2.0**-6).astype(np.float32)
    wanted = np.linalg.eigvalsh(np.cov(x.T.astype(float), bias=True))[::-1]
    far = x + np.float32(2.0**17)
    for dtype, near in (("float64", 1e-12), ("float32", 1e-5)):
        np.testing.assert_allclose(fitted(Covariance(), far, dtype=dtype).eigenvalues_, wanted, rtol=near)


@pytest.mark.parametrize("operator", [Covariance(), Cross(center=True)], ids=str)
def test_gaps_far_from_zero(operator: Any) -> None:
    x = normal()
    x[np.random.default_rng(3).uniform(size=x.shape) < 0.2] = np.nan
    models = []
    for offset in (0.0, 2.0**28):
        data = x + offset if isinstance(operator, Covariance) else (x + offset, second(normal()) - offset)
        basis = None if isinstance(operator, Covariance) else LINEAR
        models.append(fitted(operator, dsp.Rows(data, on_invalid="pairwise"), basis))
    near, far = models
    np.testing.assert_allclose(values(far), values(near), rtol=1e-12)
    np.testing.assert_allclose(far.validation_values_, near.validation_values_, rtol=1e-10)
    assert far.rank_ == near.rank_


@pytest.mark.parametrize("solver", [None, dsp.solvers.Truncated()], ids=["penalized", "cut"])
@pytest.mark.parametrize("units", [(1.0, 1.0), (1.0, 1e-6), (1e12, 1e-12)])
@pytest.mark.parametrize("offset", [0.0, 300.0, 2.0**30])
def test_canonical_correlations_have_no_origin_and_no_units(offset: float, units: Any, solver: Any) -> None:
    x, y = normal(), second(normal())
    q, r = (np.linalg.qr(z - z.mean(axis=0))[0] for z in (x, y))
    model = fitted(Cross(center=True), ((x + offset) * units, y - offset), LINEAR, solver=solver)
    np.testing.assert_allclose(values(model), np.linalg.svd(q.T @ r)[1], rtol=1e-9 + 1e-17 * offset)
    assert model.rank_ == (2, 2)


def test_rows_follow_from_functions_less_their_means() -> None:
    x, y = normal() + 300, second(normal())
    model = fitted(Cross(center=True), (x, y), LINEAR)
    np.testing.assert_allclose(model.inverse_transform(model.transform(x)), x, rtol=1e-12)


@pytest.mark.parametrize("solver", ["singular", "eigen"])
def test_linear_functions_of_a_trajectory_have_no_origin_and_no_units(solver: str) -> None:
    """Beside the constant, whose value is 1, the regression of the deviations: as kelvin and years come."""
    x = walk()
    near, *others = (
        fitted(Transfer(1, solver), (x + offset) * units, LINEAR, n_components=3)
        for offset, units in ((0.0, 1.0), (2000.0, [1.0, 1e-9]), (2.0**28, [1e6, 1.0]))
    )
    start, end = (np.column_stack([np.ones(len(part)), part]) for part in (x[:-1], x[1:]))
    wanted = np.linalg.eigvals(np.linalg.lstsq(start, end, rcond=None)[0])
    if solver == "eigen":
        np.testing.assert_allclose(np.sort(np.abs(values(near))), np.sort(np.abs(wanted)), rtol=1e-8)
    for far in others:
        np.testing.assert_allclose(values(far), values(near), rtol=1e-9)
        assert (far.rank_, far.reliable_.tolist()) == (near.rank_, near.reliable_.tolist())


# -- moments about two centers -----------------------------------------------------------------------------------------

SQUARES = bases.MonomialBasis(2, 2, constant=False)
MIXED = bases.Concatenated((bases.MonomialBasis(2, 2), bases.LandmarkBasis(Gaussian(3.0), walk(10) + 4096.0)))
MOVABLE: list[tuple[Any, Any]] = [
    (Covariance(), None),
    (Laplacian(), MIXED),
    (Laplacian(), bases.MonomialBasis(2, 3)),
    (Cross(), LINEAR),
    (Cross(center=True), LINEAR),
    (Cross(center=True), SQUARES),
    (Transfer((1, 2)), LINEAR),
    (Transfer(1, reversible=True), LINEAR),
    (Transfer(2, "eigen"), bases.MonomialBasis(2, 2)),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("operator", "basis"), MOVABLE, ids=lambda part: str(part))
def test_moments_about_two_centers_add(operator: Any, basis: Any, tmp_path: Path) -> None:
    """The two halves, whose means are apart, are the whole."""
    n = 600
    x = walk(n) + 4096.0
    x[n // 2 :] += 32.0
    pair, lag = isinstance(operator, Cross), getattr(operator, "lag", 0)
    parts = [x[: n // 2], x[n // 2 :]]
    data: list[Any] = [(part, second(part)) for part in parts] if pair else parts
    whole: Any = tuple(np.vstack(side) for side in zip(*data, strict=True)) if pair else parts if lag else x
    one, two = (fitted(operator, part, basis) for part in data)
    assert not np.array_equal(one.preparation_.mean, two.preparation_.mean)
    two.save(tmp_path / "model.zarr")
    together = one.moments_ + dsp.load(tmp_path / "model.zarr").moments_
    model, wanted = one.fit_moments(together), fitted(operator, whole, basis)
    assert (model.moments_.count, model.rank_) == (wanted.moments_.count, wanted.rank_)
    np.testing.assert_allclose(np.abs(values(model)), np.abs(values(wanted)), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(np.abs(model.transform(x)), np.abs(wanted.transform(x)), atol=1e-7)
    if model.moments_.operator.has_patterns:
        for name in ("mean", "total", "variances"):
            found, other = (getattr(one.patterns_, name) for one in (model, wanted))
            np.testing.assert_allclose(found, other, rtol=1e-9)
    assert model.moments_.folds is not None
    summed = model.moments_.folds.total()["gram"]
    np.testing.assert_allclose(summed, model.moments_.arrays["gram"], rtol=1e-9, atol=1e-6 * np.abs(summed).max())


@pytest.mark.parametrize("operator", [Covariance(), Cross(center=True)], ids=str)
def test_moments_with_gaps_about_two_centers_add(operator: Any) -> None:
    x = walk(400) + 4096.0
    x[200:] += 512.0
    x[np.random.default_rng(3).uniform(size=x.shape) < 0.2] = np.nan
    y = second(walk(400))
    basis = None if isinstance(operator, Covariance) else LINEAR
    parts = [x[some] if basis is None else (x[some], y[some]) for some in (slice(200), slice(200, None), slice(400))]
    one, two, whole = (fitted(operator, dsp.Rows(part, on_invalid="pairwise"), basis) for part in parts)
    model = one.fit_moments(one.moments_ + two.moments_)
    np.testing.assert_allclose(values(model), values(whole), rtol=1e-10)


def test_an_update_keeps_the_center() -> None:
    x = walk(600) + 4096.0
    model, wanted = fitted(Covariance(), x[:300]), fitted(Covariance(), x)
    center = model.preparation_.mean
    np.testing.assert_allclose(model.update(x).eigenvalues_, wanted.eigenvalues_, rtol=1e-12)
    np.testing.assert_array_equal(model.preparation_.mean, center)


MOVED = [
    *(functions for functions, _ in BASES if functions.translated(np.zeros(2)) is not None),
    bases.LandmarkBasis(Linear(), normal(3)),
    bases.LandmarkBasis(Gaussian(2.0) * Polynomial(2), normal(3), centered=True),
    bases.Concatenated((bases.LandmarkBasis(Linear(), normal(3)), bases.ConstantBasis(2), SQUARES)),
]


@pytest.mark.parametrize("basis", MOVED, ids=lambda basis: basis.description)
def test_functions_of_moved_points(basis: Any) -> None:
    assert len(MOVED) > 10
    x, delta = normal(20), np.array([1.5, -0.7])
    found = basis.translated(delta)
    expected = found.matrix @ basis.values(x) + found.constant[:, None]
    np.testing.assert_allclose(found.basis.values(x + delta), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**500])
@pytest.mark.parametrize("basis", [LINEAR, bases.MonomialBasis(2, 2)], ids=["linear", "monomials"])
def test_columns_whose_squares_leave_the_range_of_numbers(basis: Any, unit: float) -> None:
    x, y = normal(), second(normal())
    near, far = (fitted(Cross(center=True), (x * [1.0, s], y), basis) for s in (1.0, unit))
    np.testing.assert_allclose(values(far), values(near), rtol=1e-9)
    assert (far.rank_, far.reliable_.tolist()) == (near.rank_, near.reliable_.tolist())


@pytest.mark.parametrize("unit", [2.0**-90, 2.0**90])
@pytest.mark.parametrize("operator", [Cross(center=True), Transfer(1)], ids=str)
def test_columns_whose_squares_leave_the_range_of_float32(operator: Any, unit: float) -> None:
    x, y = walk(), second(walk())
    near, far = (
        fitted(operator, (data, y) if isinstance(operator, Cross) else data, LINEAR, dtype="float32")
        for data in (x, x * unit)
    )
    np.testing.assert_allclose(values(far), values(near), rtol=1e-6)
    assert far.rank_ == near.rank_


STANDARDIZED = {
    "squares underflow": lambda x: x * [1.0, 2.0**-1000],
    "10^13 deviations from zero": lambda x: np.rint(x * 2**10) + np.array([2.0**53, 0]),
    "a constant": lambda x: np.column_stack([x, np.full(len(x), 288.15)]),
    "a constant but for rounding": lambda x: np.column_stack([x, 1.0 + 2.0**-52 * (x[:, 0] > 0)]),
}


@pytest.mark.parametrize("name", STANDARDIZED)
def test_standardized_columns_of_any_unit_and_origin(name: str) -> None:
    x = normal()
    wanted = np.linalg.eigvalsh(np.corrcoef(x.T))[::-1]
    model = fitted(Covariance(), dsp.Rows(STANDARDIZED[name](x), standardize=True))
    np.testing.assert_allclose(model.eigenvalues_, wanted, rtol=1e-2 if "10^13" in name else 1e-9)
    assert model.rank_ == 2


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("operator", [Laplacian(), Cross(center=True)], ids=str)
def test_rows_follow_from_functions_in_float32_far_from_zero(operator: Any, weighted: bool) -> None:
    x, basis = walk(600), bases.Landmarks(Gaussian(8.0), 12)
    weights = np.random.default_rng(4).uniform(1, 2, 600) if weighted else None
    found = []
    for offset in (0.0, 2.0**24):
        options = {"right_basis": basis} if isinstance(operator, Cross) else {}
        model = dsp.SpectralDecomposition(operator, basis, n_components=3, random_state=0, dtype="float32", **options)
        model.fit((x + offset, second(x)) if options else x + offset, sample_weight=weights)
        found.append(model.inverse_transform(model.transform(x + offset)) - offset)
    np.testing.assert_allclose(found[1], found[0], atol=2e-3)


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_weights_of_modes_have_no_units(unit: float) -> None:
    """One transform sums two weights, of which one is 1 and the other a potential in the unit of the columns."""
    x, v = normal(), exact(np.random.default_rng(5).uniform(1, 2, 600))
    models = [
        fitted(Schroedinger(), dsp.Rows(x * s, fields={"potential": v / s**2}), bases.FourierBasis(3), n_components=3)
        for s in (1.0, unit)
    ]
    np.testing.assert_allclose(models[1].eigenvalues_ * unit**2, models[0].eigenvalues_, rtol=1e-6)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("unit", [2.0**-900, 2.0**-100, 2.0**900])
def test_weights_of_modes_next_to_zeros_have_no_units(unit: float) -> None:
    """The slope along one column is 0 everywhere, and shares a transform with that along the other."""
    x = normal(200)
    slopes = np.column_stack([np.cos(x[:, 0]), np.zeros(len(x))])
    near, far = (
        dsp.HermiteRegressor(bases.FourierBasis(4), random_state=0)
        .fit(x, np.sin(x[:, 0]), gradients=slopes, sample_weight=np.full(len(x), weight))
        .predict(x)
        for weight in (1.0, unit)
    )
    np.testing.assert_allclose(far, near, atol=1e-9)


@pytest.mark.parametrize("origin", [0.0, 2.0**52])
def test_cells_of_states_have_no_origin(origin: float) -> None:
    """Cells of states that are near the least distance that numbers tell apart there."""
    states = np.random.default_rng(0).integers(0, 6, (200, 1)).astype(float)
    cells = bases.NormalizedRBF.draw(states + origin, 6, random_state=0)
    assert cells.width > 0.5
    np.testing.assert_array_equal(np.sort(cells.centers[:, 0]) - origin, np.arange(6))
