"""Covariances of columns with single missing values, against loops over their common rows and against pandas."""

import re
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import daskspectral as dsp
from daskspectral.kernels import Linear
from daskspectral.moments.pairwise import PAIR_SUMS, PRESENT, Pairs, zero_filled
from daskspectral.operators import Covariance, Cross, Laplacian
from tests.common import unreliable

pytestmark = [unreliable, pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")]
Array = np.ndarray[Any, Any]


def holed(n: int = 300, d: int = 5, share: float = 0.2, seed: int = 0) -> Array:
    """Correlated columns about 4, a share of whose entries are missing, and all of row 3."""
    rng = np.random.default_rng(seed)
    x = 4 + rng.standard_normal((n, 2)) @ rng.standard_normal((2, d)) + 0.5 * rng.standard_normal((n, d))
    x[rng.uniform(size=x.shape) < share] = np.nan
    x[3] = np.nan
    return x


def pairwise(x: Array, w: Array) -> Array:
    """C_ij over the rows in which i and j are present, by loops."""
    d = x.shape[1]
    found = np.empty((d, d))
    for i in range(d):
        for j in range(d):
            both = ~np.isnan(x[:, i]) & ~np.isnan(x[:, j])
            a, b, u = x[both, i], x[both, j], w[both] / w[both].sum()
            found[i, j] = u @ ((a - u @ a) * (b - u @ b))
    return found


def fitted(x: Any, operator: Any = None, w: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    own = {"n_components": 3, **options}
    model = dsp.SpectralDecomposition(operator or Covariance(), **own)
    return model.fit(dsp.Rows(x, on_invalid="pairwise"), sample_weight=w)


def covariance_of(model: dsp.SpectralDecomposition) -> Array:
    first = model.moments_.mean("first")[1:]
    return model.moments_.mean("gram")[1:, 1:] - np.outer(first, first)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.floats(0, 0.4))
def test_each_covariance_is_that_of_the_common_rows(seed: int, d: int, share: float) -> None:
    x, w = holed(60, d, share, seed), np.random.default_rng(seed).uniform(0.5, 2, 60)
    rows, sums = zero_filled({"x": x, "weight": w}, ("x",))
    sums |= {"gram": rows["x"].T @ (w[:, None] * rows["x"]), "first": w @ rows["x"]}
    covariance = Pairs(True, tuple("abcde"[:d]))._about(sums, sums) / sums[PRESENT]
    np.testing.assert_allclose(covariance, pairwise(x, w), rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.diag(sums[PAIR_SUMS]), np.nansum(w[:, None] * x, axis=0), rtol=0, atol=1e-10)


@pytest.mark.parametrize("standardize", [False, True])
def test_variances_are_eigenvalues_of_the_pairwise_covariance(standardize: bool) -> None:
    x, w = holed() * [1, 10, 100, 1, 1], np.random.default_rng(1).uniform(0.5, 2, 300)
    rows, wanted = dsp.Rows(x, standardize=standardize, on_invalid="pairwise"), pairwise(x, w)
    if standardize:
        wanted = wanted / np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    model = dsp.SpectralDecomposition(Covariance(), n_components=3).fit(rows, sample_weight=w)
    np.testing.assert_allclose(model.eigenvalues_, np.linalg.eigvalsh(wanted)[:1:-1], rtol=1e-11)
    means = np.ma.average(np.ma.masked_invalid(x), axis=0, weights=w)
    np.testing.assert_allclose(model.patterns_.mean, means, rtol=1e-12)
    assert (model.moments_.count, model.moments_.skipped) == (299, 1)
    assert model.moments_.missing == pytest.approx(
        np.average(np.isnan(np.delete(x, 3, 0)).mean(1), weights=np.delete(w, 3))
    )


def test_rows_without_gaps_do_not_depend_on_the_option() -> None:
    x = np.nan_to_num(holed(), nan=1.0)
    model, plain = fitted(x), dsp.SpectralDecomposition(Covariance(), n_components=3).fit(x)
    for name in ("eigenvalues_", "validation_values_", "standard_errors_", "eigenvalue_errors_"):
        np.testing.assert_allclose(getattr(model, name), getattr(plain, name), rtol=1e-10)
    np.testing.assert_allclose(model.patterns_.maps, plain.patterns_.maps, rtol=0, atol=1e-11)
    np.testing.assert_allclose(
        model.transform(dsp.Rows(x, on_invalid="pairwise")), plain.transform(x), rtol=0, atol=1e-11
    )


def test_held_out_values_are_products_about_means_of_the_other_folds() -> None:
    x, labels = holed(400), np.arange(400) % 4
    model, found, norm = fitted(x, folds=labels, n_components=1), 0.0, 0.0
    counts = (~np.isnan(x)).T.astype(float) @ ~np.isnan(x)
    for fold in range(4):
        others, own = x[labels != fold], x[labels == fold]
        values, vectors = np.linalg.eigh(pairwise(others, np.ones(len(others))))
        v = vectors[:, -1] / np.sqrt(values[-1])
        norm += np.count_nonzero(~np.isnan(own).all(axis=1)) / 399 / values[-1]
        for i in range(5):
            for j in range(5):
                both, here = (np.flatnonzero(~np.isnan(part[:, [i, j]]).any(axis=1)) for part in (others, own))
                deviations = own[np.ix_(here, [i, j])] - others[np.ix_(both, [i, j])].mean(axis=0)
                found += v[i] * v[j] * deviations.prod(axis=1).sum() / counts[i, j]
    assert model.validation_values_[0] == pytest.approx(found / norm, rel=1e-10)


def test_transform_fits_what_is_present_by_least_squares() -> None:
    x = holed()
    model = fitted(x, n_components=2)
    found, p = model.transform(dsp.Rows(x, on_invalid="pairwise")), model.patterns_
    for row, values in zip(x[:40], found, strict=False):
        here = ~np.isnan(row)
        wanted = np.full(2, np.nan)
        if here.sum() >= 2:
            wanted = np.linalg.lstsq(p.maps[:, here].T, row[here] - p.mean[here])[0]
        np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-9)
    one = np.full((1, 5), np.nan)
    one[0, 2] = 4.0
    assert np.isnan(model.transform(dsp.Rows(one, on_invalid="pairwise"))).all()


