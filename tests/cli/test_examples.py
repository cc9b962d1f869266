"""The examples of every --help run as they are written there."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr

import daskspectral as dsp
from daskspectral.cli import command
from daskspectral.cli.commands import Command
from daskspectral.estimators import calibration
from tests.cli.common import call

EXAMPLES = [line for c in command.commands.values() if isinstance(c, Command) for line in c.examples]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples read."""
    folder = tmp_path_factory.mktemp("examples")
    rng = np.random.default_rng(0)
    x, sphere = rng.standard_normal((300, 2)), dsp.manifolds.Sphere(3).sample(300, rng)
    path = np.zeros((300, 1))
    for t in range(1, 300):
        path[t] = 0.8 * path[t - 1] + 0.6 * rng.standard_normal()
    arrays = {
        "points": x,
        "path": path,
        "second-path": path[::-1],
        "v": (x**2).sum(axis=1),
        "b": -x,
        "y": (x**2).sum(axis=1),
        "sphere": sphere,
    }
    arrays |= {"s": sphere.prod(axis=1), "labels": ((x**2).sum(axis=1) + rng.normal(size=300) > 2).astype(int)}
    for name, array in arrays.items():
        zarr.create_array(folder / f"{name}.zarr", data=array, chunks=(100, *array.shape[1:]))
    atoms = zarr.create_array(folder / "atoms.zarr", data=rng.standard_normal((300, 9)), chunks=(100, 9))
    water = dsp.JacobiCoordinates([16, 1, 1]).fit(atoms[...])
    water.save(folder / "water.zarr")
    water.transform(atoms[...], out=folder / "reduced.zarr")
    np.savetxt(folder / "table.csv", x, delimiter=",", header="a,b", comments="")
    np.save(folder / "image.npy", x)
    field = xr.DataArray(rng.standard_normal((40, 3, 4)), {"lat": [-50.0, 0, 50]}, ("time", "lat", "lon"), name="sst")
    field[:, 0, 0] = np.nan
    field.to_netcdf(folder / "sst.nc", engine="h5netcdf")
    model = dsp.SpectralDecomposition(n_landmarks=20, n_components=4, random_state=0).fit(x[:200])
    model.save(folder / "model.zarr")
    for name in ("first", "second"):
        model.save(folder / f"{name}.zarr")
    dsp.HermiteRegressor(dsp.kernels.Gaussian(1.0), n_landmarks=20).fit(x, arrays["y"]).save(folder / "regressor.zarr")
    return folder


@pytest.mark.parametrize("line", EXAMPLES)
@pytest.mark.filterwarnings("ignore")
def test_an_example_runs(line: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "here"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(calibration, "calibrate", partial(calibration.calibrate, quick=True))  # not a minute
    if "--config model.zarr" in line or "--settings" in line:  # of a model that a command made
        made = "fit points.zarr --kernel gaussian:1 --landmarks 20 --components 4 --out model.zarr --overwrite"
        assert call(made).exit_code == 0
    words = line.split()
    if "--out" in words and Path(words[words.index("--out") + 1]).exists():
        words.append("--overwrite")
    result = call(*words)
    if result.exception is not None:
        raise result.exception
    assert result.exit_code == 0
    assert result.stdout
