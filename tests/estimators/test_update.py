"""`update` folds in rows that were appended to the very array that was measured, and refuses any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.data.readers import ZarrReader
from tests.common import assert_close, unreliable

X = np.random.default_rng(0).standard_normal((6000, 2))
Y, SLOPES = np.sin(X[:, 0]), np.cos(X)
BASIS = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.5), points=X[:20])


def spectral(operator: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(operator, BASIS, n_components=3, **options)


def hermite(**options: Any) -> dsp.HermiteRegressor:
    return dsp.HermiteRegressor(BASIS, alpha=1e-3, **options)


def stored(path: str | Path, x: np.ndarray = X[:5500]) -> zarr.Array[Any]:
    """Rows in chunks of 1000, of which the last may be short."""
    return zarr.create_array(path, data=x, chunks=(1000, *x.shape[1:]))


MODELS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "lattice": (dsp.SpectralDecomposition(basis=dsp.basis.FourierBasis(3, box=[(-5, 5)] * 2), n_components=4), ()),
    "trajectory": (spectral(dsp.operators.Transfer(2)), ()),
    "invariant": (dsp.InvariantRegressor(n_eigenfunctions=9), (Y, SLOPES)),
}


@pytest.mark.one_in(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_rows_that_were_rewritten_are_summed_again(tmp_path: Path, name: str, small_tasks: None) -> None:
    model, values = clone(MODELS[name][0]), MODELS[name][1]
    array = stored(tmp_path / "x.zarr")
    model.fit(str(tmp_path / "x.zarr"), *(v[:5500] for v in values))
    array[2000:5000] = 0.9 * X[:3000]
    array.append(X[5500:])
    updated = model.update(str(tmp_path / "x.zarr"), *values).moments_
    whole = clone(model).fit(str(tmp_path / "x.zarr"), *values).moments_
    assert updated.rows == whole.rows == 6000 - 2 * (name == "trajectory")
    assert updated.arrays.keys() == whole.arrays.keys()
    if name != "invariant":  # which measures the manifold anew
        for form in {"gram", "first", "modes 1"} & updated.arrays.keys():
            assert_close(updated.arrays[form], whole.arrays[form], 1e-9, dtype=None)


@pytest.mark.parametrize("field", ["x", "y", "gradients", "weight"])
def test_other_data_are_refused_by_their_first_rows(field: str) -> None:
    data = {"x": X, "y": Y, "gradients": SLOPES, "weight": np.ones(6000)}

    def given(n: int) -> tuple[tuple[np.ndarray, ...], dict[str, np.ndarray]]:
        return (data["x"][:n], data["y"][:n], data["gradients"][:n]), {"sample_weight": data["weight"][:n]}

    rows, options = given(3000)
    model = hermite().fit(*rows, **options)
    data[field] = data[field][::-1] if field != "weight" else 2 * data[field]
    rows, options = given(6000)
    label = {"weight": "sample_weight", "x": "X"}.get(field, field)
    with pytest.raises(ValueError, match=f"first rows of {label}"):
        model.update(*rows, **options)
    with pytest.raises(ValueError, match="without"):
        model.update(X, Y, SLOPES)


@unreliable
def test_weights_of_later_rows_alone_are_refused() -> None:
    with pytest.raises(ValueError, match="sample_weight"):
        spectral().fit(X[:300]).update(X, sample_weight=np.ones(6000))


def test_the_first_trajectory_of_an_update_is_compared(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in "ab"]
    first, _ = (stored(path, x) for path, x in zip(paths, (X[:150], X[150:300]), strict=True))
    model = spectral(dsp.operators.Transfer(1), folds=None).fit(paths)
    first[:] = X[150:300]
    with pytest.raises(ValueError, match="first rows of X"):
        model.update([*paths, X[300:]])


@unreliable
def test_rows_are_appended_within_a_block_of_labeled_data(tmp_path: Path) -> None:
    path, models = str(tmp_path / "x.nc"), [spectral() for _ in range(2)]
    for model, n in zip(models, (450, 600), strict=True):
        xr.Dataset({"t": (("time", "c"), X[:n])}, coords={"time": np.arange(n)}).to_netcdf(path)
        model.fit(dsp.Rows(path, sample_dims=("time",)))
    one, other = (model.moments_.mean("gram") for model in (models[0].update(path), models[1]))
    assert_close(one, other, 1e-12)


@pytest.mark.slow
@unreliable
def test_rows_behind_unchanged_files_are_not_read_again(
    tmp_path: Path, small_tasks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first rows are compared; those of a short last chunk, which is written anew, are summed with all others."""
    reads, plain = set[int](), ZarrReader.read

    def read(self: ZarrReader, start: int, stop: int) -> Any:
        reads.update(range(start // 1000, -(-stop // 1000)))
        return plain(self, start, stop)

    monkeypatch.setattr(ZarrReader, "read", read)
    x = stored(tmp_path / "x.zarr", X[:4000])
    model = spectral().fit(str(tmp_path / "x.zarr"))
    expected = {0, *range(4, 6)}, set(range(6))
    for rows, thousands in zip((X[4000:5500], X[5500:]), expected, strict=True):
        x.append(rows)
        reads.clear()
        model.update(str(tmp_path / "x.zarr"))
        assert reads == thousands
    assert_close(model.moments_.mean("gram"), spectral().fit(X).moments_.mean("gram"), 1e-12)
