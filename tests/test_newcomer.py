"""A newcomer's path, in an empty folder and an environment made for it: install, sample, fit, plot, load, transform."""

import os
import subprocess
import venv
from pathlib import Path

import pytest

from tests.deploy.common import called

ROOT = Path(__file__).parents[1]

SESSION = """
import daskspectral as dsp

model = dsp.load("model.zarr")
assert abs(model.eigenvalues_[0]) < 1e-9, model.eigenvalues_
assert model.transform(dsp.datasets.two_moons(600, seed=7)).shape == (600, len(model.eigenvalues_))
model.transform("points.zarr", out="functions.zarr")
print(model.to_xarray())
"""


@pytest.mark.slow
def test_install_sample_fit_plot_load_transform(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    folder, programs = tmp_path / "empty", tmp_path / "venv" / "bin"
    folder.mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV_", "COVERAGE"))}
    environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"
    install = [programs / "pip", "install", "--quiet", f"{ROOT}[plot]"]
    done = subprocess.run(install, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if "No matching distribution" in done.stderr:
        pytest.skip(f"no package index can be reached to install from: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    for line in (
        "daskspectral sample two-moons --noise 0.02 --n 2e4 --out points.zarr",
        "daskspectral fit points.zarr --out model.zarr --plot functions.png",
        "daskspectral info model.zarr",
    ):
        assert "warning" not in called(line.split(), environment, folder).stderr.lower(), line
    assert (folder / "functions.png").stat().st_size > 10_000
    assert "x_pattern" in called([programs / "python", "-W", "error", "-c", SESSION], environment, folder).stdout