def test_negative_eigenvalues_are_clipped_with_a_warning() -> None:
    x = np.full((300, 3), np.nan)
    z = np.random.default_rng(0).standard_normal((300, 1))
    x[:100, [0, 1]], x[100:200, [1, 2]], x[200:, [0, 2]] = z[:100], z[100:200], [1, -1] * z[200:]
    with pytest.warns(dsp.ReliabilityWarning, match="negative"):
        model = fitted(x, n_components=2)
    values = np.linalg.eigvalsh(pairwise(x, np.ones(300)))
    share = -values[values < 0].sum() / np.abs(values).sum()
    assert model.moments_.clipped == pytest.approx(share)
    assert share > 0.05
    np.testing.assert_allclose(model.eigenvalues_, values[:0:-1], rtol=1e-10)
    assert (np.linalg.eigvalsh(covariance_of(model)) > -1e-12).all()


def test_columns_without_a_common_row_are_an_error() -> None:
    x = holed()
    x[:150, 1], x[150:, 3] = np.nan, np.nan
    with pytest.raises(ValueError, match="column 1 of X"):
        fitted(x)


def test_pairs_in_one_fold_alone_leave_no_error_bars() -> None:
    x, labels = holed(), np.arange(300) % 3
    x[labels == 0, 1] = np.nan
    x[labels == 1, 1] = np.nan
    x[labels != 2, 3] = np.nan
    model = fitted(x, folds=labels)
    assert np.isnan(model.eigenvalue_errors_).all()
    assert "common rows" in model.message_


