"""The package's face: lazy, small, the same for everyone; what `help` teaches, which pytest runs."""

import importlib
import importlib.util
import inspect
import subprocess
import sys

import pytest

import daskspectral as dsp

HEAVY = (
    *("sklearn", "matplotlib", "distributed", "dask", "dask.array", "zarr", "xarray", "pandas", "fsspec", "tqdm"),
    *("scipy", "scipy.stats", "numpy"),
)

MATHEMATICS = {"numpy", "scipy"}
ENGINE = {"dask", "fsspec", "tqdm"}
ESTIMATOR = MATHEMATICS | ENGINE | {"sklearn", "scipy.stats", "pandas"}  # scikit-learn imports the last two


EVERY_HELP = """from daskspectral.cli import command, main
for name in command.commands:
    try: main([name, "--help"])
    except SystemExit as end: assert not end.code"""
FIT = """import daskspectral as dsp, numpy as np
x = np.random.default_rng(0).normal(size=(60, 2))
dsp.SpectralDecomposition(basis=dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 20)).fit(x).transform(x)"""
VERIFY = """import tempfile, numpy, zarr
from daskspectral.cli import main
path = tempfile.mkdtemp() + "/x.zarr"
zarr.save_array(path, numpy.ones((4, 2)))
main(["verify", path])"""


def loaded_by(code: str) -> list[str]:
    """The heavy modules that some code imports, in a fresh process."""
    check = f"{code}\nimport sys; print([m for m in {HEAVY} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, timeout=60)
    return [m for m in HEAVY if repr(m) in result.stdout.splitlines()[-1]]


@pytest.mark.slow  # processes
@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import daskspectral; dir(daskspectral)", set()),
        (EVERY_HELP, set()),
        ("import daskspectral.moments, daskspectral.solve, daskspectral.landmarks", MATHEMATICS),
        (
            "from daskspectral import forms, kernels, manifolds, operators, Moments, RankWarning",
            MATHEMATICS,
        ),
        ("import daskspectral.engine", MATHEMATICS | ENGINE),
        ("from daskspectral import SpectralDecomposition", ESTIMATOR),
        (FIT, ESTIMATOR),
        (VERIFY, {"numpy", "zarr", *ENGINE}),
    ],
    ids=["package", "help", "mathematics", "names", "engine", "estimator", "fit", "verify"],
)
def test_imports_are_lazy(code: str, allowed: set[str]) -> None:
    assert set(loaded_by(code)) <= allowed


def test_every_name_is_there() -> None:
    assert set(dsp.__all__) | {"__version__"} == set(dir(dsp))
    assert len(set(dsp.__all__)) == len(dsp.__all__)
    for name in dsp.__all__:
        assert getattr(dsp, name) is getattr(dsp, name)
    contract = (
        "SpectralDecomposition save load kernels operators manifolds landmarks Moments RankWarning InvalidRowError"
    )
    assert set(contract.split()) <= set(dsp.__all__)


@pytest.mark.parametrize(
    "name", ["kernels", "manifolds", "groups", "basis", "operators", "forms", "landmarks", "model_selection"]
)
def test_every_public_class_and_function_has_an_example(name: str) -> None:
    module = importlib.import_module(f"daskspectral.{name}")
    public = {key: getattr(module, key) for key in module.__all__}
    lacking = {
        key
        for key, value in public.items()
        if (inspect.isclass(value) or inspect.isfunction(value)) and ">>> " not in (value.__doc__ or "")
    }
    assert {key for key in lacking if key != "parse" and not key.endswith("_state")} == set()
