"""More columns than rows: orthonormal directions of the rows give what all columns give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import daskspectral as dsp
from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis, Landmarks, RowSpace
from daskspectral.kernels import Linear
from daskspectral.operators import Covariance, Laplacian
from tests.common import assert_close

N, D = 130, 170
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 5)) * [6, 5, 4, 3, 2] @ RNG.standard_normal((5, D)) + 0.3 * RNG.standard_normal((N, D)) + 10
WEIGHTS = RNG.integers(1, 4, N).astype(float)
GRID = {"lat": np.linspace(-80, 80, 10), "lon": np.arange(17.0)}
FIELD = xr.DataArray(X.reshape(N, 10, 17), {"time": np.arange(N), **GRID}, ("time", "lat", "lon"), name="t")
HOLES = X.copy()
HOLES[3, 5] = HOLES[70] = np.nan
ERRORS = ("eigenvalue_errors_", "standard_errors_", "held_out_", "groups_", "function_errors_", "trusted_")

pytestmark = pytest.mark.filterwarnings("ignore::daskspectral.TrustWarning")


def components(basis: Any = None, **params: Any) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(Covariance(), basis, n_components=4, **params)


def all_columns(constant: bool) -> Any:
    """The functions of every column: p x p sums."""
    if not constant:
        return Landmarks(Linear(), points=np.eye(D), constant=False)
    return Concatenated((ConstantBasis(D), LandmarkBasis(Linear(), np.eye(D))))


@pytest.mark.parametrize(
    ("rows", "params", "options"),
    [
        (X, {}, {}),
        (X, {}, {"sample_weight": WEIGHTS}),
        (X, {"folds": "blocks"}, {}),
        (X, {"folds": np.arange(N) % 7}, {"sample_weight": WEIGHTS}),
        (X, {"centred": False}, {}),
        (dsp.Rows(X, standardize=True), {}, {}),
        (dsp.Rows(HOLES, on_invalid="skip"), {}, {}),
        (dsp.Rows(FIELD, sample_dims=("time",), latitude="lat"), {}, {}),
    ],
    ids=["plain", "weights", "blocks", "labels", "second moments", "standardized", "skipped", "field"],
)
def test_the_rows_give_what_all_columns_give(rows: Any, params: dict[str, Any], options: dict[str, Any]) -> None:
    params = dict(params)
    constant = params.pop("centred", True)
    found = components(None if constant else Landmarks(Linear(), constant=False), **params).fit(rows, **options)
    wanted = components(all_columns(constant), **params).fit(rows, **options)
    assert isinstance(found.basis_.parts[-1], RowSpace)
    assert found.basis_.size <= N + constant
    assert_close(found.eigenvalues_, wanted.eigenvalues_, 1e-9)
    for name in ERRORS:
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-7, atol=1e-8)
    assert_close(found.held_out_, wanted.held_out_, 1e-9)
    for x in (X[:9], X[20:] * 2):
        scores, others = found.transform(x), wanted.transform(x)
        assert_close(scores * np.sign(np.sum(scores * others, axis=0)), others, 1e-8)
    one, two = found.patterns_, wanted.patterns_
    signs = np.sign(np.sum(one.single * two.single, axis=1))[:, None]
    assert_close(one.single * signs, two.single, 1e-9)
    assert_close(one.maps * signs, two.maps, 1e-9)
    assert_close(one.explained, two.explained, 1e-9)
    assert np.isnan(found.approximation_).all()  # no function of the rows is left out
    assert found.score(X * 1.5) == pytest.approx(wanted.score(X * 1.5), rel=1e-9)


def test_products_with_columns_are_formed_where_rows_are_added(tmp_path: Path) -> None:
    """New rows have what no direction of the earlier ones has, and patterns are of all rows."""
    found = components().fit(X[:110])
    assert found.moments_.spanned
    found.save(tmp_path / "model.zarr")
    assert_close(dsp.load(tmp_path / "model.zarr").patterns_.maps, found.patterns_.maps, 1e-12)
    apart = components(found.basis_).fit(X[110:])
    together = components(found.basis_).fit(X)
    for moments in (found.moments_ + apart.moments_, apart.moments_ + found.moments_, found.update(X).moments_):
        assert not moments.spanned
        assert_close(moments.arrays["points"], together.moments_.arrays["points"], 1e-9)
    assert_close(found.patterns_.maps, together.patterns_.maps, 1e-8)
    residual = (X - X.mean(axis=0)) - found.transform(X) @ found.patterns_.maps
    assert np.abs(found.transform(X).T @ residual).max() < 1e-8 * N


def test_values_of_few_functions_take_few_products() -> None:
    """However many rows or columns the functions were found in."""
    coefficients = RNG.standard_normal((7, 3))
    inner = RowSpace(Linear(), X[:9], RNG.standard_normal((9, 6)))
    for basis in (
        Concatenated((ConstantBasis(D), inner)),
        Concatenated((ConstantBasis(D), LandmarkBasis(Linear(), X[:6]))),
    ):
        assert basis.condensed(coefficients)[0].size == 4
        for wanted in (coefficients, 1j * coefficients):
            few, condensed = basis.condensed(wanted)
            assert_close(few.values(X).T @ condensed, basis.values(X).T @ wanted, 1e-12, dtype=None)


def test_derivatives_of_the_directions_of_rows() -> None:
    rows = RNG.standard_normal((6, 9))
    values, vectors = np.linalg.eigh(rows @ rows.T)
    basis = RowSpace(Linear(), rows, vectors / np.sqrt(values))
    directions = basis.directions.T @ rows
    np.testing.assert_allclose(directions @ directions.T, basis.norm(np.eye(6)), atol=1e-12)
    np.testing.assert_allclose(basis.values(X[:4, :9]), directions @ X[:4, :9].T)
    gradient = basis.span_gradient(np.eye(6))(X[:4, :9])
    np.testing.assert_allclose(gradient, np.broadcast_to(directions, (4, 6, 9)))
    found = dsp.SpectralDecomposition(Laplacian(), basis, n_components=3, folds=None).fit(X[:, :9])
    assert_close(found.moments_.mean("form")[1:, 1:], np.eye(6), 1e-12)
    landmarks = Landmarks(Linear())
    found = dsp.SpectralDecomposition(Laplacian(), landmarks, n_components=3, folds=None).fit(X[:9])
    assert type(found.basis_.parts[-1]) is LandmarkBasis  # whose gradients take fewer products