def test_cross_correlates_pairwise() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 4000, 3))
    y[:, 0] += x[:, 0]
    for z in (x, y):
        z[rng.uniform(size=z.shape) < 0.1] = np.nan
    linear = dsp.basis.Landmarks(Linear())
    model = fitted((x, y), Cross(center=True), basis=linear, n_components=2)
    joint = pairwise(np.hstack([x, y]), np.ones(4000))
    a, b = (np.linalg.inv(np.linalg.cholesky(part)) for part in (joint[:3, :3], joint[3:, 3:]))
    wanted = np.linalg.svd(a @ joint[:3, 3:] @ b.T)[1]
    np.testing.assert_allclose(model.singular_values_[0], wanted[0], rtol=1e-3)
    left = model.transform(dsp.Rows(x, on_invalid="pairwise"))
    right = model.transform(dsp.Rows(y, on_invalid="pairwise"), side="right")
    whole = ~np.isnan(np.hstack([x, y])).any(axis=1)
    assert np.corrcoef(left[whole, 0], right[whole, 0])[0, 1] == pytest.approx(wanted[0], abs=0.03)
    np.testing.assert_allclose(model.transform(np.nan_to_num(x))[whole], left[whole], rtol=0, atol=1e-10)


def test_chunks_and_updates_do_not_matter() -> None:
    x, folds = holed(), np.arange(300) % 5
    whole = fitted(x, folds=folds)
    lazy = fitted(da.from_array(x, chunks=(70, 2)), folds=folds)
    np.testing.assert_allclose(lazy.eigenvalues_, whole.eigenvalues_, rtol=1e-12)
    part = fitted(x[:200], folds=folds[:200]).update(dsp.Rows(x, on_invalid="pairwise"), folds=folds)
    np.testing.assert_allclose(part.validation_values_, whole.validation_values_, rtol=1e-10)
    both = fitted(x[:200]).moments_ + fitted(x[200:]).moments_
    np.testing.assert_allclose(both.mean("gram"), whole.moments_.mean("gram"), rtol=1e-12)


def test_what_does_not_go_with_gaps_is_refused() -> None:
    x = holed()
    rows = dsp.Rows(x, on_invalid="pairwise")
    gaussian = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 9)
    for model in (dsp.SpectralDecomposition(), dsp.SpectralDecomposition(Covariance(), basis=gaussian)):
        with pytest.raises(ValueError, match="pairwise"):
            model.fit(rows)
    with pytest.raises(dsp.InvalidRowError):
        fitted(x).transform(x)


# -- what errors of rows with gaps propose ---------------------------------------------------------------------------


RNG = np.random.default_rng(0)
HOLED = np.where(RNG.random((600, 12)) < 0.2, np.nan, RNG.standard_normal((600, 12)))
ONE_ROW = np.vstack([np.full(12, np.nan), RNG.standard_normal((300, 12))])
FIELD = xr.DataArray(HOLED[:, :6].reshape(600, 2, 3), {"time": np.arange(600)}, ("time", "lat", "lon"), name="t")
LINEAR = dsp.basis.Landmarks(Linear())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("data", "operator", "basis", "proposed"),
    [
        (HOLED, Covariance(), None, ["pairwise"]),
        ((HOLED, HOLED[:, ::-1]), Cross(center=True), LINEAR, ["pairwise"]),
        (FIELD, Covariance(), None, ["pairwise"]),
        (ONE_ROW, Covariance(), None, ["skip"]),
        (HOLED, Laplacian(), None, []),
        ((HOLED, HOLED), Cross(), LINEAR, []),
    ],
)
def test_the_option_that_an_error_proposes_works(data: Any, operator: Any, basis: Any, proposed: list[str]) -> None:
    """Options that would be refused are not proposed."""
    model = dsp.SpectralDecomposition(operator, basis, n_components=2, random_state=0)
    sample_dims = "time" if data is FIELD else None
    with pytest.raises(dsp.InvalidRowError) as caught:
        model.fit(dsp.Rows(data, sample_dims=sample_dims))
    assert re.findall(r"on_invalid='(\w+)'", str(caught.value)) == proposed
    for option in proposed:
        assert model.fit(dsp.Rows(data, sample_dims=sample_dims, on_invalid=option)).moments_.count >= 300
