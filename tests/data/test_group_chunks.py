"""Chunks of labelled groups: one that is missing is an error unless it reads as NaN, and groups go with one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import daskspectral as dsp
from daskspectral.kernels import Gaussian

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")
RNG = np.random.default_rng(0)
COUNTS = RNG.integers(1, 50, (80, 3, 2)).astype("int16")
TIME = np.arange(80) * 0.5


def field(values: Any = COUNTS) -> xr.DataArray:
    coords = {"time": TIME, "lat": [-30.0, 0.0, 45.0], "lon": [0.0, 90.0]}
    return xr.DataArray(values, coords, ("time", "lat", "lon"), name="counts")


def spectral(**options: Any) -> dsp.SpectralDecomposition:
    given: dict[str, Any] = {"kernel": Gaussian(60.0), "n_landmarks": 10, "n_components": 3, "random_state": 0}
    return dsp.SpectralDecomposition(**{**given, **options})


def written(path: Path, data: xr.DataArray, zarr_format: int = 3) -> None:
    data.to_dataset().chunk({"time": 20}).to_zarr(path, zarr_format=zarr_format)


def chunks(path: Path) -> list[Path]:
    found = [p for p in path.rglob("*") if p.is_file() and "zarr" not in p.name and not p.name.startswith(".z")]
    return sorted(p for p in found if path.name in ("x.zarr",) and "counts" in str(p))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_missing_chunk_of_numbers_is_an_error(tmp_path: Path, zarr_format: int) -> None:
    path = tmp_path / "x.zarr"
    written(path, field(), zarr_format)
    model = spectral(sample_dims="time").fit(path)
    assert np.isfinite(model.transform(path)).all()
    chunks(path)[2].unlink()
    with pytest.raises(OSError, match=r"x.zarr/counts is not whole: chunk .*2.0.0 is missing, and 1 of 4 chunks"):
        spectral(sample_dims="time").fit(path)
    for call in (model.transform, model.score):
        with pytest.raises(OSError, match="counts is not whole"):
            call(path)
    with pytest.raises(OSError, match="counts is not whole"):
        model.transform(path, out=tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()
    assert spectral(sample_dims="time").fit(path, allow_missing=True).moments_.count == 80
    assert np.isfinite(model.transform(path, allow_missing=True)).all()


def test_a_missing_chunk_of_weights_is_an_error(tmp_path: Path) -> None:
    weight = field(COUNTS.astype("int32")).mean(("lat", "lon"), dtype=int).rename("counts")
    weight.to_dataset().chunk({"time": 20}).to_zarr(tmp_path / "x.zarr")
    x = field().astype(float)
    total = spectral(sample_dims="time").fit(x, sample_weight=tmp_path / "x.zarr").moments_.weight
    assert total == weight.sum()
    chunks(tmp_path / "x.zarr")[0].unlink()
    with pytest.raises(OSError, match=r"chunk .*0 \(rows 0 to 20\) is missing"):
        spectral(sample_dims="time").fit(x.chunk({"time": 20}), sample_weight=tmp_path / "x.zarr")


def test_chunks_of_land_are_not_missed(tmp_path: Path) -> None:
    """xarray writes no chunk that holds nothing but NaN."""
    values = COUNTS.astype(float)
    values[:, 0] = np.nan
    field(values).to_dataset().chunk({"time": 20, "lat": 1}).to_zarr(tmp_path / "x.zarr")
    assert len(chunks(tmp_path / "x.zarr")) == 8
    model = spectral(sample_dims="time").fit(tmp_path / "x.zarr", on_invalid="skip")
    assert model.n_features_in_ == 4
    assert np.isfinite(model.transform(tmp_path / "x.zarr")).all()


def test_a_group_that_changes_during_a_run_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "x.zarr", field())
    from daskspectral.engine.run import Run

    reduce = Run.reduce

    def meddled(self: Any, *arguments: Any, **options: Any) -> Any:
        zarr.open_group(tmp_path / "x.zarr")["counts"][0, 0, 0] = 7
        return reduce(self, *arguments, **options)

    monkeypatch.setattr(Run, "reduce", meddled)
    with pytest.raises(OSError, match="changed during the run"):
        spectral(sample_dims="time").fit(tmp_path / "x.zarr")


@pytest.mark.parametrize("lazy", [False, True])
def test_groups_of_rows_and_of_targets_go_together(tmp_path: Path, lazy: bool) -> None:
    x = xr.DataArray(RNG.normal(size=(80, 3)), {"time": TIME}, ("time", "feature"), name="x")
    y, w = np.sin(x[:, 0]).rename("flux"), (x[:, 1] ** 2 + 1).rename("weight")
    for each in (x, y, w):
        each.to_dataset().to_zarr(tmp_path / f"{each.name}.zarr")
    model = dsp.HermiteRegressor(Gaussian(2.0), n_landmarks=10, alpha=1e-3, random_state=0)
    wanted = model.fit(x, y, sample_weight=w).coef_
    target = y.chunk({"time": 20}) if lazy else tmp_path / "flux.zarr"
    found = model.fit(tmp_path / "x.zarr", target, sample_weight=tmp_path / "weight.zarr")
    np.testing.assert_allclose(found.coef_, wanted, rtol=1e-9)
    assert found.predict(x).name == "flux"
    assert found.score(tmp_path / "x.zarr", tmp_path / "flux.zarr") == pytest.approx(found.score(x, y))


def test_groups_and_chunked_arrays_are_views_and_trajectories_together(tmp_path: Path) -> None:
    x = xr.DataArray(RNG.normal(size=(80, 3)), {"time": TIME}, ("time", "feature"), name="x")
    x.to_dataset().to_zarr(tmp_path / "x.zarr")
    path, lazy = tmp_path / "x.zarr", x.chunk({"time": 20})
    transfer = spectral(operator=dsp.operators.Transfer(1), kernel=Gaussian(2.0))
    wanted = transfer.fit([x, x]).singular_values_
    for parts in ([path, lazy], [lazy, path], [path, path]):
        np.testing.assert_allclose(transfer.fit(parts).singular_values_, wanted, rtol=1e-9)
    cross = spectral(operator=dsp.operators.Cross(), kernel=Gaussian(2.0))
    wanted = cross.fit((x, x + 1)).singular_values_
    np.testing.assert_allclose(cross.fit((path, lazy + 1)).singular_values_, wanted, rtol=1e-9)
