"""Models and moments saved and loaded, bit for bit; data frames in and out, routing of weights, pipelines."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian, Matern
from tests.common import assert_same_bits, doubtful
from tests.estimators.common import X, make

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(150, 3))
Y = np.sin(TABLE[:, 0]) + TABLE[:, 1]
SLOPES = np.column_stack([np.cos(TABLE[:, 0]), np.ones(150), np.zeros(150)])
W = RNG.integers(0, 4, 150).astype(float)


def spectral(operator: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    return make(operator, **{"n_components": 4, "folds": None} | options)


def hermite(**options: Any) -> dsp.HermiteRegressor:
    return dsp.HermiteRegressor(Landmarks(Gaussian(1.0), 20), alpha=1e-3, random_state=0, **options)


@doubtful
def test_a_model_that_reads_and_chooses_is_saved_bit_for_bit(tmp_path: Path) -> None:
    rows = dsp.Rows(X, standardize=True, columns=np.array([-1, 0]))
    basis = Landmarks(Gaussian("median") + Matern(2.5, "median"), 20)
    model = make(basis=basis, dtype="float32", random_state=np.int64(3), n_components=np.int32(4)).fit(rows)
    dsp.save(model, tmp_path / "m.zarr")
    again = dsp.load(tmp_path / "m.zarr")
    assert_same_bits(again.moments_, model.moments_)
    for name in ("eigenvalues_", "coefficients_", "residuals_", "support_", "rank_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.fit(rows).eigenvalues_, model.eigenvalues_)


# -- compositions ------------------------------------------------------------------------------------------------------


def test_routing_of_weights_and_gradients() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = hermite().set_fit_request(sample_weight=True, gradients=True).set_score_request(sample_weight=True)
        found = cross_val_score(model, TABLE, Y, cv=3, params={"sample_weight": W, "gradients": SLOPES})
        asked = spectral().set_fit_request(sample_weight=True)
        pipe = make_pipeline(asked, Ridge().set_fit_request(sample_weight=False)).fit(TABLE, Y, sample_weight=W)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            cross_val_score(hermite(), TABLE, Y, params={"sample_weight": W})
    for score, (a, b) in zip(found, KFold(3).split(TABLE), strict=True):
        assert score == hermite().fit(TABLE[a], Y[a], SLOPES[a], sample_weight=W[a]).score(TABLE[b], Y[b], W[b])
    np.testing.assert_array_equal(pipe[0].transform(TABLE), spectral().fit(TABLE, sample_weight=W).transform(TABLE))


def test_warnings_point_at_the_line_that_called_scikit_learn_and_there_are_none_in_a_search() -> None:
    pipe, rows = make_pipeline(StandardScaler(), dsp.InvariantRegressor()), pd.DataFrame(RNG.normal(size=(20, 8)))
    with pytest.warns(dsp.FitWarning, match="few for the 9 functions") as caught:
        make_pipeline(pipe).fit(rows[:10], Y[:10])
    assert {warning.filename for warning in caught} == {__file__}
    cross_val_score(make_pipeline(pipe), rows, Y[:20], cv=2)  # warnings are errors
