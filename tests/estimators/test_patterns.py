"""The regression of the columns on the functions, from sums of the one pass, against least squares on all rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.operators import Augmentation, Covariance, Laplacian, Transfer
from tests.common import assert_close

X = np.random.default_rng(0).standard_normal((400, 3)) * [1, 2, 0.5] + [5, 0, -3]
GIVEN: dict[str, Any] = {"kernel": dsp.kernels.Gaussian(1.0), "n_landmarks": 25, "n_components": 6, "random_state": 0}


@pytest.mark.filterwarnings("ignore::daskspectral.errors.TrustWarning")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{"standardize": True, "columns": [0, 2]}, {"constant": False}], ids=str)
def test_it_is_least_squares(options: dict[str, Any], weighted: bool) -> None:
    """About the means, whether or not the basis holds the constant; landmarks' own rows are counted."""
    w = np.random.default_rng(1).uniform(0.5, 2, 400) if weighted else np.ones(400)
    model = dsp.SpectralDecomposition(**GIVEN | options).fit(X, sample_weight=w if weighted else None)
    f = model.transform(X)
    design = np.column_stack([np.ones(400), f if "constant" in options else f[:, 1:]])
    wanted = design @ np.linalg.lstsq(design * np.sqrt(w)[:, None], X * np.sqrt(w)[:, None], rcond=1e-8)[0]
    found, kept = model.inverse_transform(f), options.get("columns", [0, 1, 2])
    assert_close(found[:, kept], wanted[:, kept], 1e-9)
    assert np.isnan(found).all(axis=0).tolist() == [k not in kept for k in range(3)]


def test_all_components_give_the_rows_back() -> None:
    model = dsp.SpectralDecomposition(Covariance(), n_components=3).fit(X)
    assert_close(model.inverse_transform(model.transform(X)), X, 1e-11)
    assert_close(model.patterns_.explained, model.eigenvalues_ / model.eigenvalues_.sum(), 1e-10)


@pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")
@pytest.mark.parametrize("operator", [Transfer(1, "eigen"), Laplacian()])
def test_single_maps_are_covariances_over_variances(operator: Any) -> None:
    """Of complex functions, too, which are not orthogonal; they come in pairs that give real rows."""
    model, rows = dsp.SpectralDecomposition(operator, **GIVEN).fit(X), X[:-1] if operator != Laplacian() else X
    f, patterns = model.transform(rows), model.patterns_
    variances = np.var(f, axis=0)
    varies = variances > 1e-6
    single = (f - f.mean(axis=0)).conj().T @ (rows - rows.mean(axis=0)) / len(rows)
    assert_close(patterns.single[varies], single[varies] / variances[varies, None], 1e-8, dtype=None)
    assert not patterns.maps[~varies].any()
    assert patterns.mean == pytest.approx(rows.mean(axis=0), rel=1e-10)
    assert model.inverse_transform(f).dtype == float


def test_sums_add_and_are_saved(tmp_path: Path) -> None:
    model = dsp.SpectralDecomposition(**GIVEN).fit(da.from_array(X, chunks=(70, 3)))
    half = dsp.SpectralDecomposition(**GIVEN, landmarks=model.choice_.parameters["landmarks"]).fit(X[:200])
    assert_close(half.update(X).patterns_.single, model.patterns_.single, 1e-8)
    model.save(tmp_path / "model.zarr")
    f = model.transform(X)
    np.testing.assert_array_equal(dsp.load(tmp_path / "model.zarr").inverse_transform(f), model.inverse_transform(f))
    with pytest.raises(ValueError, match=r"shape \(n, 6\); its shape is \(400, 3\)"):
        model.inverse_transform(X)
    views = dsp.SpectralDecomposition(Augmentation(), **GIVEN).fit((X, X + 0.1))
    with pytest.raises(ValueError, match="several views"):
        views.inverse_transform(f)
