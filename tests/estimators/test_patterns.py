"""The regression of the columns on the functions, from sums of the one pass, against least squares on all rows."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.operators import Covariance, Generator, Laplacian, Transfer
from tests.common import assert_close

KERNEL = dsp.kernels.Gaussian(1.0)


def points(n: int = 400) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 3)) * [1, 2, 0.5] + [5, 0, -3]


def fitted(x: np.ndarray, operator: object = None, **options: object) -> dsp.SpectralDecomposition:
    given = {"n_landmarks": 25, "n_components": 6, "random_state": 0, "kernel": KERNEL, **options}
    return dsp.SpectralDecomposition(operator, **given)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::daskspectral.errors.TrustWarning")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"standardize": True}, {"columns": [0, 2]}, {"constant": False}], ids=str)
def test_it_is_least_squares(options: dict[str, object], weighted: bool) -> None:
    """About the means, whether or not the basis holds the constant; landmarks' own rows are counted."""
    x = points()
    w = np.random.default_rng(1).uniform(0.5, 2, len(x)) if weighted else np.ones(len(x))
    model = fitted(x, **options).fit(x, sample_weight=w if weighted else None)
    f = model.transform(x)
    design = np.column_stack([np.ones(len(x)), f if "constant" in options else f[:, 1:]])
    wanted = design @ np.linalg.lstsq(design * np.sqrt(w)[:, None], x * np.sqrt(w)[:, None], rcond=1e-8)[0]
    found = model.inverse_transform(f)
    kept = options.get("columns", [0, 1, 2])
    assert_close(found[:, kept], wanted[:, kept], 1e-9)  # type: ignore[call-overload]
    assert np.isnan(found).all(axis=0).tolist() == [k not in kept for k in range(3)]  # type: ignore[operator]


def test_all_components_give_the_rows_back() -> None:
    x = points()
    model = dsp.SpectralDecomposition(Covariance(), n_components=3).fit(x)
    assert_close(model.inverse_transform(model.transform(x)), x, 1e-11)
    assert_close(model.patterns_.explained, model.eigenvalues_ / model.eigenvalues_.sum(), 1e-10)
    assert_close(model.patterns_.explained.sum(), 1.0, 1e-12)


@pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")
def test_single_maps_are_covariances_over_variances() -> None:
    """Of complex functions, too, which are not orthogonal; they come in pairs that give real rows."""
    x = points(600)
    for operator in (Transfer(1, "eigen"), Laplacian()):
        model = fitted(x, operator).fit(x)
        rows = x[:-1] if isinstance(operator, Transfer) else x
        f, patterns = model.transform(rows), model.patterns_
        centred = f - f.mean(axis=0)
        variances = np.mean(np.abs(centred) ** 2, axis=0)
        varies = variances > 1e-6
        single = centred.conj().T @ (rows - rows.mean(axis=0)) / len(rows)
        assert_close(patterns.single[varies], single[varies] / variances[varies, None], 1e-8, dtype=None)
        assert not patterns.maps[~varies].any()
        assert patterns.mean == pytest.approx(rows.mean(axis=0), rel=1e-10)


def test_sums_add_and_are_saved(tmp_path: object) -> None:
    x = points()
    model = fitted(x).fit(da.from_array(x, chunks=(70, 3)))
    half = fitted(x, landmarks=model.choice_.parameters["landmarks"]).fit(x[:200])
    half.update(x)
    assert_close(half.patterns_.single, model.patterns_.single, 1e-8)
    model.save(f"{tmp_path}/model.zarr")
    again = dsp.load(f"{tmp_path}/model.zarr")
    assert np.array_equal(again.inverse_transform(again.transform(x)), model.inverse_transform(model.transform(x)))
    assert "points" not in model.moments_.folds.arrays


def test_where_there_are_none() -> None:
    x = points()
    model = fitted(x).fit(x)
    with pytest.raises(ValueError, match=r"shape \(n, 6\); its shape is \(400, 3\)"):
        model.inverse_transform(x)
    views = dsp.SpectralDecomposition(dsp.operators.Augmentation(), KERNEL, n_landmarks=9, n_components=4).fit(
        (x, x + 0.1)
    )
    with pytest.raises(ValueError, match="several views"):
        views.inverse_transform(views.transform(x))


def test_generators_have_them_too() -> None:
    x = points()
    model = fitted(x, Generator(diffusion=1.0, drift="drift")).fit(x, fields={"drift": -x})
    found = model.inverse_transform(model.transform(x))
    assert found.dtype == float
    assert np.mean((found - x) ** 2) < np.mean((x - x.mean(axis=0)) ** 2)
