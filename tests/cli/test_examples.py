"""The examples of every --help run as they are written there."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import daskspectral as dsp
from daskspectral.cli import command
from daskspectral.cli.commands import Command
from tests.cli.common import call, done, store

EXAMPLES = [line for c in command.commands.values() if isinstance(c, Command) for line in c.examples]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples read."""
    folder = tmp_path_factory.mktemp("examples")
    rng = np.random.default_rng(0)
    x, sphere = rng.standard_normal((200, 2)), dsp.manifolds.Sphere(3).sample(200, rng)
    square, path = (x**2).sum(axis=1), np.cumsum(0.2 * rng.standard_normal((200, 1)), axis=0) % 4
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        store(points=x, old=x[:150], v=square, y=square, b=-x, sphere=sphere, s=sphere.prod(axis=1))
        store(path=path, left=path[:, 0] < 1, right=path[:, 0] > 3, **{"second-path": path[::-1]})
        np.savetxt("table.csv", x, delimiter=",", header="a,b", comments="")
        np.save("image.npy", x)
        field = xr.DataArray(rng.random((40, 3, 4)), {"lat": [-50.0, 0, 50]}, ("time", "lat", "lon"), name="sst")
        field[:, 0, 0] = np.nan
        field.to_netcdf("sst.nc", engine="h5netcdf")
        for name in ("model", "first", "second"):
            done(f"fit old.zarr --landmarks 20 --components 4 --out {name}.zarr")
        done("regress points.zarr y.zarr --kernel gaussian:1 --landmarks 20 --alpha 0.1 --out regressor.zarr")
        done("fit path.zarr --operator transfer:5 --landmarks 20 --components 4 --out koopman.zarr")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("line", EXAMPLES)
@pytest.mark.filterwarnings("ignore")
def test_an_example_runs(line: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shutil.copytree(prepared, tmp_path / "here"))
    words = line.split()
    if "--out" in words and Path(words[words.index("--out") + 1]).exists():
        words.append("--overwrite")
    result = call(*words)
    if result.exception is not None:
        raise result.exception
    assert result.stdout
