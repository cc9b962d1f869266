"""A newcomer's path, in an empty folder and an environment made for it: install, sample, fit, plot, load, transform."""

import os
import subprocess
import time
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MINUTES = 5

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
    folder = tmp_path / "empty"
    folder.mkdir()
    programs = tmp_path / "venv" / "bin"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV_", "COVERAGE"))}
    environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"
    end = time.monotonic() + 60 * MINUTES

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        left = end - time.monotonic()
        return subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=left)

    done = run(str(programs / "pip"), "install", "--quiet", f"{ROOT}[plot]")
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip(f"no package index can be reached to install from: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    for line in (
        "daskspectral sample two-moons --noise 0.02 --n 2e4 --out points.zarr",
        "daskspectral fit points.zarr --out model.zarr --plot functions.png",
        "daskspectral info model.zarr",
    ):
        done = run(*line.split())
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        assert "warning" not in done.stderr.lower(), done.stderr
    assert (folder / "functions.png").stat().st_size > 10_000
    done = run(str(programs / "python"), "-W", "error", "-c", SESSION)
    assert done.returncode == 0, done.stderr
    assert "x_pattern" in done.stdout
