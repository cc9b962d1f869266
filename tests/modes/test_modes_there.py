"""Modes on an accelerator: by matrix products, and by cufinufft, for which a module that sums directly stands in."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import FourierBasis
from daskspectral.devices import Device
from daskspectral.kernels import Matern
from tests.common import assert_close, unreliable
from tests.modes.common import direct
from tests.stand_in import There


class DirectPlan:
    """The interface of cufinufft's plans, of type 1, on arrays of the device."""

    made: list[dict[str, Any]]

    def __init__(self, nufft_type: int, n_modes: tuple[int, ...], **options: Any):
        self.made.append(options)
        assert (nufft_type, options["isign"]) == (1, -1)
        self.orders = tuple(n // 2 for n in n_modes)

    def setpts(self, *points: There) -> None:
        assert all(isinstance(axis, There) and axis.ndim == 1 for axis in points)
        self.angles = np.column_stack([axis._values for axis in points])

    def execute(self, strengths: There) -> There:
        assert strengths.dtype == complex
        return There(direct(self.orders, self.angles, strengths._values[None])[0])


@pytest.fixture
def cufinufft(stand_in: Device, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """cufinufft as if it were installed; the options of the plans that are made."""
    module: Any = ModuleType("cufinufft")
    module.__spec__ = ModuleSpec("cufinufft", None)
    module.Plan = DirectPlan
    monkeypatch.setattr(DirectPlan, "made", [], raising=False)
    monkeypatch.setitem(sys.modules, "cufinufft", module)
    return DirectPlan.made


@pytest.mark.one_in(3)
@unreliable
@pytest.mark.parametrize(("d", "weighted", "method"), [(1, True, "nufft"), (3, False, "nufft"), (2, True, "matmul")])
def test_modes_are_those_of_the_host(d: int, weighted: bool, method: str, cufinufft: list[dict[str, Any]]) -> None:
    x = np.random.default_rng(0).uniform(0, 1, (400, d))
    lattice = FourierBasis({1: 20, 2: 4, 3: 2}[d], method=method, eps=1e-9, kernel=Matern(1.5, 0.5))
    operator = dsp.operators.Schroedinger() if weighted else dsp.operators.Laplacian()
    rows = dsp.Rows(x, fields={"potential": x[:, 0]} if weighted else None)
    here = dsp.SpectralDecomposition(operator, lattice, n_components=4, solver=dsp.solvers.Regularized(1.0), folds=3)
    there = clone(here).set_params(device="cuda").fit(rows)
    here.fit(rows)
    for name, values in here.moments_.arrays.items():
        assert_close(there.moments_.arrays[name], values, 1e-8, dtype=None, what=name)  # eps of the transform is 1e-9
    assert_close(there.eigenvalues_, here.eigenvalues_, 1e-7)
    assert bool(cufinufft) == (method == "nufft")
    assert all(options["dtype"] == "complex128" for options in cufinufft)
