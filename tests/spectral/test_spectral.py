"""Spectra in closed form, met to a stated accuracy; and what comes in as dask or xarray goes out so, lazily."""

import math
import warnings
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
import xarray as xr
from sklearn.base import clone

import daskspectral as dsp
from daskspectral import RankWarning, Rows, SpectralDecomposition
from daskspectral.basis import LandmarkBasis, Landmarks
from daskspectral.kernels import Exponential, Gaussian, Kernel, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.operators import Laplacian
from daskspectral.solvers import Truncated
from tests.common import assert_same_moments, reference_arrays, unreliable, written
from tests.estimators.common import CONTAINERS, Array, N, X, as_chunked, as_dask, as_numpy, as_path, as_xarray, make

pytestmark = unreliable

LIMITS = reference_arrays("limits")


def multiplicity(d: int, s: int) -> int:
    """N(d, s): spherical harmonics of degree s in d variables."""
    return 1 if s == 0 else (2 * s + d - 2) * math.comb(s + d - 3, s - 1) // s


@pytest.mark.parametrize(("d", "degree", "largest"), [(3, 4, 0.02), (5, 3, 0.035)])
def test_sphere(d: int, degree: int, largest: float) -> None:
    """The error of equation (21): sum |1/l - 1/l'| over sum 1/l."""
    x = Sphere(d).sample(20_000, np.random.default_rng(1))
    model = SpectralDecomposition(Laplacian(Sphere(d)), Landmarks(Polynomial(degree), 100), n_components=25)
    model.set_params(random_state=0).fit(x)
    assert abs(model.eigenvalues_[0]) < 1e-8
    true = np.array([s * (s + d - 2) for s in range(1, 8) for _ in range(multiplicity(d, s))][:24])
    assert np.sum(np.abs(1 / true - 1 / model.eigenvalues_[1:])) / np.sum(1 / true) <= largest
    assert model.rank_ == sum(multiplicity(d, s) for s in range(degree + 1))


@pytest.mark.slow
def test_small_bandwidth_has_no_spurious_small_eigenvalues() -> None:
    x = np.random.default_rng(0).standard_normal((10_000, 5))
    model = make(basis=Landmarks(Gaussian(0.3), 150, method="uniform"))
    cut = clone(model).set_params(basis__drop_landmark_rows=True, solver=Truncated(min_support=10.0))
    with pytest.warns(RankWarning, match="min_support"):
        assert (cut.fit(x).eigenvalues_[1:] >= 10).all()
    # with all rows and all functions: a cut alone leaves 13 values below 0.5, and 1 is the first true one
    assert (model.fit(x).eigenvalues_[1:] >= 1).all()


def reference_kernel(name: str, parameter: float) -> Kernel:
    if name == "polynomial":
        return Polynomial(int(parameter))
    return Gaussian(parameter / math.sqrt(2)) if name == "gaussian" else Exponential(parameter)


@pytest.mark.one_in(16, 2)
@pytest.mark.parametrize("key", LIMITS)
def test_biased_limits_of_the_ambient_form(key: str) -> None:
    """s(s+d-2) + (g'/g)^2 for degree s, as the mean over each multiplet, n = 2e4."""
    _, dimension, name, parameter = key.split("_")
    d, table = int(dimension[1:]), LIMITS[key]
    s, plain, slope, biased = table.T
    np.testing.assert_allclose([plain, biased], [s * (s + d - 2), plain + slope**2])
    # the exponential kernel's 200 functions resolve the low degrees only, slowly; a polynomial has its own degrees
    highest = {"exponential": 2, "polynomial": min(4, int(float(parameter)))}.get(name, 4)
    multiplets = [multiplicity(d, s) for s in range(highest + 1)]
    kernel, draw = reference_kernel(name, float(parameter)), Sphere(d).sample
    basis = Landmarks(kernel, points=draw(200, np.random.default_rng(2)), constant=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)  # the widest kernels do not resolve the highest degrees
        model = make(basis=basis, n_components=sum(multiplets)).fit(draw(20_000, np.random.default_rng(1)))
    found, borders = model.eigenvalues_, np.concatenate([[0], np.cumsum(multiplets)])
    whole = borders[1:][borders[1:] <= len(found)]
    assert len(whole) >= 2
    means = [found[a:b].mean() for a, b in zip(borders, whole, strict=False)]
    np.testing.assert_allclose(means, biased[: len(whole)], rtol=0.03 if name == "exponential" else 0.01)


