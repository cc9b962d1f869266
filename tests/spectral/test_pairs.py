"""Two fields of the same rows: canonical correlations, against numpy."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from numpy.typing import NDArray

import daskspectral as dsp
from tests.common import assert_close, doubtful, reloaded

pytestmark = doubtful

Array = NDArray[Any]
RNG = np.random.default_rng(0)
SHARED = RNG.standard_normal((400, 3))
X = SHARED @ RNG.standard_normal((3, 6)) + RNG.standard_normal((400, 6)) + 7
Y = SHARED @ RNG.standard_normal((3, 5)) * 2 + RNG.standard_normal((400, 5)) - 1e3
WEIGHT = RNG.integers(1, 3, 400).astype(float)


def about_means(x: Array, weight: Array) -> Array:
    return np.asarray(x - np.average(x, axis=0, weights=weight))


def fields() -> tuple[xr.DataArray, xr.DataArray]:
    time = np.arange(400)
    x = xr.DataArray(X.reshape(400, 2, 3), {"time": time}, ("time", "lat", "lon"), name="t")
    return x, xr.DataArray(Y, {"time": time}, ("time", "station"), name="rain")


def whitened(x: Array, weight: Array) -> tuple[Array, Array]:
    """An orthonormal basis (n, d) of weighted columns about their means, and these columns."""
    centered = about_means(x, weight)
    return np.linalg.qr(np.sqrt(weight / weight.sum())[:, None] * centered)[0], centered


def test_canonical_correlations_of_fields_are_cosines_between_the_spans_of_their_columns() -> None:
    model = dsp.CCA(3, solver=dsp.solvers.Cut()).fit(X, Y, sample_weight=WEIGHT)
    u, values, vt = np.linalg.svd(whitened(X, WEIGHT)[0].T @ whitened(Y, WEIGHT)[0])
    assert_close(model.singular_values_, values[:3], 1e-9)
    for side, data, turn in ((None, X, u), ("right", Y, vt.T)):
        scores = np.asarray(model.transform(data, side=side))
        wanted = whitened(data, WEIGHT)[0] @ turn[:, :3] / np.sqrt(WEIGHT / WEIGHT.sum())[:, None]
        signs = np.sign(np.sum(scores * wanted, axis=0))
        assert_close(scores, wanted * signs, 1e-7)
    assert (model.held_out_ < model.singular_values_).all()


def test_pairs_of_fields_have_labels_and_are_saved() -> None:
    x, y = fields()
    model = dsp.CCA(2).fit(x, y)
    again = reloaded(model)
    scores = again.transform(y, side="right")
    assert scores.dims == ("time", "component")
    np.testing.assert_array_equal(scores, model.transform(Y, side="right"))
    assert model.to_xarray().t_pattern.dims == ("component", "lat", "lon")
    repeated = dsp.CCA(**model.choice_.parameters).fit(x, y)
    np.testing.assert_array_equal(repeated.singular_values_, model.singular_values_)


@pytest.mark.parametrize("method", ["rotated", "hilbert", "timescales_", "first_passage", "metastable_sets"])
def test_methods_of_other_fields_are_not_there(method: str) -> None:
    assert not hasattr(dsp.CCA, method)
    assert not hasattr(dsp.EOF if method not in ("rotated", "hilbert") else dsp.Koopman, method)
