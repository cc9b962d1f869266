"""The whole way once, small: what any supported set of dependencies must manage, the lowest and the newest alike."""

import sys
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from distributed import Client, LocalCluster

import daskspectral as dsp
from tests.common import small_model, unreliable, written
from tests.deploy.common import called, environment

X = np.random.default_rng(0).standard_normal((2000, 2))


def command(*arguments: str) -> str:
    return called([sys.executable, "-m", "daskspectral.cli", *arguments], environment()).stdout


@unreliable
@pytest.mark.slow  # the command is run in processes
def test_from_a_file_to_an_embedding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    zarr.create_array("points.zarr", data=X, chunks=(500, 2))
    model = small_model(40).fit("points.zarr", checkpoint="run")
    model.save("model.zarr")
    loaded = dsp.load("model.zarr")
    np.testing.assert_array_equal(loaded.eigenvalues_, model.eigenvalues_)
    expected = small_model(40).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-8, atol=1e-9)
    loaded.transform("points.zarr", out="embedding.zarr")
    functions = written("embedding.zarr")
    np.testing.assert_allclose(functions, loaded.transform(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(loaded.transform(da.from_array(X, chunks=(700, 2))).compute(), functions, atol=1e-9)
    labeled = loaded.transform(xr.DataArray(X, dims=("sample", "feature")))
    np.testing.assert_allclose(labeled.values, functions, atol=1e-9)
    described = command("info", "model.zarr")
    assert "41 functions of 2 variables" in described
    assert "rows        2000" in described
    command("fit", "points.zarr", "--landmarks", "40", "--components", "4", "--out", "m.zarr", "--plot", "e.png")
    assert Path("e.png").read_bytes().startswith(b"\x89PNG")


@unreliable
@pytest.mark.slow  # stores at URLs have fast tests of their own
def test_a_url_of_an_object_store() -> None:
    zarr.create_array("memory://smoke.zarr", data=X, chunks=(500, 2))
    small_model(40).fit("memory://smoke.zarr").save("memory://smoke-model.zarr")
    model = dsp.load("memory://smoke-model.zarr")
    np.testing.assert_allclose(model.eigenvalues_, small_model(40).fit(X).eigenvalues_, rtol=1e-8, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_of_processes(tmp_path: Path, cluster: LocalCluster) -> None:
    path = str(tmp_path / "points.zarr")
    zarr.create_array(path, data=X, chunks=(500, 2))
    expected = small_model(40).fit(path).eigenvalues_
    with Client(cluster):
        np.testing.assert_array_equal(small_model(40).fit(path).eigenvalues_, expected)