def as_netcdf(path: Path, name: str, x: Array) -> xr.DataArray:
    as_xarray(path, name, x).drop_vars("feature").rename("points").to_netcdf(path / "x.nc")
    return xr.open_dataset(path / "x.nc").points


KINDS: dict[str, Any] = {**CONTAINERS, "netcdf": (as_netcdf, xr.DataArray)}
BROKEN = X.copy()
BROKEN[[1718, 1717], [2, 0]] = [np.inf, np.nan]


@pytest.mark.one_in(7)
@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("kind", KINDS)
def test_container_in_container_out(kind: str, tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    convert, out = KINDS[kind]
    x = convert(tmp_path, "x", X)
    assert_same_moments(make().fit(x).moments_, fitted.moments_)
    embedding = fitted.transform(x)
    assert isinstance(embedding, out)
    assert (embedding.shape, embedding.dtype) == ((N, 5), np.float64)
    np.testing.assert_allclose(np.asarray(embedding), fitted.transform(X), rtol=1e-9, atol=1e-12)
    fitted.transform(x, out=tmp_path / "out.zarr")
    np.testing.assert_allclose(written(tmp_path / "out.zarr"), fitted.transform(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("convert", [as_dask, as_chunked, as_netcdf])
def test_lazy_in_lazy_out(
    convert: Any, tmp_path: Path, fitted: dsp.SpectralDecomposition, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, calls, original = convert(tmp_path, "x", X), [], LandmarkBasis.at
    monkeypatch.setattr(LandmarkBasis, "at", lambda self, block, atoms: calls.append(1) or original(self, block, atoms))
    embedding = fitted.transform(x)
    assert dask.is_dask_collection(embedding)
    assert calls == []
    part = np.asarray(embedding[1000:1010].compute(scheduler="synchronous"))
    assert 0 < len(calls) <= 3 if convert is not as_netcdf else calls
    np.testing.assert_allclose(part, fitted.transform(X[1000:1010]), rtol=1e-9, atol=1e-12)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("convert", [as_numpy, as_path])
def test_invalid_rows(convert: Any, tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    x, out = convert(tmp_path, "x", BROKEN), tmp_path / "out.zarr"
    with pytest.raises(dsp.InvalidRowError, match=r"row 1717 .*NaN in column 0") as caught:
        np.asarray(fitted.transform(x))
    assert caught.value.row == 1717
    fitted.transform(Rows(x, on_invalid="skip"), out=out)
    for embedding in (np.asarray(fitted.transform(Rows(x, on_invalid="skip"))), written(out)):
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(embedding).all(axis=1)), [1717, 1718])
    for basis, rows in ((None, x), (None, Rows(x, standardize=True)), (Landmarks(Gaussian("median"), 20), x)):
        with pytest.raises(dsp.InvalidRowError, match=r"row 1717 is the first .*NaN in"):
            make(basis=basis).fit(rows)
    given = Landmarks(Gaussian(1.0), points=X[:20])
    skipped = make(basis=given).fit(Rows(x, on_invalid="skip"))
    without = make(basis=given).fit(np.delete(BROKEN, [1717, 1718], axis=0))
    assert skipped.moments_.skipped == 2
    np.testing.assert_allclose(skipped.moments_.arrays["gram"], without.moments_.arrays["gram"], rtol=1e-12)


@pytest.mark.slow
def test_intervals_go_down_to_what_more_landmarks_would_find() -> None:
    """Of a torus in six columns a tenth of the values goes with half of the landmarks: 4 of 10 were in intervals."""
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, (1000, 3))
    x = np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(1000, 6)
    model = dsp.SpectralDecomposition(n_components=11, random_state=0)
    with warnings.catch_warnings(action="ignore"):
        model.fit(x)
    wanted, (lower, upper) = np.repeat([1.0, 2.0], [6, 4]), model.eigenvalue_errors_[1:].T
    assert np.count_nonzero((lower <= wanted) & (wanted <= upper)) >= 8
