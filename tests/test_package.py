"""The package's face: lazy, small, and the same for everyone."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import daskspectral as dsp

HEAVY = ("sklearn", "matplotlib", "distributed", "dask", "zarr", "xarray", "pandas", "fsspec", "tqdm", "scipy", "numpy")

MATHEMATICS = {"numpy", "scipy"}
ENGINE = {"dask", "zarr", "xarray", "pandas", "fsspec", "tqdm"}


def loaded_by(code: str) -> list[str]:
    """The heavy modules that some code imports, in a fresh process."""
    check = f"{code}\nimport sys; print([m for m in {HEAVY} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, timeout=60)
    return [m for m in HEAVY if repr(m) in result.stdout]


@pytest.mark.slow  # processes
@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import daskspectral; dir(daskspectral)", set()),
        ("import daskspectral.moments, daskspectral.solve, daskspectral.landmarks", MATHEMATICS),
        (
            "from daskspectral import kernels, manifolds, operators, form, grad, inner, Moments, RankWarning",
            MATHEMATICS,
        ),
        ("import daskspectral.engine", MATHEMATICS | ENGINE),
        ("from daskspectral import SpectralDecomposition", MATHEMATICS | ENGINE | {"sklearn"}),
    ],
    ids=["package", "mathematics", "names", "engine", "estimator"],
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


def test_the_top_level_holds_what_belongs_there() -> None:
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True, timeout=60)
    top = {Path(line).parts[0] for line in listed.stdout.splitlines()}
    allowed = {"pyproject.toml", "README.md", "daskspectral", "tests", "deploy", "examples", "LICENSE", "CHANGELOG.md"}
    assert {name for name in top if not name.startswith(".")} <= allowed
