"""The package's face: lazy, small, the same for everyone; what `help` teaches, which pytest runs."""

import ast
import pydoc
import re
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


@pytest.mark.slow  # processes
@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import daskspectral; dir(daskspectral)", set()),
        (EVERY_HELP, set()),
        ("from daskspectral import forms, kernels, manifolds, operators, Moments, RankWarning", MATHEMATICS),
        ("import daskspectral.engine", MATHEMATICS | ENGINE),
        ("from daskspectral import SpectralDecomposition", ESTIMATOR),
        (FIT, ESTIMATOR),
    ],
    ids=["package", "help", "names", "engine", "estimator", "fit"],
)
def test_imports_are_lazy(code: str, allowed: set[str]) -> None:
    check = f"{code}\nimport sys; print([m for m in {HEAVY} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, timeout=60)
    assert {*ast.literal_eval(result.stdout.splitlines()[-1])} <= allowed


def test_every_name_is_there_and_in_the_help() -> None:
    page = pydoc.plain(pydoc.render_doc(dsp))
    assert page.count("\n") < 80  # not the docstrings of all classes
    for name in set(dir(dsp)) - {"__version__"}:
        assert getattr(dsp, name) is getattr(dsp, name)
        assert re.search(rf"\b{name}\b", page), name
