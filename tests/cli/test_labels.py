"""Labelled data in a shell: every command takes zarr groups and NetCDF files where it takes rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr

import daskspectral as dsp
from tests.cli.common import done, facts

pytestmark = pytest.mark.usefixtures("folder")
KERNEL = "--kernel gaussian:1 --landmarks 20"
TIME = np.arange(150.0)


@pytest.fixture(autouse=True)
def arrays(folder: Path) -> None:
    """Points, targets, weights and labels as zarr groups, NetCDF files and plain zarr arrays (n..., p...)."""
    rng = np.random.default_rng(0)
    x = xr.DataArray(rng.standard_normal((150, 3)), {"time": TIME}, ("time", "k"), name="x")
    every = {"x": x, "y": (x[:, 0] ** 2).rename("y"), "w": (abs(x[:, 1]) + 1).rename("w")}
    every["c"] = (x[:, 0] > 0).astype(int).rename("c")
    for name, array in every.items():
        array.to_netcdf(f"{name}.nc", engine="h5netcdf")
        array.to_dataset().to_zarr(f"{name}.zarr", zarr_format=2)
        zarr.create_array(f"plain-{name}.zarr", data=array.values, chunks=(50, 3)[: array.ndim])


LINES = {
    "fit": f"fit x.END {KERNEL} --components 3 --weights w.END",
    "regress": f"regress x.END y.END {KERNEL} --weights w.END",
    "invariant": "invariant x.END y.END --group signflips --functions 20",
    "classify": "classify x.END c.END --group signflips --functions 20",
    "sdp": "embed x.END --bandwidth 1",
    "diffusion": "embed x.END --bandwidth 1 --map diffusion --method exact",
    "graph": "graph x.END --landmarks 20",
    "neighbours": "graph x.END --landmarks 20 --neighbours 5",
}
USED = {
    "fit": "score m.zarr x.END --weights w.END",
    "regress": "score m.zarr x.END --targets y.END",
    "invariant": "score m.zarr x.END --targets y.END",
    "classify": "score m.zarr x.END --targets c.END",
}
VALUES = ("eigenvalues", "spectrum", "objective", "score", "cv", "held_out_curve")


@pytest.mark.parametrize("ending", ["nc", "zarr", "mixed"])
@pytest.mark.parametrize("name", LINES)
@pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning", "ignore::daskspectral.errors.TrustWarning")
def test_a_model_of_labelled_data_is_that_of_the_numbers(name: str, ending: str) -> None:
    def line(text: str, ending: str) -> str:
        if ending == "mixed":  # points in a group, all else in files
            return text.replace("x.END", "x.zarr").replace("END", "nc")
        if ending == "plain":
            return " ".join(f"plain-{word[:-3]}zarr" if word.endswith(".END") else word for word in text.split())
        return text.replace("END", ending)

    for text in (f"{LINES[name]} --out m.zarr", USED.get(name)):
        if text is None:
            continue
        overwrite = "" if text.startswith("score") else " --overwrite"
        wanted, found = (facts(line(text, kind) + overwrite) for kind in ("plain", ending))
        keys = [key for key in VALUES if key in wanted]
        assert keys
        for key in keys:
            np.testing.assert_allclose(np.ravel(found[key]), np.ravel(wanted[key]), rtol=1e-6, atol=1e-9)


def test_a_score_of_a_field_is_that_of_python() -> None:
    rng = np.random.default_rng(0)
    coords = {"lat": [-60.0, 0.0, 60.0], "lon": [0.0, 90.0]}
    field = xr.DataArray(rng.standard_normal((150, 3, 2)), coords, ("time", "lat", "lon"), name="t")
    field.to_netcdf("t.nc", engine="h5netcdf")
    done("fit t.nc --operator covariance --sample-dims time --latitude lat --components 3 --out m.zarr")
    model = dsp.load("m.zarr")
    found = facts("score m.zarr t.nc")
    assert found["score"] == model.score(field)
    assert (found["rows"], len(found["values"])) == (150, 3)
