"""The benchmarks: every script can be imported, and the quick ones run at their tiny sizes."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from daskspectral.kernels import Gaussian

FOLDER = Path(__file__).parents[2] / "examples" / "benchmarks"
SHARED = {"common", "fitting", "problems", "spectra"}
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED)


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_tells_what_it_measures(name):
    module = importlib.import_module(name)
    done = CliRunner().invoke(module.main, ["--help"])
    assert done.exit_code == 0, done.output
    assert "--json" in done.output


@pytest.mark.filterwarnings("ignore::daskspectral.errors.DensityWarning")  # of tiny sizes
@pytest.mark.parametrize(
    "name",
    [
        "against_peers",
        "bandwidths",
        "billion_modes",
        "chunk_kernel",
        "classes",
        "cluster_limits",
        "cost_model",
        "density",
        "embeddings",
        "first_fit",
        "from_zarr",
        "gpu",
        "hermite",
        "invariant_dimensions",
        "kills",
        "lattice_fit",
        "many_functions",
        "mode_rates",
        "networks",
        "several_bases",
        "slow_variable",
        "submanifolds",
    ],
)
def test_quick(name, tmp_path):
    module, out = importlib.import_module(name), tmp_path / "out.json"
    folder = ["--folder", str(tmp_path)] if name in ("billion_modes", "cost_model", "from_zarr", "gpu") else []
    folder += ["--device", "cpu"] if name == "gpu" else []
    done = CliRunner().invoke(module.main, ["--quick", "--json", str(out), *folder], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text())


def test_our_side_of_the_comparison_with_klap():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((500, 2)), rng.standard_normal((10, 2))
    form, gram = importlib.import_module("against_klap").our_sums(Gaussian(1.0), y, x)
    values = Gaussian(1.0).values(x, y)
    assert np.allclose(gram, values @ values.T)
    assert form.shape == gram.shape


def test_beside_others_runs_what_is_installed(tmp_path):
    """The programs of this package and of scikit-learn, with their answers; the other peers are not installed here."""
    module = importlib.import_module("beside_others")
    arguments = ["--quick", "--repeats", "1", "--folder", str(tmp_path), "--task", "table", "--json"]
    done = CliRunner().invoke(module.main, [*arguments, str(tmp_path / "out.json")])
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert [row["by"] for row in rows] == ["daskspectral", "scikit-learn"]
    assert all(float(row["answer"]) > 0.9 for row in rows)  # five nearest neighbours on digits
    done = CliRunner().invoke(module.main, ["--show"])
    assert "dsp.operators.Covariance()" in done.output
    assert module.lines(module.FIELD_OURS) == 5
